#include "tests/chaos/model_history.h"

#include <glog/logging.h>

namespace triad::chaos {
namespace {

std::string Number(const char* name, std::int64_t value) {
  return std::string(",\"") + name + "\":" + std::to_string(value);
}

std::string Quoted(const char* name, const std::string& value) {
  return std::string(",\"") + name + "\":\"" + value + "\"";
}

// Replaces the number behind `name`.
std::string WithNumber(const std::string& line, const std::string& name, std::int64_t value) {
  const std::string key = "\"" + name + "\":";
  const std::size_t begin = line.find(key);
  CHECK_NE(begin, std::string::npos) << line;
  const std::size_t end = line.find_first_of(",}", begin);
  return line.substr(0, begin) + key + std::to_string(value) + line.substr(end);
}

}  // namespace

ModelHistory::ModelHistory(std::uint64_t seed) : random_(seed) {
  Add("group", R"({"op":"group","outcome":"ok","group":"g","key":"T","value":"orderly"})");
  Send(6 + static_cast<int>(random_.Below(30)));
  Registers(4 + static_cast<int>(random_.Below(20)));
  Locks(2 + static_cast<int>(random_.Below(10)));
  Topics(3 + static_cast<int>(random_.Below(20)));
  Deliver();
  Drain();
}

// Pairs of sends that overlap or not; some of unknown outcome, stored or not.
void ModelHistory::Send(int count) {
  for (int n = 1; n <= count; ++n) {
    const std::string value = "p" + std::to_string(n % 2) + "-" + std::to_string(n);
    const bool acked = n == 1 || !random_.OneIn(5);
    const bool stored = acked || random_.OneIn(2);
    const std::int64_t hash = random_.Between(0, 1000);
    const std::int64_t id = ++id_;
    Add("send", "{\"id\":" + std::to_string(id) + R"(,"op":"append","client":"p","key":"T/0")" +
                    Quoted("value", value) + Number("hash", hash) + Number("t_inv_ns", Tick()) +
                    "}");
    const auto offset = static_cast<std::int64_t>(queue_.size());
    if (stored) queue_.push_back({value, hash, acked});
    Add(acked ? "ack" : "info",
        "{\"id\":" + std::to_string(id) +
            (acked ? ",\"outcome\":\"ok\"" + Number("offset", offset) : ",\"outcome\":\"info\"") +
            Number("t_ret_ns", Tick()) + "}",
        static_cast<std::size_t>(offset));
    if (!random_.OneIn(3)) continue;
    const std::int64_t asked = Tick();
    // Behind an unknown send a smaller maximum could be true as well.
    Add(acked ? "max" : "max?", R"({"op":"max","outcome":"ok","client":"p","key":"T/0")" +
                                    Number("offset", static_cast<std::int64_t>(queue_.size())) +
                                    Number("t_inv_ns", asked) + Number("t_ret_ns", asked) + "}");
  }
}

void ModelHistory::Registers(int count) {
  std::int64_t value = -1;
  for (int n = 0; n < count; ++n) {
    const bool commits = n == 0 || random_.OneIn(2);
    if (commits) value = random_.Between(0, 50);
    const std::int64_t at = Tick();
    Add(commits ? "commit" : "fetch", std::string("{\"op\":\"") + (commits ? "commit" : "fetch") +
                                          R"(","outcome":"ok","client":"c","key":"g/T/0")" +
                                          Number("offset", value) + Number("t_inv_ns", at) +
                                          Number("t_ret_ns", at) + "}");
  }
}

void ModelHistory::Locks(int count) {
  std::int64_t token = 0;
  for (int n = 0; n < count; ++n) {
    const std::string holder = "c" + std::to_string(random_.Below(3));
    const std::string other = holder + "x";
    ++token;
    for (const char* kind : {"lock", "renew", "refuse", "unlock"}) {
      const std::int64_t at = Tick();
      const bool refuses = kind == std::string("refuse");
      const bool unlocks = kind == std::string("unlock");
      Add(kind, std::string("{\"op\":\"") + (unlocks ? "unlock" : "lock") +
                    R"(","outcome":"ok","key":"g/T/0")" +
                    Quoted("client", refuses ? other : holder) +
                    Number("token", refuses || unlocks ? 0 : token) + Number("t_inv_ns", at) +
                    Number("t_ret_ns", at) + "}");
    }
  }
}

