#include "tests/sim/hunt.h"

#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "common/mutant.h"

namespace triad::sim {
namespace {

struct Caught {
  std::uint64_t schedule = 0;  // 0 = not caught
  std::string by;
};

[[noreturn]] void RunChild(const MutantHunt& hunt, int mutant, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  active_mutant = mutant;
  for (std::uint64_t i = 0; i < hunt.schedules; ++i) {
    std::cout << "schedule " << i + 1 << "\n";
    if (!hunt.runs_clean(hunt.base + i)) {
      std::cout << std::flush;
      _exit(3);
    }
  }
  _exit(0);
}

Caught Hunt(const MutantHunt& hunt, int mutant) {
  std::array<int, 2> ends{};
  PCHECK(pipe(ends.data()) == 0);
  std::cout << std::flush;
  const pid_t child = fork();
  PCHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    RunChild(hunt, mutant, ends[1]);
  }
  close(ends[1]);
  Caught caught;
  std::uint64_t last = 0;
  const std::string head = "==== " + hunt.program + ": ";
  FILE* lines = fdopen(ends[0], "r");
  PCHECK(lines != nullptr);
  std::array<char, 512> line{};
  while (fgets(line.data(), static_cast<int>(line.size()), lines) != nullptr) {
    const std::string text(line.data());
    if (text.starts_with("schedule ")) last = std::strtoull(text.c_str() + 9, nullptr, 10);
    const auto at = text.find(" violated: ");
    if (text.starts_with(head) && caught.by.empty()) {
      caught.by = text.substr(head.size(), at - head.size());
    }
  }
  fclose(lines);
  int status = 0;
  PCHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) caught.schedule = last;
  return caught;
}

}  // namespace

int HuntMutants(const MutantHunt& hunt, std::string* table) {
  int missed = 0;
  for (const auto& [number, what] : hunt.mutants) {
    if (hunt.only != 0 && number != hunt.only) continue;
    const Caught caught = Hunt(hunt, number);
    if (caught.schedule == 0) ++missed;
    const std::string row =
        "| " + std::to_string(number) + " | " + what + " | " +
        (caught.schedule == 0 ? "NOT CAUGHT" : std::to_string(caught.schedule)) + " | " +
        caught.by + " |\n";
    std::cout << row << std::flush;
    *table += row;
  }
  std::cout << "base seed " << hunt.base << ", missed " << missed << "\n";
  return missed;
}

}  // namespace triad::sim
