#include "bin/admin/file_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace triad::admin {

Result<std::string> ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return Status::NotFound(name + " cannot be read: " + std::strerror(errno));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Status WriteFile(const std::string& folder, const std::string& name, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string path = folder + "/" + name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return Status::Ok();
  return Status::IoError(
      path + " cannot be written: " + (failed ? failed.message() : std::strerror(errno)));
}

std::map<std::string, std::string> ParseAttributes(const std::string& text) {
  std::map<std::string, std::string> attributes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(item.find('='), item.size());
    if (equals == 0) continue;
    attributes[item.substr(0, equals)] = equals < item.size() ? item.substr(equals + 1) : "";
  }
  return attributes;
}

std::vector<std::pair<std::string, std::string>> ConfigLines(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) {
      lines.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace triad::admin
