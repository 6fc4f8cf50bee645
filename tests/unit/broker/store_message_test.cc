#include <gtest/gtest.h>

#include "broker/store/message.h"
#include "common/byte_order.h"
#include "common/java_crc32.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

std::string Hex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

// wire.md §14.7.
MessageDraft ExampleDraft() {
  MessageDraft draft = Draft("T1", 3, "hello");
  draft.properties =
      "TAGS\x01TagA\x02KEYS\x01k1\x02"
      "CLUSTER\x01"
      "c1\x02";
  return draft;
}

StoredPlace ExamplePlace() {
  return {QueueOffset{128}, PhysicalOffset{65536}, 1700000000005, Host("10.0.0.1:10911")};
}

const char kExampleRecord[] =
    "00 00 00 7f da a3 20 a7 36 10 a6 86 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 80"
    "00 00 00 00 00 01 00 00 00 00 00 00 00 00 01 8b cf e5 68 00 0a 00 00 09 00 00 c3 50"
    "00 00 01 8b cf e5 68 05 0a 00 00 01 00 00 2a 9f 00 00 00 00 00 00 00 00 00 00 00 00"
    "00 00 00 05 68 65 6c 6c 6f 02 54 31 00 1d"
    "54 41 47 53 01 54 61 67 41 02 4b 45 59 53 01 6b 31 02 43 4c 55 53 54 45 52 01 63 31 02";

std::string Encoded(const MessageDraft& draft, const StoredPlace& place) {
  std::string out;
  EncodeMessage(draft, place, &out);
  return out;
}

TEST(Message, EncodesTheWorkedExampleByteForByte) {
  EXPECT_EQ(Encoded(ExampleDraft(), ExamplePlace()), Hex(kExampleRecord));
}

TEST(Message, EncodedSizeIsKnownBefore) {
  for (const char* host : {"10.0.0.1:1", "[2001:db8::1]:1"}) {
    for (const std::size_t topic_bytes : {1u, 127u, 128u, 300u}) {
      MessageDraft draft = Draft(std::string(topic_bytes, 't'), 0, "body");
      draft.born_host = Host("[2001:db8::2]:7");
      StoredPlace place = ExamplePlace();
      place.store_host = Host(host);
      EXPECT_EQ(Encoded(draft, place).size(), EncodedMessageBytes(draft, place.store_host));
    }
  }
}

TEST(Message, ParsesWhatItEncoded) {
  MessageDraft draft = ExampleDraft();
  draft.flag = -7;
  draft.sys_flag = 0x101;
  draft.reconsume_times = 3;
  draft.prepared_transaction_offset = 99;
  const std::string record = Encoded(draft, ExamplePlace());
  const std::string longer = record + "next";
  const MessageView view = ParseMessage(longer, true).value();
  EXPECT_EQ(view.record, record);
  EXPECT_EQ(view.queue_id, 3);
  EXPECT_EQ(view.flag, -7);
  EXPECT_EQ(view.queue_offset, QueueOffset{128});
  EXPECT_EQ(view.physical_offset, PhysicalOffset{65536});
  EXPECT_EQ(view.sys_flag, 0x101);
  EXPECT_EQ(view.born_time_ms, 1700000000000);
  EXPECT_EQ(view.born_host, Host("10.0.0.9:50000"));
  EXPECT_EQ(view.store_time_ms, 1700000000005);
  EXPECT_EQ(view.store_host, Host("10.0.0.1:10911"));
  EXPECT_EQ(view.reconsume_times, 3);
  EXPECT_EQ(view.prepared_transaction_offset, 99);
  EXPECT_EQ(view.body, "hello");
  EXPECT_EQ(view.topic, "T1");
  EXPECT_EQ(view.properties, draft.properties);
}

TEST(Message, ADraftMadeFromARecordEncodesToTheSameRecord) {
  MessageDraft draft = ExampleDraft();
  draft.flag = 5;
  draft.sys_flag = 0x1;
  draft.reconsume_times = 2;
  draft.prepared_transaction_offset = 17;
  const std::string record = Encoded(draft, ExamplePlace());
  EXPECT_EQ(Encoded(DraftFrom(ParseMessage(record, true).value()), ExamplePlace()), record);
}

