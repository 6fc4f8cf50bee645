#include "client/compression.h"

#include <gtest/gtest.h>
#include <lz4frame.h>
#include <zstd.h>

#include "client/message_codec.h"
#include "tests/unit/client/fake_cluster.h"

namespace triad::client {
namespace {

// As the Java client packs: one LZ4 frame, one ZSTD frame.
std::string PackLz4(const std::string& plain) {
  std::string out(LZ4F_compressFrameBound(plain.size(), nullptr), '\0');
  out.resize(LZ4F_compressFrame(out.data(), out.size(), plain.data(), plain.size(), nullptr));
  return out;
}

std::string PackZstd(const std::string& plain) {
  std::string out(ZSTD_compressBound(plain.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 5));
  return out;
}

struct Packing {
  const char* name;
  std::int32_t sys_flag;
  std::string (*pack)(const std::string&);
};
std::string PackZlib(const std::string& plain) {
  return Deflate(plain);
}
const Packing kPackings[] = {{"zlib of old clients", kCompressed, PackZlib},
                             {"zlib", kCompressed | kCompressedZlib, PackZlib},
                             {"lz4", kCompressed | kCompressedLz4, PackLz4},
                             {"zstd", kCompressed | kCompressedZstd, PackZstd}};

std::string SomeText() {
  std::string text;
  for (int i = 0; text.size() < 100000; ++i) text += std::to_string(i * i) + ' ';
  return text;
}

TEST(Unpack, ReadsEveryPackingAMessageMayHave) {
  const std::string plain = SomeText();
  for (const Packing& packing : kPackings) {
    SCOPED_TRACE(packing.name);
    StoredMessage stored;
    stored.topic = "T";
    stored.body = packing.pack(plain);
    stored.sys_flag = packing.sys_flag;
    const auto messages = DecodeMessages(EncodeRecord(stored), "a");
    ASSERT_TRUE(messages.ok()) << messages.status();
    EXPECT_TRUE(messages->front().body == plain);
  }
}

TEST(Unpack, RefusesEveryTruncation) {
  const std::string plain = SomeText().substr(0, 300);
  for (const Packing& packing : kPackings) {
    SCOPED_TRACE(packing.name);
    const std::string packed = packing.pack(plain);
    for (std::size_t size = 0; size < packed.size(); ++size) {
      EXPECT_EQ(Unpack(packing.sys_flag, packed.substr(0, size)).status().code(),
                StatusCode::kCorruption)
          << size;
    }
    EXPECT_EQ(Unpack(packing.sys_flag, "nonsense").status().code(), StatusCode::kCorruption);
  }
}

TEST(Unpack, RefusesAnEndlessBody) {
  const std::string plain(kMaxInflatedBytes + 100000, 'a');
  for (const Packing& packing : kPackings) {
    SCOPED_TRACE(packing.name);
    EXPECT_EQ(Unpack(packing.sys_flag, packing.pack(plain)).status().code(),
              StatusCode::kCorruption);
  }
}

TEST(Unpack, LeavesWhatItDoesNotKnowAsItIs) {
  EXPECT_EQ(Unpack(0, "plain").value(), "plain");
  EXPECT_EQ(Unpack(kCompressedLz4, "plain").value(), "plain");  // the type counts with bit 0 only
  EXPECT_EQ(Unpack(kCompressed | 0x400, "packed").value(), "packed");
  EXPECT_FALSE(CanUnpack(kCompressed | 0x400));
}

}  // namespace
}  // namespace triad::client
