// mqnamesrv: a NameServer. See --help.

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "common/clock.h"
#include "common/file_system.h"
#include "common/logging.h"
#include "common/process.h"
#include "nameserver/name_server.h"
#include "nameserver/name_server_config.h"

DEFINE_string(c, "", "configuration file (namesrv.conf)");
DEFINE_string(n, "", "accepted and ignored: a NameServer asks no other one");
DEFINE_bool(p, false, "print every setting and exit");
DEFINE_bool(m, false, "print the important settings and exit");
DEFINE_bool(h, false, "print this help and exit");
DEFINE_bool(check, false, "only check the configuration");
DEFINE_bool(print_configuration_page, false, "print docs/configuration-namesrv.md and exit");

namespace triad {
namespace {

using nameserver::LoadedNameServerConfig;
using nameserver::NameServerConfigTable;

constexpr char kUsage[] =
    "usage: mqnamesrv [-c FILE] [-p | -m | -h | --check] [--log_dir DIR]\n"
    "  -c, --configFile FILE         settings, one key=value per line (conf/namesrv.conf)\n"
    "  -p, --printConfigItem         print every setting and exit\n"
    "  -m, --printImportantConfig    print the important settings and exit\n"
    "  -n, --namesrvAddr LIST        accepted, no effect\n"
    "      --check                   check the configuration file and exit\n"
    "      --log_dir DIR             write DIR/namesrv.log instead of standard error\n"
    "  -h, --help                    print this help and exit\n";

constexpr char kPageHead[] =
    "# Configuration of the NameServer\n\n"
    "Keys of `namesrv.conf` (`mqnamesrv -c FILE`), made from the table in\n"
    "`nameserver/name_server_config.cc` by `triad-namesrv --print_configuration_page`; do not\n"
    "edit. The syntax is that of `docs/configuration.md`.\n";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Prints what is wrong or odd. False: do not start.
bool Report(const LoadedNameServerConfig& loaded) {
  for (const std::string& warning : loaded.warnings) std::cerr << "WARNING " << warning << "\n";
  for (const std::string& fault : loaded.faults) std::cerr << "ERROR " << fault << "\n";
  if (loaded.faults.empty()) return true;
  std::cerr << "mqnamesrv: not started: " << loaded.faults.size()
            << (loaded.faults.size() == 1 ? " setting is" : " settings are") << " wrong\n";
  return false;
}

Result<LoadedNameServerConfig> LoadConfig() {
  nameserver::NameServerConfigSource source;
  source.file = FLAGS_c;
  source.home = Environment("HOME");
  source.rocketmq_home = Environment("ROCKETMQ_HOME");
  if (!FLAGS_c.empty()) {
    Result<std::string> text = ReadFile(PosixFileSystem(), FLAGS_c);
    if (!text.ok()) return text.status();
    source.text = *std::move(text);
  }
  return nameserver::LoadNameServerConfig(source);
}

int Serve(const LoadedNameServerConfig& loaded) {
  HoldStopSignals();
  const Status logging =
      InitLogging({.program = "mqnamesrv", .directory = FLAGS_log_dir, .name = "namesrv"});
  if (!logging.ok()) LOG(WARNING) << logging.message();
  for (const std::string& note : loaded.notes) LOG(INFO) << note;
  RaiseOpenFileLimit();

  nameserver::NameServer server(loaded.config, PosixFileSystem(), SystemClock());
  const Status started = server.Start();
  if (!started.ok()) {
    std::cerr << "mqnamesrv: not started: " << started.message() << "\n";
    return 1;
  }
  std::cout << "The Name Server boot success. serializeType=JSON, address "
            << loaded.config.bind_address << ":" << server.port() << std::endl;
  const int signal_number = WaitForStopSignal();
  LOG(INFO) << "stopping: signal " << signal_number;
  server.Stop();
  LOG(INFO) << "stopped";
  return 0;
}

int Main() {
  if (FLAGS_h) {
    std::cout << kUsage;
    return 0;
  }
  if (FLAGS_print_configuration_page) {
    std::cout << kPageHead << NameServerConfigTable().Markdown();
    return 0;
  }
  const Result<LoadedNameServerConfig> loaded = LoadConfig();
  if (!loaded.ok()) {
    std::cerr << "mqnamesrv: not started: " << loaded.status().message() << "\n";
    return 1;
  }
  if (!Report(*loaded)) return 1;
  if (!FLAGS_c.empty() && !FLAGS_p && !FLAGS_m) {
    std::cout << "load config properties file OK, " << FLAGS_c << std::endl;
  }
  if (FLAGS_p) {
    std::cout << NameServerConfigTable().Print(loaded->config);
    return 0;
  }
  if (FLAGS_m) {
    std::cout << NameServerConfigTable().PrintImportant(loaded->config);
    return 0;
  }
  if (FLAGS_check) {
    for (const std::string& note : loaded->notes) std::cout << note << "\n";
    std::cout << "the configuration is good\n";
    return 0;
  }
  return Serve(*loaded);
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  triad::TranslateLongOptions(argc, argv);
  gflags::SetUsageMessage(triad::kUsage);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (argc > 1) {
    std::cerr << "mqnamesrv: " << argv[1] << " is not an option\n" << triad::kUsage;
    return 1;
  }
  return triad::Main();
}