void ModelHistory::Topics(int count) {
  std::int64_t value = -1;
  for (int n = 0; n < count; ++n) {
    const std::uint64_t dice = n == 0 ? 0 : random_.Below(6);
    const char* const op = dice < 2 ? "puttopic" : dice == 2 ? "droptopic" : "gettopic";
    if (dice < 2) value = random_.Between(1, 50);
    if (dice == 2) value = -1;
    const std::int64_t at = Tick();
    Add(dice > 2 ? "topic" : op,
        std::string("{\"op\":\"") + op + R"(","outcome":"ok","client":"c","key":"C")" +
            Number("offset", value) + Number("t_inv_ns", at) + Number("t_ret_ns", at) + "}");
  }
}

void ModelHistory::Deliver() {
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::int64_t at = Tick();
    Add("deliver",
        R"({"op":"deliver","outcome":"ok","client":"c","group":"g","key":"T/0","token":1)" +
            Number("offset", static_cast<std::int64_t>(i)) + Quoted("value", queue_[i].value) +
            Number("hash", queue_[i].hash) + Number("t_inv_ns", at) + Number("t_ret_ns", at) + "}",
        i);
  }
}

void ModelHistory::Drain() {
  for (const char* node : {"n0", "n1", "n2"}) {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::int64_t at = Tick();
      Add("read",
          R"({"op":"read","outcome":"ok","key":"T/0")" + Quoted("node", node) +
              Number("offset", static_cast<std::int64_t>(i)) + Quoted("value", queue_[i].value) +
              Number("hash", queue_[i].hash) + Number("t_inv_ns", at) + Number("t_ret_ns", at) +
              "}",
          i);
    }
    const std::int64_t at = Tick();
    Add("drained", R"({"op":"drained","outcome":"ok","key":"T/0","min":0)" + Quoted("node", node) +
                       Number("offset", static_cast<std::int64_t>(queue_.size())) +
                       Number("t_inv_ns", at) + Number("t_ret_ns", at) + "}");
  }
}

std::string ModelHistory::Text() const {
  std::string text;
  for (const Line& line : lines_) text += line.text + "\n";
  return text;
}

std::size_t ModelHistory::Any(const std::string& kind) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].kind == kind) found.push_back(i);
  }
  return found.empty() ? lines_.size() : found[random_.Below(found.size())];
}

std::string ModelHistory::Spoil() {
  struct Way {
    const char* name;
    const char* kind;
    const char* field;  // changed by `change`; null: the line goes
    std::int64_t change;
  };
  static constexpr Way kWays[] = {{"a peer lacks a message", "read", nullptr, 0},
                                  {"a body has changed", "read", "hash", 5000},
                                  {"a message has moved", "read", "offset", 1},
                                  {"a peer holds more than it gives", "drained", "offset", 1},
                                  {"acknowledged elsewhere", "ack", "offset", 1},
                                  {"a delivery is missing", "deliver", nullptr, 0},
                                  {"a delivery under an older lock", "deliver", "token", -1},
                                  {"a wrong offset was fetched", "fetch", "offset", 60},
                                  {"the maximum is too small", "max", "offset", -1},
                                  {"another configuration was answered", "topic", "offset", 60},
                                  {"a renewal under another token", "renew", "token", 40},
                                  {"given although held", "refuse", "token", 30},
                                  {"nobody sent it", "send", nullptr, 0}};
  for (;;) {
    const Way& way = kWays[random_.Below(std::size(kWays))];
    const std::size_t at = Any(way.kind);
    if (at == lines_.size()) continue;
    std::string& line = lines_[at].text;
    if (way.kind == std::string("send") && lines_[at + 1].kind != "ack") continue;
    // The first delivery opens the token: an older one there is the only one.
    if (way.field != nullptr && way.field == std::string("token") && way.change < 0 &&
        lines_[at].index == 0) {
      continue;
    }
    if (way.field == nullptr) {
      const std::size_t count = way.kind == std::string("send") ? 2 : 1;
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(at),
                   lines_.begin() + static_cast<std::ptrdiff_t>(at + count));
      return way.name;
    }
    const std::size_t begin =
        line.find(std::string("\"") + way.field + "\":") + std::string(way.field).size() + 3;
    line = WithNumber(line, way.field, std::stoll(line.substr(begin)) + way.change);
    return way.name;
  }
}

}  // namespace triad::chaos
