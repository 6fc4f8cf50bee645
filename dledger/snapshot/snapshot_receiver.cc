#include "dledger/snapshot/snapshot_receiver.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/crc32c.h"

namespace triad::dledger {

SnapshotReceiver::SnapshotReceiver(ReceiverHands* hands) : hands_(hands) {
  CHECK(hands_ != nullptr);
}

void SnapshotReceiver::Answer(SnapshotAnswer::Kind kind) {
  hands_->SendSnapshot(from_, SnapshotAnswer{.id = id_, .kind = kind, .offset = offset_});
}

void SnapshotReceiver::OnOffer(const PeerId& from, const SnapshotOffer& offer, bool follows,
                               TimePoint now) {
  if (!follows) return;
  if (offer.id == installed_id_) {  // our answer was lost
    hands_->SendSnapshot(from,
                         SnapshotAnswer{.id = offer.id, .kind = SnapshotAnswer::Kind::kInstalled});
    return;
  }
  if (offer.id == id_ && state_ != State::kIdle) {
    from_ = from;
    // While it is written, the end of that is answered; later this says that we are alive.
    if (state_ == State::kReceiving || offset_ == head_.total_bytes) AskForMore();
    return;
  }
  if (state_ != State::kIdle && state_ != State::kReceiving) {
    if (state_ != State::kInstalling) next_.emplace(from, offer);
    return;
  }
  from_ = from;
  id_ = offer.id;
  head_ = offer.head;
  offset_ = 0;
  started_at_ = now;
  percent_logged_ = 0;
  state_ = State::kCreating;
  LOG(INFO) << "peer " << from << " sends its state up to entry " << head_.applied << ": "
            << head_.total_bytes << " bytes; the log here will begin at entry "
            << head_.base.tail.next_index;
  hands_->CreateIncoming(id_, head_.total_bytes);
}

void SnapshotReceiver::AskForMore() {
  Answer(SnapshotAnswer::Kind::kSendFrom);
}

void SnapshotReceiver::Seal() {
  state_ = State::kSealing;
  hands_->SealIncoming(id_, head_);
}

void SnapshotReceiver::OnChunk(const PeerId& from, const SnapshotChunk& chunk, TimePoint now) {
  if (state_ != State::kReceiving || from != from_ || chunk.id != id_) return;
  const bool fits = chunk.offset == offset_ && !chunk.data.empty() &&
                    chunk.data.size() <= head_.total_bytes - offset_;
  if (!fits || chunk.crc != Crc32c(chunk.data)) {
    AskForMore();
    return;
  }
  state_ = State::kWriting;
  writing_ = chunk.data.size();
  LogProgress(now);
  hands_->WriteIncoming(id_, chunk.data);
}

void SnapshotReceiver::LogProgress(TimePoint now) {
  const auto percent = static_cast<int>(100 * (offset_ + writing_) / head_.total_bytes);
  if (percent < percent_logged_ + 10) return;
  percent_logged_ = percent;
  const double seconds = std::max(0.001, std::chrono::duration<double>(now - started_at_).count());
  LOG(INFO) << "state from peer " << from_ << ": " << percent << " %, "
            << static_cast<double>(offset_ + writing_) / 1e6 / seconds << " MB/s";
}

void SnapshotReceiver::OnDone(std::uint64_t id, bool ok, TimePoint now) {
  CHECK_EQ(id, id_);
  const State was = std::exchange(state_, State::kReceiving);
  if (next_) {  // what this one was for is over
    state_ = State::kIdle;
    const auto [from, offer] = *std::exchange(next_, std::nullopt);
    OnOffer(from, offer, true, now);
    return;
  }
  if (!ok && was == State::kCreating) {  // no room for it, most likely: the next offer tries again
    state_ = State::kIdle;
    id_ = 0;
    return;
  }
  if (!ok) {
    LOG(ERROR) << "the state from peer " << from_ << " could not be "
               << (was == State::kSealing ? "verified" : "stored") << "; it is asked for again";
    state_ = State::kIdle;
    Answer(SnapshotAnswer::Kind::kRefused);
    id_ = 0;
    return;
  }
  switch (was) {
    case State::kWriting: offset_ += writing_; [[fallthrough]];
    case State::kCreating:
      if (offset_ == head_.total_bytes) {
        Seal();
      } else {
        AskForMore();
      }
      return;
    case State::kSealing:
      state_ = State::kInstalling;
      LOG(INFO) << "the state from peer " << from_ << " is whole; installing it";
      hands_->Install(head_);
      return;
    case State::kIdle:
    case State::kReceiving:
    case State::kInstalling: LOG(FATAL) << "file work that nobody asked for";
  }
}

void SnapshotReceiver::OnInstalled() {
  CHECK(state_ == State::kInstalling);
  LOG(INFO) << "the state of peer " << from_ << " is installed; the log begins at entry "
            << head_.base.tail.next_index;
  state_ = State::kIdle;
  installed_id_ = id_;
  Answer(SnapshotAnswer::Kind::kInstalled);
}

void SnapshotReceiver::OnRefused() {
  CHECK(state_ == State::kInstalling);
  state_ = State::kIdle;
  installed_id_ = id_;  // no use for it: the log here goes on
  Answer(SnapshotAnswer::Kind::kInstalled);
}

}  // namespace triad::dledger
