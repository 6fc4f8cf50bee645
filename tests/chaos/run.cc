#include "tests/chaos/run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/chaos/foreign_load.h"
#include "tests/chaos/history_checker.h"
#include "triad/admin.h"

namespace triad::chaos {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kComesBack{90};
constexpr seconds kConsumersCatchUp{120};
constexpr seconds kDrain{900};
// Among other kinds kills are dealt between the turns as well: a turn of every kind takes minutes,
// and an hour is to have a thousand of them.
constexpr int kKillsPerHour = 1200;
constexpr int kKillsPlannedPerHour = 1000;
constexpr int kTriesOfAFault = 3;
constexpr std::chrono::nanoseconds kRoundOfOneKind = seconds(30);

// Everything is read six times afterwards: a long run sends more slowly.
milliseconds BetweenSends(int seconds_run) {
  return milliseconds(seconds_run <= 300 ? 2 : seconds_run <= 1200 ? 8 : 20);
}

std::string DeadTopic() {
  return std::string("%DLQ%") + kFreeGroup;
}

}  // namespace

// The original knows no linearizable offsets and no fencing: its small objects are not asked for.
std::vector<DrainTopic> Run::Topics() const {
  std::vector<DrainTopic> topics{{kFreeTopic, kTopicQueues}, {kOrderedTopic, kTopicQueues}};
  if (!options_.original) topics.push_back({kObjectTopic, kObjectQueues});
  if (history_ && history_->DeadOf(kFreeGroup) > 0) {  // there since the first one
    topics.push_back({DeadTopic(), 1});
    topics.push_back({std::string("%RETRY%") + kFreeGroup, 1});
  }
  return topics;
}

Run::~Run() {
  load_.reset();
  objects_.reset();
  world_.reset();
  cluster_.reset();
  disks_.reset();
  layout_.reset();
}

Status Run::ChooseNemeses() {
  for (const std::string& name : options_.nemeses) {
    bool known = name == "all";
    for (const Nemesis& nemesis : Nemeses()) {
      if (name != nemesis.name && (name != "all" || nemesis.measures)) continue;
      if (options_.original && (nemesis.name == "member" || nemesis.name == "transfer")) {
        if (name == "all") continue;
        return Status::InvalidArgument("no nemesis " + name + " for the original: it has no such " +
                                       "command");
      }
      known = true;
      nemeses_.push_back(&nemesis);
    }
    if (known) continue;
    std::string names = "all";
    for (const Nemesis& nemesis : Nemeses()) names += " " + std::string(nemesis.name);
    return Status::InvalidArgument("unknown nemesis '" + name + "'; there are: " + names);
  }
  if (options_.loopback) {
    std::erase_if(nemeses_, [](const Nemesis* nemesis) {
      if (nemesis->needs_layout) std::cerr << "chaos: no " << nemesis->name << " on the loopback\n";
      return nemesis->needs_layout;
    });
  }
  if (nemeses_.empty()) return Status::InvalidArgument("no nemesis is left; say --nemesis LIST");
  for (const Nemesis* nemesis : nemeses_) {
    needs_disks_ = needs_disks_ || nemesis->needs_disks;
    needs_clocks_ = needs_clocks_ || nemesis->name == "clock";
  }
  return Status::Ok();
}

// The machine lacks something. Unless the run may do without, that ends it; else what needs it is
// replaced by kills, and the report says so.
Status Run::Without(const std::string& what, bool Nemesis::*needs) {
  const std::string text = "MISSING ON THIS MACHINE: " + what;
  if (!options_.degrade) {
    return Status::Unsupported(text +
                               "; --degrade deals kills instead, --loopback needs neither root nor "
                               "namespaces");
  }
  std::cerr << "chaos: " << text << "\n";
  degraded_.push_back(text);
  for (const Nemesis*& nemesis : nemeses_) {
    if (nemesis->*needs) nemesis = &Nemeses().front();
  }
  return Status::Ok();
}

