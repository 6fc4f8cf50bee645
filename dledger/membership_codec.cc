#include "dledger/membership_codec.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace triad::dledger {
namespace {

constexpr std::uint8_t kVersion = 2;
constexpr std::uint8_t kVersionWithoutAddresses = 1;

template <typename Int>
void Put(Int value, std::string* out) {
  for (int shift = static_cast<int>(sizeof(Int)) * 8 - 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(static_cast<std::uint8_t>(value >> shift)));
  }
}

template <typename Int>
bool Take(std::string_view* in, Int* value) {
  if (in->size() < sizeof(Int)) return false;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    sum = (sum << 8) | static_cast<std::uint8_t>((*in)[i]);
  }
  in->remove_prefix(sizeof(Int));
  *value = static_cast<Int>(sum);
  return true;
}

void PutText(const std::string& text, std::string* out) {
  Put(static_cast<std::uint16_t>(text.size()), out);
  out->append(text);
}

bool TakeText(std::size_t bytes_max, std::string_view* in, std::string* text) {
  std::uint16_t length = 0;
  if (!Take(in, &length) || length > bytes_max || in->size() < length) return false;
  text->assign(in->substr(0, length));
  in->remove_prefix(length);
  return true;
}

void PutIds(const std::vector<PeerId>& ids, std::string* out) {
  for (const PeerId& id : ids) {
    CHECK_LE(id.value().size(), kMemberTextBytesMax);
    CHECK(!id.empty());
    PutText(id.value(), out);
  }
}

void PutAddresses(const Membership& membership, const std::vector<PeerId>& ids, std::string* out) {
  for (const PeerId& id : ids) {
    const auto found = membership.addresses.find(id);
    const std::string address = found == membership.addresses.end() ? "" : found->second;
    CHECK_LE(address.size(), kMemberTextBytesMax);
    PutText(address, out);
  }
}

// In the order of the entry, for the addresses that follow.
bool TakeAddresses(const std::vector<PeerId>& ids, std::string_view* in, Membership* membership) {
  for (const PeerId& id : ids) {
    std::string address;
    if (!TakeText(kMemberTextBytesMax, in, &address)) return false;
    if (!address.empty()) membership->addresses[id] = std::move(address);
  }
  return true;
}

bool TakeIds(std::size_t count, std::string_view* in, std::vector<PeerId>* ids) {
  for (std::size_t i = 0; i < count; ++i) {
    std::string id;
    if (!TakeText(kMemberTextBytesMax, in, &id) || id.empty()) return false;
    ids->push_back(PeerId(std::move(id)));
  }
  std::sort(ids->begin(), ids->end());
  return std::adjacent_find(ids->begin(), ids->end()) == ids->end();
}

}  // namespace

std::string EncodeMembership(const Membership& membership) {
  CHECK_LE(membership.voters.size() + membership.learners.size(), kMembersMax);
  std::string out;
  Put(kVersion, &out);
  Put(membership.group_id, &out);
  Put(static_cast<std::uint16_t>(membership.voters.size()), &out);
  Put(static_cast<std::uint16_t>(membership.learners.size()), &out);
  PutIds(membership.voters, &out);
  PutIds(membership.learners, &out);
  PutAddresses(membership, membership.voters, &out);
  PutAddresses(membership, membership.learners, &out);
  return out;
}

Result<Membership> DecodeMembership(std::string_view payload) {
  std::uint8_t version = 0;
  std::uint16_t voters = 0;
  std::uint16_t learners = 0;
  Membership membership;
  if (!Take(&payload, &version) || (version != kVersion && version != kVersionWithoutAddresses)) {
    return Status::Corruption("membership: unknown version");
  }
  if (!Take(&payload, &membership.group_id) || !Take(&payload, &voters) ||
      !Take(&payload, &learners)) {
    return Status::Corruption("membership: cut short");
  }
  if (voters == 0 || static_cast<std::size_t>(voters) + learners > kMembersMax) {
    return Status::Corruption("membership: impossible number of members");
  }
  if (!TakeIds(voters, &payload, &membership.voters) ||
      !TakeIds(learners, &payload, &membership.learners)) {
    return Status::Corruption("membership: bad or repeated member id");
  }
  const auto is_voter = [&voters = membership.voters](const PeerId& id) {
    return std::binary_search(voters.begin(), voters.end(), id);
  };
  if (std::any_of(membership.learners.begin(), membership.learners.end(), is_voter)) {
    return Status::Corruption("membership: a member is voter and learner");
  }
  if (version == kVersionWithoutAddresses) return membership;
  if (!TakeAddresses(membership.voters, &payload, &membership) ||
      !TakeAddresses(membership.learners, &payload, &membership)) {
    return Status::Corruption("membership: bad address");
  }
  return membership;
}

bool DecodeMembershipEntry(const Entry& entry, Membership* membership) {
  if (entry.type != EntryType::kMembership) return false;
  Result<Membership> decoded = DecodeMembership(entry.payload());
  if (!decoded.ok()) return false;
  *membership = std::move(decoded).value();
  return true;
}

}  // namespace triad::dledger
