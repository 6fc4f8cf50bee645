#include "broker/store/consume_queue.h"

#include <algorithm>
#include <charconv>

#include "common/byte_order.h"

namespace triad::broker {
namespace {

constexpr std::size_t kNameDigits = 20;
constexpr std::size_t kIdleRingUnits = 64;

std::int64_t FileEnd(std::int64_t unit) {
  return (unit / kUnitsPerFile + 1) * kUnitsPerFile;
}

std::uint64_t ByteOf(std::int64_t units) {
  return static_cast<std::uint64_t>(units) * kUnitBytes;
}

QueueUnit DecodeUnit(const char* bytes) {
  QueueUnit unit;
  unit.position = PhysicalOffset{static_cast<std::int64_t>(LoadBe64(bytes))};
  unit.size_bytes = static_cast<std::int32_t>(LoadBe32(bytes + 8));
  unit.tag_code = static_cast<std::int64_t>(LoadBe64(bytes + 12));
  return unit;
}

void EncodeUnit(const QueueUnit& unit, std::string* out) {
  AppendBe64(out, static_cast<std::uint64_t>(unit.position.value()));
  AppendBe32(out, static_cast<std::uint32_t>(unit.size_bytes));
  AppendBe64(out, static_cast<std::uint64_t>(unit.tag_code));
}

bool IsUnit(const QueueUnit& unit) {
  return unit.position.value() >= 0 && unit.size_bytes > 0;
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

Status ConsumeQueue::Recover(PhysicalOffset checkpoint) {
  const Result<std::vector<DirEntry>> entries = fs_.List(dir_);
  if (!entries.ok()) return entries.status();
  for (const DirEntry& entry : entries.value()) {
    if (const std::optional<std::int64_t> first = FirstUnitOf(entry)) files_.push_back(*first);
  }
  std::sort(files_.begin(), files_.end());
  if (files_.size() == 1 && checkpoint > PhysicalOffset(0)) {
    const Result<bool> is_empty = IsEmptyFile(files_.front());
    if (!is_empty.ok()) return is_empty.status();
    if (is_empty.value()) {  // StartEmpty, or a first file whose units were lost: they come again
      min_ = max_ = written_ = ring_begin_ = files_.front();
      return Status::Ok();
    }
  }
  TRIAD_RETURN_IF_ERROR(FindCutFile(checkpoint));
  if (files_.empty()) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(CheckFiles());
  return CutLastFile(checkpoint);
}

Result<bool> ConsumeQueue::IsEmptyFile(std::int64_t first_unit) const {
  const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(first_unit), {.read_only = true});
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> size = file.value()->Size();
  if (!size.ok()) return size.status();
  return size.value() == 0;
}

// Removes files from the end until one begins in front of the checkpoint. A file's first unit is
// never torn (it stands in one sector): it is there as written, or it is zeros.
Status ConsumeQueue::FindCutFile(PhysicalOffset checkpoint) {
  while (!files_.empty()) {
    const Result<QueueUnit> first = ReadOneFrom(files_.back(), files_.back());
    if (first.ok() && first.value().position < checkpoint) return Status::Ok();
    if (!first.ok() && first.status().code() != StatusCode::kCorruption) return first.status();
    TRIAD_RETURN_IF_ERROR(fs_.Remove(PathOf(files_.back())));
    files_.pop_back();
  }
  return Status::Ok();
}

Status ConsumeQueue::CheckFiles() const {
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
    if (files_[i + 1] != FileEnd(files_[i])) {
      return Status::Corruption("consume queue: the file behind " + PathOf(files_[i]) +
                                " is missing");
    }
    const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(files_[i]), {.read_only = true});
    if (!file.ok()) return file.status();
    const Result<std::uint64_t> size = file.value()->Size();
    if (!size.ok()) return size.status();
    if (size.value() < ByteOf(files_[i + 1] - files_[i])) {
      return Status::Corruption("consume queue: " + PathOf(files_[i]) + " is too short");
    }
  }
  return Status::Ok();
}

