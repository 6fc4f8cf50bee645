#include <gtest/gtest.h>

#include <string>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "common/java_crc32.h"

namespace triad {
namespace {

struct Vector {
  const char* name;
  std::string bytes;
  std::uint32_t crc32c;
};

std::string Ascending() {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

// RFC 3720 B.4 and the usual check value.
const Vector kVectors[] = {
    {"check", "123456789", 0xe3069283u},
    {"empty", "", 0u},
    {"32 zeros", std::string(32, '\0'), 0x8a9136aau},
    {"32 ones", std::string(32, '\xff'), 0x62a8ab43u},
    {"ascending", Ascending(), 0x46dd794eu},
};

TEST(Crc32c, GivesThePublishedValues) {
  for (const Vector& v : kVectors) {
    SCOPED_TRACE(v.name);
    EXPECT_EQ(Crc32c(v.bytes), v.crc32c);
    EXPECT_EQ(Crc32cPortable(v.bytes), v.crc32c);
  }
}

TEST(Crc32c, HardwareAndTableAgreeAtEveryLengthAndAlignment) {
  if (!Crc32cHasHardware()) std::cerr << "no SSE4.2 here: both ways are the table\n";
  std::string bytes;
  std::uint32_t random = 12345;
  for (int i = 0; i < 400; ++i) {
    random = random * 1664525u + 1013904223u;
    bytes.push_back(static_cast<char>(random >> 24));
  }
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      const auto part = std::string_view(bytes).substr(begin, size);
      ASSERT_EQ(Crc32c(part, 7), Crc32cPortable(part, 7)) << begin << "+" << size;
    }
  }
}

TEST(Crc32c, HardwareAndTableAgreeOnLongTexts) {
  std::string bytes;
  std::uint32_t random = 54321;
  for (int i = 0; i < 20000; ++i) {
    random = random * 1664525u + 1013904223u;
    bytes.push_back(static_cast<char>(random >> 24));
  }
  for (std::size_t size = 3000; size <= bytes.size(); size += 73) {
    const auto part = std::string_view(bytes).substr(bytes.size() - size);
    ASSERT_EQ(Crc32c(part, 7), Crc32cPortable(part, 7)) << size;
  }
}

TEST(Crc32c, ContinuesFromASeed) {
  EXPECT_EQ(Crc32c("456789", Crc32c("123")), 0xe3069283u);
  EXPECT_EQ(Crc32cPortable("456789", Crc32cPortable("123")), 0xe3069283u);
}

TEST(JavaCrc32, IsTheZipChecksumMaskedTo31Bits) {
  EXPECT_EQ(JavaCrc32("hello"), 0x3610a686u);                    // wire.md §14.7
  EXPECT_EQ(JavaCrc32("123456789"), 0xcbf43926u & 0x7fffffffu);  // top bit set before the mask
  EXPECT_EQ(JavaCrc32(""), 0u);
}

TEST(ByteOrder, PutsTheHighByteFirst) {
  std::string out;
  AppendBe16(&out, 0x0102);
  AppendBe32(&out, 0x03040506u);
  AppendBe64(&out, 0x0708090a0b0c0d0eull);
  EXPECT_EQ(out, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e");
  EXPECT_EQ(LoadBe16(out.data()), 0x0102);
  EXPECT_EQ(LoadBe32(out.data() + 2), 0x03040506u);
  EXPECT_EQ(LoadBe64(out.data() + 6), 0x0708090a0b0c0d0eull);
  StoreBe16(out.data(), 0xfffe);
  StoreBe32(out.data() + 2, 0xfffefdfcu);
  StoreBe64(out.data() + 6, 1);
  EXPECT_EQ(LoadBe16(out.data()), 0xfffe);
  EXPECT_EQ(LoadBe32(out.data() + 2), 0xfffefdfcu);
  EXPECT_EQ(LoadBe64(out.data() + 6), 1u);
}

}  // namespace
}  // namespace triad
