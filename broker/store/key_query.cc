#include "broker/store/key_query.h"

#include <algorithm>
#include <utility>

namespace triad::broker {
namespace {

bool Carries(const MessageView& message, const KeyQuery& query) {
  if (message.topic != query.topic.value()) return false;
  const SearchProperties properties = FindSearchProperties(message.properties);
  if (properties.unique_key == query.key) return true;
  if (query.unique_only) return false;
  bool found = false;
  ForEachKey(properties.keys, [&](std::string_view key) { found = found || key == query.key; });
  return found;
}

// Takes candidates, newest first.
class Collector {
 public:
  Collector(const KeyQuery& query, const std::function<Result<LoadedMessage>(PhysicalOffset)>& read)
      : query_(query), read_(read) {}

  bool Visit(PhysicalOffset position) {
    if (position >= query_.applied_end) return true;
    if (position >= last_) return true;  // recorded twice
    last_ = position;
    if (position < query_.topic_begin || ++candidates_ > kQueryCandidatesMax) return false;
    Result<LoadedMessage> loaded = read_(position);
    if (loaded.status().code() == StatusCode::kNotFound) return false;  // the older ones, too
    if (!loaded.ok()) {
      status_ = loaded.status();
      return false;
    }
    const Result<MessageView> message = ParseMessage(loaded->record, false);
    if (!message.ok()) {
      status_ = message.status();
      return false;
    }
    if (message->store_time_ms < query_.times.begin_ms) return false;
    if (message->store_time_ms > query_.times.end_ms || !Carries(message.value(), query_)) {
      return true;
    }
    bytes_ += message->record.size();
    if (bytes_ > kQueryBytesMax && !found_.empty()) return false;
    found_.push_back(std::move(loaded.value()));
    return found_.size() < std::min(query_.messages_max, kQueryMessagesMax);
  }

  Result<std::vector<LoadedMessage>> Take() {
    if (!status_.ok()) return status_;
    std::reverse(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  const KeyQuery& query_;
  const std::function<Result<LoadedMessage>(PhysicalOffset)>& read_;
  PhysicalOffset last_{INT64_MAX};
  std::size_t candidates_ = 0;
  std::size_t bytes_ = 0;
  std::vector<LoadedMessage> found_;
  Status status_;
};

}  // namespace

Result<std::vector<LoadedMessage>> FindByKey(
    const KeyIndex& index, const KeyQuery& query,
    const std::function<Result<LoadedMessage>(PhysicalOffset)>& read) {
  if (query.messages_max == 0) return std::vector<LoadedMessage>();
  const std::uint64_t hash = KeyHash(KeyHash(kTopicSeed, query.topic.value()), query.key);
  Collector collector(query, read);
  TRIAD_RETURN_IF_ERROR(index.Find(
      hash, query.times, [&](PhysicalOffset position) { return collector.Visit(position); }));
  return collector.Take();
}

}  // namespace triad::broker
