// Membership codec: the payload of a membership entry.
//
// Big-endian: version u8 (2), group id u64, voter count u16, learner count u16, then each id as
// length u16 and bytes, then for each of them, in the same order, its address likewise (empty =
// unknown); zero padding may follow. Version 1 has no addresses. Pure. Bytes from a disk or a
// socket are checked, never CHECKed. Bounds: at most kMembersMax members, ids of 1 to
// kMemberTextBytesMax bytes, addresses of at most as many.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/status.h"
#include "dledger/raft/entry.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

inline constexpr std::size_t kMemberTextBytesMax = 255;  // of an id, of an address

std::string EncodeMembership(const Membership& membership);
// Errors: kCorruption, saying what is wrong. Members are sorted and unique in the result.
Result<Membership> DecodeMembership(std::string_view payload);

// As Core::MembershipDecoder wants it. False for an entry of another type or bad bytes.
bool DecodeMembershipEntry(const Entry& entry, Membership* membership);

}  // namespace triad::dledger
