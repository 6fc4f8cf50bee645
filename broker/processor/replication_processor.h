// ReplicationProcessor: this project's own requests about the replication group: its status
// (TRIAD_GROUP_STATUS, every peer about itself), leadership transfer (TRIAD_TRANSFER_LEADER),
// changes of the membership (TRIAD_CHANGE_MEMBERSHIP), and the log as it stands on this peer's disk
// (TRIAD_LOG_*).
//
// Described in docs/operations.md. Thread: safe on every thread; the log is read on a reader
// thread.

#pragma once

#include <functional>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/service/log_reader.h"
#include "broker/service/log_repair.h"
#include "broker/service/replication_status.h"

namespace triad::broker {

class ReplicationProcessor {
 public:
  ReplicationProcessor(BrokerContext& context, const ReplicationStatus& status, LogReader& log,
                       LogRepair& repair)
      : context_(context), status_(status), log_(log), repair_(repair) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnTransfer(const RequestPtr& request, const Reply& reply);
  void OnChange(const RequestPtr& request, const Reply& reply);
  remoting::Command Digest(const remoting::Command& request) const;
  remoting::Command Records(const remoting::Command& request) const;
  remoting::Command Bytes(const remoting::Command& request) const;
  void OnRepair(const RequestPtr& request, const Reply& reply);
  // `work` on a reader thread.
  void Read(const RequestPtr& request, const Reply& reply,
            std::function<remoting::Command(const remoting::Command&)> work);

  BrokerContext& context_;
  const ReplicationStatus& status_;
  LogReader& log_;
  LogRepair& repair_;
};

}  // namespace triad::broker
