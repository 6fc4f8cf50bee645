// make_seeds: writes the first inputs of the corpus, from the samples in tests/data and from our
// own encoders. What fuzzing found on top of them stays.
//
//   build/release/tests/fuzz_make_seeds tests/data tests/fuzz/corpus

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/store/message.h"
#include "common/byte_order.h"
#include "dledger/log/log_store.h"
#include "remoting/frame.h"
#include "remoting/header_codec.h"
#include "tests/fuzz/input.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_file_system.h"

namespace triad::fuzz {
namespace {

namespace files = std::filesystem;

std::string g_corpus;

void Write(const std::string& target, const std::string& name, const std::string& bytes) {
  const files::path dir = files::path(g_corpus) / target;
  files::create_directories(dir);
  std::ofstream out(dir / name, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK(out.good()) << dir / name;
}

std::string ReadAll(const files::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  std::string pair;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    pair.push_back(c);
    if (pair.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::strtoul(pair.c_str(), nullptr, 16)));
    pair.clear();
  }
  return bytes;
}

void WriteFrame(const std::string& name, const std::string& frame) {
  Write("fuzz_frame", name, '\x07' + frame);
  if (frame.size() < 8) return;
  const std::size_t header_bytes = LoadBe32(frame.data() + 4) & 0xFFFFFF;
  const std::string header = frame.substr(8, header_bytes);
  Write(frame[4] == 0 ? "fuzz_header_json" : "fuzz_header_binary", name, header);
}

void FromSamples(const files::path& data) {
  for (const char* folder : {"frames", "spec"}) {
    for (const auto& file : files::directory_iterator(data / folder)) {
      const std::string name = file.path().stem().string();
      if (file.path().extension() == ".hex") WriteFrame(name, FromHex(ReadAll(file.path())));
      if (file.path().extension() == ".conf") {
        Write("fuzz_properties", name, ReadAll(file.path()));
      }
    }
  }
}

void Json() {
  Write("fuzz_header_json", "dialect",
        R"({{"a":1,'b':null}:[1,-2.5e3,true,false,"é\n\/"], 3:"x" , c:{}} )");
  Write("fuzz_properties", "kv", R"({"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}})");
  remoting::Command command = remoting::Command::Request(310);
  command.remark = "r\xc3\xa9";
  command.ext.Set("a", "b");
  command.ext.Set("empty", "");
  std::string header;
  remoting::AppendJsonHeader(command, &header);
  Write("fuzz_header_json", "plain", header);
  header.clear();
  CHECK(remoting::AppendBinaryHeader(command, &header).ok());
  Write("fuzz_header_binary", "plain", header);
}

std::string Record(const std::string& topic, bool v6) {
  broker::MessageDraft draft;
  draft.topic = Topic(topic);
  draft.queue_id = QueueId(3);
  draft.born_host = broker::ParseHostPort(v6 ? "[::1]:7" : "10.0.0.1:7").value();
  draft.properties = "KEYS\x01k1 k2\x02TAGS\x01TagA\x02";
  draft.body = "body";
  std::string record;
  broker::EncodeMessage(draft,
                        {.queue_offset = QueueOffset(5),
                         .physical_offset = PhysicalOffset(8000),
                         .store_time_ms = 1700000000000,
                         .store_host = broker::ParseHostPort("10.0.0.2:10911").value()},
                        &record);
  return record;
}

void Messages() {
  const auto write = [](char kind, const std::string& name, const std::string& bytes) {
    Write("fuzz_message", name, kind + bytes);
  };
  write('\0', "record", Record("T", false));
  write('\0', "record-v6", Record("T", true));
  write('\0', "record-long-topic", Record(std::string(200, 't'), false));
  std::string item;
  AppendBe32(&item, 22 + 2 + 4);
  item.append(8, '\0');
  AppendBe32(&item, 1);
  AppendBe32(&item, 2);
  item += "ab";
  AppendBe16(&item, 4);
  item += "K\x01v\x02";
  write('\1', "batch", item + item);
  broker::StateCommand command;
  command.offsets.push_back(
      {.key = {GroupName("g"), {Topic("T"), QueueId(1)}}, .offset = QueueOffset(9)});
  command.locks.push_back(
      {.key = {GroupName("g"), {Topic("T"), QueueId(1)}}, .client = ClientId("c"), .token = 3});
  command.put_topics.emplace_back().name = Topic("T");
  command.put_groups.emplace_back().name = GroupName("g");
  command.delays.emplace_back(3, QueueOffset(4));
  const std::string encoded = broker::EncodeStateCommand(command);
  std::string payload;
  AppendBe32(&payload, static_cast<std::uint32_t>(encoded.size()));
  payload += encoded;
  payload.resize((payload.size() + 7) / 8 * 8);
  write('\2', "payload", payload + Record("T", false));
  write('\3', "properties", "KEYS\x01k1 k2\x02TAGS\x01\xf0\x9f\x98\x80\x02NAME\x01x\x02");
  write('\4', "host", "[::ffff:1.2.3.4]:5");
  write('\4', "message-id",
        broker::OffsetMessageId(broker::ParseHostPort("10.0.0.2:10911").value(),
                                PhysicalOffset(8000)));
}

void Segments() {
  using namespace dledger;
  sim::SimFileSystem fs(1);
  LogStoreOptions options;
  options.dir = "/s";
  options.segment_bytes = 1u << 16;
  options.prepare_bytes = 4096;
  options.first_prepare_bytes = 4096;
  auto store = LogStore::Open(fs, options, {.group = "g", .peer_id = "n0"});
  CHECK(store.ok()) << store.status();
  LogTail tail;
  for (int i = 0; i < 4; ++i) {
    const std::vector<EntryRef> one = {
        MakeEntry(Term(1 + static_cast<std::uint64_t>(i) / 2), EntryType::kBatch, 1,
                  std::string(static_cast<std::size_t>(24 + 8 * i), 'a'), &tail)};
    CHECK((*store)->Append(one).ok());
    if (i != 2) CHECK((*store)->Sync().ok());
    const std::string file = fs.Bytes("/s/00000000000000000000");
    const std::string end = std::to_string(i);
    Write("fuzz_segment", "entries-" + end, '\0' + file.substr(0, 10000));
    Write("fuzz_segment", "entries-" + end + "-hint", '\1' + file.substr(0, 10000));
  }
}

// Bytes at random are as good a start as any: they are read as small numbers.
void RaftInputs() {
  sim::Random dice(1);
  for (int i = 0; i < 40; ++i) {
    std::string bytes(static_cast<std::size_t>(100 + 60 * i), '\0');
    for (char& c : bytes) c = static_cast<char>(dice.Next());
    Write("fuzz_raft_msg", "random-" + std::to_string(i), bytes);
  }
}

}  // namespace
}  // namespace triad::fuzz

int main(int argc, char** argv) {
  using namespace triad::fuzz;
  if (argc != 3) {
    std::cerr << "usage: fuzz_make_seeds TESTS_DATA CORPUS\n";
    return 2;
  }
  g_corpus = argv[2];
  FromSamples(argv[1]);
  Json();
  Messages();
  Segments();
  RaftInputs();
  return 0;
}
