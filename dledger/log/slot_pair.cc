#include "dledger/log/slot_pair.h"

#include <array>

#include "common/byte_order.h"
#include "common/crc32c.h"

namespace triad::dledger {
namespace {

constexpr std::uint32_t kSlotMagic = 0x54524453;  // "TRDS"
constexpr std::size_t kAtLength = 4;
constexpr std::size_t kAtSequence = 8;
constexpr std::size_t kAtContent = 16;
constexpr std::size_t kAtCrc = kSlotBytes - 4;
static_assert(kAtContent + kSlotContentMax == kAtCrc);

bool DecodeSlot(std::string_view slot, std::uint64_t* sequence, std::string_view* content) {
  if (slot.size() < kSlotBytes || LoadBe32(slot.data()) != kSlotMagic) return false;
  if (LoadBe32(slot.data() + kAtCrc) != Crc32c(slot.substr(0, kAtCrc))) return false;
  const std::size_t length = LoadBe16(slot.data() + kAtLength);
  if (length > kSlotContentMax) return false;
  *sequence = LoadBe64(slot.data() + kAtSequence);
  *content = slot.substr(kAtContent, length);
  return true;
}

}  // namespace

void SlotPair::Load() {
  valid_ = false;
  current_ = 1;
  sequence_ = 0;
  content_.clear();
  for (std::size_t i = 0; i < 2; ++i) {
    std::array<char, kSlotBytes> slot;
    const Result<std::size_t> n = file_->Read(offset_ + i * kSlotStride, slot);
    if (!n.ok()) continue;  // a sector that cannot be read is a bad slot; the other may be good
    std::uint64_t sequence = 0;
    std::string_view content;
    if (!DecodeSlot(std::string_view(slot.data(), *n), &sequence, &content)) continue;
    if (valid_ && sequence <= sequence_) continue;
    valid_ = true;
    current_ = i;
    sequence_ = sequence;
    content_.assign(content);
  }
}

Status SlotPair::WriteTo(std::size_t slot) {
  std::array<char, kSlotBytes> bytes{};
  StoreBe32(bytes.data(), kSlotMagic);
  StoreBe16(bytes.data() + kAtLength, static_cast<std::uint16_t>(content_.size()));
  StoreBe64(bytes.data() + kAtSequence, sequence_);
  content_.copy(bytes.data() + kAtContent, content_.size());
  StoreBe32(bytes.data() + kAtCrc, Crc32c(std::string_view(bytes.data(), kAtCrc)));
  return file_->Write(offset_ + slot * kSlotStride, std::string_view(bytes.data(), bytes.size()));
}

Status SlotPair::Write(std::string_view content) {
  CHECK_LE(content.size(), kSlotContentMax);
  content_.assign(content);
  ++sequence_;
  current_ = 1 - current_;
  valid_ = true;
  return WriteTo(current_);
}

Status SlotPair::Clear() {
  const std::string zeros(kSlotPairBytes, '\0');
  TRIAD_RETURN_IF_ERROR(file_->Write(offset_, zeros));
  valid_ = false;
  content_.clear();
  // The sequence goes on: a crash may bring the old slots back.
  return {};
}

}  // namespace triad::dledger
