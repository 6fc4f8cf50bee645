#include "tests/chaos/linearizer.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace triad::chaos {
namespace {

// A begin or an end in the list that the search walks; ends of unknown operations are not in it.
struct Entry {
  std::size_t op = 0;
  bool begins = false;
  std::size_t match = 0;  // a begin's end; 0 = none
  std::size_t previous = 0, next = 0;
};

class Search {
 public:
  Search(const ObjectModel& model, std::vector<ObjectOp> ops, const std::function<bool()>& stop)
      : model_(model), ops_(std::move(ops)), stop_(stop), done_((ops_.size() + 63) / 64) {
    BuildList();
  }

  Linearizable Run();

 private:
  struct Call {
    std::size_t entry = 0;
    ObjectState before;
  };

  void BuildList();
  void Lift(std::size_t begin);
  void Unlift(std::size_t begin);
  void Remove(std::size_t at) {
    list_[list_[at].previous].next = list_[at].next;
    list_[list_[at].next].previous = list_[at].previous;
  }
  void Restore(std::size_t at) {
    list_[list_[at].previous].next = at;
    list_[list_[at].next].previous = at;
  }
  // Two unknown operations that do the same: only the earlier one needs to be tried first.
  bool HasEarlierTwin(std::size_t op) const;
  bool IsDone(std::size_t op) const { return (done_[op / 64] >> (op % 64)) & 1; }
  void Flip(std::size_t op) { done_[op / 64] ^= std::uint64_t{1} << (op % 64); }

  const ObjectModel& model_;
  std::vector<ObjectOp> ops_;  // by begin
  const std::function<bool()>& stop_;
  std::vector<Entry> list_;  // [0] is the head and the tail of the ring
  std::vector<std::uint64_t> done_;
  std::set<std::pair<std::vector<std::uint64_t>, ObjectState>> seen_;
  std::size_t known_left_ = 0;
};

void Search::BuildList() {
  std::sort(ops_.begin(), ops_.end(),
            [](const ObjectOp& a, const ObjectOp& b) { return a.invoked_ns < b.invoked_ns; });
  struct Point {
    std::int64_t at;
    bool ends;
    std::size_t op;
  };
  std::vector<Point> points;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    points.push_back({ops_[i].invoked_ns, false, i});
    if (!ops_[i].known) continue;
    ++known_left_;
    points.push_back({std::max(ops_[i].invoked_ns, ops_[i].returned_ns), true, i});
  }
  // At the same instant begins come first: the two overlap.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tuple(a.at, a.ends, a.op) < std::tuple(b.at, b.ends, b.op);
  });
  list_.resize(points.size() + 1);
  std::vector<std::size_t> begins(ops_.size());
  for (std::size_t i = 1; i < list_.size(); ++i) {
    const Point& point = points[i - 1];
    list_[i] = {point.op, !point.ends, 0, i - 1, (i + 1) % list_.size()};
    if (!point.ends) begins[point.op] = i;
    if (point.ends) list_[begins[point.op]].match = i;
  }
  list_[0].previous = list_.size() - 1;
  list_[0].next = list_.size() > 1 ? 1 : 0;
}

void Search::Lift(std::size_t begin) {
  Remove(begin);
  if (list_[begin].match != 0) Remove(list_[begin].match);
  if (ops_[list_[begin].op].known) --known_left_;
  Flip(list_[begin].op);
}

void Search::Unlift(std::size_t begin) {
  if (list_[begin].match != 0) Restore(list_[begin].match);
  Restore(begin);
  if (ops_[list_[begin].op].known) ++known_left_;
  Flip(list_[begin].op);
}

bool Search::HasEarlierTwin(std::size_t op) const {
  const ObjectOp& mine = ops_[op];
  if (mine.known || mine.op == Op::kLock || mine.op == Op::kUnlock) return false;
  for (std::size_t i = 0; i < op; ++i) {
    if (!ops_[i].known && ops_[i].op == mine.op && ops_[i].argument == mine.argument &&
        !IsDone(i)) {
      return true;
    }
  }
  return false;
}

