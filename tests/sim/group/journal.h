// Journal: what happened, as a hash (for the determinism test) and as the last lines (for the
// failure block).
//
// Bounds: the last kKept notes. With `print` every note goes to stdout as it happens.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace triad::sim {

class Journal {
 public:
  static constexpr std::size_t kKept = 200;

  explicit Journal(bool print) : print_(print) {}

  // `what` is a literal. `who` is a node, -1: nobody.
  void Note(std::int64_t at, int who, const char* what, std::uint64_t a = 0, std::uint64_t b = 0);
  std::uint64_t hash() const { return hash_; }
  std::string LastNotes() const;

 private:
  struct Line {
    std::int64_t at = 0;
    int who = -1;
    const char* what = "";
    std::uint64_t a = 0, b = 0;
  };
  static std::string ToString(const Line& line);

  const bool print_;
  std::uint64_t hash_ = 0;
  std::uint64_t count_ = 0;
  std::array<Line, kKept> last_;
};

}  // namespace triad::sim
