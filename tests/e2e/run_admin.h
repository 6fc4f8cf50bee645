// Runs mqadmin as its users do: the program, its words, what it prints and how it ends.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triad {

struct AdminRun {
  int exit_code = -1;
  std::string out;  // stdout and stderr
};

// A line for the shell, as it is.
AdminRun RunLine(const std::string& line);
// `mqadmin verb words... -n namesrv`. Words must not hold a quote.
AdminRun RunAdmin(const std::string& namesrv, const std::vector<std::string>& words);

// One that goes on until it is stopped.
class AdminProcess {
 public:
  AdminProcess(const std::string& namesrv, const std::vector<std::string>& words);
  ~AdminProcess();  // kills it if it still runs
  AdminProcess(const AdminProcess&) = delete;
  AdminProcess& operator=(const AdminProcess&) = delete;

  // The next line of what it prints on stdout; empty when it has ended, or after half a minute.
  std::string ReadLine();
  void CloseOutput();  // nobody reads it any more
  void Signal(int number) const;
  // Its exit code; -1 when a signal killed it, or it has not ended after half a minute.
  int Wait();

 private:
  pid_t pid_ = 0;
  int out_ = -1;
  std::string rest_;
};

}  // namespace triad
