// fuzz_header_json: a JSON header, and the same bytes as a JSON document of the dialect.
//
// Must hold: decode of encode is what was decoded; the binary encoding carries the same command; a
// document that parses is written as one that parses to the same text.

#include <string>

#include "remoting/header_codec.h"
#include "remoting/json.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/same_command.h"

namespace triad::fuzz {
namespace {

using remoting::Command;

void CheckDocument(std::string_view text) {
  const auto document = remoting::Json::Parse(text);
  if (!document.ok()) return;
  remoting::JsonWriter writer;
  document->WriteTo(&writer);
  const auto again = remoting::Json::Parse(writer.text());
  CHECK(again.ok()) << again.status() << "\n" << writer.text();
  remoting::JsonWriter second;
  again->WriteTo(&second);
  CHECK_EQ(second.text(), writer.text());
}

void CheckBinarySaysTheSame(const Command& command) {
  std::string header;
  if (!remoting::AppendBinaryHeader(command, &header).ok()) return;
  Command again;
  const Status status = remoting::DecodeBinaryHeader(header, &again);
  CHECK(status.ok()) << status;
  CheckSame(again, command, /*with_language=*/false);
  CHECK(again.language == command.language || again.language == "OTHER");
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad::fuzz;
  const std::string_view text = Bytes(data, size);
  CheckDocument(text);
  Command command;
  if (!triad::remoting::DecodeJsonHeader(text, &command).ok()) return 0;
  std::string header;
  triad::remoting::AppendJsonHeader(command, &header);
  Command again;
  const triad::Status status = triad::remoting::DecodeJsonHeader(header, &again);
  CHECK(status.ok()) << status << "\n" << header;
  CheckSame(again, command, /*with_language=*/true);
  CheckBinarySaysTheSame(command);
  return 0;
}
