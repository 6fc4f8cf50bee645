// What a broker does without being asked: after a change of the leader, and every second.

#include <glog/logging.h>

#include <chrono>
#include <utility>

#include "broker/broker_parts.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/processor/system_state.h"
#include "broker/service/delay_service.h"
#include "broker/service/dynamic_config.h"
#include "broker/service/long_polling.h"
#include "broker/service/runtime_info.h"
#include "broker/service/strict_topics.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kHousekeeping{1000};
constexpr int kExpireEvery = 10;  // of those
constexpr int kLookForSplitsEvery = 60;
constexpr std::chrono::milliseconds kSystemStateBudget{5000};
constexpr std::chrono::milliseconds kReleaseBudget{2500};
constexpr std::chrono::milliseconds kClaimBudget{1000};

}  // namespace

void Broker::Parts::NotifyMembers(const GroupName& group, const std::vector<Member>& members) {
  const auto group_config = store->state().FindGroup(group);
  const bool wanted = group_config ? group_config->notify_consumer_ids_changed_enable : true;
  if (!wanted || !config.notify_consumer_ids_changed) return;
  for (const Member& member : members) {
    remoting::Command notice = remoting::Command::Request(remoting::kNotifyConsumerIdsChanged);
    notice.flag |= remoting::kFlagOneway;
    notice.serialize_type = member.connection->last_serialize_type();
    notice.ext.Set("consumerGroup", group.value());
    member.connection->Send(std::move(notice));
  }
}

// Log thread: who leads has changed.
void Broker::Parts::OnLeaderChange(const dledger::LeaderInfo& change) {
  LOG(INFO) << (change.leader.empty() ? "nobody" : change.leader.value()) << " leads in term "
            << change.term << (change.ready ? "; this peer serves as the leader" : "");
  leads = change.ready;
  strict_watch->Forget();
  // The lock table stands before the first request of the term, and goes after the last one.
  if (change.ready) {
    locks->OnLeaderTerm(change.term);
    gate->OnLeaderChange(change);
    delays->OnLeaderTerm(change.term);
    timers->Schedule(std::chrono::milliseconds(0), [this] { ProposeSystemState(); });
  } else {
    gate->OnLeaderChange(change);
    locks->OnLeaderTerm(Term{});
    delays->OnLeaderTerm(Term{});
  }
  context->resets->Clear();  // they were the old leader's
  registration->OnLeaderChange(change);
  timers->Schedule(std::chrono::milliseconds(0), [this] {
    TellWhetherItLeads();
    long_polling->WakeAll();
  });
}

// Timer thread. That this peer leads is said on a majority's word only, asked for now: one that was
// paused or cut off may not know yet that there is another leader.
void Broker::Parts::TellWhetherItLeads() {
  if (!options.on_leading) return;
  if (!store->node().leader_info().ready) return options.on_leading(false);
  reads->Confirm(kClaimBudget, [this](const Status& confirmed) {
    if (!confirmed.ok()) return;  // what was said last holds until it expires
    timers->Schedule(std::chrono::milliseconds(0),
                     [this] { options.on_leading(store->node().leader_info().ready); });
  });
}

// The first leader of a group makes its system topics; every later one adds what its
// configuration asks for. What fails (a full disk) is tried again by Housekeep.
void Broker::Parts::ProposeSystemState() {
  OpenDeadLetters();
  for (StateCommand& command : DueSystemState(config, store->state())) {
    Proposal proposal;
    proposal.command = std::move(command);
    proposal.deadline = clock.MonoNow() + kSystemStateBudget;
    proposal.done = [this](const AppendOutcome& outcome) {
      if (outcome.status.ok()) return;
      system_state_is_due = true;
      LOG_EVERY_N(WARNING, 60) << "the system topics were not created: " << outcome.status
                               << "; whoever leads tries again within seconds";
    };
    store->appender().Submit(std::move(proposal));
  }
}

void Broker::Parts::OpenDeadLetters() {
  Proposal proposal;
  proposal.command = UnreadableDeadLetters(store->state());
  if (proposal.command.empty()) return;
  for (const TopicConfig& topic : proposal.command.put_topics) {
    LOG(WARNING) << "dead letters of " << topic.name << " could not be read; making it readable";
  }
  proposal.deadline = clock.MonoNow() + kSystemStateBudget;
  proposal.done = [](const AppendOutcome& outcome) {
    LOG_IF(WARNING, !outcome.status.ok()) << "not done: " << outcome.status;
  };
  store->appender().Submit(std::move(proposal));
}

void Broker::Parts::ScheduleHousekeeping() {
  timers->Schedule(kHousekeeping, [this] { Housekeep(); });
}

void Broker::Parts::Housekeep() {
  TellWhetherItLeads();
  disk->Refresh();
  info->Sample();
  context->stats->Sample(clock.MonoNow());
  if (++housekeepings % kExpireEvery == 0) {
    const TimePoint now = clock.MonoNow();
    consumers->Expire(now);
    producers->Expire(now);
    locks->ReleaseExpired(now + kReleaseBudget);
    dedup_watch.Look(store->state().DedupUses());
  }
  if (leads && housekeepings % kLookForSplitsEvery == 0) {
    strict_watch->Look();
    if (!leads) strict_watch->Forget();  // it lost leadership just now, before that look began
  }
  if (leads && system_state_is_due.exchange(false)) ProposeSystemState();
  // Refused: in a second again.
  if (dynamic_config->has_unwritten()) {
    store->node().PostReader(
        [this] { IgnoreError(dynamic_config->WriteGroup(), "it is logged, the state has it"); });
  }
  ScheduleHousekeeping();
}

}  // namespace triad::broker
