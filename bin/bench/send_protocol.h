// SendProtocol: SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE for the publish loop.
//
// Message n goes to lane n (round robin), or with keys to the lane of its key, so that a key's
// messages keep their order. Bodies of at least kStampBytes carry the run's id, the message's
// number and the time it was due, which `--verify` and the mixed load read back.
// Owner: one thread. Source: wire.md §4.4, §4.9.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bin/bench/frame_template.h"
#include "bin/bench/lanes.h"
#include "bin/bench/publish_loop.h"

namespace triad::bench {

// The first bytes of a body.
struct Stamp {
  std::uint64_t run = 0;
  std::uint64_t message = 0;
  Nanos sent_at = 0;
};
inline constexpr std::size_t kStampBytes = 24;
void WriteStamp(const Stamp& stamp, char* to);
Stamp ReadStamp(const char* from);
// What follows the stamp; as long as the longest body.
std::string Filler(std::size_t bytes);

struct SendOptions {
  std::size_t size = 1024;
  std::uint64_t batch = 1;
  std::uint64_t keys = 0;       // 0 = none
  std::size_t connections = 1;  // to each leader
  std::uint64_t run = 0;
  remoting::SerializeType serialize = remoting::SerializeType::kJson;
};

class SendProtocol : public PublishProtocol {
 public:
  // `lanes` outlives this.
  static Result<std::unique_ptr<SendProtocol>> Make(Lanes* lanes, const SendOptions& options);

  std::size_t connections() const override;
  Status Open(std::size_t i, Stream* stream) override;
  std::size_t ConnectionOf(std::uint64_t request) const override;
  void Append(std::uint64_t request, Nanos now, std::string* out) override;
  Status Read(Stream* stream, AnswerSink* sink) override;
  std::uint64_t batch() const override { return options_.batch; }

 private:
  SendProtocol(Lanes* lanes, const SendOptions& options);
  Status MakeTemplates();
  std::size_t LaneOf(std::uint64_t request) const;
  void AppendMessage(std::uint64_t message, Nanos now, std::string* out) const;

  Lanes& lanes_;
  const SendOptions options_;
  std::string body_;                      // one message's
  std::string item_;                      // of a batch: with length, body and properties
  std::size_t item_key_at_ = 0;           // the UNIQ_KEY in it
  std::size_t body_bytes_ = 0;            // of a request
  std::vector<FrameTemplate> templates_;  // one per lane
  std::vector<std::string> opened_;       // address per connection
  Nanos born_at_ = 0;                     // what born_text_ says
  std::string born_text_;
};

}  // namespace triad::bench
