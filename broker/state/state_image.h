// State image: every record of a StateStore as one run of bytes, for a peer that is too far behind.
//
// Pure. A record: key length u32, value length u32, key, value. What only this peer derives (keys
// under "x/") is left out. The bytes may be cut anywhere on their way. Bounds: a record at most
// kImageRecordBytesMax. Errors: kCorruption.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/state/state_store.h"
#include "common/status.h"

namespace triad::broker {

inline constexpr std::size_t kImagePieceBytes = 64u << 10;  // about
inline constexpr std::size_t kImageRecordBytesMax = 64u << 20;

// The next records as bytes, into *piece. False: there are no more.
Result<bool> NextImagePiece(StateRecords* records, std::string* piece);

// The other way.
class StateImageParser {
 public:
  Status Add(std::string_view piece);
  // All records, in order; kCorruption when the last one is cut.
  Result<std::vector<std::pair<std::string, std::string>>> Finish() &&;

 private:
  std::string rest_;
  std::vector<std::pair<std::string, std::string>> records_;
};

}  // namespace triad::broker
