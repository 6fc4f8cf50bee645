// State image: every record of a StateStore as one run of bytes, for a peer that is too far behind.
//
// Pure. A record: key length u32, value length u32, key, value. What only this peer derives (keys
// under "x/") is left out. The bytes may be cut anywhere on their way. Bounds: a record at most
// kImageRecordBytesMax. Errors: kCorruption.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "broker/state/state_store.h"
#include "common/status.h"

namespace triad::broker {

inline constexpr std::size_t kImagePieceBytes = 64u << 10;  // about
inline constexpr std::size_t kImageRecordBytesMax = 64u << 20;

// The next records as bytes, into *piece. False: there are no more.
Result<bool> NextImagePiece(StateRecords* records, std::string* piece);

// The other way: the records of the bytes that `next` hands out piece by piece (as
// NextImagePiece). Bounds: a piece and a record in memory.
class ImageRecords final : public StateRecords {
 public:
  using NextPiece = std::function<Result<bool>(std::string* piece)>;
  explicit ImageRecords(NextPiece next) : next_(std::move(next)) {}

  bool Next(std::string_view* key, std::string_view* value) override;
  // kCorruption also when the last record is cut.
  Status status() const override { return status_; }

 private:
  Result<bool> TakeRecord(std::string_view* key, std::string_view* value);

  const NextPiece next_;
  std::string piece_;
  std::string bytes_;  // not handed out yet, from at_ on
  std::size_t at_ = 0;
  Status status_;
};

}  // namespace triad::broker
