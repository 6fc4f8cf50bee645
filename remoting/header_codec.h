// HeaderCodec: a command's header as JSON and as ROCKETMQ binary; the body is not touched.
//
// Pure; private to frame.cc, plain_send.cc and their tests. Errors: kInvalidArgument with what was
// wrong. Source: wire.md §1.2-§1.4.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

inline constexpr std::size_t kLengthBytes = 4;  // of a frame: what follows it
inline constexpr std::size_t kPrefixBytes = 8;  // that, the encoding and the header's length

// Both fill everything but body and serialize_type. An unknown language reads as "OTHER" in binary.
Status DecodeJsonHeader(std::string_view header, Command* out);
Status DecodeBinaryHeader(std::string_view header, Command* out);

void AppendJsonHeader(const Command& command, std::string* out);
// Errors: a code or a key that the encoding cannot express.
Status AppendBinaryHeader(const Command& command, std::string* out);

}  // namespace triad::remoting