Status Run::BuildHosts() {
  hosts_.resize(3);
  if (!options_.loopback) {
    auto layout = Layout::Build(static_cast<int>(1 + static_cast<unsigned>(::getpid()) % 254));
    if (!layout.ok()) {
      TRIAD_RETURN_IF_ERROR(
          Without("no network namespaces: " + layout.status().ToString(), &Nemesis::needs_layout));
    } else {
      layout_ = std::move(*layout);
      TRIAD_RETURN_IF_ERROR(layout_->Enter("c"));
      namesrv_host_ = {layout_->AddressOf("ns"), layout_->WrapperOf("ns"), "", ""};
    }
  }
  if (needs_disks_) {
    auto disks = Disks::Mount(options_.program_dir + "/triad-crashfs", options_.work_dir, 3);
    if (!disks.ok()) {
      TRIAD_RETURN_IF_ERROR(Without("no disks that can lose power: " + disks.status().ToString(),
                                    &Nemesis::needs_disks));
    } else {
      disks_ = std::move(*disks);
    }
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const std::string name = "n" + std::to_string(i);
    if (layout_) hosts_[i] = {layout_->AddressOf(name), layout_->WrapperOf(name), "", ""};
    if (disks_) hosts_[i].store_dir = disks_->StoreOf(i);
    if (!needs_clocks_) continue;
    clock_files_.push_back(options_.work_dir + "/clock-" + name);
    std::ofstream(clock_files_.back(), std::ios::binary) << std::string(16, '\0');
    for (const std::string& word : {std::string("env"), "TRIAD_CLOCK_FILE=" + clock_files_.back(),
                                    "LD_PRELOAD=" + options_.library_dir + "/libtriad-fault.so"}) {
      hosts_[i].wrapper.push_back(word);
    }
  }
  return Status::Ok();
}

Status Run::StartCluster() {
  LocalClusterOptions options;
  options.program_dir = options_.program_dir;
  options.conf_dir = options_.conf_dir;
  options.work_dir = options_.work_dir;
  options.namesrv_host = namesrv_host_;
  options.hosts = hosts_;
  options.overrides = options_.broker_keys;
  if (const auto ip = options.overrides.find("leaderIP"); ip != options.overrides.end()) {
    const bool member = std::ranges::any_of(
        nemeses_, [](const Nemesis* nemesis) { return nemesis->name == "member"; });
    if (!layout_ || member) {
      return Status::InvalidArgument(
          "leaderIP needs network namespaces, and no member: it runs two peers on one host");
    }
    if (ip->second == "any") ip->second = layout_->FreeAddress();
  }
  options.overrides.try_emplace("mappedFileSizeCommitLog", std::to_string(8 << 20));
  options.overrides.try_emplace("shutdownWaitTimeSeconds", "3");
  // A peer whose disk is full must not forget what is read back afterwards.
  options.overrides.try_emplace("cleanFileForciblyEnable", "false");
  // Reading everything back must not take longer than the faults.
  for (const char* where : {"Memory", "Disk"}) {
    options.overrides[std::string("maxTransferBytesOnMessageIn") + where] = "1048576";
    options.overrides[std::string("maxTransferCountOnMessageIn") + where] = "1000";
  }
  if (options_.original) {  // else its followers send every reader to the leader
    options.overrides.try_emplace("slaveReadEnable", "true");
    options.overrides.try_emplace("flushDiskType", "SYNC_FLUSH");
    options.overrides.try_emplace("mapedFileSizeConsumeQueue", "600000");
  }
  auto cluster = LocalCluster::Start(options);
  if (!cluster.ok()) return cluster.status();
  cluster_ = std::move(*cluster);
  return CreateTopics();
}

