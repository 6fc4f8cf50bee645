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

#include "broker/state/memory_state_store.h"
#include "broker/state/replicated_state.h"
#include "broker/state/state_image.h"
#include "broker/store/message.h"
#include "common/byte_order.h"
#include "common/crc32c.h"
#include "dledger/log/log_store.h"
#include "dledger/membership_codec.h"
#include "dledger/peer/peer_codec.h"
#include "dledger/snapshot/snapshot_file.h"
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

// What peers say about a state, the file it becomes, and the members in its head.
void Snapshots() {
  using namespace dledger;
  const std::string state = "some bytes of a state";
  SnapshotOffer offer{.term = Term(3), .id = 9, .head = {}};
  offer.head.applied = LogIndex(50);
  offer.head.total_bytes = state.size();
  offer.head.crc = Crc32c(state);
  StoreBase& base = offer.head.base;
  base.tail.next_index = LogIndex(41);
  base.tail.position = base.tail.segment_base = PhysicalOffset(8192);
  base.tail.last_term = Term(2);
  base.membership = {.group_id = 5,
                     .voters = {PeerId("n0"), PeerId("n1")},
                     .learners = {PeerId("n2")},
                     .addresses = {{PeerId("n1"), "10.0.0.2:40911"}}};
  const auto frame = [](SnapshotMessage message) {
    return EncodeFrameHead({.wall_ms = 1, .group_id = 5, .body = std::move(message)});
  };
  std::string told = frame(offer);
  for (std::size_t at = 0; at < state.size(); at += 8) {
    std::string data = state.substr(at, 8);
    const std::uint32_t crc = Crc32c(data);
    told += frame(SnapshotChunk{.id = 9, .offset = at, .crc = crc, .data = std::move(data)});
  }
  Write("fuzz_snapshot", "frames", '\0' + told);
  Write("fuzz_snapshot", "answer",
        '\0' + frame(SnapshotAnswer{.id = 9, .kind = SnapshotAnswer::Kind::kInstalled}));
  sim::Random dice(3);
  std::string talk(200, '\0');
  for (char& c : talk) c = static_cast<char>(dice.Next());
  Write("fuzz_snapshot", "talk", '\1' + talk);
  sim::SimFileSystem fs(1);
  auto file = SnapshotFile::Create(fs, "/log/snapshot", "in");
  CHECK(file.ok() && (*file)->Append(state).ok() && (*file)->Seal(offer.head).ok());
  const std::string bytes = fs.Bytes("/log/snapshot/in");
  Write("fuzz_snapshot", "file", '\2' + bytes.substr(0, 512) + bytes.substr(kSnapshotHeadBytes));
  Write("fuzz_snapshot", "membership", '\3' + EncodeMembership(base.membership));
  Write("fuzz_snapshot", "begin", '\3' + EncodeBegin({.base = base, .fresh = true}));
}

// A state with one of each kind of record.
void StateImages() {
  using namespace broker;
  sim::SimFileSystem fs(1);
  ReplicatedState state(OpenMemoryStateStore(fs, "/state").value());
  CHECK(state.Load().ok());
  const GroupQueue key{GroupName("g"), {Topic("T"), QueueId(0)}};
  StateCommand command;
  command.put_topics.emplace_back().name = Topic("T");
  command.put_topics.emplace_back().name = Topic("%DLQ%g");
  command.put_groups.emplace_back().name = GroupName("g");
  command.offsets.push_back({.key = key, .offset = QueueOffset(9)});
  command.locks.push_back({.key = key, .client = ClientId("c"), .token = 3});
  command.delays.emplace_back(2, QueueOffset(7));
  command.send_backs.emplace_back(GroupName("g"), PhysicalOffset(99));
  command.set_delay_levels = "1s 5s";
  command.dlq_marks.push_back({.group = GroupName("g"),
                               .queue_id = QueueId(0),
                               .offset = QueueOffset(4),
                               .min_offset = {}});
  command.put_settings["maxMessageSize"] = "1000";
  const ApplyContext context{.index = LogIndex(1),
                             .term = Term(1),
                             .position = PhysicalOffset(0),
                             .end_position = PhysicalOffset(100),
                             .store_time_ms = 5};
  state.Apply(command, context);
  state.NoteMessage(key.queue, QueueOffset(1));
  state.FinishEntry(context);
  CHECK(state.Flush({}).ok());
  const auto records = state.NewImage();
  CHECK(records.ok());
  std::string piece;
  CHECK(NextImagePiece(records.value().get(), &piece).value());
  Write("fuzz_state_image", "each-kind", '\x20' + piece);
  Write("fuzz_state_image", "empty", std::string(1, '\0'));
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
  Snapshots();
  StateImages();
  return 0;
}
