// What real clients and the original server said to each other (tests/remoting/golden, recorded by
// tests/interop/golden/run.sh): every frame is decoded and encoded again, as a frame, as a typed
// header and as a typed body, and nothing that matters is lost.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/headers.h"
#include "remoting/send_header.h"
#include "tests/unit/remoting/hex_file.h"

namespace triad::remoting {
namespace {

using test::FromHex;
using test::ReadText;

const std::vector<const char*> kClients = {"java-json", "java-binary", "java-4.9.8", "java-5.5.0",
                                           "spring",    "go",          "node",       "python"};

struct Frame {
  std::string direction;  // request, answer, push, push-answer
  std::int32_t code = 0;  // of the request, also for an answer
  std::string bytes;
};

std::vector<Frame> FramesOf(const std::string& client) {
  std::vector<Frame> frames;
  std::istringstream lines(ReadText("../remoting/golden/" + client + ".txt"));
  Frame frame;
  for (std::string hex; lines >> frame.direction >> frame.code >> hex;) {
    frame.bytes = FromHex(hex);
    frames.push_back(frame);
  }
  return frames;
}

void ForEachFrame(const std::function<void(const Frame&, const Command&)>& check) {
  for (const char* client : kClients) {
    for (const Frame& frame : FramesOf(client)) {
      SCOPED_TRACE(std::string(client) + " " + frame.direction + " " +
                   std::string(RequestCodeName(frame.code)));
      const auto command = DecodeFrame(frame.bytes);
      ASSERT_TRUE(command.ok()) << command.status();
      check(frame, *command);
    }
  }
}

// ---- headers ------------------------------------------------------------------------------------

using Fields = std::map<std::string, std::string>;

Fields FieldsOf(const ExtFields& ext) {
  Fields fields;
  for (const auto& [key, value] : ext.items()) fields[std::string(key)] = std::string(value);
  return fields;
}

// A typed header's fields, once decoded and encoded again.
using HeaderTrip = std::function<Result<ExtFields>(const ExtFields&)>;

template <typename Header>
Result<ExtFields> Trip(const ExtFields& fields) {
  const auto header = Header::Decode(fields);
  if (!header.ok()) return header.status();
  ExtFields again;
  header->Encode(&again);
  return again;
}

Result<ExtFields> TripSendV1(const ExtFields& fields) {
  const auto header = SendMessageRequest::DecodeV1(fields);
  if (!header.ok()) return header.status();
  ExtFields again;
  header->EncodeV1(&again);
  return again;
}

Result<ExtFields> TripSendV2(const ExtFields& fields) {
  const auto header = SendMessageRequest::DecodeV2(fields);
  if (!header.ok()) return header.status();
  ExtFields again;
  header->EncodeV2(&again);
  return again;
}

const std::map<std::pair<std::string, std::int32_t>, HeaderTrip>& HeaderTrips() {
  static const std::map<std::pair<std::string, std::int32_t>, HeaderTrip> trips = {
      {{"request", kSendMessage}, TripSendV1},
      {{"request", kSendMessageV2}, TripSendV2},
      {{"request", kSendBatchMessage}, TripSendV2},
      {{"request", kSendReplyMessageV2}, TripSendV2},
      {{"answer", kSendReplyMessageV2}, Trip<SendMessageResponse>},
      {{"answer", kSendMessage}, Trip<SendMessageResponse>},
      {{"answer", kSendMessageV2}, Trip<SendMessageResponse>},
      {{"answer", kSendBatchMessage}, Trip<SendMessageResponse>},
      {{"request", kPullMessage}, Trip<PullMessageRequest>},
      {{"answer", kPullMessage}, Trip<PullMessageResponse>},
      {{"request", kLitePullMessage}, Trip<PullMessageRequest>},
      {{"answer", kLitePullMessage}, Trip<PullMessageResponse>},
      {{"request", kQueryMessage}, Trip<QueryMessageRequest>},
      {{"answer", kQueryMessage}, Trip<QueryMessageResponse>},
      {{"request", kQueryConsumerOffset}, Trip<QueryConsumerOffsetRequest>},
      {{"answer", kQueryConsumerOffset}, Trip<OffsetResponse>},
      {{"request", kUpdateConsumerOffset}, Trip<UpdateConsumerOffsetRequest>},
      {{"request", kGetMaxOffset}, Trip<GetMaxOffsetRequest>},
      {{"answer", kGetMaxOffset}, Trip<OffsetResponse>},
      {{"request", kGetMinOffset}, Trip<GetMinOffsetRequest>},
      {{"answer", kGetMinOffset}, Trip<OffsetResponse>},
      {{"request", kSearchOffsetByTimestamp}, Trip<SearchOffsetRequest>},
      {{"answer", kSearchOffsetByTimestamp}, Trip<OffsetResponse>},
      {{"request", kViewMessageById}, Trip<ViewMessageRequest>},
      {{"request", kUnregisterClient}, Trip<UnregisterClientRequest>},
      {{"request", kConsumerSendMsgBack}, Trip<SendBackRequest>},
      {{"request", kGetConsumerListByGroup}, Trip<ConsumerGroupRequest>},
      {{"push", kNotifyConsumerIdsChanged}, Trip<ConsumerGroupRequest>},
      {{"request", kGetRouteInfoByTopic}, Trip<GetRouteInfoRequest>},
      {{"request", kInvokeBrokerToResetOffset}, Trip<ResetOffsetRequest>},
      {{"request", kGetConsumerRunningInfo}, Trip<ClientDirectedRequest>},
      {{"push", kGetConsumerRunningInfo}, Trip<ClientDirectedRequest>},
      {{"request", kConsumeMessageDirectly}, Trip<ClientDirectedRequest>},
      {{"push", kConsumeMessageDirectly}, Trip<ClientDirectedRequest>},
  };
  return trips;
}

// Fields that any request may have and that are read by nobody here: the group that a broker is
// thought to be of, the kind of a 5.x caller, signing (wire.md §1.2).
const std::set<std::string> kUnreadFields = {
    "bname", "ReqT", "AccessKey", "Signature", "SecurityToken", "OnsChannel", "n"};

// And those of single codes.
bool IsUnread(const Frame& frame, const std::string& field) {
  // Units of Alibaba's own, and which index a query means: here there is one.
  static const std::map<std::pair<std::string, std::int32_t>, std::set<std::string>> unread = {
      {{"answer", kPullMessage}, {"topicSysFlag", "groupSysFlag"}},
      {{"answer", kLitePullMessage}, {"topicSysFlag", "groupSysFlag"}},
      {{"request", kConsumeMessageDirectly}, {"topicSysFlag", "groupSysFlag"}},
      {{"push", kConsumeMessageDirectly}, {"topicSysFlag", "groupSysFlag"}},
      {{"request", kQueryMessage}, {"indexType"}},
  };
  const auto found = unread.find({frame.direction, frame.code});
  if (frame.direction == "request" && kUnreadFields.contains(field)) return true;
  return found != unread.end() && found->second.contains(field);
}

bool SameText(const std::string& theirs, const std::string& ours) {
  if (theirs == ours) return true;
  return (theirs == "1" && ours == "true") || (theirs == "0" && ours == "false");
}

TEST(GoldenCaptures, EveryFrameComesOutAsItWentIn) {
  std::size_t count = 0;
  ForEachFrame([&](const Frame& frame, const Command& command) {
    ++count;
    const bool is_answer = frame.direction == "answer" || frame.direction == "push-answer";
    EXPECT_EQ(command.is_response(), is_answer);
    if (!is_answer) {
      EXPECT_EQ(command.code, frame.code);
    }
    const auto again = EncodeFrame(command);
    ASSERT_TRUE(again.ok()) << again.status();
    const auto second = DecodeFrame(*again);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(second->code, command.code);
    EXPECT_EQ(second->opaque, command.opaque);
    EXPECT_EQ(second->flag, command.flag);
    EXPECT_EQ(second->version, command.version);
    EXPECT_EQ(second->language, command.language);
    EXPECT_EQ(second->remark, command.remark);
    EXPECT_EQ(second->body, command.body);
    EXPECT_EQ(second->serialize_type, command.serialize_type);
    EXPECT_EQ(FieldsOf(second->ext), FieldsOf(command.ext));
    // The body is the frame's own last bytes, untouched.
    EXPECT_TRUE(frame.bytes.ends_with(command.body));
  });
  EXPECT_GT(count, 100u);
}

// What the captures were made for is in them.
TEST(GoldenCaptures, DelaysBroadcastsAndEveryKindOfAnswerAreThere) {
  std::set<std::int32_t> asked;
  std::size_t delays = 0;
  std::size_t broadcasts = 0;
  std::set<std::int32_t> pulls;
  ForEachFrame([&](const Frame& frame, const Command& command) {
    if (!command.is_response()) asked.insert(frame.code);
    const bool is_send = frame.direction == "request" && frame.code == kSendMessageV2;
    const std::string_view properties = is_send ? command.ext.Find("i").value_or("") : "";
    delays += properties.find("DELAY\x01") != std::string_view::npos ? 1 : 0;
    Result<HeartbeatData> heartbeat = HeartbeatData();
    if (frame.direction == "request" && frame.code == kHeartBeat) {
      heartbeat = HeartbeatData::Decode(command.body);
    }
    ASSERT_TRUE(heartbeat.ok()) << heartbeat.status();
    for (const ConsumerData& consumer : heartbeat->consumers) {
      broadcasts += consumer.message_model == MessageModel::kBroadcasting ? 1 : 0;
    }
    if (frame.direction == "answer" && frame.code == kPullMessage) pulls.insert(command.code);
  });
  for (const std::int32_t code :
       {kSendBatchMessage, kConsumerSendMsgBack, kLockBatchMq, kSearchOffsetByTimestamp,
        kViewMessageById, kInvokeBrokerToResetOffset, kInvokeBrokerToGetConsumerStatus,
        kGetConsumerStatusFromClient, kSendReplyMessageV2, kPushReplyMessageToClient}) {
    EXPECT_TRUE(asked.contains(code)) << RequestCodeName(code);
  }
  EXPECT_GE(delays, 3u);
  EXPECT_GE(broadcasts, 3u);
  EXPECT_TRUE(pulls.contains(kSuccess)) << testing::PrintToString(pulls);
  EXPECT_TRUE(pulls.contains(kPullNotFound)) << testing::PrintToString(pulls);
}

// Clients differ in what they put into these most. The C++ client batches with SEND_MESSAGE.
TEST(GoldenCaptures, BatchesAndSendBacksAreThereOfEveryClientThatHasThem) {
  const std::map<std::int32_t, std::vector<std::string>> clients = {
      {kSendBatchMessage, {"java-json", "java-4.9.8", "java-5.5.0", "go"}},
      {kConsumerSendMsgBack, {"java-json", "java-4.9.8", "java-5.5.0", "go", "node", "python"}},
      {kLockBatchMq, {"java-json", "java-4.9.8", "java-5.5.0", "go", "python", "spring"}}};
  for (const auto& [code, having] : clients) {
    for (const std::string& client : having) {
      std::set<std::string> directions;
      for (const Frame& frame : FramesOf(client)) {
        if (frame.code == code) directions.insert(frame.direction);
      }
      EXPECT_EQ(directions, (std::set<std::string>{"answer", "request"}))
          << client << " " << RequestCodeName(code);
    }
  }
}

TEST(GoldenCaptures, EveryHeaderIsUnderstoodAndWrittenAgain) {
  std::set<std::pair<std::string, std::int32_t>> seen;
  ForEachFrame([&](const Frame& frame, const Command& command) {
    const auto found = HeaderTrips().find({frame.direction, frame.code});
    const bool failed = command.is_response() && command.code != kSuccess;
    if (found == HeaderTrips().end() || failed) return;
    seen.insert(found->first);
    const auto again = found->second(command.ext);
    ASSERT_TRUE(again.ok()) << again.status();
    const Fields ours = FieldsOf(*again);
    for (const auto& [key, value] : FieldsOf(command.ext)) {
      const auto kept = ours.find(key);
      if (kept != ours.end()) {
        EXPECT_PRED2(SameText, value, kept->second) << key;
      } else if (!value.empty()) {
        EXPECT_TRUE(IsUnread(frame, key)) << key << "=" << value;
      }
    }
  });
  EXPECT_GE(seen.size(), 20u);
}

// ---- bodies -------------------------------------------------------------------------------------

using BodyTrip = std::function<Result<std::string>(std::string_view)>;

template <typename Body>
Result<std::string> TripBody(std::string_view text) {
  const auto body = Body::Decode(text);
  if (!body.ok()) return body.status();
  return body->Encode();
}

const std::map<std::pair<std::string, std::int32_t>, BodyTrip>& BodyTrips() {
  static const std::map<std::pair<std::string, std::int32_t>, BodyTrip> trips = {
      {{"answer", kGetRouteInfoByTopic}, TripBody<TopicRouteData>},
      {{"answer", kGetBrokerClusterInfo}, TripBody<ClusterInfo>},
      {{"request", kHeartBeat}, TripBody<HeartbeatData>},
      {{"request", kLockBatchMq}, TripBody<LockBatchRequest>},
      {{"answer", kLockBatchMq}, TripBody<LockBatchResponse>},
      {{"request", kUnlockBatchMq}, TripBody<LockBatchRequest>},
      {{"answer", kGetConsumerListByGroup}, TripBody<ConsumerIdList>},
      {{"answer", kInvokeBrokerToResetOffset}, TripBody<ResetOffsetBody>},
  };
  return trips;
}

// Members that are read by nobody here.
const std::set<std::string> kUnreadMembers = {"filterServerTable",  "topicQueueMappingByBroker",
                                              "enableActingMaster", "zoneName",
                                              "filterClassSource",  "filterMode",
                                              "unitMode",           "subVersion",
                                              "topicSynFlag"};

std::string TextOf(const Json& value) {
  JsonWriter writer;
  value.WriteTo(&writer);
  return writer.Take();
}

// C++ clients send the ordinals of enums (wire.md §4.1).
bool IsOrdinalOf(const std::string& path, const Json& theirs, const std::string& ours) {
  const auto ordinal = static_cast<int>(theirs.AsInt64(-1));
  if (path.ends_with(".consumeType")) {
    return ours == ConsumeTypeName(static_cast<ConsumeType>(ordinal));
  }
  if (path.ends_with(".messageModel")) {
    return ours == MessageModelName(static_cast<MessageModel>(ordinal));
  }
  return path.ends_with(".consumeFromWhere") &&
         ours == ConsumeFromWhereName(static_cast<ConsumeFromWhere>(ordinal));
}

// What `theirs` says and `ours` does not, by path.
void Missing(const Json& theirs, const Json& ours, const std::string& path,
             std::vector<std::string>* missing) {
  if (theirs.is_object()) {
    for (const Json::Member& member : theirs.members()) {
      const auto found =
          std::find_if(ours.members().begin(), ours.members().end(), [&](const Json::Member& one) {
            if (member.key_object.is_null()) return one.key == member.key;
            return TextOf(one.key_object) == TextOf(member.key_object);
          });
      if (found != ours.members().end()) {
        Missing(member.value, found->value, path + "." + member.key, missing);
      } else if (!kUnreadMembers.contains(member.key)) {
        missing->push_back(path + "." + member.key + "=" + TextOf(member.value));
      }
    }
  } else if (theirs.is_array()) {
    for (const Json& item : theirs.items()) {
      const bool kept =
          std::any_of(ours.items().begin(), ours.items().end(), [&](const Json& candidate) {
            std::vector<std::string> inner;
            Missing(item, candidate, path, &inner);
            return inner.empty();
          });
      if (!kept) missing->push_back(path + "[]=" + TextOf(item));
    }
  } else if (theirs.AsString() != ours.AsString() && TextOf(theirs) != TextOf(ours) &&
             !IsOrdinalOf(path, theirs, ours.AsString())) {
    missing->push_back(path + "=" + TextOf(theirs) + ", not " + TextOf(ours));
  }
}

TEST(GoldenCaptures, EveryBodyIsUnderstoodAndWrittenAgain) {
  std::set<std::pair<std::string, std::int32_t>> seen;
  ForEachFrame([&](const Frame& frame, const Command& command) {
    const auto found = BodyTrips().find({frame.direction, frame.code});
    if (found == BodyTrips().end() || command.body.empty()) return;
    seen.insert(found->first);
    const auto again = found->second(command.body);
    ASSERT_TRUE(again.ok()) << again.status();
    const auto theirs = Json::Parse(command.body);
    const auto ours = Json::Parse(*again);
    ASSERT_TRUE(theirs.ok() && ours.ok()) << *again;
    std::vector<std::string> missing;
    Missing(*theirs, *ours, "", &missing);
    EXPECT_TRUE(missing.empty()) << testing::PrintToString(missing) << "\n" << *again;
  });
  EXPECT_GE(seen.size(), 6u);
}

}  // namespace
}  // namespace triad::remoting
