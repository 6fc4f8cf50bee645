// raft_scripts [--rewrite] FILE|DIRECTORY...: runs each script (*.txt) and compares what it prints
// with what stands beneath its commands. --rewrite puts the present output there; review reads the
// diff.

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/script.h"

namespace triad::sim {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  CHECK(in) << "cannot read " << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> ScriptsIn(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> scripts;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() == ".txt") scripts.push_back(file.path().string());
  }
  std::sort(scripts.begin(), scripts.end());
  return scripts;
}

void PrintFirstDifference(const std::string& expected, const std::string& actual) {
  std::istringstream left(expected), right(actual);
  std::string want, have;
  for (int line = 1;; ++line) {
    const bool more_left = static_cast<bool>(std::getline(left, want));
    const bool more_right = static_cast<bool>(std::getline(right, have));
    if (!more_left && !more_right) return;
    if (more_left && more_right && want == have) continue;
    std::cout << "  line " << line << "\n  expected: " << (more_left ? want : "(end)")
              << "\n  happened: " << (more_right ? have : "(end)") << "\n";
    return;
  }
}

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  bool rewrite = false;
  int ran = 0, failed = 0;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rewrite") {
      rewrite = true;
      continue;
    }
    for (std::string& path : ScriptsIn(argv[i])) paths.push_back(std::move(path));
  }
  for (const std::string& path : paths) {
    const std::string before = ReadAll(path);
    const std::string after = Script::Run(before);
    ++ran;
    if (before == after) continue;
    if (rewrite) {
      std::ofstream(path) << after;
      std::cout << "rewritten: " << path << "\n";
      continue;
    }
    ++failed;
    std::cout << "FAILED: " << path << "\n";
    PrintFirstDifference(before, after);
  }
  std::cout << ran << " scripts, " << failed << " failed\n";
  return ran > 0 && failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace triad::sim

int main(int argc, char** argv) {
  return triad::sim::Main(argc, argv);
}
