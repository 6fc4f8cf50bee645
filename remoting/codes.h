// Request and response codes of the RocketMQ protocol, and their names for logs.
//
// Pure constants. Source: wire.md §2.1, §3.1, §12; admin.md §13, §14.

#pragma once

#include <cstdint>
#include <string_view>

namespace triad::remoting {

// Request codes. Spelled as the original's enum constants, in our case.
inline constexpr std::int32_t kSendMessage = 10;
inline constexpr std::int32_t kPullMessage = 11;
inline constexpr std::int32_t kQueryMessage = 12;
inline constexpr std::int32_t kQueryBrokerOffset = 13;
inline constexpr std::int32_t kQueryConsumerOffset = 14;
inline constexpr std::int32_t kUpdateConsumerOffset = 15;
inline constexpr std::int32_t kUpdateAndCreateTopic = 17;
inline constexpr std::int32_t kUpdateAndCreateTopicList = 18;
inline constexpr std::int32_t kGetAllTopicConfig = 21;
inline constexpr std::int32_t kGetTopicConfigList = 22;
inline constexpr std::int32_t kGetTopicNameList = 23;
inline constexpr std::int32_t kUpdateBrokerConfig = 25;
inline constexpr std::int32_t kGetBrokerConfig = 26;
inline constexpr std::int32_t kTriggerDeleteFiles = 27;
inline constexpr std::int32_t kGetBrokerRuntimeInfo = 28;
inline constexpr std::int32_t kSearchOffsetByTimestamp = 29;
inline constexpr std::int32_t kGetMaxOffset = 30;
inline constexpr std::int32_t kGetMinOffset = 31;
inline constexpr std::int32_t kGetEarliestMsgStoreTime = 32;
inline constexpr std::int32_t kViewMessageById = 33;
inline constexpr std::int32_t kHeartBeat = 34;
inline constexpr std::int32_t kUnregisterClient = 35;
inline constexpr std::int32_t kConsumerSendMsgBack = 36;
inline constexpr std::int32_t kEndTransaction = 37;
inline constexpr std::int32_t kGetConsumerListByGroup = 38;
inline constexpr std::int32_t kCheckTransactionState = 39;
inline constexpr std::int32_t kNotifyConsumerIdsChanged = 40;
inline constexpr std::int32_t kLockBatchMq = 41;
inline constexpr std::int32_t kUnlockBatchMq = 42;
inline constexpr std::int32_t kGetAllConsumerOffset = 43;
inline constexpr std::int32_t kGetAllDelayOffset = 45;
inline constexpr std::int32_t kCheckClientConfig = 46;
inline constexpr std::int32_t kGetClientConfig = 47;
inline constexpr std::int32_t kGetTimerCheckPoint = 60;
inline constexpr std::int32_t kGetTimerMetrics = 61;
inline constexpr std::int32_t kPutKvConfig = 100;
inline constexpr std::int32_t kGetKvConfig = 101;
inline constexpr std::int32_t kDeleteKvConfig = 102;
inline constexpr std::int32_t kRegisterBroker = 103;
inline constexpr std::int32_t kUnregisterBroker = 104;
inline constexpr std::int32_t kGetRouteInfoByTopic = 105;
inline constexpr std::int32_t kGetBrokerClusterInfo = 106;
inline constexpr std::int32_t kUpdateAndCreateSubscriptionGroup = 200;
inline constexpr std::int32_t kGetAllSubscriptionGroupConfig = 201;
inline constexpr std::int32_t kGetTopicStatsInfo = 202;
inline constexpr std::int32_t kGetConsumerConnectionList = 203;
inline constexpr std::int32_t kGetProducerConnectionList = 204;
inline constexpr std::int32_t kWipeWritePermOfBroker = 205;
inline constexpr std::int32_t kGetAllTopicListFromNameServer = 206;
inline constexpr std::int32_t kDeleteSubscriptionGroup = 207;
inline constexpr std::int32_t kGetConsumeStats = 208;
inline constexpr std::int32_t kDeleteTopicInBroker = 215;
inline constexpr std::int32_t kDeleteTopicInNamesrv = 216;
inline constexpr std::int32_t kRegisterTopicInNamesrv = 217;
inline constexpr std::int32_t kGetKvListByNamespace = 219;
inline constexpr std::int32_t kResetConsumerClientOffset = 220;
inline constexpr std::int32_t kGetConsumerStatusFromClient = 221;
inline constexpr std::int32_t kInvokeBrokerToResetOffset = 222;
inline constexpr std::int32_t kInvokeBrokerToGetConsumerStatus = 223;
inline constexpr std::int32_t kGetTopicsByCluster = 224;
inline constexpr std::int32_t kUpdateAndCreateSubscriptionGroupList = 225;
inline constexpr std::int32_t kQueryTopicConsumeByWho = 300;
inline constexpr std::int32_t kQueryConsumeTimeSpan = 303;
inline constexpr std::int32_t kGetSystemTopicListFromNs = 304;
inline constexpr std::int32_t kGetSystemTopicListFromBroker = 305;
inline constexpr std::int32_t kCleanExpiredConsumeQueue = 306;
inline constexpr std::int32_t kGetConsumerRunningInfo = 307;
inline constexpr std::int32_t kQueryCorrectionOffset = 308;
inline constexpr std::int32_t kConsumeMessageDirectly = 309;
inline constexpr std::int32_t kSendMessageV2 = 310;
inline constexpr std::int32_t kGetUnitTopicList = 311;
inline constexpr std::int32_t kGetHasUnitSubTopicList = 312;
inline constexpr std::int32_t kGetHasUnitSubUnunitTopicList = 313;
inline constexpr std::int32_t kCloneGroupOffset = 314;
inline constexpr std::int32_t kViewBrokerStatsData = 315;
inline constexpr std::int32_t kCleanUnusedTopic = 316;
inline constexpr std::int32_t kGetBrokerConsumeStats = 317;
inline constexpr std::int32_t kUpdateNamesrvConfig = 318;
inline constexpr std::int32_t kGetNamesrvConfig = 319;
inline constexpr std::int32_t kSendBatchMessage = 320;
inline constexpr std::int32_t kQueryConsumeQueue = 321;
inline constexpr std::int32_t kQueryDataVersion = 322;
inline constexpr std::int32_t kResumeCheckHalfMessage = 323;
inline constexpr std::int32_t kSendReplyMessage = 324;
inline constexpr std::int32_t kSendReplyMessageV2 = 325;
inline constexpr std::int32_t kPushReplyMessageToClient = 326;
inline constexpr std::int32_t kAddWritePermOfBroker = 327;
inline constexpr std::int32_t kGetAllProducerInfo = 328;
inline constexpr std::int32_t kDeleteExpiredCommitLog = 329;
inline constexpr std::int32_t kQueryTopicsByConsumer = 343;
inline constexpr std::int32_t kQuerySubscriptionByConsumer = 345;
inline constexpr std::int32_t kGetTopicConfig = 351;
inline constexpr std::int32_t kGetSubscriptionGroupConfig = 352;
inline constexpr std::int32_t kUpdateAndGetGroupForbidden = 353;
inline constexpr std::int32_t kLitePullMessage = 361;
inline constexpr std::int32_t kRecallMessage = 370;
inline constexpr std::int32_t kQueryAssignment = 400;
inline constexpr std::int32_t kSetMessageRequestMode = 401;
inline constexpr std::int32_t kGetAllMessageRequestMode = 402;
inline constexpr std::int32_t kGetBrokerMemberGroup = 901;
inline constexpr std::int32_t kBrokerHeartbeat = 904;
inline constexpr std::int32_t kNotifyMinBrokerIdChange = 905;
inline constexpr std::int32_t kGetBrokerHaStatus = 907;
inline constexpr std::int32_t kPopMessage = 200050;
inline constexpr std::int32_t kAckMessage = 200051;
inline constexpr std::int32_t kPeekMessage = 200052;
inline constexpr std::int32_t kChangeMessageInvisibleTime = 200053;
inline constexpr std::int32_t kNotification = 200054;
inline constexpr std::int32_t kPollingInfo = 200055;
inline constexpr std::int32_t kBatchAckMessage = 200151;
// Ours, for mqadmin dlq (broker/processor/dlq_processor.h).
inline constexpr std::int32_t kDlqProgress = 60020;
inline constexpr std::int32_t kDlqReplay = 60021;
inline constexpr std::int32_t kDlqDrop = 60022;

// This project's own, between its tools and any peer of a group (docs/operations.md).
inline constexpr std::int32_t kTriadGroupStatus = 60010;
inline constexpr std::int32_t kTriadTransferLeader = 60011;
inline constexpr std::int32_t kTriadLogDigest = 60012;
inline constexpr std::int32_t kTriadLogRecords = 60013;
inline constexpr std::int32_t kTriadLogBytes = 60014;
inline constexpr std::int32_t kTriadLogRepair = 60015;
inline constexpr std::int32_t kTriadChangeMembership = 60016;

// Response codes.
inline constexpr std::int32_t kSuccess = 0;
inline constexpr std::int32_t kSystemError = 1;
inline constexpr std::int32_t kSystemBusy = 2;
inline constexpr std::int32_t kRequestCodeNotSupported = 3;
inline constexpr std::int32_t kFlushDiskTimeout = 10;
inline constexpr std::int32_t kSlaveNotAvailable = 11;
inline constexpr std::int32_t kFlushSlaveTimeout = 12;
inline constexpr std::int32_t kMessageIllegal = 13;
inline constexpr std::int32_t kServiceNotAvailable = 14;
inline constexpr std::int32_t kVersionNotSupported = 15;
inline constexpr std::int32_t kNoPermission = 16;
inline constexpr std::int32_t kTopicNotExist = 17;
inline constexpr std::int32_t kPullNotFound = 19;
inline constexpr std::int32_t kPullRetryImmediately = 20;
inline constexpr std::int32_t kPullOffsetMoved = 21;
inline constexpr std::int32_t kQueryNotFound = 22;
inline constexpr std::int32_t kSubscriptionParseFailed = 23;
inline constexpr std::int32_t kSubscriptionNotExist = 24;
inline constexpr std::int32_t kSubscriptionNotLatest = 25;
inline constexpr std::int32_t kSubscriptionGroupNotExist = 26;
inline constexpr std::int32_t kInvalidParameter = 29;
inline constexpr std::int32_t kConsumerNotOnline = 206;
inline constexpr std::int32_t kConsumeMsgTimeout = 207;
inline constexpr std::int32_t kNoMessage = 208;
inline constexpr std::int32_t kPollingFull = 209;
inline constexpr std::int32_t kPollingTimeout = 210;
inline constexpr std::int32_t kFlowControl = 215;
inline constexpr std::int32_t kIllegalOperation = 604;
inline constexpr std::int32_t kGoAway = 1500;

// "SEND_MESSAGE_V2" for 310; "UNKNOWN" for a code without a name.
std::string_view RequestCodeName(std::int32_t code);
std::string_view ResponseCodeName(std::int32_t code);

}  // namespace triad::remoting
