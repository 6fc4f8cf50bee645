#include "broker/store/consume_queue.h"

#include <algorithm>
#include <charconv>

namespace triad::broker {
namespace {

constexpr std::size_t kNameDigits = 20;
constexpr std::size_t kIdleRingUnits = 64;
constexpr std::int64_t kPeekUnits = 4096;

std::int64_t FileEnd(std::int64_t unit) {
  return (unit / kUnitsPerFile + 1) * kUnitsPerFile;
}

std::uint64_t ByteOf(std::int64_t units) {
  return static_cast<std::uint64_t>(units) * kUnitBytes;
}

// The first unit of a file with this name; nullopt when it is no unit file.
std::optional<std::int64_t> FirstUnitOf(const DirEntry& entry) {
  std::int64_t byte = 0;
  const char* const end = entry.name.data() + entry.name.size();
  const auto [parsed_to, error] = std::from_chars(entry.name.data(), end, byte);
  if (entry.is_directory || entry.name.size() != kNameDigits || error != std::errc() ||
      parsed_to != end || byte < 0 || byte % static_cast<std::int64_t>(kUnitBytes) != 0) {
    return std::nullopt;
  }
  return byte / static_cast<std::int64_t>(kUnitBytes);
}

}  // namespace

ConsumeQueue::ConsumeQueue(FileSystem& fs, std::string dir, RingBudget* budget)
    : fs_(fs), dir_(std::move(dir)), budget_(budget) {}

ConsumeQueue::~ConsumeQueue() = default;

std::string ConsumeQueue::PathOf(std::int64_t first_unit) const {
  const std::string digits = std::to_string(ByteOf(first_unit));
  return dir_ + "/" + std::string(kNameDigits - digits.size(), '0') + digits;
}

// ---- Recovery -----------------------------------------------------------------------------------

// Units in front of the checkpoint were synced. Behind the last of them everything is cut: it may
// be torn, and it comes again. What is damaged in front of it is found when it is read.
Status ConsumeQueue::Recover(PhysicalOffset checkpoint, std::optional<QueueOffset> tail) {
  const Result<std::vector<DirEntry>> entries = fs_.List(dir_);
  if (!entries.ok()) return entries.status();
  for (const DirEntry& entry : entries.value()) {
    if (const std::optional<std::int64_t> first = FirstUnitOf(entry)) files_.push_back(*first);
  }
  std::sort(files_.begin(), files_.end());
  // Without a unit, the first file says where the queue begins: StartEmpty, or all of it was lost.
  const std::size_t stay = checkpoint > PhysicalOffset(0) ? 1 : 0;
  // A tail in front of all files was passed by: the queue was emptied since.
  const bool cut = tail && !files_.empty() && tail->value() >= files_.front();
  while (!files_.empty()) {
    const std::int64_t first = files_.back();
    const Result<std::int64_t> kept = KeptEnd(first, checkpoint);
    if (!kept.ok()) return kept.status();
    const std::int64_t end = cut ? std::min(*kept, tail->value()) : *kept;
    if (end > first || files_.size() == stay) {
      const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(first), {});
      if (!file.ok()) return file.status();
      TRIAD_RETURN_IF_ERROR(file.value()->Truncate(ByteOf(end - first)));
      min_ = files_.front();
      max_ = written_ = ring_begin_ = end;
      break;
    }
    TRIAD_RETURN_IF_ERROR(fs_.Remove(PathOf(first)));
    files_.pop_back();
  }
  // A file in the middle that is missing is a hole.
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
    const std::int64_t next = FileEnd(files_[i]);
    if (files_[i + 1] != next)
      files_.insert(files_.begin() + static_cast<std::ptrdiff_t>(i + 1), next);
  }
  front_unsure_ = !files_.empty() && files_.front() > 0 && files_.front() % kUnitsPerFile == 0;
  return Status::Ok();
}

