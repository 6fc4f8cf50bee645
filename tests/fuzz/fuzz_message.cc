// fuzz_message: stored records, batch bodies, entry payloads, property strings, message ids.
//
// Input: one byte that says which, then the bytes. Must hold: lengths are never trusted; what
// parses encodes to the same; a property that was set is found, one that was removed is not, the
// others stay.

#include <string>

#include "broker/state/replicated_state.h"
#include "broker/store/message.h"
#include "common/byte_order.h"
#include "common/java_crc32.h"
#include "tests/fuzz/input.h"

namespace triad::fuzz {
namespace {

using broker::MessageView;

enum Kind : std::uint8_t { kRecord, kBatch, kPayload, kProperties, kIds, kKinds };

void CheckSameMessage(const MessageView& a, const MessageView& b) {
  CHECK_EQ(a.queue_id, b.queue_id);
  CHECK_EQ(a.flag, b.flag);
  CHECK_EQ(a.queue_offset, b.queue_offset);
  CHECK_EQ(a.physical_offset, b.physical_offset);
  CHECK_EQ(a.sys_flag, b.sys_flag);
  CHECK_EQ(a.born_time_ms, b.born_time_ms);
  CHECK(a.born_host == b.born_host);
  CHECK_EQ(a.store_time_ms, b.store_time_ms);
  CHECK(a.store_host == b.store_host);
  CHECK_EQ(a.reconsume_times, b.reconsume_times);
  CHECK_EQ(a.prepared_transaction_offset, b.prepared_transaction_offset);
  CHECK_EQ(a.body, b.body);
  CHECK_EQ(a.topic, b.topic);
  CHECK_EQ(a.properties, b.properties);
}

void TryRecord(std::string_view bytes) {
  const auto unverified = broker::ParseMessage(bytes, false);
  const auto message = broker::ParseMessage(bytes, true);
  if (!unverified.ok()) {
    CHECK(!message.ok());
    return;
  }
  CHECK_LE(unverified->record.size(), bytes.size());
  CHECK(broker::IsRecordAt(unverified->record, unverified->physical_offset));
  const broker::MessageDraft draft = broker::DraftFrom(*unverified);
  const Status encodable = broker::CheckEncodable(draft);
  CHECK(encodable.ok()) << encodable;
  std::string again;
  broker::EncodeMessage(draft,
                        {.queue_offset = unverified->queue_offset,
                         .physical_offset = unverified->physical_offset,
                         .store_time_ms = unverified->store_time_ms,
                         .store_host = unverified->store_host},
                        &again);
  CHECK_EQ(again.size(), broker::EncodedMessageBytes(draft, unverified->store_host));
  auto same = broker::ParseMessage(again, true);
  CHECK(same.ok()) << same.status();
  CheckSameMessage(*same, *unverified);
  broker::SetPlace(QueueOffset(7), PhysicalOffset(4096), 12345, again.data());
  const auto moved = broker::ParseMessage(again, true);
  CHECK(moved.ok()) << moved.status();
  CHECK_EQ(moved->queue_offset, QueueOffset(7));
  CHECK_EQ(moved->physical_offset, PhysicalOffset(4096));
  CHECK_EQ(moved->store_time_ms, 12345);
  CHECK_EQ(moved->body, unverified->body);
}

void TryBatch(std::string_view body) {
  const auto items = broker::ParseBatchBody(body);
  if (!items.ok()) return;
  std::size_t bytes = 0;
  for (const broker::BatchItem& item : *items) {
    bytes += 22 + item.body.size() + item.properties.size();
  }
  CHECK_EQ(bytes, body.size()) << "something of the batch is in no item, or in two";
}

void TryPayload(std::string_view bytes) {
  const auto payload = broker::ParsePayload(bytes);
  if (!payload.ok()) return;
  CHECK_EQ(payload->records_at % 8, 0u);
  CHECK_EQ(payload->records_at + payload->records.size(), bytes.size());
  const auto command = broker::DecodeStateCommand(payload->command);
  if (!command.ok()) return;
  const std::string encoded = broker::EncodeStateCommand(*command);
  const auto again = broker::DecodeStateCommand(encoded);
  CHECK(again.ok()) << again.status();
  CHECK_EQ(broker::EncodeStateCommand(*again), encoded);
}

void TryProperties(std::string_view bytes) {
  const auto parsed = broker::ParseProperties(bytes);
  for (const auto& [name, value] : parsed) {
    CHECK_EQ(broker::FindProperty(bytes, name), value);
    broker::TagCode(value);
  }
  std::string changed(bytes);
  broker::SetProperty(&changed, "NAME", "value\x02");
  CHECK_EQ(broker::FindProperty(changed, "NAME"), "value");
  auto expected = parsed;
  expected["NAME"] = "value";
  CHECK(broker::ParseProperties(changed) == expected);
  broker::RemoveProperty(&changed, "NAME");
  expected.erase("NAME");
  CHECK(broker::ParseProperties(changed) == expected);
}

void TryIds(std::string_view bytes) {
  const auto host = broker::ParseHostPort(bytes);
  if (host.ok()) {
    const auto again = broker::ParseHostPort(broker::FormatHostPort(*host));
    CHECK(again.ok()) << again.status();
    CHECK(*again == *host);
  }
  const auto id = broker::ParseOffsetMessageId(bytes);
  if (!id.ok()) return;
  const auto again = broker::ParseOffsetMessageId(broker::OffsetMessageId(id->first, id->second));
  CHECK(again.ok()) << again.status();
  CHECK(again->second == id->second);
}

// Lengths that fill the record, and the checksum of its body.
void RepairRecord(char* record, std::size_t size) {
  constexpr std::size_t kFixed = 91;
  if (size < kFixed) return;
  StoreBe32(record, static_cast<std::uint32_t>(size));
  StoreBe32(record + 4, (record[7] & 1) != 0 ? 0xDAA320A7 : 0xDAA320AB);
  const bool v1 = LoadBe32(record + 4) == 0xDAA320A7;
  const auto sys_flag = static_cast<std::int32_t>(LoadBe32(record + 36));
  std::size_t at = 84;  // of the body's length
  if ((sys_flag & broker::kSysFlagBornHostV6) != 0) at += 12;
  if ((sys_flag & broker::kSysFlagStoreHostV6) != 0) at += 12;
  const std::size_t tail = v1 ? 3 : 4;  // the two lengths behind the body
  if (size < at + 4 + tail + 1) return;
  const std::size_t room = size - at - 4 - tail;
  const std::size_t body = LoadBe32(record + at) % room;
  StoreBe32(record + at, static_cast<std::uint32_t>(body));
  StoreBe32(record + 8, JavaCrc32(std::string_view(record + at + 4, body)));
  const std::size_t topic_at = at + 4 + body;
  std::size_t topic =
      v1 ? static_cast<std::uint8_t>(record[topic_at]) : LoadBe16(record + topic_at);
  topic = 1 + topic % std::min<std::size_t>(room - body, v1 ? 127 : 32767);
  if (v1) {
    record[topic_at] = static_cast<char>(topic);
  } else {
    StoreBe16(record + topic_at, static_cast<std::uint16_t>(topic));
  }
  StoreBe16(record + topic_at + tail - 2 + topic, static_cast<std::uint16_t>(room - body - topic));
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad::fuzz;
  Input input(data, size);
  const std::uint8_t kind = input.Byte() % kKinds;
  const std::string_view bytes = input.Rest();
  switch (kind) {
    case kRecord: TryRecord(bytes); break;
    case kBatch: TryBatch(bytes); break;
    case kPayload: TryPayload(bytes); break;
    case kProperties: TryProperties(bytes); break;
    default: TryIds(bytes); break;
  }
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0 || size < 2 || data[0] % triad::fuzz::kKinds != triad::fuzz::kRecord) {
    return size;
  }
  triad::fuzz::RepairRecord(reinterpret_cast<char*>(data) + 1, size - 1);
  return size;
}
