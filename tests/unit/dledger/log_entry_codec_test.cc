#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "dledger/log/entry_codec.h"

namespace triad::dledger {
namespace {

EntryRef Sample(LogTail* tail, std::string payload = "payload") {
  return MakeEntry(Term(3), EntryType::kBatch, 1234, std::move(payload), tail);
}

TEST(EntryCodec, DecodesWhatItMade) {
  LogTail tail{.next_index = LogIndex(7),
               .position = PhysicalOffset(4160),
               .segment_base = PhysicalOffset(4096),
               .header_crc = 99,
               .last_term = Term(2)};
  const EntryRef made = Sample(&tail);
  const Result<EntryRef> read = DecodeEntry(made->bytes + "more", true);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->term, Term(3));
  EXPECT_EQ((*read)->index, LogIndex(7));
  EXPECT_EQ((*read)->type, EntryType::kBatch);
  EXPECT_EQ((*read)->position, PhysicalOffset(4160));
  EXPECT_EQ((*read)->segment_base, PhysicalOffset(4096));
  EXPECT_EQ((*read)->store_time_ms, 1234);
  EXPECT_EQ((*read)->header_crc, made->header_crc);
  EXPECT_EQ((*read)->payload(), "payload");
  EXPECT_EQ((*read)->bytes, made->bytes);
}

TEST(EntryCodec, PadsToEightBytesAndKeepsThePaddingOutOfThePayload) {
  for (std::size_t size = 0; size < 20; ++size) {
    LogTail tail;
    const EntryRef entry = Sample(&tail, std::string(size, 'x'));
    EXPECT_EQ(entry->size() % 8, 0u);
    EXPECT_EQ(entry->size(), EntryBytes(size));
    EXPECT_EQ(entry->payload(), std::string(size, 'x'));
    EXPECT_EQ(tail.position, entry->end());
  }
}

TEST(EntryCodec, NoticesEveryFlippedBit) {
  LogTail tail;
  const EntryRef entry = Sample(&tail);
  for (std::size_t bit = 0; bit < entry->size() * 8; ++bit) {
    std::string bytes = entry->bytes;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(DecodeEntry(bytes, true).ok()) << "bit " << bit;
  }
}

TEST(EntryCodec, AsksForMoreWhenTheEntryIsCutShort) {
  LogTail tail;
  const EntryRef entry = Sample(&tail);
  for (std::size_t size = 0; size < entry->size(); ++size) {
    const Result<EntryRef> read = DecodeEntry(entry->bytes.substr(0, size), true);
    EXPECT_EQ(read.status().code(), StatusCode::kUnavailable) << size;
  }
}

TEST(EntryCodec, EntriesFormAChain) {
  LogTail tail;
  const EntryRef first = Sample(&tail);
  const LogTail behind_first = tail;
  const EntryRef second = Sample(&tail);
  EXPECT_TRUE(CheckFollows(LogTail{}, *first).ok());
  EXPECT_TRUE(CheckFollows(TailAfter(*first), *second).ok());
  EXPECT_FALSE(CheckFollows(LogTail{}, *second).ok());
  EXPECT_FALSE(CheckFollows(TailAfter(*second), *second).ok());

  struct Case {
    const char* name;
    LogTail tail;
  };
  std::vector<Case> cases(4, Case{"", behind_first});
  cases[0].name = "another index";
  ++cases[0].tail.next_index;
  cases[1].name = "a term that goes back";
  cases[1].tail.last_term = Term(4);
  cases[2].name = "another predecessor";
  ++cases[2].tail.header_crc;
  cases[3].name = "another position";
  cases[3].tail.position += 8;
  for (const Case& c : cases) EXPECT_FALSE(CheckFollows(c.tail, *second).ok()) << c.name;
}

TEST(EntryCodec, RollsWhenAnEntryDoesNotFit) {
  LogTail tail;
  Sample(&tail, std::string(500, 'x'));  // 576 of 1024
  RollIfNeeded(448, 1024, &tail);
  EXPECT_EQ(tail.segment_base, PhysicalOffset(0)) << "it just fits";
  RollIfNeeded(456, 1024, &tail);
  EXPECT_EQ(tail.segment_base, PhysicalOffset(1024));
  EXPECT_EQ(tail.position, PhysicalOffset(1024));
}

TEST(EntryCodec, AnOversizedEntryGetsASegmentForItself) {
  LogTail tail;
  const LogTail start = tail;
  RollIfNeeded(EntryBytes(3000), 1024, &tail);
  EXPECT_EQ(tail.position, start.position) << "an empty segment takes it";
  const EntryRef large = Sample(&tail, std::string(3000, 'x'));
  const LogTail behind = tail;
  RollIfNeeded(80, 1024, &tail);
  EXPECT_EQ(tail.segment_base, large->end());
  const EntryRef next = Sample(&tail);
  EXPECT_TRUE(CheckFollows(behind, *next).ok());
}

TEST(EntryCodec, ARollMustGoForwardToASegmentsStart) {
  LogTail tail;
  Sample(&tail);
  LogTail rolled = tail;
  rolled.segment_base = rolled.position = PhysicalOffset(1024);
  LogTail inside = rolled;
  inside.position += 8;
  const LogTail behind = tail;
  EXPECT_TRUE(CheckFollows(behind, *Sample(&rolled)).ok());
  EXPECT_FALSE(CheckFollows(behind, *Sample(&inside)).ok());
  LogTail back = behind;
  back.segment_base = back.position = PhysicalOffset(0);
  EXPECT_FALSE(CheckFollows(behind, *Sample(&back)).ok());
}

TEST(EntryCodec, RefusesImpossibleFieldsWithAGoodChecksum) {
  LogTail negative{.position = PhysicalOffset(-8), .segment_base = PhysicalOffset(-8)};
  LogTail odd{.position = PhysicalOffset(4), .segment_base = PhysicalOffset(0)};
  LogTail before{.position = PhysicalOffset(0), .segment_base = PhysicalOffset(8)};
  LogTail zero{.next_index = LogIndex(0)};
  for (LogTail* tail : {&negative, &odd, &before, &zero}) {
    EXPECT_FALSE(DecodeEntry(Sample(tail)->bytes, true).ok());
  }
  EXPECT_FALSE(DecodeHeader(std::string(kEntryHeaderBytes, '\0')).ok());
}

}  // namespace
}  // namespace triad::dledger
