// ModelHistory: the history of a correct broker under random load, and one spoiled place in it.
//
// Sends, readings on three peers, an orderly group, an offset register, a lock, a maximum
// offset and a topic's configuration, with overlapping operations and unknown outcomes. Pure; the
// seed decides everything.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/random.h"

namespace triad::chaos {

class ModelHistory {
 public:
  explicit ModelHistory(std::uint64_t seed);

  std::string Text() const;
  // Changes one place so that a promise is broken; says what was done. At most once.
  std::string Spoil();

 private:
  struct Stored {
    std::string value;
    std::int64_t hash = 0;
    bool acked = false;
  };
  struct Line {
    std::string text;
    std::string kind;  // what Spoil looks for
    std::size_t index = 0;
  };

  void Send(int count);
  void Registers(int count);
  void Locks(int count);
  void Topics(int count);
  void Deliver();
  void Drain();
  std::int64_t Tick() { return now_ += random_.Between(1, 9); }
  void Add(const std::string& kind, const std::string& text, std::size_t index = 0) {
    lines_.push_back({text, kind, index});
  }
  // A line of this kind, at random; lines_.size() when there is none.
  std::size_t Any(const std::string& kind);

  sim::Random random_;
  std::int64_t now_ = 0;
  std::int64_t id_ = 0;
  std::vector<Stored> queue_;
  std::vector<Line> lines_;
};

}  // namespace triad::chaos
