#include "bin/admin/table.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "remoting/json.h"

namespace triad {
namespace {

// Takes digits off the front; how many.
std::size_t TakeDigits(std::string_view* text) {
  std::size_t count = 0;
  while (count < text->size() && std::isdigit(static_cast<unsigned char>((*text)[count]))) ++count;
  text->remove_prefix(count);
  return count;
}

// As JSON writes one: digits, perhaps a sign and a fraction, no leading zero.
bool IsNumber(std::string_view cell) {
  if (cell.starts_with('-')) cell.remove_prefix(1);
  const bool leading_zero = cell.starts_with('0');
  const std::size_t digits = TakeDigits(&cell);
  if (digits == 0 || digits > 18 || (leading_zero && digits > 1)) return false;
  if (cell.empty()) return true;
  if (cell.front() != '.') return false;
  cell.remove_prefix(1);
  return TakeDigits(&cell) > 0 && cell.empty();
}

}  // namespace

std::string Table::Json() const {
  remoting::JsonWriter writer;
  writer.BeginArray();
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    writer.BeginObject();
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& heading = rows_[0][i];
      writer.Key(heading.substr(heading.starts_with('#') ? 1 : 0));
      const std::string& cell = rows_[r][i];
      IsNumber(cell) ? writer.Raw(cell) : writer.String(cell);
    }
    writer.EndObject();
  }
  writer.EndArray();
  return writer.Take();
}

void Table::Print() const {
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

}  // namespace triad