TEST(Message, HostFamiliesSetAndClearTheirFlags) {
  MessageDraft draft = ExampleDraft();
  StoredPlace place = ExamplePlace();
  draft.sys_flag = kSysFlagBornHostV6 | kSysFlagStoreHostV6 | 0x1;
  EXPECT_EQ(ParseMessage(Encoded(draft, place), true).value().sys_flag, 0x1);

  draft.born_host = Host("[2001:db8::9]:50000");
  const std::string born_v6 = Encoded(draft, place);
  MessageView view = ParseMessage(born_v6, true).value();
  EXPECT_EQ(view.sys_flag, kSysFlagBornHostV6 | 0x1);
  EXPECT_EQ(view.born_host, draft.born_host);
  EXPECT_EQ(view.store_host, place.store_host);

  place.store_host = Host("[2001:db8::1]:10911");
  const std::string record = Encoded(draft, place);
  view = ParseMessage(record, true).value();
  EXPECT_EQ(view.sys_flag, kSysFlagBornHostV6 | kSysFlagStoreHostV6 | 0x1);
  EXPECT_EQ(view.store_host, place.store_host);
  EXPECT_EQ(view.body, "hello");
}

TEST(Message, LongTopicsUseTheSecondFormat) {
  const std::string topic(128, 't');
  const std::string record = Encoded(Draft(topic, 0, "b"), ExamplePlace());
  EXPECT_EQ(record.substr(4, 4), Hex("da a3 20 ab"));
  EXPECT_EQ(ParseMessage(record, true).value().topic, topic);
  const std::string short_topic(127, 't');
  EXPECT_EQ(Encoded(Draft(short_topic, 0, "b"), ExamplePlace()).substr(4, 4), Hex("da a3 20 a7"));
}

TEST(Message, SetPlaceChangesThePlaceAndNothingElse) {
  for (const char* born : {"10.0.0.9:50000", "[2001:db8::9]:50000"}) {
    MessageDraft draft = ExampleDraft();
    draft.born_host = Host(born);
    StoredPlace open;
    open.store_host = ExamplePlace().store_host;
    std::string record = Encoded(draft, open);
    SetPlace(QueueOffset{128}, PhysicalOffset{65536}, 1700000000005, record.data());
    EXPECT_EQ(record, Encoded(draft, ExamplePlace())) << born;
  }
}

TEST(Message, IsRecordAtChecksLengthAndPosition) {
  const std::string record = Encoded(ExampleDraft(), ExamplePlace());
  EXPECT_TRUE(IsRecordAt(record, PhysicalOffset{65536}));
  EXPECT_FALSE(IsRecordAt(record, PhysicalOffset{65537}));
  EXPECT_FALSE(IsRecordAt(record + "x", PhysicalOffset{65536}));
  EXPECT_FALSE(IsRecordAt("", PhysicalOffset{65536}));
}

TEST(Message, RefusesDraftsThatNoRecordCanHold) {
  struct Case {
    const char* name;
    std::function<void(MessageDraft*)> spoil;
  };
  const Case cases[] = {
      {"empty topic", [](MessageDraft* d) { d->topic = Topic(""); }},
      {"negative queue", [](MessageDraft* d) { d->queue_id = QueueId{-1}; }},
      {"long properties", [](MessageDraft* d) { d->properties.assign(32768, 'p'); }},
      {"born host of 5 bytes", [](MessageDraft* d) { d->born_host.ip = "12345"; }},
  };
  EXPECT_TRUE(CheckEncodable(ExampleDraft()).ok());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    MessageDraft draft = ExampleDraft();
    c.spoil(&draft);
    EXPECT_EQ(CheckEncodable(draft).code(), StatusCode::kInvalidArgument);
  }
  MessageDraft longest = ExampleDraft();
  longest.properties.assign(32767, 'p');
  EXPECT_EQ(ParseMessage(Encoded(longest, ExamplePlace()), true).value().properties.size(), 32767u);
}

TEST(Message, RefusesMalformedRecords) {
  struct Case {
    const char* name;
    std::size_t at;
    const char* bytes;
  };
  const Case cases[] = {
      {"total size larger than the bytes", 0, "00 00 00 80"},
      {"total size below the header", 0, "00 00 00 5a"},
      {"negative total size", 0, "ff ff ff ff"},
      {"filler magic", 4, "cb d4 31 94"},
      {"zero magic", 4, "00 00 00 00"},
      {"negative queue id", 12, "ff ff ff ff"},
      {"negative queue offset", 20, "80 00 00 00 00 00 00 00"},
      {"negative physical offset", 28, "ff ff ff ff ff ff ff ff"},
      {"a host flag that moves the fields", 36, "00 00 00 10"},
      {"body length beyond the record", 84, "00 00 00 60"},
      {"negative body length", 84, "ff ff ff ff"},
      {"body length too small", 84, "00 00 00 04"},
      {"empty topic", 93, "00"},
      {"negative topic length", 93, "ff"},
      {"topic length beyond the record", 93, "7f"},
      {"properties length too large", 96, "00 1e"},
      {"properties length too small", 96, "00 1c"},
      {"negative properties length", 96, "ff ff"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::string record = Hex(kExampleRecord);
    const std::string spoiled = Hex(c.bytes);
    record.replace(c.at, spoiled.size(), spoiled);
    EXPECT_EQ(ParseMessage(record, false).status().code(), StatusCode::kCorruption);
  }
  std::string nameless = Hex(kExampleRecord);
  nameless.erase(94, 2);
  nameless[93] = '\0';
  nameless[3] = '\x7d';  // every length fits
  EXPECT_EQ(ParseMessage(nameless, false).status().message(), "record: empty topic");
}

TEST(Message, RefusesEveryTruncation) {
  const std::string record = Hex(kExampleRecord);
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(ParseMessage(std::string_view(record).substr(0, size), true).ok()) << size;
  }
}

