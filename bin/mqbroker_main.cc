// mqbroker: one broker, alone or a peer of a group. See --help.

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "broker/broker.h"
#include "broker/config/broker_config.h"
#include "broker/process/leader_address_keeper.h"
#include "common/clock.h"
#include "common/file_system.h"
#include "common/logging.h"
#include "common/process.h"

DEFINE_string(c, "", "configuration file (broker.conf)");
DEFINE_string(n, "", "name servers, host:port;host:port");
DEFINE_bool(p, false, "print every setting and exit");
DEFINE_bool(m, false, "print the important settings and exit");
DEFINE_bool(h, false, "print this help and exit");
DEFINE_bool(check, false, "only check the configuration");
DEFINE_bool(print_configuration_page, false, "print docs/configuration.md and exit");
DEFINE_string(bootstrap_without, "", "peers that are known to be gone for good");

namespace triad {
namespace {

using broker::BrokerConfigTable;
using broker::LoadedBrokerConfig;

constexpr char kUsage[] =
    "usage: mqbroker [-c FILE] [-n LIST] [-p | -m | -h | --check] [--log_dir DIR]\n"
    "  -c, --configFile FILE         settings, one key=value per line (conf/broker.conf)\n"
    "  -n, --namesrvAddr LIST        name servers, host:port;host:port; wins over the file\n"
    "  -p, --printConfigItem         print every setting and exit\n"
    "  -m, --printImportantConfig    print the important settings and exit\n"
    "      --check                   check the configuration file and exit; unknown keys count as "
    "wrong\n"
    "      --bootstrap-without IDS   first start of a group without these members (n2 or n1;n2),\n"
    "                                which are known to be gone for good\n"
    "      --log_dir DIR             write DIR/broker.log instead of standard error\n"
    "  -h, --help                    print this help and exit\n";

constexpr char kPageHead[] =
    "# Configuration of the broker\n\n"
    "Keys of `broker.conf` (`mqbroker -c FILE`), made from the table in\n"
    "`broker/config/broker_config_table.cc` by `triad-broker --print_configuration_page`; do not\n"
    "edit. Files are Java properties: one `key=value` per line, comments on lines of their own.\n"
    "`mqbroker --check -c FILE` checks a file without starting; `-p` prints what is in force.\n"
    "A key marked **group** has one value in the whole group once `mqadmin updateBrokerConfig`\n"
    "has changed it, in force at once on every peer; that value then wins over the file's.\n";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

// Prints what is wrong or odd. False: do not start.
bool Report(const LoadedBrokerConfig& loaded) {
  for (const std::string& warning : loaded.warnings) std::cerr << "WARNING " << warning << "\n";
  for (const std::string& fault : loaded.faults) std::cerr << "ERROR " << fault << "\n";
  if (loaded.faults.empty()) return true;
  std::cerr << "mqbroker: not started: " << loaded.faults.size()
            << (loaded.faults.size() == 1 ? " setting is" : " settings are") << " wrong\n";
  return false;
}

Result<LoadedBrokerConfig> LoadConfig() {
  broker::BrokerConfigSource source;
  source.file = FLAGS_c;
  source.namesrv_addr = FLAGS_n;
  source.environment_namesrv_addr = Environment("NAMESRV_ADDR");
  source.home = Environment("HOME");
  source.host_name = HostName();
  if (!FLAGS_c.empty()) {
    Result<std::string> text = ReadFile(PosixFileSystem(), FLAGS_c);
    if (!text.ok()) return text.status();
    source.text = *std::move(text);
  }
  return broker::LoadBrokerConfig(source);
}

int Serve(const LoadedBrokerConfig& loaded) {
  std::unique_ptr<broker::LeaderAddressKeeper> keeper;  // outlives the broker
  if (!loaded.config.leader_ip.empty()) {
    auto made = broker::LeaderAddressKeeper::Start(loaded.config);  // before the first thread
    if (!made.ok()) {
      std::cerr << "mqbroker: not started: " << made.status().message() << std::endl;
      return 1;
    }
    keeper = std::move(made.value());
  }
  HoldStopSignals();
  const Status logging =
      InitLogging({.program = "mqbroker", .directory = FLAGS_log_dir, .name = "broker"});
  if (!logging.ok()) LOG(WARNING) << logging.message();
  for (const std::string& note : loaded.notes) LOG(INFO) << note;
  if (keeper) {
    LOG(INFO) << "leaderIP " << loaded.config.leader_ip << " is moved by process "
              << keeper->process();
  }
  RaiseOpenFileLimit();

  broker::BrokerOptions options;
  for (std::size_t begin = 0; begin < FLAGS_bootstrap_without.size();) {
    const auto end =
        std::min(FLAGS_bootstrap_without.find(';', begin), FLAGS_bootstrap_without.size());
    options.bootstrap_without.push_back(PeerId(FLAGS_bootstrap_without.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (keeper) options.on_leading = [&keeper](bool leads) { keeper->Lead(leads); };
  broker::Broker broker(loaded.config, options, PosixFileSystem(), SystemClock());
  const Status started = broker.Start();
  if (!started.ok()) {
    std::cerr << "mqbroker: not started: " << started.message() << std::endl;
    return 1;
  }
  for (const std::string& line : broker.Banner()) std::cout << line << "\n";
  std::cout << broker.BootLine() << std::endl;
  const int signal_number = WaitForStopSignal();
  LOG(INFO) << "leaving: signal " << signal_number << "; a second one ends at once";
  broker.Leave();
  LOG(INFO) << "stopped";
  return 0;
}

int Main() {
  if (FLAGS_h) {
    std::cout << kUsage;
    return 0;
  }
  if (FLAGS_print_configuration_page) {
    std::cout << kPageHead << BrokerConfigTable().Markdown();
    return 0;
  }
  const Result<LoadedBrokerConfig> loaded = LoadConfig();
  if (!loaded.ok()) {
    std::cerr << "mqbroker: not started: " << loaded.status().message() << "\n";
    return 1;
  }
  if (!Report(*loaded)) return 1;
  if (FLAGS_p) {
    std::cout << BrokerConfigTable().Print(loaded->config);
    return 0;
  }
  if (FLAGS_m) {
    std::cout << BrokerConfigTable().PrintImportant(loaded->config);
    return 0;
  }
  if (FLAGS_check) {
    for (const std::string& note : loaded->notes) std::cout << note << "\n";
    if (loaded->unknown_keys > 0) {
      std::cerr << "mqbroker: " << loaded->unknown_keys << " keys are unknown\n";
      return 1;
    }
    std::cout << "the configuration is good\n";
    return 0;
  }
  if (!FLAGS_c.empty()) std::cout << "load config properties file OK, " << FLAGS_c << "\n";
  return Serve(*loaded);
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  triad::TranslateLongOptions(argc, argv);
  gflags::SetUsageMessage(triad::kUsage);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (argc > 1) {
    std::cerr << "mqbroker: " << argv[1] << " is not an option\n" << triad::kUsage;
    return 1;
  }
  return triad::Main();
}