Status Run::CreateTopics() {
  client::ClientOptions options;
  options.namesrv_address = cluster_->namesrv_address();
  options.instance_name = "setup";
  client::Admin admin(options);
  TRIAD_RETURN_IF_ERROR(admin.Start());
  for (const DrainTopic& topic : Topics()) {
    client::TopicSettings settings;
    settings.name = topic.name;
    settings.read_queues = settings.write_queues = topic.queues;
    TRIAD_RETURN_IF_ERROR(admin.UpdateTopic(settings));
  }
  std::vector<std::string> groups{"G-orderly", kFreeGroup};
  for (int i = 0; i < 8; ++i) {
    groups.push_back("G-reg" + std::to_string(i));
    groups.push_back("G-lock" + std::to_string(i));
  }
  for (const std::string& group : groups) {
    client::GroupSettings settings;
    settings.name = group;
    TRIAD_RETURN_IF_ERROR(admin.UpdateGroup(settings));
  }
  return Status::Ok();
}

// The original takes far longer to be whole again between two faults, a stock client to follow.
int Run::Slower() const {
  return options_.original || !options_.client_program.empty() ? 5 : 1;
}

// Kills until there are as many as should have been by now.
void Run::CatchUpWithKills(std::int64_t begin_ns, std::int64_t end_ns) {
  const auto is_kill = [](const Nemesis* nemesis) { return nemesis->name == "kill"; };
  if (std::none_of(nemeses_.begin(), nemeses_.end(), is_kill)) return;
  bool killed = false;
  while (NowNs() < end_ns && !world_->stopped()) {
    const std::int64_t ran_s = (NowNs() - begin_ns) / 1'000'000'000;
    const std::int64_t due = ran_s * kKillsPerHour / 3600 / Slower();
    if (world_->CountOf("kill") >= due) break;
    StrikeKill(world_.get());
    killed = true;
  }
  if (killed) world_->AllUp(kComesBack);
}

