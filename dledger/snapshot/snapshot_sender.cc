#include "dledger/snapshot/snapshot_sender.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/crc32c.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kAskAgain{1};
constexpr std::chrono::seconds kPatience{30};  // of silence, before a transfer is given up

double Seconds(TimePoint::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

SnapshotSender::SnapshotSender(SenderHands* hands, std::uint64_t bytes_per_second)
    : hands_(hands), bytes_per_second_(bytes_per_second) {
  CHECK(hands_ != nullptr);
  CHECK_GT(bytes_per_second_, 0u);
}

void SnapshotSender::Start(const PeerId& peer, Term term, LogIndex log_first, TimePoint now) {
  Transfer transfer;
  transfer.term = term;
  transfer.log_first = log_first;
  transfer.started_at = transfer.heard_at = now;
  LOG(INFO) << "peer " << peer << " needs entries that this log has dropped: it gets the state";
  transfers_[peer] = std::move(transfer);
  if (image_ && Usable(transfers_[peer])) {
    Offer(peer, &transfers_[peer], now);
  } else {
    MakeImageIfNeeded();
  }
}

bool SnapshotSender::Usable(const Transfer& transfer) const {
  return image_->head.base.tail.next_index >= transfer.log_first;
}

void SnapshotSender::MakeImageIfNeeded() {
  if (std::exchange(is_making_, true)) return;
  image_.reset();
  hands_->MakeImage();
}

void SnapshotSender::OnImage(const std::optional<SnapshotHead>& head, TimePoint now) {
  is_making_ = false;
  std::vector<PeerId> peers;
  for (const auto& [peer, transfer] : transfers_) peers.push_back(peer);
  if (!head) {
    for (const PeerId& peer : peers) End(peer, false);
    return;
  }
  image_ = Image{.id = hands_->NewSnapshotId(), .head = *head};
  for (const PeerId& peer : peers) {
    Transfer& transfer = transfers_.at(peer);
    if (Usable(transfer)) {
      Offer(peer, &transfer, now);
    } else {
      End(peer, false);  // the log went on meanwhile: the core asks again
    }
  }
  if (transfers_.empty()) StopAll();
}

void SnapshotSender::Offer(const PeerId& peer, Transfer* transfer, TimePoint now) {
  transfer->asked_at = now;
  hands_->SendSnapshot(
      peer, SnapshotOffer{.term = transfer->term, .id = image_->id, .head = image_->head});
}

void SnapshotSender::OnAnswer(const PeerId& peer, const SnapshotAnswer& answer, TimePoint now) {
  const auto found = transfers_.find(peer);
  if (found == transfers_.end() || !image_ || answer.id != image_->id) return;
  Transfer& transfer = found->second;
  transfer.heard_at = transfer.asked_at = now;
  switch (answer.kind) {
    case SnapshotAnswer::Kind::kInstalled:
      LOG(INFO) << "peer " << peer << " has the state up to entry " << image_->head.applied
                << "; its log goes on from " << image_->head.base.tail.next_index;
      End(peer, true);
      return;
    case SnapshotAnswer::Kind::kRefused:
      LOG(WARNING) << "peer " << peer << " refused the state";
      End(peer, false);
      return;
    case SnapshotAnswer::Kind::kSendFrom: break;
  }
  if (answer.offset >= image_->head.total_bytes) return;  // it is checking and installing
  LogProgress(peer, &transfer, answer.offset, now);
  transfer.wanted = answer.offset;
  ReadNext(peer, &transfer, now);
}

void SnapshotSender::LogProgress(const PeerId& peer, Transfer* transfer, std::uint64_t offset,
                                 TimePoint now) {
  const auto percent = static_cast<int>(100 * offset / image_->head.total_bytes);
  if (percent < transfer->percent_logged + 10) return;
  transfer->percent_logged = percent;
  const double seconds = std::max(0.001, Seconds(now - transfer->started_at));
  LOG(INFO) << "state to peer " << peer << ": " << percent << " %, "
            << static_cast<double>(offset) / 1e6 / seconds << " MB/s";
}

// One chunk's worth of the common rate.
bool SnapshotSender::TakeTokens(TimePoint now) {
  const double burst = 2.0 * static_cast<double>(kSnapshotChunkBytes);
  tokens_ += Seconds(now - tokens_at_) * static_cast<double>(bytes_per_second_);
  tokens_ = std::min(tokens_, burst);
  tokens_at_ = now;
  if (tokens_ < static_cast<double>(kSnapshotChunkBytes)) return false;
  tokens_ -= static_cast<double>(kSnapshotChunkBytes);
  return true;
}

void SnapshotSender::ReadNext(const PeerId& peer, Transfer* transfer, TimePoint now) {
  if (!transfer->wanted || transfer->is_reading || !TakeTokens(now)) return;
  transfer->is_reading = true;
  hands_->ReadImage(peer, image_->id, *std::exchange(transfer->wanted, std::nullopt));
}

void SnapshotSender::OnChunk(const PeerId& peer, std::uint64_t id, std::uint64_t offset,
                             std::string data, TimePoint now) {
  const auto found = transfers_.find(peer);
  if (found == transfers_.end()) return;
  found->second.is_reading = false;
  if (!image_ || id != image_->id) return;
  if (data.empty()) {
    End(peer, false);
    return;
  }
  found->second.asked_at = now;
  const std::uint32_t crc = Crc32c(data);
  hands_->SendSnapshot(
      peer, SnapshotChunk{.id = id, .offset = offset, .crc = crc, .data = std::move(data)});
}

void SnapshotSender::OnTick(TimePoint now) {
  std::vector<PeerId> peers;
  for (const auto& [peer, transfer] : transfers_) peers.push_back(peer);
  for (const PeerId& peer : peers) {
    Transfer& transfer = transfers_.at(peer);
    if (is_making_ || !image_) {
      transfer.heard_at = now;
      continue;
    }
    ReadNext(peer, &transfer, now);
    if (now - transfer.heard_at >= kPatience) {
      LOG(WARNING) << "peer " << peer << " does not answer; the state is offered again later";
      End(peer, false);
    } else if (now - transfer.asked_at >= kAskAgain && !transfer.wanted && !transfer.is_reading) {
      Offer(peer, &transfer, now);
    }
  }
}

void SnapshotSender::End(const PeerId& peer, bool ok) {
  const auto found = transfers_.find(peer);
  CHECK(found != transfers_.end());
  const Term term = found->second.term;
  transfers_.erase(found);
  const LogIndex base_index = image_ ? image_->head.base.tail.next_index - 1 : LogIndex(0);
  if (transfers_.empty()) StopAll();
  hands_->OnSent(peer, term, ok, base_index);
}

void SnapshotSender::StopAll() {
  transfers_.clear();
  if (image_) hands_->DropImage();
  image_.reset();
}

}  // namespace triad::dledger
