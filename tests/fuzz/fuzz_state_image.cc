// fuzz_state_image: bytes as another peer's state, into what a broker does with a received one.
//
// Input: one byte of piece size, then the image. Must hold: the same records, or the same refusal,
// wherever it is cut on its way; what was read encodes to the same bytes; a state takes it whole or
// stays what it was; what it took it can write, and the next start reads the same.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/memory_state_store.h"
#include "broker/state/replicated_state.h"
#include "broker/state/state_image.h"
#include "broker/state/state_keys.h"
#include "common/byte_order.h"
#include "tests/fuzz/input.h"
#include "tests/sim/sim_file_system.h"

namespace triad::fuzz {
namespace {

using namespace broker;

using Records = std::vector<std::pair<std::string, std::string>>;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 60;  // indexes beyond it are no log's

class ListedRecords final : public StateRecords {
 public:
  explicit ListedRecords(const Records& records) : records_(records) {}
  bool Next(std::string_view* key, std::string_view* value) override {
    if (at_ == records_.size()) return false;
    *key = records_[at_].first;
    *value = records_[at_++].second;
    return true;
  }
  Status status() const override { return Status::Ok(); }

 private:
  const Records& records_;
  std::size_t at_ = 0;
};

Result<Records> Parse(std::string_view image, std::size_t piece_bytes) {
  ImageRecords records([image, piece_bytes](std::string* piece) mutable -> Result<bool> {
    *piece = image.substr(0, piece_bytes);
    image.remove_prefix(piece->size());
    return !piece->empty();
  });
  Records list;
  std::string_view key;
  std::string_view value;
  while (records.Next(&key, &value)) list.emplace_back(key, value);
  TRIAD_RETURN_IF_ERROR(records.status());
  return list;
}

std::string Image(StateRecords* records) {
  std::string image;
  for (std::string piece; NextImagePiece(records, &piece).value();) image += piece;
  return image;
}

std::string ImageOf(const ReplicatedState& state) {
  const auto records = state.NewImage();
  CHECK(records.ok()) << records.status();
  return Image(records.value().get());
}

OpenRecords Listed(const Records& records) {
  return [&records] { return std::make_unique<ListedRecords>(records); };
}

std::unique_ptr<ReplicatedState> Open(sim::SimFileSystem& fs) {
  auto store = OpenMemoryStateStore(fs, "/state");
  CHECK(store.ok()) << store.status();
  auto state = std::make_unique<ReplicatedState>(std::move(*store));
  const Status loaded = state->Load();
  CHECK(loaded.ok()) << loaded;
  return state;
}

void ApplyOne(ReplicatedState* state) {
  const std::uint64_t index = state->applied_index().value() + 1;
  const ApplyContext context{.index = LogIndex(index),
                             .term = Term(kLargest),
                             .position = state->applied_position(),
                             .end_position = state->applied_position(),
                             .store_time_ms = state->log_time_ms()};
  StateCommand command;
  command.put_topics.emplace_back().name = Topic("fuzz");
  state->Apply(command, context);
  state->FinishEntry(context);
}

void TryInstall(const Records& records) {
  sim::SimFileSystem fs(1);
  auto state = Open(fs);
  ApplyOne(state.get());
  CHECK(state->Flush({{"own", "kept by nobody"}}).ok());
  const std::string before = ImageOf(*state);
  const Status installed = state->Install(Listed(records));
  if (!installed.ok()) {
    CHECK(installed.code() == StatusCode::kCorruption) << installed;
    CHECK(ImageOf(*state) == before) << "refused, but something of it is there";
    CHECK_EQ(state->applied_index(), LogIndex(1));
    return;
  }
  const std::string image = Image(Listed(records)().get());
  CHECK(ImageOf(*state) == image);
  state.reset();
  state = Open(fs);
  CHECK(ImageOf(*state) == image);
  if (state->applied_index().value() >= kLargest) return;
  const LogIndex applied = state->applied_index();
  ApplyOne(state.get());
  CHECK(state->Flush({}).ok());
  const std::string after = ImageOf(*state);
  state.reset();
  state = Open(fs);
  CHECK_EQ(state->applied_index(), applied + 1);
  CHECK(state->FindTopic(Topic("fuzz")).has_value());
  CHECK(ImageOf(*state) == after);
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad;
  using namespace triad::fuzz;
  FLAGS_minloglevel = google::GLOG_FATAL;
  Input input(data, size);
  const std::size_t piece_bytes = 1 + input.Below(64);
  const std::string_view image = input.Rest();
  const Result<Records> records = Parse(image, piece_bytes);
  const Result<Records> whole = Parse(image, std::max<std::size_t>(image.size(), 1));
  CHECK_EQ(records.ok(), whole.ok()) << "how it was cut counts";
  if (!records.ok()) {
    CHECK(records.status().code() == StatusCode::kCorruption) << records.status();
    return 0;
  }
  CHECK(*records == *whole);
  const bool has_own = std::any_of(records->begin(), records->end(), [](const auto& record) {
    return record.first.starts_with(broker::kExtraPrefix);
  });
  ListedRecords listed(*records);
  if (!has_own) CHECK(Image(&listed) == image);
  TryInstall(*records);
  return 0;
}

// The lengths that a change made wrong: of one record, so that it ends where the image does.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 3 == 0) return size;
  char* const bytes = reinterpret_cast<char*>(data);
  for (std::size_t at = 1; at + 8 <= size;) {
    const std::size_t room = size - at - 8;
    std::size_t key = triad::LoadBe32(bytes + at);
    std::size_t value = triad::LoadBe32(bytes + at + 4);
    if (key == 0 || key > room) key = std::min<std::size_t>(room, 1 + seed % 9);
    if (value > room - key) value = room - key;
    triad::StoreBe32(bytes + at, static_cast<std::uint32_t>(key));
    triad::StoreBe32(bytes + at + 4, static_cast<std::uint32_t>(value));
    at += 8 + key + value;
  }
  return size;
}
