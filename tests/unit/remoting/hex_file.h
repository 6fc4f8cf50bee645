// Hex files of tests/data: what they hold, as bytes.

#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace triad::test {

inline std::string ReadText(const std::string& name) {
  std::ifstream file(std::string(TRIAD_TEST_DATA) + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string FromHex(std::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != '\n' && c != ' ') digits.push_back(c);
  }
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string ReadHex(const std::string& name) {
  return FromHex(ReadText(name));
}

}  // namespace triad::test
