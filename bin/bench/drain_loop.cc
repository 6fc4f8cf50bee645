#include "bin/bench/drain_loop.h"

#include <algorithm>

namespace triad::bench {
namespace {

constexpr int kPatienceMs = 3000;  // for the next message

}  // namespace

Result<DrainOutcome> RunDrainLoop(DrainProtocol* protocol, const DrainOptions& options) {
  Stream stream;
  TRIAD_RETURN_IF_ERROR(protocol->Open(&stream));
  DrainOutcome outcome;
  const Nanos start = Now();
  const Nanos end = start + static_cast<Nanos>(options.seconds * 1e9);
  Nanos last = start + 1;
  while (outcome.messages < options.messages && Now() < end) {
    const Result<std::uint64_t> messages = protocol->Read(&stream);
    if (!messages.ok()) return messages.status();
    if (*messages > 0) last = Now();
    outcome.messages += *messages;
    if (outcome.messages >= options.messages) break;
    const Status waited = stream.WaitForInput(kPatienceMs);
    if (waited.code() == StatusCode::kTimedOut) break;
    TRIAD_RETURN_IF_ERROR(waited);
  }
  outcome.seconds = static_cast<double>(last - start) / 1e9;
  return outcome;
}

}  // namespace triad::bench
