"""One SVG per load: throughput of the systems, and latencies where a rate was given."""

import os
from statistics import median

COLOURS = {"triad": "#1f6feb", "triad_async": "#7fb2ff", "floor": "#8c959f", "rocketmq": "#d1242f",
           "rabbitmq": "#bf8700", "nats": "#2da44e"}
TITLES = {"triad": "Triad (synced)", "triad_async": "Triad, ASYNC_FLUSH", "floor": "floor (synced)",
          "rocketmq": "RocketMQ DLedger (not synced)", "rabbitmq": "RabbitMQ quorum (synced)",
          "nats": "NATS R3 (not synced)"}
WIDTH, LEFT, BAR, GAP = 720, 220, 22, 12


def values(result, system, load, key):
    return [cell["report"][key] for cell in result["cells"]
            if cell["system"] == system and cell["load"] == load and key in cell["report"]]


def bars(title, unit, rows):
    """rows: (label, colour, low, middle, high) -> SVG text."""
    top = max(row[4] for row in rows) or 1
    height = 50 + len(rows) * (BAR + GAP)
    scale = (WIDTH - LEFT - 110) / top
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">'
           % (WIDTH, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="24" font-size="15" font-weight="bold">%s</text>' % title]
    for i, (label, colour, low, middle, high) in enumerate(rows):
        y = 42 + i * (BAR + GAP)
        centre = y + BAR / 2
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (LEFT - 8, centre + 5, label))
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>'
                   % (LEFT, y, max(1, middle * scale), BAR, colour))
        out.append('<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black"/>'
                   % (LEFT + low * scale, LEFT + high * scale, centre, centre))
        out.append('<text x="%.1f" y="%.1f">%s %s</text>'
                   % (LEFT + high * scale + 6, centre + 5, number(middle), unit))
    return "\n".join(out + ["</svg>", ""])


def number(value):
    return "{:,.0f}".format(value) if value >= 100 else "%.3g" % value


def chart(result, load):
    """The SVG of one load; None when nothing was measured."""
    has_rate = any(cell["report"].get("rate", 0) > 0 for cell in result["cells"] if cell["load"] == load)
    rows = []
    for system, title in TITLES.items():
        keys = [("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9")] if has_rate else [("msg_per_s", "")]
        for key, label in keys:
            found = values(result, system, load, key)
            if found:
                rows.append(((title + " " + label).strip(), COLOURS[system], min(found), median(found), max(found)))
    if not rows:
        return None
    return bars("%s: %s" % (load, "latency" if has_rate else "messages per second"), "ms" if has_rate else "", rows)


def charted(result):
    """Names of the loads that have a chart."""
    names = []
    for cell in result["cells"]:
        if cell["load"] not in names and "p50_ms" in cell["report"]:
            names.append(cell["load"])
    return names


def write(result, directory):
    os.makedirs(directory, exist_ok=True)
    for load in charted(result):
        with open("%s/%s.svg" % (directory, load), "w") as file:
            file.write(chart(result, load))
