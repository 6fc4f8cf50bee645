#include "tests/sim/sim_log.h"

#include <glog/logging.h>

#include <array>
#include <sstream>

namespace triad::sim {

PeerId IdOf(int node) {
  static const std::array<PeerId, 10> ids = {PeerId("n0"), PeerId("n1"), PeerId("n2"), PeerId("n3"),
                                             PeerId("n4"), PeerId("n5"), PeerId("n6"), PeerId("n7"),
                                             PeerId("n8"), PeerId("n9")};
  return ids.at(static_cast<std::size_t>(node));
}

int NodeOf(const PeerId& id) {
  const std::string& name = id.value();
  return name.size() == 2 && name[0] == 'n' ? name[1] - '0' : -1;
}

EntryRef MakeEntry(Term term, LogIndex index, dledger::EntryType type, std::int64_t number,
                   std::int64_t previous_number, std::string bytes) {
  auto entry = std::make_shared<Entry>();
  entry->term = term;
  entry->index = index;
  entry->type = type;
  entry->position = PhysicalOffset{previous_number};
  entry->store_time_ms = number;
  entry->bytes = std::move(bytes);
  return entry;
}

std::string EncodeMembers(const Membership& membership) {
  std::string text;
  for (const PeerId& voter : membership.voters) text += voter.value() + " ";
  text += "| ";
  for (const PeerId& learner : membership.learners) text += learner.value() + " ";
  return text;
}

bool DecodeMembers(const Entry& entry, Membership* membership) {
  if (entry.type != dledger::EntryType::kMembership) return false;
  std::istringstream words(entry.bytes);
  std::vector<PeerId>* into = &membership->voters;
  for (std::string word; words >> word;) {
    if (word == "|") {
      into = &membership->learners;
    } else {
      into->push_back(PeerId(word));
    }
  }
  return true;
}

const EntryRef* SimLog::Find(LogIndex index) const {
  if (index < first() || index > last()) return nullptr;
  return &entries_[static_cast<std::size_t>(index - first())];
}

Term SimLog::TermAt(LogIndex index) const {
  if (index + 1 == first()) return base_.term;
  const EntryRef* entry = Find(index);
  return entry == nullptr ? Term{0} : (*entry)->term;
}

std::int64_t SimLog::NumberAt(LogIndex index) const {
  if (index + 1 == first()) return base_number_;
  const EntryRef* entry = Find(index);
  return entry == nullptr ? -1 : NumberOf(*entry);
}

void SimLog::Append(EntryRef entry) {
  CHECK_EQ(entry->index, last() + 1);
  if (entry->type == dledger::EntryType::kMembership) {
    Membership membership;
    CHECK(DecodeMembers(*entry, &membership));
    memberships_.emplace_back(entry->index, std::move(membership));
  }
  entries_.push_back(std::move(entry));
}

void SimLog::TruncateFrom(LogIndex from) {
  CHECK(from >= first());
  CHECK(from <= last() + 1);
  entries_.resize(static_cast<std::size_t>(from - first()));
  while (!memberships_.empty() && memberships_.back().first >= from) memberships_.pop_back();
}

void SimLog::PurgeBefore(LogIndex first_kept) {
  CHECK(first_kept <= last() + 1);
  if (first_kept <= first()) return;
  LogBase base{.first_index = first_kept, .term = TermAt(first_kept - 1), .membership = {}};
  base.membership = base_.membership;
  for (const auto& [index, membership] : memberships_) {
    if (index < first_kept) base.membership = membership;
  }
  base_number_ = NumberAt(first_kept - 1);
  entries_.erase(entries_.begin(),
                 entries_.begin() + static_cast<std::ptrdiff_t>(first_kept - first()));
  std::erase_if(memberships_, [&](const auto& held) { return held.first < first_kept; });
  base_ = std::move(base);
}

void SimLog::Reset(LogBase base, std::int64_t base_number) {
  base_ = std::move(base);
  base_number_ = base_number;
  entries_.clear();
  memberships_.clear();
}

}  // namespace triad::sim
