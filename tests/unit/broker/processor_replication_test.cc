// This project's own requests about the group and its log: input that makes no sense is refused in
// words, changes nothing and hurts nobody.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "broker/processor/replication_processor.h"
#include "broker/service/replication_status.h"
#include "remoting/codes.h"
#include "remoting/replication_bodies.h"
#include "tests/unit/broker/one_broker.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReplicationProcessorTest : public testing::Test {
 protected:
  ReplicationProcessorTest()
      : client_(remoting::CreateClient({}, {})),
        status_(broker_.context().config, broker_.context().disk, alarm_, broker_.context().store),
        log_(broker_.context().store, alarm_),
        repair_(broker_.context().store, alarm_, *client_),
        dispatcher_(SystemClock(), broker_.gate()),
        processor_(broker_.context(), status_, log_, repair_) {
    processor_.Register(&dispatcher_);
  }
  ~ReplicationProcessorTest() override { client_->Stop(); }

  remoting::Command Ask(std::int32_t code, const OneBroker::Fields& fields) {
    remoting::Command request = remoting::Command::Request(code);
    for (const auto& [key, value] : fields) request.ext.Set(key, value);
    const auto connection = broker_.Connect();
    dispatcher_.OnRequest(connection, std::move(request));
    return connection->Next();
  }
  std::size_t Members() { return broker_.context().store.node().status().peers.size(); }

  OneBroker broker_;
  LogAlarm alarm_;
  std::unique_ptr<remoting::Client> client_;
  ReplicationStatus status_;
  LogReader log_;
  LogRepair repair_;
  Dispatcher dispatcher_;
  ReplicationProcessor processor_;
};

TEST_F(ReplicationProcessorTest, AChangeOfTheMembersThatMakesNoSenseIsRefusedInWords) {
  struct Case {
    OneBroker::Fields fields;
    const char* remark;
  };
  const Case cases[] = {
      {{{"op", "add"}}, "id"},
      {{{"op", "grow"}, {"id", "n1"}}, "add, promote or remove, not 'grow'"},
      {{{"op", "add"}, {"id", "n1"}}, "id-host:port"},
      {{{"op", "add"}, {"id", "n1"}, {"address", "127.0.0.1:1;n2-127.0.0.1:2"}}, "one peer"},
      {{{"op", "add"}, {"id", "n1-127.0.0.1:5;n2"}, {"address", "127.0.0.1:1"}}, "one peer"},
      {{{"op", "add"}, {"id", std::string(300, 'n') + "1"}, {"address", "127.0.0.1:1"}}, "255"},
      {{{"op", "add"}, {"id", "n1"}, {"address", std::string(300, 'h') + ":1"}}, "255"},
  };
  const std::size_t before = Members();
  for (const Case& c : cases) {
    const auto answer = Ask(remoting::kTriadChangeMembership, c.fields);
    EXPECT_NE(answer.code, remoting::kSuccess) << c.remark;
    EXPECT_THAT(answer.remark, HasSubstr(c.remark));
  }
  EXPECT_EQ(Members(), before);
}

TEST_F(ReplicationProcessorTest, PositionsOutsideOfTheCommittedLogAreRefused) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t position : {-kLast - 1, std::int64_t{-1}, kLast - 7, kLast}) {
    const std::string text = std::to_string(position);
    SCOPED_TRACE(text);
    const auto bytes = Ask(remoting::kTriadLogBytes, {{"position", text}, {"bytes", "100"}});
    EXPECT_NE(bytes.code, remoting::kSuccess);
    EXPECT_THAT(bytes.remark, HasSubstr("not in the committed log"));
    const auto repair = Ask(remoting::kTriadLogRepair,
                            {{"position", text}, {"bytes", "100"}, {"sources", "127.0.0.1:1"}});
    EXPECT_NE(repair.code, remoting::kSuccess);
    EXPECT_THAT(repair.remark, Not(testing::IsEmpty()));
  }
}

TEST_F(ReplicationProcessorTest, TheStatusNeverShowsMoreAppliedThanCommitted) {
  for (int i = 0; i < 30; ++i) {
    StateCommand command;
    command.put_topics.push_back(TopicOf("T" + std::to_string(i)));
    broker_.peer().Apply(std::move(command));
    const auto answer = Ask(remoting::kTriadGroupStatus, {});
    const auto body = remoting::GroupStatusBody::Decode(answer.body);
    ASSERT_TRUE(body.ok()) << body.status();
    EXPECT_LE(body->applied_index, body->commit_index);
  }
}

TEST(Readiness, AFollowerIsReadyOnceItsLogReachesItsState) {
  dledger::NodeStatus status;
  status.voters = {PeerId("n0"), PeerId("n1")};
  status.leader.role = dledger::Role::kFollower;
  status.leader.leader = PeerId("n1");
  status.not_ready_reason = "why";
  EXPECT_TRUE(ReadinessOf(status, PeerId("n0"), Status::Ok()).ready);
  status.log_behind_state = true;
  const Readiness readiness = ReadinessOf(status, PeerId("n0"), Status::Ok());
  EXPECT_FALSE(readiness.ready);
  EXPECT_EQ(readiness.reason, "why");
}

TEST_F(ReplicationProcessorTest, AMissingFieldIsNamed) {
  EXPECT_THAT(Ask(remoting::kTriadLogBytes, {{"bytes", "1"}}).remark, HasSubstr("position"));
  EXPECT_THAT(Ask(remoting::kTriadLogDigest, {{"from", "0"}}).remark, HasSubstr("to"));
  EXPECT_THAT(Ask(remoting::kTriadLogRepair, {{"position", "0"}, {"bytes", "1"}}).remark,
              HasSubstr("sources"));
}

}  // namespace
}  // namespace triad::broker
