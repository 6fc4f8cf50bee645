#include "broker/store/queue_tails.h"

#include <glog/logging.h>

#include <optional>
#include <string_view>
#include <utility>

#include "broker/store/queue_unit_codec.h"
#include "common/byte_order.h"
#include "common/crc32c.h"

namespace triad::broker {
namespace {

constexpr std::uint32_t kMagic = 0x54525154;  // "TRQT"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kTailsHeaderBytes = 20;
constexpr std::size_t kBlockHeadBytes = 8;
constexpr std::size_t kBlockBytes = 256u << 10;  // one is closed behind the queue that reaches it
constexpr std::size_t kTailUnitBytes = 20;

std::string EncodeHeader(PhysicalOffset checkpoint) {
  std::string header;
  AppendBe32(&header, kMagic);
  AppendBe32(&header, kVersion);
  AppendBe64(&header, static_cast<std::uint64_t>(checkpoint.value()));
  AppendBe32(&header, Crc32c(header));
  return header;
}

std::optional<PhysicalOffset> DecodeHeader(std::string_view bytes) {
  if (bytes.size() < kTailsHeaderBytes || LoadBe32(bytes.data()) != kMagic ||
      LoadBe32(bytes.data() + 4) != kVersion ||
      LoadBe32(bytes.data() + 16) != Crc32c(bytes.substr(0, 16))) {
    return std::nullopt;
  }
  return PhysicalOffset{static_cast<std::int64_t>(LoadBe64(bytes.data() + 8))};
}

// Takes a queue from the front of a block whose CRC is right.
std::optional<QueueTail> TakeTail(std::string_view* bytes) {
  constexpr std::size_t kBehindTopic = 4 + 1 + 8 + 4;
  if (bytes->size() < 2) return std::nullopt;
  const std::size_t topic_bytes = LoadBe16(bytes->data());
  bytes->remove_prefix(2);
  if (bytes->size() < topic_bytes + kBehindTopic) return std::nullopt;
  QueueTail tail;
  tail.queue.topic = Topic(std::string(bytes->substr(0, topic_bytes)));
  const char* at = bytes->data() + topic_bytes;
  tail.queue.queue_id = QueueId{static_cast<std::int32_t>(LoadBe32(at))};
  tail.has_files = at[4] != 0;
  tail.first = QueueOffset{static_cast<std::int64_t>(LoadBe64(at + 5))};
  const std::size_t count = LoadBe32(at + 13);
  bytes->remove_prefix(topic_bytes + kBehindTopic);
  if (tail.first < QueueOffset{0} || bytes->size() / kTailUnitBytes < count) return std::nullopt;
  tail.units.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    at = bytes->data() + i * kTailUnitBytes;
    tail.units.push_back({PhysicalOffset{static_cast<std::int64_t>(LoadBe64(at))},
                          static_cast<std::int32_t>(LoadBe32(at + 8)),
                          static_cast<std::int64_t>(LoadBe64(at + 12))});
    if (!IsUnit(tail.units.back())) return std::nullopt;
  }
  bytes->remove_prefix(count * kTailUnitBytes);
  return tail;
}

// Takes a block from the front. False: it is damaged.
bool TakeBlock(std::string_view* bytes, std::vector<QueueTail>* tails) {
  if (bytes->size() < kBlockHeadBytes) return false;
  const std::size_t size = LoadBe32(bytes->data());
  const std::uint32_t crc = LoadBe32(bytes->data() + 4);
  bytes->remove_prefix(kBlockHeadBytes);
  if (bytes->size() < size || Crc32c(bytes->substr(0, size)) != crc) return false;
  std::string_view block = bytes->substr(0, size);
  bytes->remove_prefix(size);
  while (!block.empty()) {
    std::optional<QueueTail> tail = TakeTail(&block);
    if (!tail) return false;
    tails->push_back(std::move(*tail));
  }
  return true;
}

}  // namespace

Result<QueueTailsWriter> QueueTailsWriter::Create(FileSystem& fs, const std::string& path,
                                                  PhysicalOffset checkpoint) {
  Result<std::unique_ptr<File>> file = fs.Open(path, {.create = true, .truncate = true});
  if (!file.ok()) return file.status();
  QueueTailsWriter writer(std::move(file.value()));
  const std::string header = EncodeHeader(checkpoint);
  TRIAD_RETURN_IF_ERROR(writer.file_->Write(0, header));
  writer.end_ = header.size();
  return writer;
}

Status QueueTailsWriter::Add(const QueueTail& tail) {
  const std::string& topic = tail.queue.topic.value();
  CHECK_LE(topic.size(), 0xFFFFu);
  AppendBe16(&block_, static_cast<std::uint16_t>(topic.size()));
  block_.append(topic);
  AppendBe32(&block_, static_cast<std::uint32_t>(tail.queue.queue_id.value()));
  block_.push_back(tail.has_files ? '\1' : '\0');
  AppendBe64(&block_, static_cast<std::uint64_t>(tail.first.value()));
  AppendBe32(&block_, static_cast<std::uint32_t>(tail.units.size()));
  for (const QueueUnit& unit : tail.units) {
    AppendBe64(&block_, static_cast<std::uint64_t>(unit.position.value()));
    AppendBe32(&block_, static_cast<std::uint32_t>(unit.size_bytes));
    AppendBe64(&block_, static_cast<std::uint64_t>(unit.tag_code));
  }
  return block_.size() >= kBlockBytes ? WriteBlock() : Status::Ok();
}

Status QueueTailsWriter::Finish() {
  return block_.empty() ? Status::Ok() : WriteBlock();
}

Status QueueTailsWriter::WriteBlock() {
  std::string head;
  AppendBe32(&head, static_cast<std::uint32_t>(block_.size()));
  AppendBe32(&head, Crc32c(block_));
  const std::string_view parts[] = {head, block_};
  TRIAD_RETURN_IF_ERROR(file_->Write(end_, parts));
  end_ += head.size() + block_.size();
  block_.clear();
  return Status::Ok();
}

Result<QueueTails> ReadQueueTails(FileSystem& fs, const std::string& path) {
  const Result<std::string> content = ReadFile(fs, path);
  if (!content.ok()) return content.status();
  QueueTails all;
  std::string_view rest = *content;
  const std::optional<PhysicalOffset> checkpoint = DecodeHeader(rest);
  bool whole = checkpoint.has_value();
  if (whole) {
    all.checkpoint = *checkpoint;
    rest.remove_prefix(kTailsHeaderBytes);
  }
  while (whole && !rest.empty()) whole = TakeBlock(&rest, &all.tails);
  LOG_IF(WARNING, !whole) << path << " is damaged; what it lacks is rebuilt from the log";
  return all;
}

}  // namespace triad::broker