// Only a file that continues another one begins at such a unit. Retention drops the one in front
// when the log begins behind its end; when it does not, somebody else removed it, or the log begins
// exactly at this unit (then a search in the log finds nothing, and the hole is closed).
Status ConsumeQueue::CheckFront(PhysicalOffset begin) {
  if (!std::exchange(front_unsure_, false)) return Status::Ok();
  const std::int64_t first = files_.front();
  const Result<std::vector<QueueUnit>> unit = Read(QueueOffset{first}, 1);
  if (unit.ok() && !unit->empty() && unit->front().position < begin) return Status::Ok();
  if (unit.status().code() == StatusCode::kIoError) return unit.status();
  if (unit.status().code() == StatusCode::kCorruption) {
    TRIAD_RETURN_IF_ERROR(OpenHole(QueueOffset{first}));
  }
  LOG(WARNING) << "consume queue: " << dir_ << " begins with unit " << first
               << ", but the log holds older messages; what is missing is rebuilt from the log";
  min_position_.reset();
  const std::lock_guard hold(mutex_);
  if (!has_inner_hole()) hole_end_ = first;
  min_ = hole_begin_ = 0;
  return Status::Ok();
}

// Behind the last unit of a file that stands in front of the checkpoint; its first when none does.
Result<std::int64_t> ConsumeQueue::KeptEnd(std::int64_t first_unit,
                                           PhysicalOffset checkpoint) const {
  std::int64_t end = first_unit;
  for (std::int64_t from = first_unit; from < FileEnd(first_unit); from += kPeekUnits) {
    const std::int64_t count = std::min(kPeekUnits, FileEnd(first_unit) - from);
    const Result<MaybeUnits> units = ReadFrom(first_unit, from, static_cast<std::size_t>(count));
    if (!units.ok()) return units.status();
    for (std::size_t i = 0; i < units->size(); ++i) {
      const std::optional<QueueUnit>& unit = (*units)[i];
      if (unit && unit->position < checkpoint) end = from + static_cast<std::int64_t>(i) + 1;
    }
    if (units->empty()) break;
  }
  return end;
}

// ---- Apply thread -------------------------------------------------------------------------------

bool ConsumeQueue::Append(QueueOffset offset, const QueueUnit& unit) {
  CHECK(IsUnit(unit)) << dir_;
  if (empty()) {
    const std::lock_guard hold(mutex_);
    min_ = max_ = written_ = ring_begin_ = offset.value();
  }
  if (offset.value() < max_) return true;  // replay
  CHECK_EQ(offset.value(), max_) << "a gap in " << dir_;
  appended_ = true;
  if (static_cast<std::size_t>(max_ - ring_begin_) == ring_.size()) {
    const std::size_t more = std::max(ring_.size(), kRingUnitsMin);
    if (ring_.empty()) {
      Resize(kRingUnitsMin);
    } else if (ring_.size() < kRingUnitsMax &&
               (lacks_tail() || budget_->used + more <= kRingUnitsTotalMax)) {
      budget_->used += more;
      Resize(ring_.size() + more);
    } else {
      if (ring_.size() < kRingUnitsMax) budget_->refused = true;
      if (ring_begin_ == written_) return false;
    }
  }
  const std::lock_guard hold(mutex_);
  if (static_cast<std::size_t>(max_ - ring_begin_) == ring_.size()) ++ring_begin_;
  slot(max_) = unit;
  ++max_;
  return true;
}

// Keeps the newest units that fit.
void ConsumeQueue::Resize(std::size_t units) {
  std::vector<QueueUnit> next(units);
  const std::lock_guard hold(mutex_);
  const std::int64_t begin = std::max(ring_begin_, max_ - static_cast<std::int64_t>(units));
  for (std::int64_t offset = begin; offset < max_; ++offset) {
    next[static_cast<std::size_t>(offset) % units] = slot(offset);
  }
  ring_ = std::move(next);
  ring_begin_ = begin;
}

std::vector<QueueUnit> ConsumeQueue::Unwritten() const {
  std::vector<QueueUnit> units;
  if (lacks_tail()) return units;
  units.reserve(static_cast<std::size_t>(max_ - written_));
  for (std::int64_t offset = written_; offset < max_; ++offset) units.push_back(slot(offset));
  return units;
}

Status ConsumeQueue::ShrinkWhenIdle(Unsynced* unsynced) {
  if (std::exchange(appended_, false) || ring_.size() <= kIdleRingUnits) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(WriteOut(unsynced));
  if (written_ != max_) return Status::Ok();
  budget_->used -= ring_.size() - kIdleRingUnits;
  Resize(kIdleRingUnits);
  return Status::Ok();
}

void ConsumeQueue::ReturnBudget() {
  if (ring_.size() > kRingUnitsMin) budget_->used -= ring_.size() - kRingUnitsMin;
}