Linearizable Search::Run() {
  ObjectState state = model_.initial;
  std::vector<Call> calls;
  std::size_t at = list_[0].next;
  for (std::uint64_t steps = 1; known_left_ > 0; ++steps) {
    if (seen_.size() >= kMaxStates || (steps % 4096 == 0 && stop_())) return Linearizable::kUnknown;
    if (at != 0 && list_[at].begins) {
      const std::size_t op = list_[at].op;
      ObjectState after;
      if (!HasEarlierTwin(op) && model_.step(state, ops_[op], &after)) {
        Flip(op);
        const bool is_new = seen_.emplace(done_, after).second;
        Flip(op);
        if (is_new) {
          calls.push_back({at, state});
          state = after;
          Lift(at);
          at = list_[0].next;
          continue;
        }
      }
      at = list_[at].next;
      continue;
    }
    // An operation ended that has no place yet (or nothing is left to try): go back one.
    if (calls.empty()) return Linearizable::kNo;
    state = calls.back().before;
    at = calls.back().entry;
    calls.pop_back();
    Unlift(at);
    at = list_[at].next;
  }
  return Linearizable::kYes;
}

bool StepRegister(const ObjectState& before, const ObjectOp& op, ObjectState* after) {
  *after = before;
  if (op.op == Op::kCommit) {
    after->a = op.argument;
    return true;
  }
  return op.op == Op::kFetch && (!op.known || op.answer == before.a);
}

bool StepTopic(const ObjectState& before, const ObjectOp& op, ObjectState* after) {
  *after = before;
  if (op.op == Op::kGetTopic) return !op.known || op.answer == before.a;
  after->a = op.op == Op::kPutTopic ? op.argument : -1;
  return op.op == Op::kPutTopic || op.op == Op::kDropTopic;
}

bool StepMaxOffset(const ObjectState& before, const ObjectOp& op, ObjectState* after) {
  *after = before;
  if (op.known && op.answer != before.a) return false;
  if (op.op == Op::kAppend) ++after->a;
  return op.op == Op::kAppend || op.op == Op::kMax;
}

// a: holder + 1 (0 = nobody); b: the largest token that is certain; c: when the lease was last
// renewed at the earliest; d: 1 when the holder's token is unknown (larger than b).
bool StepLock(const ObjectState& before, const ObjectOp& op, ObjectState* after) {
  *after = before;
  const std::int64_t me = op.client + 1;
  if (op.op == Op::kUnlock) {
    if (before.a == me) after->a = 0;
    return true;
  }
  if (op.op != Op::kLock) return false;
  // A refusal promises nothing: a grant may be on its way to another client, and come to nothing.
  if (op.known && op.answer == 0) return true;
  const std::int64_t latest_ns = op.returned_ns + (op.known ? 0 : kLockGraceNs);
  const bool may_be_over = latest_ns - before.c >= kLockLeaseNs;
  after->a = me;
  after->c = op.invoked_ns;
  if (before.a == me) {  // a renewal, or a new holding after the lease was over
    if (!op.known) return true;
    if (op.answer == before.b && before.d == 0) return true;
    after->b = op.answer;
    after->d = 0;
    return op.answer > before.b && (before.d == 1 || may_be_over);
  }
  if (before.a != 0 && !may_be_over) return false;
  if (!op.known) {
    after->d = 1;
    return true;
  }
  after->b = op.answer;
  after->d = 0;
  return op.answer > before.b;
}

}  // namespace

ObjectModel OffsetRegister() {
  return {{-1, 0, 0, 0}, StepRegister};
}
ObjectModel TopicConfig() {
  return {{-1, 0, 0, 0}, StepTopic};
}
ObjectModel MaxOffset() {
  return {{}, StepMaxOffset};
}
ObjectModel QueueLock() {
  return {{}, StepLock};
}

Linearizable Check(const ObjectModel& model, std::vector<ObjectOp> ops,
                   const std::function<bool()>& out_of_time) {
  CHECK(model.step != nullptr);
  return Search(model, std::move(ops), out_of_time).Run();
}

}  // namespace triad::chaos
