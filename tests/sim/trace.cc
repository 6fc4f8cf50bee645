#include "tests/sim/trace.h"

#include <algorithm>
#include <iostream>
#include <sstream>

namespace triad::sim {
namespace {

std::string_view NameOf(EventKind kind) {
  static constexpr std::array<std::string_view, 24> names = {
      "tick", "deliver", "disk-done", "storage-done", "loaded",        "propose",
      "noop", "read",    "transfer",  "disconnected", "restart",       "nemesis",
      "send", "crash",   "wipe",      "commit",       "role",          "cut",
      "heal", "change",  "purge",     "snapshot",     "snapshot-sent", "fate"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

void Trace::Add(const TraceEvent& event) {
  const auto mix = [this](std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  };
  mix(static_cast<std::uint64_t>(event.at));
  mix((static_cast<std::uint64_t>(event.kind) << 24) |
      (static_cast<std::uint64_t>(event.node + 1) << 16) |
      (static_cast<std::uint64_t>(event.peer + 1) << 8) |
      static_cast<std::uint64_t>(static_cast<unsigned char>(event.what)));
  mix(event.a ^ (event.b << 16) ^ (event.c << 32) ^ (event.d << 48));
  last_[count_++ % kKept] = event;
  if (print_) std::cout << ToString(event) << "\n";
}

std::string Trace::LastEvents() const {
  std::ostringstream out;
  const std::uint64_t begin = count_ - std::min<std::uint64_t>(count_, kKept);
  for (std::uint64_t i = begin; i < count_; ++i) out << "  " << ToString(last_[i % kKept]) << "\n";
  return out.str();
}

TraceEvent Describe(Micros at, EventKind kind, int node, int peer,
                    const dledger::Message& message) {
  TraceEvent event{.at = at, .kind = kind, .node = node, .peer = peer};
  struct Visitor {
    TraceEvent& e;
    void operator()(const dledger::VoteRequest& m) {
      e.what = m.pre_vote ? 'P' : 'V';
      e.a = m.term.value(), e.b = m.last_index.value(), e.c = m.last_term.value();
      e.d = m.transfer ? 1 : 0;
    }
    void operator()(const dledger::VoteResponse& m) {
      e.what = m.pre_vote ? 'p' : 'v';
      e.a = m.term.value(), e.b = m.granted ? 1 : 0;
    }
    void operator()(const dledger::AppendRequest& m) {
      e.what = m.entries.empty() ? 'H' : 'A';
      e.a = m.term.value(), e.b = m.prev_index.value(), e.c = m.entries.size();
      e.d = m.commit_index.value();
    }
    void operator()(const dledger::AppendResponse& m) {
      e.what = m.recovering ? (m.ok ? 'r' : 'x') : (m.ok ? 'a' : 'n');
      e.a = m.term.value(), e.b = m.ok ? m.match_index.value() : m.rejected_prev.value();
      e.c = m.ok ? 0 : m.conflict_index.value(), e.d = m.read_round;
    }
    void operator()(const dledger::TimeoutNow& m) { e.what = 'T', e.a = m.term.value(); }
  };
  std::visit(Visitor{event}, message.body);
  return event;
}

std::string ToString(const TraceEvent& e) {
  std::ostringstream out;
  out << e.at << "us ";
  if (e.node >= 0) out << "n" << e.node << " ";
  out << NameOf(e.kind);
  if (e.peer >= 0) out << " n" << e.peer;
  switch (e.what) {
    case 'P':
    case 'V':
      out << (e.what == 'P' ? " pre-vote?" : " vote?") << " term=" << e.a << " last=" << e.b << "@"
          << e.c << (e.d != 0 ? " transfer" : "");
      break;
    case 'p':
    case 'v':
      out << (e.what == 'p' ? " pre-vote" : " vote") << (e.b != 0 ? " granted" : " refused")
          << " term=" << e.a;
      break;
    case 'A':
    case 'H':
      out << (e.what == 'A' ? " append" : " heartbeat") << " term=" << e.a << " prev=" << e.b
          << " entries=" << e.c << " commit=" << e.d;
      break;
    case 'a':
    case 'r':
      out << (e.what == 'a' ? " ack" : " ack(recovering)") << " term=" << e.a << " match=" << e.b
          << " round=" << e.d;
      break;
    case 'n':
    case 'x':
      out << (e.what == 'n' ? " refuse" : " refuse(recovering)") << " term=" << e.a
          << " prev=" << e.b << " conflict=" << e.c << " round=" << e.d;
      break;
    case 'T': out << " timeout-now term=" << e.a; break;
    default:
      if (e.a != 0 || e.b != 0) out << " " << e.a << " " << e.b;
  }
  return out.str();
}

}  // namespace triad::sim
