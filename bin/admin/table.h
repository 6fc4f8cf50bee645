// Table: aligned columns for a terminal, or JSON. The first row is the heading; numbers are
// right-aligned.
//
// Value; one thread.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace triad {

class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::size_t rows() const { return rows_.size() - 1; }

  // A list of objects, keyed by the heading without its '#'; numbers as numbers.
  std::string Json() const;
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace triad