Status ConsumeQueue::WriteOut(Unsynced* unsynced) {
  while (written_ < max_ && !lacks_tail()) {
    std::int64_t first = files_.empty() ? written_ : files_.back();
    const bool is_new = files_.empty() || written_ == FileEnd(first);
    if (is_new) first = written_;
    const std::int64_t end = std::min(max_, FileEnd(first));
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(end - written_) * kUnitBytes);
    for (std::int64_t offset = written_; offset < end; ++offset) {
      EncodeUnit(offset, slot(offset), &bytes);
    }

    const std::string path = PathOf(first);
    if (is_new) {
      TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
      unsynced->dirs.insert(dir_);
    }
    const Result<std::unique_ptr<File>> file = fs_.Open(path, {.create = is_new});
    if (!file.ok()) return file.status();
    TRIAD_RETURN_IF_ERROR(file.value()->Write(ByteOf(written_ - first), bytes));
    unsynced->files.insert(path);

    const std::lock_guard hold(mutex_);
    if (is_new) files_.push_back(first);
    written_ = end;
  }
  return Status::Ok();
}

Status ConsumeQueue::StartEmpty(QueueOffset offset, Unsynced* unsynced) {
  CHECK(empty());
  const std::string path = PathOf(offset.value());
  TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
  const Result<std::unique_ptr<File>> file = fs_.Open(path, {.create = true});
  if (!file.ok()) return file.status();
  unsynced->files.insert(path);
  unsynced->dirs.insert(dir_);
  const std::lock_guard hold(mutex_);
  files_.push_back(offset.value());
  min_ = max_ = written_ = ring_begin_ = offset.value();
  return Status::Ok();
}

