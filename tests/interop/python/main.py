"""The unmodified C++ client behind its Python binding: main.py NAMESRV CASE... prints "case NAME: PASS|FAIL counts" for
each; "all" stands for every case. Exit code 0 only when all passed."""

import collections
import os
import sys
import threading
import time
import traceback

from rocketmq.client import Message, Producer, PushConsumer, SendStatus
from rocketmq.ffi import MessageModel

NAMESRV = sys.argv[1]
RUN = format(int(time.time() * 1000), "x")


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def result(ok, counts):
    return ok, counts


def producer(name):
    p = Producer(f"pg_{name}{RUN}")
    p.set_namesrv_addr(NAMESRV)
    p.start()
    return p


def consumer(name, topic, listener, expression="*", instance=None, **options):
    c = PushConsumer(f"g_{name}{RUN}", **options)
    if instance:
        c.set_instance_name(instance)
    c.set_namesrv_addr(NAMESRV)
    c.subscribe(topic, listener, expression)
    c.start()
    return c


def message(topic, body, tags="T", delay=0):
    m = Message(topic)
    m.set_keys("key " + body)
    m.set_tags(tags)
    m.set_body(body)
    if delay:
        m.set_delay_time_level(delay)
    return m


def send(p, topic, count, first=0):
    return sum(p.send_sync(message(topic, f"m{i}")).status == SendStatus.OK for i in range(first, count))


