// Properties of the frame codec over random commands. TRIAD_SEED repeats a run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/byte_order.h"
#include "remoting/frame.h"
#include "remoting/json.h"

namespace triad::remoting {
namespace {

// splitmix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(Next() % bound); }

 private:
  std::uint64_t state_;
};

std::uint64_t Seed() {
  const char* text = std::getenv("TRIAD_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20261129;
}

// Valid UTF-8 with everything that needs care: controls, quotes, backslashes, all lengths.
std::string RandomText(Random* random, std::size_t max_pieces) {
  static const char* const kPieces[] = {"a",
                                        "Z",
                                        "0",
                                        " ",
                                        "\"",
                                        "'",
                                        "\\",
                                        "/",
                                        "\x01",
                                        "\x02",
                                        "\n",
                                        "\t",
                                        "\x1f",
                                        "\x7f",
                                        "{",
                                        "}",
                                        ":",
                                        ",",
                                        "\\u0041",
                                        "\xc3\xa9",
                                        "\xe4\xb8\xad",
                                        "\xf0\x9f\x98\x80"};
  std::string text;
  for (std::size_t i = random->Below(max_pieces + 1); i > 0; --i) {
    text += kPieces[random->Below(std::size(kPieces))];
  }
  return text;
}

Command RandomCommand(Random* random) {
  static const char* const kLanguages[] = {"JAVA", "CPP", "GO", "PYTHON", "NODE_JS", "RUST"};
  Command command;
  command.code = static_cast<std::int16_t>(random->Next());
  command.version = static_cast<std::int16_t>(random->Next());
  command.opaque = static_cast<std::int32_t>(random->Next());
  command.flag = static_cast<std::int32_t>(random->Below(4));
  command.language = kLanguages[random->Below(std::size(kLanguages))];
  command.remark = RandomText(random, 10);
  for (std::size_t i = random->Below(12); i > 0; --i) {
    command.ext.Add(RandomText(random, 5), RandomText(random, 40));
  }
  for (std::size_t i = random->Below(60); i > 0; --i) {
    command.body.push_back(static_cast<char>(random->Next()));
  }
  return command;
}

void ExpectSame(const Command& a, const Command& b) {
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.opaque, b.opaque);
  EXPECT_EQ(a.flag, b.flag);
  EXPECT_EQ(a.language, b.language);
  EXPECT_EQ(a.remark, b.remark);
  EXPECT_EQ(a.ext.items(), b.ext.items());
  EXPECT_EQ(a.body, b.body);
  EXPECT_EQ(a.serialize_type, b.serialize_type);
}

// The same header with a space wherever JSON allows one.
std::string Spaced(std::string_view header) {
  std::string spaced;
  bool quoted = false;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char c = header[i];
    spaced.push_back(c);
    if (quoted && c == '\\') {
      spaced.push_back(header[++i]);
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == ',' || c == ':')) {
      spaced.push_back(' ');
    }
  }
  return spaced;
}

TEST(CodecProperty, CompactAndSpacedHeadersSayTheSame) {
  const std::uint64_t seed = Seed();
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE("TRIAD_SEED=" + std::to_string(seed) + " round " + std::to_string(round));
    Command command = RandomCommand(&random);
    command.body.clear();
    const Result<std::string> frame = EncodeFrame(command);
    ASSERT_TRUE(frame.ok()) << frame.status();
    const std::string header = Spaced(std::string_view(*frame).substr(8));
    std::string spaced(8, '\0');
    StoreBe32(spaced.data(), static_cast<std::uint32_t>(header.size() + 4));
    StoreBe32(spaced.data() + 4, static_cast<std::uint32_t>(header.size()));
    const Result<Command> read = DecodeFrame(spaced + header);
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectSame(*DecodeFrame(*frame), *read);
    ExpectSame(command, *read);
  }
}

TEST(CodecProperty, BothEncodingsCarryTheSameCommand) {
  const std::uint64_t seed = Seed();
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE("TRIAD_SEED=" + std::to_string(seed) + " round " + std::to_string(round));
    Command command = RandomCommand(&random);
    for (const SerializeType type : {SerializeType::kJson, SerializeType::kRocketmq}) {
      command.serialize_type = type;
      const auto frame = EncodeFrame(command);
      ASSERT_TRUE(frame.ok()) << frame.status();
      const auto decoded = DecodeFrame(*frame);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      ExpectSame(*decoded, command);
    }
    if (HasFailure()) return;
  }
}

TEST(CodecProperty, AStreamInAnyPiecesYieldsItsCommands) {
  const std::uint64_t seed = Seed() + 1;
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("TRIAD_SEED=" + std::to_string(seed - 1) + " round " + std::to_string(round));
    std::vector<Command> sent;
    std::string stream;
    for (std::size_t i = random.Below(20) + 1; i > 0; --i) {
      sent.push_back(RandomCommand(&random));
      sent.back().serialize_type = static_cast<SerializeType>(random.Below(2));
      stream += EncodeFrame(sent.back()).value();
    }
    FrameDecoder decoder;
    std::size_t received = 0;
    for (std::size_t at = 0; at < stream.size();) {
      const std::string_view piece = std::string_view(stream).substr(at, random.Below(300) + 1);
      at += piece.size();
      decoder.Append(piece);
      while (true) {
        const auto next = decoder.Next();
        ASSERT_TRUE(next.ok()) << next.status();
        if (!next->has_value()) break;
        ASSERT_LT(received, sent.size());
        ExpectSame(**next, sent[received++]);
      }
    }
    EXPECT_EQ(received, sent.size());
    if (HasFailure()) return;
  }
}

TEST(CodecProperty, DamagedFramesAreRefusedOrReadButNeverHurt) {
  const std::uint64_t seed = Seed() + 2;
  Random random(seed);
  for (int round = 0; round < 20000; ++round) {
    SCOPED_TRACE("TRIAD_SEED=" + std::to_string(seed - 2) + " round " + std::to_string(round));
    Command command = RandomCommand(&random);
    command.serialize_type = static_cast<SerializeType>(random.Below(2));
    std::string frame = EncodeFrame(command).value();
    for (std::size_t i = random.Below(4) + 1; i > 0; --i) {
      frame[random.Below(frame.size())] = static_cast<char>(random.Next());
    }
    FrameDecoder decoder;
    decoder.Append(frame);
    const auto next = decoder.Next();
    if (next.ok() && next->has_value()) {
      // Whatever was read can be said again, the same.
      Command again = **next;
      const auto encoded = EncodeFrame(again);
      if (!encoded.ok()) continue;
      const auto decoded = DecodeFrame(*encoded);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      ExpectSame(*decoded, again);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace triad::remoting
