#include "remoting/codes.h"

#include <algorithm>
#include <array>
#include <span>

namespace triad::remoting {
namespace {

struct CodeName {
  std::int32_t code;
  std::string_view name;
};

// Sorted by code.
constexpr auto kRequestNames = std::to_array<CodeName>({
    {kSendMessage, "SEND_MESSAGE"},
    {kPullMessage, "PULL_MESSAGE"},
    {kQueryMessage, "QUERY_MESSAGE"},
    {kQueryBrokerOffset, "QUERY_BROKER_OFFSET"},
    {kQueryConsumerOffset, "QUERY_CONSUMER_OFFSET"},
    {kUpdateConsumerOffset, "UPDATE_CONSUMER_OFFSET"},
    {kUpdateAndCreateTopic, "UPDATE_AND_CREATE_TOPIC"},
    {kUpdateAndCreateTopicList, "UPDATE_AND_CREATE_TOPIC_LIST"},
    {kGetAllTopicConfig, "GET_ALL_TOPIC_CONFIG"},
    {kGetTopicConfigList, "GET_TOPIC_CONFIG_LIST"},
    {kGetTopicNameList, "GET_TOPIC_NAME_LIST"},
    {kUpdateBrokerConfig, "UPDATE_BROKER_CONFIG"},
    {kGetBrokerConfig, "GET_BROKER_CONFIG"},
    {kTriggerDeleteFiles, "TRIGGER_DELETE_FILES"},
    {kGetBrokerRuntimeInfo, "GET_BROKER_RUNTIME_INFO"},
    {kSearchOffsetByTimestamp, "SEARCH_OFFSET_BY_TIMESTAMP"},
    {kGetMaxOffset, "GET_MAX_OFFSET"},
    {kGetMinOffset, "GET_MIN_OFFSET"},
    {kGetEarliestMsgStoreTime, "GET_EARLIEST_MSG_STORETIME"},
    {kViewMessageById, "VIEW_MESSAGE_BY_ID"},
    {kHeartBeat, "HEART_BEAT"},
    {kUnregisterClient, "UNREGISTER_CLIENT"},
    {kConsumerSendMsgBack, "CONSUMER_SEND_MSG_BACK"},
    {kEndTransaction, "END_TRANSACTION"},
    {kGetConsumerListByGroup, "GET_CONSUMER_LIST_BY_GROUP"},
    {kCheckTransactionState, "CHECK_TRANSACTION_STATE"},
    {kNotifyConsumerIdsChanged, "NOTIFY_CONSUMER_IDS_CHANGED"},
    {kLockBatchMq, "LOCK_BATCH_MQ"},
    {kUnlockBatchMq, "UNLOCK_BATCH_MQ"},
    {kGetAllConsumerOffset, "GET_ALL_CONSUMER_OFFSET"},
    {kGetAllDelayOffset, "GET_ALL_DELAY_OFFSET"},
    {kCheckClientConfig, "CHECK_CLIENT_CONFIG"},
    {kGetClientConfig, "GET_CLIENT_CONFIG"},
    {kGetTimerCheckPoint, "GET_TIMER_CHECK_POINT"},
    {kGetTimerMetrics, "GET_TIMER_METRICS"},
    {kPutKvConfig, "PUT_KV_CONFIG"},
    {kGetKvConfig, "GET_KV_CONFIG"},
    {kDeleteKvConfig, "DELETE_KV_CONFIG"},
    {kRegisterBroker, "REGISTER_BROKER"},
    {kUnregisterBroker, "UNREGISTER_BROKER"},
    {kGetRouteInfoByTopic, "GET_ROUTEINFO_BY_TOPIC"},
    {kGetBrokerClusterInfo, "GET_BROKER_CLUSTER_INFO"},
    {kUpdateAndCreateSubscriptionGroup, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"},
    {kGetAllSubscriptionGroupConfig, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG"},
    {kGetTopicStatsInfo, "GET_TOPIC_STATS_INFO"},
    {kGetConsumerConnectionList, "GET_CONSUMER_CONNECTION_LIST"},
    {kGetProducerConnectionList, "GET_PRODUCER_CONNECTION_LIST"},
    {kWipeWritePermOfBroker, "WIPE_WRITE_PERM_OF_BROKER"},
    {kGetAllTopicListFromNameServer, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"},
    {kDeleteSubscriptionGroup, "DELETE_SUBSCRIPTIONGROUP"},
    {kGetConsumeStats, "GET_CONSUME_STATS"},
    {kDeleteTopicInBroker, "DELETE_TOPIC_IN_BROKER"},
    {kDeleteTopicInNamesrv, "DELETE_TOPIC_IN_NAMESRV"},
    {kRegisterTopicInNamesrv, "REGISTER_TOPIC_IN_NAMESRV"},
    {kGetKvListByNamespace, "GET_KVLIST_BY_NAMESPACE"},
    {kResetConsumerClientOffset, "RESET_CONSUMER_CLIENT_OFFSET"},
    {kGetConsumerStatusFromClient, "GET_CONSUMER_STATUS_FROM_CLIENT"},
    {kInvokeBrokerToResetOffset, "INVOKE_BROKER_TO_RESET_OFFSET"},
    {kInvokeBrokerToGetConsumerStatus, "INVOKE_BROKER_TO_GET_CONSUMER_STATUS"},
    {kGetTopicsByCluster, "GET_TOPICS_BY_CLUSTER"},
    {kUpdateAndCreateSubscriptionGroupList, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST"},
    {kQueryTopicConsumeByWho, "QUERY_TOPIC_CONSUME_BY_WHO"},
    {kQueryConsumeTimeSpan, "QUERY_CONSUME_TIME_SPAN"},
    {kGetSystemTopicListFromNs, "GET_SYSTEM_TOPIC_LIST_FROM_NS"},
    {kGetSystemTopicListFromBroker, "GET_SYSTEM_TOPIC_LIST_FROM_BROKER"},
    {kCleanExpiredConsumeQueue, "CLEAN_EXPIRED_CONSUMEQUEUE"},
    {kGetConsumerRunningInfo, "GET_CONSUMER_RUNNING_INFO"},
    {kQueryCorrectionOffset, "QUERY_CORRECTION_OFFSET"},
    {kConsumeMessageDirectly, "CONSUME_MESSAGE_DIRECTLY"},
    {kSendMessageV2, "SEND_MESSAGE_V2"},
    {kGetUnitTopicList, "GET_UNIT_TOPIC_LIST"},
    {kGetHasUnitSubTopicList, "GET_HAS_UNIT_SUB_TOPIC_LIST"},
    {kGetHasUnitSubUnunitTopicList, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST"},
    {kCloneGroupOffset, "CLONE_GROUP_OFFSET"},
    {kViewBrokerStatsData, "VIEW_BROKER_STATS_DATA"},
    {kCleanUnusedTopic, "CLEAN_UNUSED_TOPIC"},
    {kGetBrokerConsumeStats, "GET_BROKER_CONSUME_STATS"},
    {kUpdateNamesrvConfig, "UPDATE_NAMESRV_CONFIG"},
    {kGetNamesrvConfig, "GET_NAMESRV_CONFIG"},
    {kSendBatchMessage, "SEND_BATCH_MESSAGE"},
    {kQueryConsumeQueue, "QUERY_CONSUME_QUEUE"},
    {kQueryDataVersion, "QUERY_DATA_VERSION"},
    {kResumeCheckHalfMessage, "RESUME_CHECK_HALF_MESSAGE"},
    {kSendReplyMessage, "SEND_REPLY_MESSAGE"},
    {kSendReplyMessageV2, "SEND_REPLY_MESSAGE_V2"},
    {kPushReplyMessageToClient, "PUSH_REPLY_MESSAGE_TO_CLIENT"},
    {kAddWritePermOfBroker, "ADD_WRITE_PERM_OF_BROKER"},
    {kGetAllProducerInfo, "GET_ALL_PRODUCER_INFO"},
    {kDeleteExpiredCommitLog, "DELETE_EXPIRED_COMMITLOG"},
    {kQueryTopicsByConsumer, "QUERY_TOPICS_BY_CONSUMER"},
    {kQuerySubscriptionByConsumer, "QUERY_SUBSCRIPTION_BY_CONSUMER"},
    {kGetTopicConfig, "GET_TOPIC_CONFIG"},
    {kGetSubscriptionGroupConfig, "GET_SUBSCRIPTIONGROUP_CONFIG"},
    {kUpdateAndGetGroupForbidden, "UPDATE_AND_GET_GROUP_FORBIDDEN"},
    {kLitePullMessage, "LITE_PULL_MESSAGE"},
    {kRecallMessage, "RECALL_MESSAGE"},
    {kQueryAssignment, "QUERY_ASSIGNMENT"},
    {kSetMessageRequestMode, "SET_MESSAGE_REQUEST_MODE"},
    {kGetAllMessageRequestMode, "GET_ALL_MESSAGE_REQUEST_MODE"},
    {kGetBrokerMemberGroup, "GET_BROKER_MEMBER_GROUP"},
    {kBrokerHeartbeat, "BROKER_HEARTBEAT"},
    {kNotifyMinBrokerIdChange, "NOTIFY_MIN_BROKER_ID_CHANGE"},
    {kGetBrokerHaStatus, "GET_BROKER_HA_STATUS"},
    {kTriadGroupStatus, "TRIAD_GROUP_STATUS"},
    {kTriadTransferLeader, "TRIAD_TRANSFER_LEADER"},
    {kTriadLogDigest, "TRIAD_LOG_DIGEST"},
    {kTriadLogRecords, "TRIAD_LOG_RECORDS"},
    {kTriadLogBytes, "TRIAD_LOG_BYTES"},
    {kTriadLogRepair, "TRIAD_LOG_REPAIR"},
    {kTriadChangeMembership, "TRIAD_CHANGE_MEMBERSHIP"},
    {kPopMessage, "POP_MESSAGE"},
    {kAckMessage, "ACK_MESSAGE"},
    {kPeekMessage, "PEEK_MESSAGE"},
    {kChangeMessageInvisibleTime, "CHANGE_MESSAGE_INVISIBLETIME"},
    {kNotification, "NOTIFICATION"},
    {kPollingInfo, "POLLING_INFO"},
    {kBatchAckMessage, "BATCH_ACK_MESSAGE"},
});

// Sorted by code.
constexpr auto kResponseNames = std::to_array<CodeName>({
    {kSuccess, "SUCCESS"},
    {kSystemError, "SYSTEM_ERROR"},
    {kSystemBusy, "SYSTEM_BUSY"},
    {kRequestCodeNotSupported, "REQUEST_CODE_NOT_SUPPORTED"},
    {kFlushDiskTimeout, "FLUSH_DISK_TIMEOUT"},
    {kSlaveNotAvailable, "SLAVE_NOT_AVAILABLE"},
    {kFlushSlaveTimeout, "FLUSH_SLAVE_TIMEOUT"},
    {kMessageIllegal, "MESSAGE_ILLEGAL"},
    {kServiceNotAvailable, "SERVICE_NOT_AVAILABLE"},
    {kVersionNotSupported, "VERSION_NOT_SUPPORTED"},
    {kNoPermission, "NO_PERMISSION"},
    {kTopicNotExist, "TOPIC_NOT_EXIST"},
    {kPullNotFound, "PULL_NOT_FOUND"},
    {kPullRetryImmediately, "PULL_RETRY_IMMEDIATELY"},
    {kPullOffsetMoved, "PULL_OFFSET_MOVED"},
    {kQueryNotFound, "QUERY_NOT_FOUND"},
    {kSubscriptionParseFailed, "SUBSCRIPTION_PARSE_FAILED"},
    {kSubscriptionNotExist, "SUBSCRIPTION_NOT_EXIST"},
    {kSubscriptionNotLatest, "SUBSCRIPTION_NOT_LATEST"},
    {kSubscriptionGroupNotExist, "SUBSCRIPTION_GROUP_NOT_EXIST"},
    {kInvalidParameter, "INVALID_PARAMETER"},
    {kConsumerNotOnline, "CONSUMER_NOT_ONLINE"},
    {kConsumeMsgTimeout, "CONSUME_MSG_TIMEOUT"},
    {kNoMessage, "NO_MESSAGE"},
    {kPollingFull, "POLLING_FULL"},
    {kPollingTimeout, "POLLING_TIMEOUT"},
    {kFlowControl, "FLOW_CONTROL"},
    {kIllegalOperation, "ILLEGAL_OPERATION"},
    {kGoAway, "GO_AWAY"},
});

std::string_view Find(std::span<const CodeName> table, std::int32_t code) {
  const auto it = std::ranges::lower_bound(table, code, {}, &CodeName::code);
  return it != table.end() && it->code == code ? it->name : std::string_view("UNKNOWN");
}

}  // namespace

std::string_view RequestCodeName(std::int32_t code) {
  return Find(kRequestNames, code);
}
std::string_view ResponseCodeName(std::int32_t code) {
  return Find(kResponseNames, code);
}

}  // namespace triad::remoting
