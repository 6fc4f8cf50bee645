// Images of a state as lists of records, and stores whose batches a test looks at or loses.

#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/state/state_image.h"

namespace triad::broker {

using RecordList = std::vector<std::pair<std::string, std::string>>;

class ListedRecords final : public StateRecords {
 public:
  explicit ListedRecords(const RecordList& records) : records_(records) {}
  bool Next(std::string_view* key, std::string_view* value) override {
    if (at_ == records_.size()) return false;
    *key = records_[at_].first;
    *value = records_[at_++].second;
    return true;
  }
  Status status() const override { return Status::Ok(); }

 private:
  const RecordList& records_;
  std::size_t at_ = 0;
};

inline Status Install(ReplicatedState* state, const RecordList& records) {
  return state->Install([&] { return std::make_unique<ListedRecords>(records); });
}

// Hands out `bytes` of an image in pieces of `piece_bytes`.
inline ImageRecords::NextPiece PiecesOfBytes(std::string bytes, std::size_t piece_bytes) {
  return [bytes = std::move(bytes), piece_bytes, at = std::size_t{0}](std::string* piece) mutable {
    *piece = bytes.substr(at, piece_bytes);
    at += piece->size();
    return Result<bool>(!piece->empty());
  };
}

inline Result<RecordList> ListOf(StateRecords* records) {
  RecordList list;
  std::string_view key;
  std::string_view value;
  while (records->Next(&key, &value)) list.emplace_back(key, value);
  TRIAD_RETURN_IF_ERROR(records->status());
  return list;
}

inline Result<std::string> ImageBytesOf(const ReplicatedState& state) {
  const auto records = state.NewImage();
  if (!records.ok()) return records.status();
  std::string bytes;
  std::string piece;
  while (true) {
    const Result<bool> more = NextImagePiece(records.value().get(), &piece);
    if (!more.ok()) return more.status();
    if (!*more) return bytes;
    bytes += piece;
  }
}

// Through its bytes, cut anywhere.
inline Result<RecordList> ImageOf(const ReplicatedState& state) {
  Result<std::string> bytes = ImageBytesOf(state);
  if (!bytes.ok()) return bytes.status();
  ImageRecords records(PiecesOfBytes(std::move(*bytes), 777));
  return ListOf(&records);
}

// What becomes of a state's batches.
struct Batches {
  std::size_t count = 0;
  std::size_t largest_bytes = 0;     // of keys and values
  std::size_t fails_from = ~0ull;    // batches from this one on (counted from 0) are errors
  std::size_t lost = ~0ull;          // this one is acknowledged, and gone
  std::function<void()> on_written;  // after each
  bool images_fail = false;          // behind that many records; 0: at once
  std::size_t image_records = 0;
};

// The first `count` records of another one, then an error.
class BrokenRecords final : public StateRecords {
 public:
  BrokenRecords(std::unique_ptr<StateRecords> records, std::size_t count)
      : records_(std::move(records)), left_(count) {}
  bool Next(std::string_view* key, std::string_view* value) override {
    return left_ > 0 && left_-- > 0 && records_->Next(key, value);
  }
  Status status() const override { return Status::IoError("these records cannot be read"); }

 private:
  const std::unique_ptr<StateRecords> records_;
  std::size_t left_;
};

class WatchedStore final : public StateStore {
 public:
  WatchedStore(std::unique_ptr<StateStore> store, Batches* batches)
      : store_(std::move(store)), batches_(*batches) {}
  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    return store_->ForEach(visit);
  }
  Result<std::unique_ptr<StateRecords>> NewImage() override {
    auto image = store_->NewImage();
    if (!image.ok() || !batches_.images_fail) return image;
    if (batches_.image_records == 0) return Status::IoError("there is no image");
    return std::unique_ptr<StateRecords>(
        std::make_unique<BrokenRecords>(std::move(*image), batches_.image_records));
  }
  Status Write(const StateBatch& batch) override {
    std::size_t bytes = 0;
    for (const auto& [key, value] : batch.puts) bytes += key.size() + value.size();
    for (const std::string& key : batch.deletes) bytes += key.size();
    batches_.largest_bytes = std::max(batches_.largest_bytes, bytes);
    const std::size_t number = batches_.count++;
    if (number >= batches_.fails_from) return Status::IoError("this batch fails");
    const Status written = number == batches_.lost ? Status::Ok() : store_->Write(batch);
    if (batches_.on_written) batches_.on_written();
    return written;
  }

 private:
  const std::unique_ptr<StateStore> store_;
  Batches& batches_;
};

}  // namespace triad::broker