// Units in front of the checkpoint were synced; what follows them may be zeros or torn.
Status ConsumeQueue::CutLastFile(PhysicalOffset checkpoint) {
  const std::string path = PathOf(files_.back());
  const Result<std::string> bytes = ReadFile(fs_, path);
  if (!bytes.ok()) return bytes.status();
  const std::int64_t units_max = FileEnd(files_.back()) - files_.back();
  std::int64_t count = 0;
  PhysicalOffset end;
  while (count < units_max && ByteOf(count + 1) <= bytes.value().size()) {
    const QueueUnit unit = DecodeUnit(bytes.value().data() + ByteOf(count));
    if (!IsUnit(unit) || unit.position >= checkpoint || unit.position < end) break;
    end = unit.position + unit.size_bytes;
    ++count;
  }
  CHECK_GT(count, 0);  // FindCutFile read the first one
  const Result<std::unique_ptr<File>> file = fs_.Open(path, {});
  if (!file.ok()) return file.status();
  TRIAD_RETURN_IF_ERROR(file.value()->Truncate(ByteOf(count)));
  min_ = files_.front();
  max_ = written_ = ring_begin_ = files_.back() + count;
  return Status::Ok();
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
    } else if (ring_.size() < kRingUnitsMax && budget_->used + more <= kRingUnitsTotalMax) {
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

void ConsumeQueue::ShrinkWhenIdle() {
  if (std::exchange(appended_, false) || ring_.size() <= kIdleRingUnits) return;
  if (written_ != max_) return;
  budget_->used -= ring_.size() - kIdleRingUnits;
  Resize(kIdleRingUnits);
}

void ConsumeQueue::ReturnBudget() {
  if (ring_.size() > kRingUnitsMin) budget_->used -= ring_.size() - kRingUnitsMin;
}

Status ConsumeQueue::WriteOut(Unsynced* unsynced) {
  while (written_ < max_) {
    std::int64_t first = files_.empty() ? written_ : files_.back();
    const bool is_new = files_.empty() || written_ == FileEnd(first);
    if (is_new) first = written_;
    const std::int64_t end = std::min(max_, FileEnd(first));
    std::string bytes;
    bytes.reserve(static_cast<std::size_t>(end - written_) * kUnitBytes);
    for (std::int64_t offset = written_; offset < end; ++offset) EncodeUnit(slot(offset), &bytes);

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
Result<std::int64_t> ConsumeQueue::FirstAtOrBehind(PhysicalOffset begin) const {
  std::int64_t low = min_;
  std::int64_t high = max_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const Result<std::vector<QueueUnit>> unit = Read(QueueOffset{middle}, 1);
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
  if (min_position_ && *min_position_ >= begin) return Status::Ok();
  const Result<std::int64_t> first = FirstAtOrBehind(begin);
  if (!first.ok()) return first.status();
  min_position_.reset();
  if (first.value() < max_) {
    const Result<std::vector<QueueUnit>> unit = Read(QueueOffset{first.value()}, 1);
    if (unit.ok() && !unit.value().empty()) min_position_ = unit.value().front().position;
  }
  std::vector<std::int64_t> dropped;
  {
    const std::lock_guard hold(mutex_);
    min_ = first.value();
    // The last file stays, whatever it holds: it says where the queue continues.
    while (files_.size() > 1 && FileEnd(files_.front()) <= min_) {
      dropped.push_back(files_.front());
      files_.erase(files_.begin());
    }
  }
  for (const std::int64_t file : dropped) TRIAD_RETURN_IF_ERROR(fs_.Remove(PathOf(file)));
  return Status::Ok();
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
  std::optional<std::vector<QueueUnit>> units = ReadNow(from, max_units);
  if (units.has_value()) return std::move(*units);
  std::int64_t first = 0;
  std::size_t count = 0;
  {
    const std::lock_guard hold(mutex_);
    const auto behind = std::upper_bound(files_.begin(), files_.end(), from.value());
    // Retention may have passed it meanwhile.
    if (from.value() < min_ || behind == files_.begin()) return std::vector<QueueUnit>();
    first = *std::prev(behind);
    const std::int64_t end = std::min(written_, FileEnd(first));
    CHECK_GT(end, from.value());
    count = std::min(max_units, static_cast<std::size_t>(end - from.value()));
  }
  const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(first), {.read_only = true});
  if (!file.ok()) return file.status();
  std::string bytes(count * kUnitBytes, '\0');
  const Result<std::size_t> got = file.value()->Read(ByteOf(from.value() - first), bytes);
  if (!got.ok()) return got.status();
  std::vector<QueueUnit> read;
  read.reserve(count);
  for (std::size_t at = 0; at + kUnitBytes <= got.value(); at += kUnitBytes) {
    const QueueUnit unit = DecodeUnit(bytes.data() + at);
    if (!IsUnit(unit)) break;
    read.push_back(unit);
  }
  if (read.size() == count) return read;
  return Status::Corruption("consume queue: unit " +
                            std::to_string(from.value() + static_cast<std::int64_t>(read.size())) +
                            " is not in " + PathOf(first));
}

Result<QueueUnit> ConsumeQueue::ReadOneFrom(std::int64_t first_unit, std::int64_t offset) const {
  const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(first_unit), {.read_only = true});
  if (!file.ok()) return file.status();
  char bytes[kUnitBytes];
  const Result<std::size_t> got = file.value()->Read(ByteOf(offset - first_unit), bytes);
  if (!got.ok()) return got.status();
  if (got.value() == kUnitBytes) {
    const QueueUnit unit = DecodeUnit(bytes);
    if (IsUnit(unit)) return unit;
  }
  return Status::Corruption("consume queue: no unit at the start of " + PathOf(first_unit));
}

}  // namespace triad::broker
