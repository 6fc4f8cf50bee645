#include "tests/e2e/planned_moves.h"

#include <chrono>
#include <utility>

namespace triad {

using std::chrono::seconds;

void PlannedMoves::Received::Take(const client::ReceivedMessage& message, bool in_order) {
  const std::size_t colon = message.body.find(':');
  const std::string key = message.body.substr(0, colon);
  const int step = std::stoi(message.body.substr(colon + 1));
  const std::lock_guard hold(mutex);
  ++count;
  if (message.reconsume_times > 0) errors.push_back(message.body + " came as a retry");
  if (in_order && step != next[key]) {
    errors.push_back(message.body + " came instead of step " + std::to_string(next[key]));
  }
  next[key] = step + 1;
  changed.notify_all();
}

void PlannedMoves::Warnings::send(google::LogSeverity severity, const char* /*full_filename*/,
                                  const char* base_filename, int line,
                                  const google::LogMessageTime& /*time*/, const char* message,
                                  std::size_t length) {
  if (severity < google::GLOG_WARNING) return;
  const std::lock_guard hold(mutex_);
  lines_.push_back(std::string(base_filename) + ":" + std::to_string(line) + " " +
                   std::string(message, length));
}

std::vector<std::string> PlannedMoves::Warnings::lines() {
  const std::lock_guard hold(mutex_);
  return lines_;
}

PlannedMoves::PlannedMoves(
    const std::function<client::ClientOptions(const std::string&)>& options_of, std::string topic)
    : load_(options_of("producer"), topic, 20) {
  const auto make = [&](const std::string& name) {
    client::PushConsumerOptions options;
    options.client = options_of(name);
    options.group = "g_" + name;
    options.consume_from = client::ConsumeFrom::kFirstOffset;
    options.threads = 4;
    auto consumer = std::make_unique<client::PushConsumer>(options);
    EXPECT_TRUE(consumer->Subscribe(topic).ok());
    return consumer;
  };
  concurrent_consumer_ = make("concurrent");
  concurrent_consumer_->SetListener(client::MessageListenerConcurrently(
      [this](const std::vector<client::ReceivedMessage>& messages, client::ConcurrentContext*) {
        for (const auto& message : messages) concurrent_.Take(message, false);
        return client::ConcurrentResult::kSuccess;
      }));
  orderly_consumer_ = make("orderly");
  orderly_consumer_->SetListener(client::MessageListenerOrderly(
      [this](const std::vector<client::ReceivedMessage>& messages, client::OrderlyContext*) {
        for (const auto& message : messages) orderly_.Take(message, true);
        return client::OrderlyResult::kSuccess;
      }));
}

PlannedMoves::~PlannedMoves() {
  concurrent_consumer_->Shutdown();
  orderly_consumer_->Shutdown();
}

Status PlannedMoves::Start() {
  TRIAD_RETURN_IF_ERROR(load_.Start());
  TRIAD_RETURN_IF_ERROR(concurrent_consumer_->Start());
  return orderly_consumer_->Start();
}

void PlannedMoves::Expect(const char* who, Received* received) {
  const auto wanted = static_cast<std::size_t>(load_.sent());
  std::unique_lock lock(received->mutex);
  EXPECT_TRUE(
      received->changed.wait_for(lock, seconds(60), [&] { return received->count >= wanted; }))
      << who << " got " << received->count << " of " << wanted;
  EXPECT_EQ(received->count, wanted) << who;
  for (const std::string& error : received->errors) ADD_FAILURE() << who << ": " << error;
}

void PlannedMoves::ExpectUnnoticed(const std::string& expected) {
  load_.Drain();
  for (const std::string& error : load_.errors()) ADD_FAILURE() << "send failed: " << error;
  EXPECT_EQ(load_.acked_count(), static_cast<std::size_t>(load_.sent()));
  Expect("the concurrent consumer", &concurrent_);
  Expect("the orderly consumer", &orderly_);
  for (const std::string& line : warnings_.lines()) {
    const bool is_expected = !expected.empty() && line.find(expected) != std::string::npos;
    EXPECT_TRUE(is_expected) << "logged: " << line;
  }
}

}  // namespace triad
