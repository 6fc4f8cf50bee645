#include "bin/server_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace triad {

double ServerCpuSeconds(const std::string& name) {
  double total = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream command(entry.path() / "cmdline");
    std::string words((std::istreambuf_iterator<char>(command)), {});
    const std::string program = words.substr(0, words.find('\0'));
    const bool java = program.size() >= 4 && program.compare(program.size() - 4, 4, "java") == 0;
    if ((java ? words : program).find(name) == std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const std::size_t at = text.rfind(')');
    if (at == std::string::npos) continue;
    std::istringstream fields(text.substr(at + 2));
    std::string skip;
    for (int i = 0; i < 11; ++i) fields >> skip;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    total += (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return total;
}

}  // namespace triad
