// Metrics: what exportMetrics writes of the brokers of a cluster: their machine, their load, their
// clients, and totals.
//
// Blocking. Thread: main. Source: behaviour of the original's exportMetrics (5.3.3).

#pragma once

#include <string>

#include "bin/admin/verbs.h"

namespace triad::admin {

// Of the leaders of --clusterName. Errors: kNotFound, and what the brokers say.
Result<std::string> MetricsJson(const Given& given, Session* session);

}  // namespace triad::admin
