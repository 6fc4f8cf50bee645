// ForEachAnswer: takes the answers that have come whole out of a load's connection.
//
// Owner: the stream's thread.

#pragma once

#include "bin/bench/frame_template.h"
#include "bin/bench/stream.h"

namespace triad::bench {

// each(head, frame) -> Status; the views are good until it returns. Errors: kCorruption for bytes
// that are no answer, and what `each` returns.
template <typename Each>
Status ForEachAnswer(Stream* stream, Each&& each) {
  for (;;) {
    const Result<AnswerHead> answer = ReadAnswerHead(stream->input());
    if (!answer.ok()) return answer.status();
    if (answer->frame_bytes == 0) return Status::Ok();
    const std::string_view frame = stream->input().substr(0, answer->frame_bytes);
    stream->Consume(answer->frame_bytes);
    TRIAD_RETURN_IF_ERROR(each(*answer, frame));
  }
}

}  // namespace triad::bench
