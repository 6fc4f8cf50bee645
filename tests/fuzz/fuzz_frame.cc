// fuzz_frame: a stream of bytes in pieces of any size into the frame decoder.
//
// Input: one byte that seeds the pieces, then the stream. Must hold: the same commands and the same
// refusal however the stream is cut; a length beyond the limit is refused with its first four
// bytes; nothing is kept beyond what was given; whatever was read can be said again, the same.

#include <string>
#include <vector>

#include "common/byte_order.h"
#include "remoting/frame.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/same_command.h"
#include "tests/sim/random.h"

namespace triad::fuzz {
namespace {

using remoting::Command;
using remoting::FrameDecoder;

constexpr std::size_t kLimit = 1u << 20;

struct Read {
  std::vector<Command> commands;
  std::string refusal;
};

// Takes what is whole. False: the connection would be closed.
bool Drain(FrameDecoder* decoder, Read* read) {
  while (true) {
    auto next = decoder->Next();
    if (!next.ok()) {
      read->refusal = next.status().ToString();
      CHECK(!read->refusal.empty());
      return false;
    }
    if (!next->has_value()) return true;
    read->commands.push_back(std::move(**next));
  }
}

Read InOne(std::string_view stream) {
  Read read;
  FrameDecoder decoder(kLimit);
  decoder.Append(stream);
  if (Drain(&decoder, &read)) CHECK_LE(decoder.buffered_bytes(), stream.size());
  return read;
}

Read InPieces(std::string_view stream, std::uint64_t seed) {
  sim::Random dice(seed);
  Read read;
  FrameDecoder decoder(kLimit);
  while (!stream.empty()) {
    const std::size_t size = 1 + dice.Below(dice.OneIn(2) ? 7 : 200);
    const std::string_view piece = stream.substr(0, size);
    stream.remove_prefix(piece.size());
    decoder.Append(piece);
    if (!Drain(&decoder, &read)) return read;
  }
  return read;
}

void CheckSaidAgain(const Command& command) {
  const auto frame = remoting::EncodeFrame(command);
  if (!frame.ok()) return;  // a name that only JSON can carry
  const auto again = remoting::DecodeFrame(*frame);
  CHECK(again.ok()) << again.status();
  CheckSame(*again, command, /*with_language=*/true);
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad::fuzz;
  Input input(data, size);
  const std::uint8_t seed = input.Byte();
  const std::string_view stream = input.Rest();
  const Read whole = InOne(stream);
  const Read pieces = InPieces(stream, seed);
  CHECK_EQ(whole.refusal, pieces.refusal);
  CHECK_EQ(whole.commands.size(), pieces.commands.size());
  for (std::size_t i = 0; i < whole.commands.size(); ++i) {
    CheckSame(whole.commands[i], pieces.commands[i], /*with_language=*/true);
    CheckSaidAgain(whole.commands[i]);
  }
  if (stream.size() >= 4 && triad::LoadBe32(stream.data()) > kLimit) {
    CHECK(!InOne(stream.substr(0, 4)).refusal.empty()) << "waits for a frame beyond the limit";
  }
  return 0;
}

// Most changes leave lengths that fit, so that the fuzzer gets behind them.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0) return size;
  char* const bytes = reinterpret_cast<char*>(data);
  for (std::size_t at = 1; at + 8 <= size;) {
    const std::size_t left = size - at - 4;
    std::size_t total = triad::LoadBe32(bytes + at);
    if (total < 4 || total > left) total = left;
    const std::size_t header = (triad::LoadBe32(bytes + at + 4) & 0xFFFFFF) % (total - 3);
    const std::uint32_t type = data[at + 4] & 1;
    triad::StoreBe32(bytes + at, static_cast<std::uint32_t>(total));
    triad::StoreBe32(bytes + at + 4, (type << 24) | static_cast<std::uint32_t>(header));
    at += 4 + total;
  }
  return size;
}
