// State: a cluster whose peers are spoken to one by one, and an operator beside it.
//
// Header only. Owner: one thread.

#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "remoting/bodies.h"
#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "tests/e2e/cluster_fixture.h"

namespace triad {

class State : public ClusterTest {
 protected:
  // A plain request to one peer.
  Result<remoting::Command> Ask(std::size_t peer, remoting::Command request) {
    if (!wire_) wire_ = remoting::CreateClient({}, {});
    return wire_->CallSync(cluster_->brokers()[peer].client_address, request,
                           std::chrono::seconds(5));
  }
  void TearDown() override {
    if (wire_) wire_->Stop();
    ClusterTest::TearDown();
  }
  // A send as a client that retries makes it: the same UNIQ_KEY each time.
  Result<remoting::SendMessageResponse> Send(std::size_t peer, const std::string& topic,
                                             const std::string& uniq_key, std::int32_t queue) {
    remoting::SendMessageRequest header;
    header.producer_group = "raw";
    header.topic = topic;
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 4;
    header.queue_id = queue;
    header.properties = std::string("UNIQ_KEY\x01") + uniq_key;
    remoting::Command request = remoting::Command::Request(remoting::kSendMessageV2);
    header.EncodeV2(&request.ext);
    request.body = "body of " + uniq_key;
    const Result<remoting::Command> answer = Ask(peer, request);
    if (!answer.ok()) return answer.status();
    if (answer->code != 0) return Status::Unavailable(answer->remark);
    return remoting::SendMessageResponse::Decode(answer->ext);
  }
  // Whether `peer` says that queue 0 is this group's.
  bool Lock(std::size_t peer, const std::string& group, const std::string& topic) {
    remoting::LockBatchRequest body;
    body.consumer_group = group;
    body.client_id = "A";
    body.queues.push_back({topic, cluster_->broker_name(), 0});
    remoting::Command request = remoting::Command::Request(remoting::kLockBatchMq);
    request.body = body.Encode();
    const auto answer = Ask(peer, request);
    return answer.ok() && answer->code == 0 &&
           answer->body.find("\"queueId\":0") != std::string::npos;
  }
  // One message of queue 0.
  Result<remoting::Command> Pull(std::size_t peer, const std::string& group,
                                 const std::string& topic, std::int64_t offset) {
    remoting::PullMessageRequest header;
    header.consumer_group = group;
    header.topic = topic;
    header.queue_offset = offset;
    header.max_msg_nums = 1;
    header.sys_flag = 4;  // with a subscription
    header.subscription = "*";
    remoting::Command request = remoting::Command::Request(remoting::kPullMessage);
    header.Encode(&request.ext);
    return Ask(peer, request);
  }
  pid_t Spawn(std::vector<std::string> words, const std::string& output) {
    words.insert(words.begin(), std::string(TRIAD_PROGRAMS) + "/triad-admin");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&files);
    return pid;
  }
  // Runs mqadmin; its exit code.
  int Admin(const std::vector<std::string>& words) {
    const pid_t pid = Spawn(words, dir_ + "/mqadmin.out");
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string AdminOutput() { return LocalCluster::Tail(dir_ + "/mqadmin.out", 1000); }
  // After SIGSTOP: not one thread runs any more.
  bool Stopped(std::size_t peer) {
    const std::string tasks = "/proc/" + std::to_string(cluster_->brokers()[peer].pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::ifstream in(task.path() / "stat");
      std::string stat;
      std::getline(in, stat);
      const std::size_t name_end = stat.rfind(')');
      if (name_end == std::string::npos || stat.substr(name_end + 2, 1) != "T") return false;
    }
    return true;
  }
  std::int64_t Count(const std::string& topic) {
    const auto queues = reader_->Queues(topic);
    if (!queues.ok()) return -1;
    std::int64_t count = 0;
    for (const auto& queue : *queues) {
      const auto max = reader_->MaxOffset(queue);
      if (max.ok()) count += *max;
    }
    return count;
  }

  std::unique_ptr<remoting::Client> wire_;
};

}  // namespace triad
