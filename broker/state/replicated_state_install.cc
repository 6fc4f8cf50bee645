// NewImage and Install of ReplicatedState: its records from one peer's StateStore into another's.

#include <mutex>

#include "broker/state/replicated_state_tables.h"
#include "broker/state/state_keys.h"

namespace triad::broker {
namespace {

bool IsOwn(std::string_view key) {
  return key.substr(0, kExtraPrefix.size()) == kExtraPrefix;
}

bool IsInstallKey(std::string_view key) {
  return key.substr(0, kInstallPrefix.size()) == kInstallPrefix;
}

// A StateStore that is an image, to be loaded from.
class ImageStore final : public StateStore {
 public:
  explicit ImageStore(const OpenRecords& open) : open_(open) {}

  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    const std::unique_ptr<StateRecords> records = open_();
    std::string before;
    std::string_view key;
    std::string_view value;
    while (records->Next(&key, &value)) {
      if (key <= before) return Status::Corruption("state image: its records are out of order");
      if (IsOwn(key)) return Status::Corruption("state image: a record that is its sender's own");
      before = key;
      visit(key, value);
    }
    return records->status();
  }
  Result<std::unique_ptr<StateRecords>> NewImage() override {
    return Status::Unsupported("an image of an image");
  }
  Status Write(const StateBatch&) override {
    return Status::Unsupported("an image is not written to");
  }

 private:
  const OpenRecords& open_;
};

// What batches of the images before left, by number.
Result<std::vector<std::string>> InstallKeys(StateStore* store) {
  std::vector<std::string> keys;
  TRIAD_RETURN_IF_ERROR(store->ForEach([&](std::string_view key, std::string_view) {
    if (IsInstallKey(key)) keys.emplace_back(key);
  }));
  return keys;
}

// Changes of a store, in batches of bounded size. Each leaves a number that no earlier one had, and
// the last one says which there are: so a start knows when one of them is missing.
class BatchedWriter {
 public:
  BatchedWriter(StateStore* store, std::size_t batch_bytes, std::uint64_t first_number)
      : store_(*store), batch_bytes_(batch_bytes), first_(first_number), number_(first_number) {}

  Status Put(std::string_view key, std::string_view value) {
    TRIAD_RETURN_IF_ERROR(MakeRoom(key.size() + value.size()));
    batch_.puts.emplace_back(key, value);
    return Status::Ok();
  }
  Status Delete(std::string_view key) {
    TRIAD_RETURN_IF_ERROR(MakeRoom(key.size()));
    batch_.deletes.emplace_back(key);
    return Status::Ok();
  }
  Status Finish(const std::vector<std::string>& old_numbers) {
    for (const std::string& key : old_numbers) batch_.deletes.push_back(key);
    batch_.puts.emplace_back(kInstalledKey, EncodeInstalled({.first = first_, .last = number_}));
    return Write();
  }

 private:
  Status MakeRoom(std::size_t record_bytes) {
    record_bytes += sizeof(batch_.puts.front());
    if (bytes_ > 0 && bytes_ + record_bytes > batch_bytes_) {
      // What an earlier image left is not whole any more.
      if (number_ == first_) batch_.deletes.emplace_back(kInstalledKey);
      TRIAD_RETURN_IF_ERROR(Write());
    }
    bytes_ += record_bytes;
    return Status::Ok();
  }
  Status Write() {
    batch_.puts.emplace_back(InstallKey(number_++), std::string());
    const Status written = store_.Write(batch_);
    batch_.puts.clear();
    batch_.deletes.clear();
    bytes_ = 0;
    return written;
  }

  StateStore& store_;
  const std::size_t batch_bytes_;
  StateBatch batch_;
  std::size_t bytes_ = 0;
  const std::uint64_t first_;
  std::uint64_t number_;  // of the batch at hand
};

// Makes the store hold what the image does and nothing else. Both are in key order.
Status ReplaceRecords(StateStore* store, StateRecords* image, std::size_t batch_bytes) {
  const Result<std::unique_ptr<StateRecords>> opened = store->NewImage();
  if (!opened.ok()) return opened.status();
  StateRecords& old = **opened;
  const Result<std::vector<std::string>> old_numbers = InstallKeys(store);
  if (!old_numbers.ok()) return old_numbers.status();
  std::uint64_t first_number = 1;
  if (!old_numbers->empty()) {
    const Result<std::uint64_t> last = ParseInstallKey(old_numbers->back());
    if (!last.ok()) return last.status();
    first_number = *last + 1;
  }
  BatchedWriter writer(store, batch_bytes, first_number);
  std::string_view old_key;
  std::string_view old_value;
  bool has_old = old.Next(&old_key, &old_value);
  const auto drop_old = [&]() -> Status {
    if (!IsInstallKey(old_key) && old_key != kInstalledKey) {  // those are the writer's
      TRIAD_RETURN_IF_ERROR(writer.Delete(old_key));
    }
    has_old = old.Next(&old_key, &old_value);
    return Status::Ok();
  };
  std::string_view key;
  std::string_view value;
  while (image->Next(&key, &value)) {
    while (has_old && old_key < key) TRIAD_RETURN_IF_ERROR(drop_old());
    if (has_old && old_key == key) has_old = old.Next(&old_key, &old_value);
    TRIAD_RETURN_IF_ERROR(writer.Put(key, value));
  }
  TRIAD_RETURN_IF_ERROR(image->status());
  while (has_old) TRIAD_RETURN_IF_ERROR(drop_old());
  TRIAD_RETURN_IF_ERROR(old.status());
  return writer.Finish(*old_numbers);
}

}  // namespace

Result<std::unique_ptr<StateRecords>> ReplicatedState::NewImage() const {
  return tables_->store->NewImage();
}

void ReplicatedState::Tables::TakeContent(Tables* from) {
  topics = std::move(from->topics);
  groups = std::move(from->groups);
  offsets = std::move(from->offsets);
  locks = std::move(from->locks);
  next_offsets = std::move(from->next_offsets);
  delays = std::move(from->delays);
  send_backs = std::move(from->send_backs);
  send_back_order = std::move(from->send_back_order);
  delay_levels = std::move(from->delay_levels);
  dlq = std::move(from->dlq);
  dedup = std::move(from->dedup);
  settings = std::move(from->settings);
  applied = from->applied;
  flushed_index = from->flushed_index;
  loaded_extras = std::move(from->loaded_extras);
  dirty = Dirty();
}

// Twice through the image: nothing is written before all of it was found good, and no more than a
// batch of it stands beside the tables that are made of it.
Status ReplicatedState::Install(const OpenRecords& open) {
  ReplicatedState image(std::make_unique<ImageStore>(open), tables_->dedup_keys_max);
  TRIAD_RETURN_IF_ERROR(image.Load());
  if (image.tables_->applied.flush_number == 0) {
    return Status::Corruption("state image: it holds nothing, not even an applied record");
  }
  TRIAD_RETURN_IF_ERROR(
      ReplaceRecords(tables_->store.get(), open().get(), tables_->install_batch_bytes));
  const std::unique_lock hold(tables_->mutex);
  tables_->TakeContent(image.tables_.get());
  ++tables_->topics_version;
  return Status::Ok();
}

}  // namespace triad::broker
