#include "remoting/call_table.h"

#include <algorithm>
#include <utility>

namespace triad::remoting {

namespace {
constexpr std::size_t kFirstSlots = 16;
}  // namespace

std::int32_t CallTable::Add(TimePoint deadline, CallDone done) {
  CHECK(!full());
  CHECK(done != nullptr);
  if ((size_ + 1) * 2 > slots_.size()) Grow();
  while (SlotOf(next_).used) ++next_;  // a call that waits for long: leave its number alone
  Slot& slot = SlotOf(next_);
  slot.used = true;
  slot.opaque = next_;
  slot.deadline = deadline;
  slot.done = std::move(done);
  ++size_;
  return static_cast<std::int32_t>(next_++);
}

CallDone CallTable::Take(std::int32_t opaque) {
  if (size_ == 0) return nullptr;
  Slot& slot = SlotOf(static_cast<std::uint32_t>(opaque));
  if (!slot.used || slot.opaque != static_cast<std::uint32_t>(opaque)) return nullptr;
  return Free(&slot);
}

TimePoint CallTable::Expire(TimePoint now, std::vector<CallDone>* expired) {
  TimePoint earliest = TimePoint::max();
  if (size_ == 0) return earliest;
  for (Slot& slot : slots_) {
    if (!slot.used) continue;
    if (slot.deadline <= now) {
      expired->push_back(Free(&slot));
    } else {
      earliest = std::min(earliest, slot.deadline);
    }
  }
  return earliest;
}

std::vector<CallDone> CallTable::TakeAll() {
  std::vector<CallDone> all;
  all.reserve(size_);
  // Slots from next_ on hold the oldest numbers, going round.
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = SlotOf(next_ + static_cast<std::uint32_t>(i));
    if (slot.used) all.push_back(Free(&slot));
  }
  CHECK_EQ(size_, 0u);
  return all;
}

CallDone CallTable::Free(Slot* slot) {
  slot->used = false;
  --size_;
  CallDone done = std::move(slot->done);
  slot->done = nullptr;
  return done;
}

void CallTable::Grow() {
  std::vector<Slot> old = std::move(slots_);
  slots_.clear();
  slots_.resize(std::max(kFirstSlots, old.size() * 2));
  for (Slot& slot : old) {
    // Two numbers that differ modulo the small size differ modulo the double, too.
    if (slot.used) SlotOf(slot.opaque) = std::move(slot);
  }
}

}  // namespace triad::remoting
