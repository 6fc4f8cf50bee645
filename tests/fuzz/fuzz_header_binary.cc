// fuzz_header_binary: a header in the ROCKETMQ binary encoding.
//
// Must hold: decode of encode is what was decoded; the JSON encoding carries the same command.

#include <string>

#include "remoting/header_codec.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/same_command.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad;
  remoting::Command command;
  if (!remoting::DecodeBinaryHeader(fuzz::Bytes(data, size), &command).ok()) return 0;
  std::string binary;
  Status status = remoting::AppendBinaryHeader(command, &binary);
  CHECK(status.ok() || status.code() == StatusCode::kInvalidArgument) << status;
  if (status.ok()) {
    remoting::Command again;
    status = remoting::DecodeBinaryHeader(binary, &again);
    CHECK(status.ok()) << status;
    fuzz::CheckSame(again, command, /*with_language=*/true);
  }
  std::string json;
  remoting::AppendJsonHeader(command, &json);
  remoting::Command from_json;
  status = remoting::DecodeJsonHeader(json, &from_json);
  CHECK(status.ok()) << status << "\n" << json;
  fuzz::CheckSame(from_json, command, /*with_language=*/true);
  return 0;
}
