// A ReplicatedState on a store that a test may look into, fed entry by entry.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "broker/state/memory_state_store.h"
#include "broker/state/replicated_state.h"
#include "common/file_system.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {

inline Result<std::unique_ptr<StateStore>> OpenMemory(const std::string& dir) {
  return OpenMemoryStateStore(PosixFileSystem(), dir);
}

inline GroupQueue Key(const std::string& group, const std::string& topic, std::int32_t queue) {
  return {GroupName(group), Queue(topic, queue)};
}

inline TopicConfig TopicOf(const std::string& name, std::int32_t queues = 4) {
  TopicConfig topic;
  topic.name = Topic(name);
  topic.read_queues = topic.write_queues = queues;
  return topic;
}

inline GroupConfig GroupOf(const std::string& name) {
  GroupConfig group;
  group.name = GroupName(name);
  return group;
}

// Entry `index` makes topic "T<index>".
inline void ApplyTopic(ReplicatedState* state, std::uint64_t index) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T" + std::to_string(index)));
  ApplyContext context;
  context.index = LogIndex(index);
  context.term = Term(1);
  context.end_position = PhysicalOffset(static_cast<std::int64_t>(100 * index));
  state->Apply(command, context);
  state->FinishEntry(context);
}

inline Result<std::unique_ptr<ReplicatedState>> OpenState(
    const std::function<Result<std::unique_ptr<StateStore>>()>& open) {
  Result<std::unique_ptr<StateStore>> store = open();
  if (!store.ok()) return store.status();
  auto state = std::make_unique<ReplicatedState>(std::move(*store));
  TRIAD_RETURN_IF_ERROR(state->Load());
  return state;
}

class StateHarness {
 public:
  using Opener = std::function<Result<std::unique_ptr<StateStore>>(const std::string& dir)>;

  explicit StateHarness(Opener open = OpenMemory) : open_(std::move(open)) {
    const Status loaded = Reopen();
    CHECK(loaded.ok()) << loaded;
  }

  // As after a crash: what was not flushed is gone.
  Status Reopen() {
    state_.reset();
    Result<std::unique_ptr<StateStore>> store = open_(path());
    if (!store.ok()) return store.status();
    state_ = std::make_unique<ReplicatedState>(std::move(store.value()));
    const Status loaded = state_->Load();
    if (!loaded.ok()) return loaded;
    next_index_ = state_->applied_index() + 1;
    position_ = state_->applied_position();
    time_ms_ = std::max(time_ms_, state_->log_time_ms());
    return Status::Ok();
  }

  // The next entry of the log, holding `command`.
  ReplicatedState::CommandResult Apply(const StateCommand& command) {
    const ApplyContext context = Next();
    // Through its bytes: what is not in the log is not in the state.
    const StateCommand decoded = DecodeStateCommand(EncodeStateCommand(command)).value();
    ReplicatedState::CommandResult result = state_->Apply(decoded, context);
    state_->FinishEntry(context);
    return result;
  }
  void Message(const TopicQueue& queue, std::int64_t next) {
    const ApplyContext context = Next();
    state_->NoteMessage(queue, QueueOffset{next});
    state_->FinishEntry(context);
  }
  void Pass(std::int64_t ms) { time_ms_ += ms; }
  Status Flush() { return state_->Flush({}); }

  ReplicatedState& state() { return *state_; }
  std::string path() const { return dir_.path() + "/state"; }
  std::int64_t time_ms() const { return time_ms_; }
  PhysicalOffset next_position() const { return position_; }

  // All records, as a reader of the store sees them.
  std::map<std::string, std::string> Records() {
    state_.reset();  // one opener at a time
    std::map<std::string, std::string> records;
    const auto store = open_(path()).value();
    const Status read = store->ForEach([&](std::string_view key, std::string_view value) {
      records[std::string(key)] = std::string(value);
    });
    CHECK(read.ok()) << read;
    return records;
  }

 private:
  ApplyContext Next() {
    ApplyContext context;
    context.index = next_index_;
    context.term = Term{1};
    context.position = position_;
    context.end_position = position_ + 100;
    context.store_time_ms = time_ms_;
    ++next_index_;
    position_ += 100;
    return context;
  }

  StoreTempDir dir_;
  const Opener open_;
  std::unique_ptr<ReplicatedState> state_;
  LogIndex next_index_{1};
  PhysicalOffset position_;
  std::int64_t time_ms_ = 1700000000000;
};

}  // namespace triad::broker