TEST(Message, TheBodyMustMatchItsCrcWhenAsked) {
  std::string record = Hex(kExampleRecord);
  record[88] = 'H';
  EXPECT_TRUE(ParseMessage(record, false).ok());
  EXPECT_EQ(ParseMessage(record, true).status().code(), StatusCode::kCorruption);
}

// ---- Batches (wire.md §4.9) ---------------------------------------------------------------------

const char kExampleItem[] =
    "00 00 00 1e 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 61 00 07 54 41 47 53 01 78 02";

TEST(BatchBody, ParsesTheWorkedExample) {
  const std::string body = Hex(kExampleItem);
  const std::vector<BatchItem> items = ParseBatchBody(body).value();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].flag, 0);
  EXPECT_EQ(items[0].body, "a");
  EXPECT_EQ(items[0].properties, "TAGS\x01x\x02");
}

TEST(BatchBody, ParsesEveryItemInOrder) {
  std::string second = Hex(kExampleItem);
  second[15] = 9;  // flag
  second[20] = 'b';
  const std::string body = Hex(kExampleItem) + second;
  const std::vector<BatchItem> items = ParseBatchBody(body).value();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].body, "a");
  EXPECT_EQ(items[1].body, "b");
  EXPECT_EQ(items[1].flag, 9);
}

TEST(BatchBody, RefusesLengthsThatDoNotAddUp) {
  struct Case {
    const char* name;
    std::size_t at;
    const char* bytes;
  };
  const Case cases[] = {
      {"total too large", 3, "1f"},
      {"total too small", 3, "1d"},
      {"total below the fixed part", 3, "15"},
      {"total zero", 3, "00"},
      {"huge total", 0, "ff"},
      {"body too long", 19, "08"},
      {"body beyond the item", 19, "ff"},
      {"huge body", 16, "ff"},
      {"properties too long", 22, "08"},
      {"properties too short", 22, "06"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::string body = Hex(kExampleItem);
    const std::string spoiled = Hex(c.bytes);
    body.replace(c.at, spoiled.size(), spoiled);
    EXPECT_EQ(ParseBatchBody(body).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ParseBatchBody("").status().code(), StatusCode::kInvalidArgument);
  const std::string whole = Hex(kExampleItem) + Hex(kExampleItem);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == whole.size() / 2) continue;
    EXPECT_FALSE(ParseBatchBody(std::string_view(whole).substr(0, size)).ok()) << size;
  }
}

// ---- Payloads -----------------------------------------------------------------------------------

TEST(Payload, SplitsCommandAndRecords) {
  const std::string payload = Hex("00 00 00 03") + "cmd" + std::string(1, '\0') + "records";
  const PayloadView view = ParsePayload(payload).value();
  EXPECT_EQ(view.command, "cmd");
  EXPECT_EQ(view.records_at, 8u);
  EXPECT_EQ(view.records, "records");
}

TEST(Payload, RecordsBeginAtAMultipleOfEight) {
  for (std::size_t command_bytes = 0; command_bytes < 20; ++command_bytes) {
    std::string payload;
    AppendBe32(&payload, static_cast<std::uint32_t>(command_bytes));
    payload.append(command_bytes, 'c');
    payload.resize((payload.size() + 7) / 8 * 8);
    const std::size_t records_at = payload.size();
    payload += "r";
    const PayloadView view = ParsePayload(payload).value();
    EXPECT_EQ(view.command.size(), command_bytes);
    EXPECT_EQ(view.records_at, records_at);
    EXPECT_EQ(view.records, "r");
  }
}

TEST(Payload, RefusesCommandsLongerThanIt) {
  EXPECT_EQ(ParsePayload("").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(ParsePayload("abc").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(ParsePayload(Hex("00 00 00 05") + "1234").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(ParsePayload(Hex("ff ff ff ff") + "1234").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(ParsePayload(Hex("00 00 00 03") + "123").status().code(), StatusCode::kCorruption)
      << "ends inside the padding";
}

}  // namespace
}  // namespace triad::broker
