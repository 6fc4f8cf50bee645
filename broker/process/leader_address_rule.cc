#include "broker/process/leader_address_rule.h"

#include <algorithm>
#include <array>

namespace triad::broker {
namespace {

using std::chrono::milliseconds;

// Announcements may get lost, and neighbours forget: often at first, then for as long as it leads.
constexpr std::array<milliseconds, 5> kPauses = {
    milliseconds(100), milliseconds(200), milliseconds(400), milliseconds(800), milliseconds(2000)};

}  // namespace

void LeaderAddressRule::OnLeading(bool leads, TimePoint now) {
  if (leads && now >= yields_until_) {
    if (!until_ || !leads_) {
      announce_at_ = taken_at_ = now;
      announced_ = 0;
    }
    until_ = now + kKeeps;
  } else if (!leads && leads_ && until_) {
    until_ = now + kKeeps;
  }
  leads_ = leads;
  if (!leads) {  // claims of a next leader are as they must be
    claims_ = 0;
    disputed_at_.reset();
    yields_until_ = TimePoint();
  }
}

bool LeaderAddressRule::OnClaim(TimePoint now) {
  if (!until_) return false;
  if (!leads_) {  // there is a new leader
    until_ = std::min(*until_, now + kLingers);
    return false;
  }
  // Of two that both think they lead, the former one goes.
  const milliseconds echoes = now - taken_at_ < kKeeps ? kKeeps : kEchoes;
  if (disputed_at_ && now - *disputed_at_ < echoes) return false;
  const bool repeated = disputed_at_ && now - *disputed_at_ < kDisputed;
  disputed_at_ = now;
  if (claims_ == 0 || now - first_claim_ > kRivalry) {
    claims_ = 0;
    first_claim_ = now;
  }
  if (++claims_ < kClaimsMax && !repeated) {
    announce_at_ = now;
    return false;
  }
  until_.reset();
  if (claims_ < kClaimsMax) return false;
  claims_ = 0;
  yields_until_ = now + kYields;
  return true;
}

LeaderAddressRule::Step LeaderAddressRule::At(TimePoint now) {
  if (until_ && now >= *until_) until_.reset();
  Step step;
  if (!until_) return step;
  step.has = true;
  step.next = until_;
  if (!leads_) return step;
  step.announce = now >= announce_at_;
  if (step.announce) {
    announce_at_ = now + kPauses[std::min(announced_, kPauses.size() - 1)];
    ++announced_;
  }
  step.next = std::min(*step.next, announce_at_);
  return step;
}

}  // namespace triad::broker
