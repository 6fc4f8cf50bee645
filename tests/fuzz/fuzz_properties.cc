// fuzz_properties: configuration files (broker, NameServer) and the persisted KV configuration.
//
// Must hold: a file is read, or refused with faults that name it; what was read and printed is read
// again, the same; a key set in a text is found there, all others stay; a damaged KV file is
// refused and never read as an empty one.

#include <string>

#include "broker/config/broker_config.h"
#include "nameserver/kv_config.h"
#include "nameserver/name_server_config.h"
#include "tests/fuzz/input.h"
#include "tests/sim/sim_file_system.h"

namespace triad::fuzz {
namespace {

void TryText(std::string_view text) {
  const auto parsed = Properties::Parse(text);
  const auto changed =
      SetInPropertiesText(text, {{"brokerName", "a b\\c"}, {"\xc3\xa9 =:", " # x"}});
  CHECK_EQ(parsed.ok(), changed.ok());
  if (!parsed.ok()) return;
  const auto again = Properties::Parse(*changed);
  CHECK(again.ok()) << again.status() << "\n" << *changed;
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"brokerName", "a b\\c"}, {"\xc3\xa9 =:", " # x"}}) {
    CHECK(again->Find(key) != nullptr) << key;
    CHECK_EQ(again->Find(key)->value, value);
  }
  for (const auto& [key, entry] : parsed->entries()) {
    if (key == "brokerName" || key == "\xc3\xa9 =:") continue;
    CHECK(again->Find(key) != nullptr) << key;
    CHECK_EQ(again->Find(key)->value, entry.value);
  }
}

void TryBroker(const std::string& text) {
  broker::BrokerConfigSource source;
  source.file = "broker.conf";
  source.text = text;
  source.host_name = "host";
  source.home = "/root";
  const broker::LoadedBrokerConfig loaded = broker::LoadBrokerConfig(source);
  for (const std::string& fault : loaded.faults) {
    CHECK(!fault.empty());
    CHECK_LT(fault.size(), text.size() + 4096);
  }
  if (!loaded.faults.empty()) return;
  CHECK(!loaded.config.members.empty());
  CHECK(!loaded.config.self.empty());
  CHECK_GT(loaded.config.segment_bytes, 0);
}

void TryNameServer(const std::string& text) {
  nameserver::NameServerConfigSource source;
  source.file = "namesrv.conf";
  source.text = text;
  source.home = "/root";
  const auto loaded = nameserver::LoadNameServerConfig(source);
  if (!loaded.faults.empty()) return;
  CHECK(loaded.config.listen_port >= 0 && loaded.config.listen_port <= 65535);  // 0: any free one
}

void TryKv(std::string_view text) {
  sim::SimFileSystem fs(1);
  CHECK(fs.CreateDirs("/n").ok());
  CHECK(WriteFileAtomically(fs, "/n/kv.json", text).ok());
  nameserver::KvConfig kv(fs, "/n/kv.json");
  const Status status = kv.Load();
  if (!status.ok()) {
    CHECK(status.code() == StatusCode::kCorruption) << status;
    return;
  }
  CHECK_NE(text.find("configTable"), std::string_view::npos) << "read as an empty configuration";
  CHECK(kv.Put("ns", "key", "value").ok());
  nameserver::KvConfig again(fs, "/n/kv.json");
  CHECK(again.Load().ok());
  CHECK(again.List("ns") == kv.List("ns"));
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad::fuzz;
  const std::string_view text = Bytes(data, size);
  TryText(text);
  TryBroker(std::string(text));
  TryNameServer(std::string(text));
  TryKv(text);
  return 0;
}
