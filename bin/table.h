// Table: aligned columns for a terminal, or JSON. The first row is the heading; numbers are
// right-aligned.
//
// Value; one thread.

#pragma once

#include <algorithm>
#include <cstdio>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "remoting/json.h"

namespace triad {

class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::size_t rows() const { return rows_.size() - 1; }

  // A list of objects, keyed by the heading; numbers as numbers.
  std::string Json() const {
    remoting::JsonWriter writer;
    writer.BeginArray();
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      writer.BeginObject();
      for (std::size_t i = 0; i < rows_[r].size(); ++i) {
        writer.Key(Name(rows_[0][i]));
        const std::string& cell = rows_[r][i];
        IsNumber(cell) ? writer.Raw(cell) : writer.String(cell);
      }
      writer.EndObject();
    }
    writer.EndArray();
    return writer.Take();
  }

  void Print() const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::string line;
      for (std::size_t i = 0; i < rows_[r].size(); ++i) {
        const std::string& cell = rows_[r][i];
        const std::string pad(widths[i] - cell.size(), ' ');
        const bool right =
            r > 0 && !cell.empty() && cell.find_first_not_of("0123456789.-%") == std::string::npos;
        line += right ? pad + cell : cell + pad;
        line += "  ";
      }
      while (!line.empty() && line.back() == ' ') line.pop_back();
      std::printf("%s\n", line.c_str());
    }
  }

 private:
  // "#Broker Name" is a heading, "Broker Name" a key.
  static std::string Name(const std::string& heading) {
    return heading.substr(heading.starts_with('#') ? 1 : 0);
  }
  // As JSON writes one: digits, perhaps a sign and a fraction, no leading zero.
  static bool IsNumber(const std::string& cell) {
    static const std::regex number("-?(0|[1-9][0-9]{0,17})(\\.[0-9]+)?");
    return std::regex_match(cell, number);
  }

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace triad