class Tally:
    """Counts what listeners see, from the client's threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.times = collections.Counter()

    def __call__(self, received):
        with self.lock:
            self.times[received.body.decode()] += 1

    def distinct(self):
        with self.lock:
            return len(self.times)

    def deliveries(self):
        with self.lock:
            return sum(self.times.values())

    def of(self, bodies):
        with self.lock:
            return sum(body in self.times for body in bodies)

    def has(self, bodies):
        return self.of(bodies) == len(bodies)

    def most(self, bodies):
        """How often the one that came most often came."""
        with self.lock:
            return max(self.times[body] for body in bodies)


def read_back(name, topic, count):
    seen = Tally()
    c = consumer(name, topic, seen)
    wait_for(lambda: seen.distinct() >= count)
    c.shutdown()
    return seen


def send_sync():
    topic = "PSync" + RUN
    p = producer("sync")
    acked = send(p, topic, 100)
    p.shutdown()
    seen = read_back("sync", topic, 100)
    return result(acked == 100 and seen.distinct() == 100, f"acked={acked} read={seen.distinct()}")


def send_oneway():
    topic = "POneway" + RUN
    p = producer("oneway")
    send(p, topic, 1)
    for i in range(1, 100):
        p.send_oneway(message(topic, f"m{i}"))
    seen = read_back("oneway", topic, 100)
    p.shutdown()
    return result(seen.distinct() == 100, f"read={seen.distinct()}")


def send_batch():
    topic = "PBatch" + RUN
    p = producer("batch")
    # Above 4 KiB this client compresses the batch as a whole, which no broker can take apart.
    sent = p.send_batch([message(topic, f"m{i}") for i in range(30)])
    p.shutdown()
    seen = read_back("batch", topic, 30)
    return result(sent.status == SendStatus.OK and seen.distinct() == 30, f"read={seen.distinct()} of 30")


def concurrent():
    topic = "PConcurrent" + RUN
    p = producer("concurrent")
    acked = send(p, topic, 1)
    seen = Tally()
    c = consumer("concurrent", topic, seen)
    acked += send(p, topic, 500, first=1)
    ok = wait_for(lambda: seen.distinct() == 500)
    c.shutdown()
    p.shutdown()
    return result(ok and acked == 500, f"acked={acked} distinct={seen.distinct()} deliveries={seen.deliveries()}")


def orderly():
    topic = "POrderly" + RUN
    p = producer("orderly")
    acked = 0
    for i in range(300):
        sent = p.send_orderly(message(topic, f"{i % 10}:{i // 10}"), i % 10)
        acked += sent.status == SendStatus.OK
    following, wrong, lock = collections.Counter(), [], threading.Lock()

    def listener(received):
        key, number = received.body.decode().split(":")
        with lock:
            if following[key] != int(number):
                wrong.append(received.body)
            following[key] = int(number) + 1

    c = consumer("orderly", topic, listener, orderly=True)
    ok = wait_for(lambda: sum(following.values()) >= 300)
    c.shutdown()
    p.shutdown()
    return result(ok and acked == 300 and not wrong,
                  f"acked={acked} received={sum(following.values())} out_of_order={len(wrong)}")


def tags():
    topic = "PTags" + RUN
    p = producer("tags")
    for i in range(30):
        p.send_sync(message(topic, f"m{i}", tags=["Aa", "BB", "C"][i % 3]))
    p.shutdown()
    seen = Tally()
    c = consumer("tags", topic, seen, "Aa || D")
    ok = wait_for(lambda: seen.distinct() >= 10)
    time.sleep(0.5)
    c.shutdown()
    return result(ok and seen.deliveries() == 10, f"deliveries={seen.deliveries()} of 10")


def delay():
    topic = "PDelay" + RUN
    p = producer("delay")
    send(p, topic, 1)
    sent_at = time.time() * 1000
    p.send_sync(message(topic, "late", delay=1))
    p.shutdown()
    stored = {}

    def listener(received):
        stored[received.body.decode()] = received.store_timestamp

    c = consumer("delay", topic, listener)
    ok = wait_for(lambda: len(stored) == 2)
    c.shutdown()
    late_ms = int(stored.get("late", 0) - sent_at)
    return result(ok and 900 <= late_ms < 10000, f"late_ms={late_ms}")


def retry():
    """Fails twice, then is taken: three deliveries."""
    topic = "PRetry" + RUN
    p = producer("retry")
    p.send_sync(message(topic, "stubborn"))
    p.shutdown()
    times = []

    def listener(received):
        times.append(received.reconsume_times)
        if len(times) < 3:
            raise RuntimeError("not yet")

    c = consumer("retry", topic, listener)
    ok = wait_for(lambda: len(times) >= 3)
    time.sleep(1.5)
    c.shutdown()
    return result(ok and times == [0, 1, 2], f"reconsume_times={times}")


def broadcast():
    """Two members get every message each. A member without a stored place starts at the end of a queue when it first sees
    it, and this client has no setting for that: so rounds over all queues go ahead, until both get whole rounds."""
    topic = "PBroadcast" + RUN
    p = producer("broadcast")
    send(p, topic, 1)
    members = [Tally(), Tally()]
    consumers = [consumer("broadcast", topic, seen, instance=f"broadcast{i}", message_model=MessageModel.BROADCASTING)
                 for i, seen in enumerate(members)]

    def everybody_got(bodies, seconds):
        return wait_for(lambda: all(seen.has(bodies) for seen in members), seconds)

    for attempt in range(60):
        bodies = [f"round{attempt}_{i}" for i in range(16)]
        for body in bodies:
            p.send_sync(message(topic, body))
        if everybody_got(bodies, 1):
            break
    sent = [f"all{i}" for i in range(50)]
    acked = sum(p.send_sync(message(topic, body)).status == SendStatus.OK for body in sent)
    ok = everybody_got(sent, 60)
    for c in consumers:
        c.shutdown()
    p.shutdown()
    counts = [[seen.of(sent), seen.most(sent)] for seen in members]
    return result(ok and acked == 50 and counts == [[50, 1], [50, 1]],
                  f"acked={acked} first={counts[0][0]} second={counts[1][0]} of 50 most_deliveries="
                  f"{max(counts[0][1], counts[1][1])}")


CASES = [send_sync, send_oneway, send_batch, concurrent, orderly, tags, delay, retry, broadcast]


def run_case(case):
    try:
        ok, counts = case()
    except Exception as error:  # the client's own errors are a verdict, too
        traceback.print_exc()
        ok, counts = False, repr(error)
    print(f"case {case.__name__}: {'PASS' if ok else 'FAIL'} {counts}", flush=True)
    return ok


def main(wanted):
    chosen = [case for case in CASES if "all" in wanted or case.__name__ in wanted]
    ok = all([run_case(case) for case in chosen])
    sys.stdout.flush()
    os._exit(0 if ok else 1)  # the client's threads have no end of their own


main(sys.argv[2:])
