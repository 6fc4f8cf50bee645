// FrameTemplate: the head of a remoting request, encoded once and then only patched.
//
// What differs from request to request has a fixed width: the opaque, and texts that stood as
// placeholders in the command. Pure. Owner: one thread. Source: wire.md §1.1, §1.3, §1.4.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::bench {

// Opaques of requests: ten digits in JSON, always. Request n has kFirstOpaque + n.
inline constexpr std::uint32_t kFirstOpaque = 1'000'000'000;

class FrameTemplate {
 public:
  // `places`: texts that stand in the command's header once each, and are replaced per request.
  // kInvalidArgument when one cannot be found.
  static Result<FrameTemplate> Make(remoting::Command command, std::size_t body_bytes,
                                    const std::vector<std::string_view>& places);

  // Appends the head for one request; texts[i] replaces places[i] and has its length.
  void Append(std::uint32_t opaque, std::span<const std::string_view> texts,
              std::string* out) const;

 private:
  std::string head_;
  bool is_json_ = true;
  std::size_t opaque_at_ = 0;
  std::vector<std::size_t> places_at_;
};

// What the load reads of an answer, without decoding the whole header.
struct AnswerHead {
  std::int32_t code = 0;
  std::uint32_t opaque = 0;
  std::string_view header;  // for FindField
  std::string_view body;
  std::size_t frame_bytes = 0;  // of the whole frame; 0 = not complete yet
};
// kCorruption: these bytes are no answer.
Result<AnswerHead> ReadAnswerHead(std::string_view input);
// The number in the header's field `key`, or -1.
std::int64_t FindNumber(const AnswerHead& answer, std::string_view key);
// "code remark" of a refused request, for people.
std::string DescribeFailure(std::string_view frame);

// `value` in decimal, with leading zeros up to `width`.
void WriteDecimal(std::uint64_t value, std::size_t width, char* to);

}  // namespace triad::bench