void Run::Strike() {
  const std::int64_t begin_ns = NowNs();
  const std::int64_t end_ns = begin_ns + std::int64_t{options_.seconds} * 1'000'000'000;
  std::int64_t said_ns = begin_ns;
  std::vector<const Nemesis*> bag;  // each once, in random order, again and again
  // The first round comes to its end, however short the run is to be: of each kind one is planned.
  const std::int64_t last_ns = end_ns + kRoundOfOneKind.count() * std::ssize(nemeses_);
  bool first_round = true;
  const auto is_over = [&] { return NowNs() >= (first_round ? last_ns : end_ns); };
  while (!is_over() && !world_->stopped()) {
    if (bag.empty()) {
      bag = nemeses_;
      for (std::size_t i = bag.size(); i > 1; --i) {
        std::swap(bag[i - 1], bag[world_->random().Below(i)]);
      }
    }
    const Nemesis* const nemesis = bag.back();
    bag.pop_back();
    // What had no effect is dealt again, so that a run does not end with less than was planned.
    const std::string kind(nemesis->name);
    const int before = world_->CountOf(kind);
    for (int tries = 0; tries < kTriesOfAFault && world_->CountOf(kind) == before; ++tries) {
      if (is_over() || world_->stopped()) break;
      nemesis->strike(world_.get());
    }
    first_round = first_round && !bag.empty();
    // Before the next kind: all there, or two faults would add up to more than is promised.
    if (nemeses_.size() > 1) {
      world_->AllUp(kComesBack);
      CatchUpWithKills(begin_ns, end_ns);
    }
    if (NowNs() - said_ns < 10'000'000'000) continue;
    said_ns = NowNs();
    std::cerr << "chaos: " << (said_ns - begin_ns) / 1'000'000'000 << " s, " << history_->acked()
              << " sends acknowledged\n";
  }
}

void Run::HealAll() {
  if (layout_) {
    const Status healed = layout_->Heal();
    if (!healed.ok()) world_->Problem(healed.ToString());
  }
  for (std::size_t i = 0; disks_ && i < 3; ++i) {
    const Result<std::string> healed = disks_->Order(i, "heal");
    if (!healed.ok()) world_->Problem(healed.status().ToString());
  }
  world_->AllUp(kComesBack);
  const std::int64_t since_ns = NowNs();
  if (!world_->WaitForAcks(since_ns, kComesBack)) {
    world_->Problem("some client has nothing acknowledged after healing");
  }
}

// What rotted below a checkpoint is found when it is read; the alarm asks for this command.
void Run::RepairRot() {
  const Status repaired = world_->Admin({"verifyLog", "--repair"}, kComesBack);
  if (!repaired.ok()) world_->Problem("the log was not repaired: " + repaired.ToString());
}

Status Run::WaitForConsumers() {
  client::PullConsumerOptions options;
  options.client.namesrv_address = cluster_->namesrv_address();
  options.client.instance_name = "progress";
  client::PullConsumer reader(options);
  TRIAD_RETURN_IF_ERROR(reader.Start());
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(kConsumersCatchUp).count();
  for (const char* topic : {kFreeTopic, kOrderedTopic}) {
    std::uint64_t stored = 0;
    while (NowNs() < end_ns && !world_->stopped()) {
      const Result<std::uint64_t> messages =
          Drain::MessagesIn(&reader, topic, kTopicQueues, cluster_->broker_name());
      if (messages.ok()) stored = *messages;
      if (messages.ok() && history_->DeliveredOf(topic) >= stored) break;
      world_->Wait(milliseconds(200));
    }
    if (history_->DeliveredOf(topic) < stored) {
      world_->Problem(std::string("the consumers of ") + topic + " got " +
                      std::to_string(history_->DeliveredOf(topic)) + " of " +
                      std::to_string(stored) + " messages");
    }
  }
  WaitForDeadLetters(&reader, end_ns);
  return Status::Ok();
}

// What the group refused for the last time is to be in its dead letters before anybody looks.
void Run::WaitForDeadLetters(client::PullConsumer* reader, std::int64_t end_ns) {
  if (options_.original) return;  // nobody may ask its dead letter topic for its maximum
  const std::uint64_t wanted = history_->DeadOf(kFreeGroup);
  std::uint64_t stored = 0;
  while (stored < wanted && NowNs() < end_ns && !world_->stopped()) {
    const Result<std::uint64_t> messages =
        Drain::MessagesIn(reader, DeadTopic(), 1, cluster_->broker_name());
    if (messages.ok()) stored = *messages;
    if (stored < wanted) world_->Wait(milliseconds(200));
  }
  if (stored < wanted) {
    world_->Problem(std::string(kFreeGroup) + " has " + std::to_string(stored) + " of " +
                    std::to_string(wanted) + " dead letters");
  }
}

Status Run::Judge() {
  TRIAD_RETURN_IF_ERROR(history_->Flush());
  if (!options_.client_program.empty()) {
    TRIAD_RETURN_IF_ERROR(SortHistory(options_.work_dir + "/history.jsonl"));
  }
  std::ifstream in(options_.work_dir + "/history.jsonl");
  Result<Verdict> verdict = CheckHistory(in);
  if (!verdict.ok()) return verdict.status();
  verdict_ = std::move(*verdict);
  return Status::Ok();
}

void Run::CountMissing(int seconds_run) {
  for (const Nemesis* nemesis : nemeses_) {
    // Alone: its own rate. Among others: they take turns, and a turn is some seconds.
    const int count = static_cast<int>(nemeses_.size());
    int planned =
        count == 1 ? nemesis->planned_per_minute * seconds_run / 60 : seconds_run / (14 * count);
    if (count > 1 && nemesis->name == "kill") planned = seconds_run * kKillsPlannedPerHour / 3600;
    planned = std::max(planned / Slower(), 1);
    const int fired = world_->CountOf(std::string(nemesis->name));
    if (fired >= planned) continue;
    missing_.push_back(std::string(nemesis->name) + " took effect " + std::to_string(fired) +
                       " times, planned were " + std::to_string(planned));
  }
}

Status Run::StartLoad() {
  const milliseconds between = BetweenSends(options_.seconds);
  if (options_.client_program.empty()) {
    load_ = std::make_unique<Load>(cluster_->namesrv_address(), cluster_->broker_name(),
                                   history_.get(), options_.seed, between);
  } else {
    // A stock client finds another leader at its next poll of the routes, 30 s apart.
    world_->UsePatience(seconds(90));
    load_ = std::make_unique<ForeignLoad>(
        std::vector<std::string>{options_.client_program, cluster_->namesrv_address(),
                                 cluster_->broker_name(), std::to_string(options_.seed),
                                 std::to_string(between.count())},
        options_.work_dir + "/clients.log", history_.get());
  }
  TRIAD_RETURN_IF_ERROR(load_->Start());
  const auto addresses = [this] {
    std::vector<std::string> all;
    for (const LocalBroker& broker : cluster_->brokers()) all.push_back(broker.client_address);
    return all;
  };
  if (options_.original) return Status::Ok();
  objects_ = std::make_unique<ObjectLoad>(cluster_->namesrv_address(), cluster_->broker_name(),
                                          addresses(), history_.get(), options_.seed);
  objects_->Start();
  world_->UseAdmin(options_.program_dir + "/triad-admin",
                   [this, addresses] { objects_->UseAddresses(addresses()); });
  return Status::Ok();
}

Status Run::StopLoad() {
  TRIAD_RETURN_IF_ERROR(load_->StopSending());
  if (objects_) objects_->Stop();
  world_->Wait(2 * kLongestDelay);  // what waits in a delay level comes to its queue
  TRIAD_RETURN_IF_ERROR(WaitForConsumers());
  return load_->StopConsuming();
}

Status Run::Execute() {
  TRIAD_RETURN_IF_ERROR(ChooseNemeses());
  std::filesystem::create_directories(options_.work_dir);
  if (!std::filesystem::is_empty(options_.work_dir)) {  // old stores name old addresses
    return Status::InvalidArgument(options_.work_dir + " is not empty");
  }
  TRIAD_RETURN_IF_ERROR(BuildHosts());
  auto history = HistoryWriter::Create(options_.work_dir + "/history.jsonl");
  if (!history.ok()) return history.status();
  history_ = std::move(*history);
  TRIAD_RETURN_IF_ERROR(StartCluster());
  world_ = std::make_unique<World>(cluster_.get(), layout_.get(), disks_.get(), history_.get(),
                                   options_.seed);
  world_->UseClocks(clock_files_);
  world_->set_alone(nemeses_.size() == 1);
  TRIAD_RETURN_IF_ERROR(StartLoad());
  Strike();
  CountMissing(options_.seconds);
  std::cerr << "chaos: healing\n";
  HealAll();
  TRIAD_RETURN_IF_ERROR(StopLoad());
  if (world_->counts().contains("rot") && !options_.original) RepairRot();
  std::cerr << "chaos: reading everything on every peer\n";
  const Status drained = Drain(cluster_.get(), Topics(), history_.get()).Run(kDrain);
  if (!drained.ok()) world_->Problem(drained.ToString());
  return Judge();
}

std::string Run::Report() const {
  std::string text = ReportOf(verdict_);
  for (const auto& [kind, count] : world_->counts()) {
    text += "fault " + kind + ": " + std::to_string(count) + "\n";
  }
  for (const std::string& problem : world_->problems()) text += "PROBLEM " + problem + "\n";
  for (const std::string& degraded : degraded_) {
    text += degraded + ": kills were dealt instead\n";
  }
  for (const std::string& missing : missing_) text += "MISSING " + missing + "\n";
  if (verdict_.unknown * 2 > verdict_.attempts) {
    text += "note: more than half of the sends have an unknown outcome\n";
  }
  return text;
}

std::string Run::LastLine() const {
  const int kills = world_->CountOf("kill") + world_->CountOf("failover");
  return "chaos: seed=" + std::to_string(options_.seed) +
         " acked=" + std::to_string(verdict_.acked) + " " + SummaryOf(verdict_) +
         " kills=" + std::to_string(kills);
}

}  // namespace triad::chaos
