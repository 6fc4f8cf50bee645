// triad-histcheck: reads a history (a file or standard input), prints the verdict; exit 1 when a
// promise was broken, 2 when the history cannot be read. --objects: also a line for every small
// object.

#include <fstream>
#include <iostream>
#include <string_view>

#include "tests/chaos/history_checker.h"

int main(int argc, char** argv) {
  const bool objects = argc > 1 && std::string_view(argv[1]) == "--objects";
  if (objects) {
    --argc;
    ++argv;
  }
  if (argc > 2) {
    std::cerr << "usage: triad-histcheck [--objects] [HISTORY.jsonl]\n";
    return 2;
  }
  std::ifstream file;
  if (argc == 2) file.open(argv[1]);
  if (argc == 2 && !file) {
    std::cerr << "cannot open " << argv[1] << "\n";
    return 2;
  }
  const auto verdict = triad::chaos::CheckHistory(argc == 2 ? file : std::cin);
  if (!verdict.ok()) {
    std::cerr << verdict.status() << "\n";
    return 2;
  }
  if (objects) {
    for (const auto& [name, word] : verdict->objects) {
      std::cout << "object " << name << " " << word << "\n";
    }
  }
  std::cout << triad::chaos::ReportOf(*verdict) << "histcheck: acked=" << verdict->acked << " "
            << triad::chaos::SummaryOf(*verdict) << "\n";
  return verdict->good() ? 0 : 1;
}
