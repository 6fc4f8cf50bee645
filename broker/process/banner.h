// What a starting broker says about itself, in words.
//
// Pure.

#pragma once

#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "common/status.h"

namespace triad::broker {

struct BannerFacts {
  std::string address_how;         // how brokerIP1 was chosen
  std::string address_candidates;  // others; empty: none
};
std::vector<std::string> BannerLines(const BrokerConfig& config, const BannerFacts& facts);
std::string BootLineOf(const BrokerConfig& config);

// A listener's error, with what the port is for and which option sets it.
Status ExplainListenError(const BrokerConfig& config, const Status& error);
Status ExplainMetricsError(const BrokerConfig& config, const Status& error);

}  // namespace triad::broker