// The first unit whose message begins at or behind `begin`; max_ when there is none.
Result<std::int64_t> ConsumeQueue::FirstAtOrBehind(PhysicalOffset begin) {
  std::int64_t low = min_;
  std::int64_t high = max_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const Result<std::vector<QueueUnit>> unit = Read(QueueOffset{middle}, 1);
    if (unit.status().code() == StatusCode::kCorruption) {
      LOG(ERROR) << "consume queue: " << unit.status().message() << "; it is rebuilt from the log";
      TRIAD_RETURN_IF_ERROR(OpenHole(QueueOffset{middle}));
      return Status::Unavailable("a hole");
    }
    if (!unit.ok()) return unit.status();
    CHECK_EQ(unit.value().size(), 1u);
    if (unit.value().front().position < begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Status ConsumeQueue::SetLogBegin(PhysicalOffset begin) {
  TRIAD_RETURN_IF_ERROR(CheckFront(begin));
  if (min_position_ && *min_position_ >= begin) return Status::Ok();
  const Result<std::int64_t> first = FirstAtOrBehind(begin);
  if (!first.ok()) return first.status();
  min_position_.reset();
  if (first.value() < max_) {
    const Result<std::vector<QueueUnit>> unit = Read(QueueOffset{first.value()}, 1);
    if (unit.ok() && !unit.value().empty()) min_position_ = unit.value().front().position;
  }
  return ForgetFront(first.value());
}

// Files that hold nothing at or behind the new minimum go; the last one stays, whatever it holds:
// it says where the queue continues.
Status ConsumeQueue::ForgetFront(std::int64_t new_min) {
  std::vector<std::int64_t> dropped;
  {
    const std::lock_guard hold(mutex_);
    min_ = new_min;
    hole_begin_ = std::max(hole_begin_, min_);
    hole_end_ = std::max(hole_end_, min_);
    while (files_.size() > 1 && FileEnd(files_.front()) <= min_) {
      dropped.push_back(files_.front());
      files_.erase(files_.begin());
    }
  }
  for (const std::int64_t file : dropped) {
    const Status removed = fs_.Remove(PathOf(file));
    if (removed.code() != StatusCode::kNotFound) TRIAD_RETURN_IF_ERROR(removed);
  }
  return Status::Ok();
}

// ---- Holes --------------------------------------------------------------------------------------

void ConsumeQueue::LoseOldest() {
  const std::lock_guard hold(mutex_);
  ++ring_begin_;
}

void ConsumeQueue::ExtendTo(QueueOffset offset) {
  CHECK_GT(offset.value(), max_) << dir_;
  const std::lock_guard hold(mutex_);
  max_ = ring_begin_ = offset.value();
}

Status ConsumeQueue::OpenHole(QueueOffset bad) {
  if (has_inner_hole() || bad.value() < min_ || bad.value() >= written_) return Status::Ok();
  std::int64_t begin = bad.value();
  while (begin >= min_) {
    const Result<MaybeUnits> unit = Peek(begin, 1);
    if (!unit.ok()) return unit.status();
    if (unit->front()) break;
    --begin;
  }
  ++begin;
  if (begin > bad.value()) return Status::Ok();  // it can be read now
  std::int64_t end = bad.value() + 1;
  for (bool found = false; !found && end < written_;) {
    const Result<MaybeUnits> units = Peek(end, kPeekUnits);
    if (!units.ok()) return units.status();
    for (const std::optional<QueueUnit>& unit : *units) {
      found = unit.has_value() || end == written_;
      if (found) break;
      ++end;
    }
  }
  min_position_.reset();
  const std::lock_guard hold(mutex_);
  hole_begin_ = begin;
  hole_end_ = end;
  return Status::Ok();
}

std::optional<ConsumeQueue::Hole> ConsumeQueue::hole() const {
  if (!has_inner_hole() && !lacks_tail()) return std::nullopt;
  Hole hole{QueueOffset{written_}, QueueOffset{ring_begin_}, std::nullopt};
  if (has_inner_hole()) hole = {QueueOffset{hole_begin_}, QueueOffset{hole_end_}, std::nullopt};
  if (hole.begin.value() <= min_) return hole;
  const Result<MaybeUnits> before = Peek(hole.begin.value() - 1, 1);
  if (before.ok() && before->front()) hole.behind = before->front()->position;
  return hole;
}

Status ConsumeQueue::Feed(QueueOffset first, std::span<const QueueUnit> units, Unsynced* unsynced) {
  const bool inner = has_inner_hole();
  const std::int64_t begin = inner ? hole_begin_ : written_;
  const std::int64_t hole_end = inner ? hole_end_ : ring_begin_;
  CHECK_GE(first.value(), begin) << dir_;
  CHECK_LE(first.value() + static_cast<std::int64_t>(units.size()), hole_end) << dir_;
  if (first.value() > begin) TRIAD_RETURN_IF_ERROR(BeginAt(first.value()));
  for (std::int64_t next = first.value(); !units.empty();) {
    const std::int64_t file_end = FileEnd(next);
    const auto count = std::min(units.size(), static_cast<std::size_t>(file_end - next));
    TRIAD_RETURN_IF_ERROR(WriteUnits(next, units.first(count), unsynced));
    units = units.subspan(count);
    next += static_cast<std::int64_t>(count);
    const std::lock_guard hold(mutex_);
    (inner ? hole_begin_ : written_) = next;
  }
  return Status::Ok();
}

// Nothing in front of `first`, which is in the hole or its end, is in the log any more.
Status ConsumeQueue::BeginAt(std::int64_t first) {
  min_position_.reset();
  if (has_inner_hole()) return ForgetFront(first);
  std::vector<std::int64_t> files;
  {
    const std::lock_guard hold(mutex_);
    files.swap(files_);
    min_ = written_ = first;
  }
  for (const std::int64_t file : files) {
    const Status removed = fs_.Remove(PathOf(file));
    if (removed.code() != StatusCode::kNotFound) TRIAD_RETURN_IF_ERROR(removed);
  }
  return Status::Ok();
}

// Units of one file, which may be new.
Status ConsumeQueue::WriteUnits(std::int64_t from, std::span<const QueueUnit> units,
                                Unsynced* unsynced) {
  const auto behind = std::upper_bound(files_.begin(), files_.end(), from);
  const bool known = behind != files_.begin() && from < FileEnd(*std::prev(behind));
  const std::int64_t first = known ? *std::prev(behind) : from;
  std::string bytes;
  bytes.reserve(units.size() * kUnitBytes);
  std::int64_t offset = from;
  for (const QueueUnit& unit : units) EncodeUnit(offset++, unit, &bytes);
  TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
  const std::string path = PathOf(first);
  if (!fs_.Exists(path)) unsynced->dirs.insert(dir_);
  const Result<std::unique_ptr<File>> file = fs_.Open(path, {.create = true});
  if (!file.ok()) return file.status();
  TRIAD_RETURN_IF_ERROR(file.value()->Write(ByteOf(from - first), bytes));
  unsynced->files.insert(path);
  if (known) return Status::Ok();
  const std::lock_guard hold(mutex_);
  files_.insert(std::upper_bound(files_.begin(), files_.end(), first), first);
  return Status::Ok();
}

Status ConsumeQueue::CloseHole(Unsynced* unsynced) {
  const bool inner = has_inner_hole();
  TRIAD_RETURN_IF_ERROR(BeginAt(inner ? hole_end_ : ring_begin_));
  if (inner || written_ < max_) return Status::Ok();
  return StartEmpty(QueueOffset{max_}, unsynced);
}

// ---- Any thread ---------------------------------------------------------------------------------

QueueRange ConsumeQueue::Range() const {
  const std::lock_guard hold(mutex_);
  return {QueueOffset{min_}, QueueOffset{max_}};
}

std::optional<std::vector<QueueUnit>> ConsumeQueue::ReadNow(QueueOffset from,
                                                            std::size_t max_units) const {
  std::vector<QueueUnit> units;
  const std::lock_guard hold(mutex_);
  if (from.value() < min_ || from.value() >= max_) return units;
  if (!in_ring(from.value())) return std::nullopt;
  const std::size_t count = std::min(max_units, static_cast<std::size_t>(max_ - from.value()));
  units.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    units.push_back(slot(from.value() + static_cast<std::int64_t>(i)));
  }
  return units;
}

Result<std::vector<QueueUnit>> ConsumeQueue::Read(QueueOffset from, std::size_t max_units) const {
  std::optional<std::vector<QueueUnit>> now = ReadNow(from, max_units);
  if (now.has_value()) return std::move(*now);
  std::int64_t first = 0;
  std::size_t count = 0;
  {
    const std::lock_guard hold(mutex_);
    // Retention may have passed it meanwhile.
    if (from.value() < min_) return std::vector<QueueUnit>();
    const bool in_hole = from.value() >= hole_begin_ && from.value() < hole_end_;
    const auto behind = std::upper_bound(files_.begin(), files_.end(), from.value());
    if (in_hole || from.value() >= written_ || behind == files_.begin()) {
      return Status::Unavailable("units from " + std::to_string(from.value()) + " of " + dir_ +
                                 " are being rebuilt from the log");
    }
    first = *std::prev(behind);
    std::int64_t end = std::min(written_, FileEnd(first));
    if (from.value() < hole_begin_ && hole_begin_ < hole_end_) end = std::min(end, hole_begin_);
    CHECK_GT(end, from.value());
    count = std::min(max_units, static_cast<std::size_t>(end - from.value()));
  }
  const Result<MaybeUnits> found = ReadFrom(first, from.value(), count);
  if (!found.ok()) return found.status();
  std::vector<QueueUnit> units;
  units.reserve(count);
  for (const std::optional<QueueUnit>& unit : *found) {
    if (!unit) break;
    units.push_back(*unit);
  }
  if (!units.empty() || max_units == 0) return units;
  if (from < Range().min) return units;  // its file went meanwhile
  return Status::Corruption("unit " + std::to_string(from.value()) + " in " + PathOf(first) +
                            " is damaged");
}

Result<ConsumeQueue::MaybeUnits> ConsumeQueue::ReadFrom(std::int64_t first_unit, std::int64_t from,
                                                        std::size_t count) const {
  MaybeUnits units;
  const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(first_unit), {.read_only = true});
  if (file.status().code() == StatusCode::kNotFound) return units;
  if (!file.ok()) return file.status();
  std::string bytes(count * kUnitBytes, '\0');
  const Result<std::size_t> got = file.value()->Read(ByteOf(from - first_unit), bytes);
  if (!got.ok()) return got.status();
  units.reserve(count);
  for (std::size_t at = 0; at + kUnitBytes <= got.value(); at += kUnitBytes) {
    units.push_back(DecodeUnit(from++, std::string_view(bytes).substr(at, kUnitBytes)));
  }
  return units;
}

// Apply thread.
Result<ConsumeQueue::MaybeUnits> ConsumeQueue::Peek(std::int64_t from, std::size_t count) const {
  const auto behind = std::upper_bound(files_.begin(), files_.end(), from);
  CHECK(behind != files_.begin());
  const std::int64_t first = *std::prev(behind);
  count = std::min(count, static_cast<std::size_t>(FileEnd(first) - from));
  Result<MaybeUnits> units = ReadFrom(first, from, count);
  if (units.ok()) units->resize(count);
  return units;
}

}  // namespace triad::broker
