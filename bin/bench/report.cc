#include "bin/bench/report.h"

#include <cstdio>
#include <utility>

#include "remoting/json.h"

namespace triad::bench {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};

double Milliseconds(std::uint64_t micros) {
  return static_cast<double>(micros) / 1000;
}

void AddNumber(const char* key, double value, int decimals, remoting::JsonWriter* writer) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  writer->Key(key).Raw(text);
}

void AddUsage(const LoadReport& report, remoting::JsonWriter* writer) {
  const UsageDelta& usage = report.usage;
  AddNumber("client_cpu_s_per_million", report.per_million(usage.own_cpu_s), 2, writer);
  AddNumber("disk_flushes_before_per_s", report.flushes_before_per_s, 1, writer);
  AddNumber("disk_flushes_per_s", usage.flushes_per_s, 1, writer);
  if (!usage.knows_servers) return;
  AddNumber("server_cpu_cores", usage.seconds > 0 ? usage.server_cpu_s / usage.seconds : 0, 3,
            writer);
  AddNumber("server_cpu_s_per_million", report.per_million(usage.server_cpu_s), 2, writer);
  writer->Key("servers").BeginArray();
  for (const ServerProcess& server : usage.servers) {
    writer->BeginObject();
    AddNumber("cpu_s", server.cpu_s, 2, writer);
    writer->Key("name").String(server.name);
    writer->Key("pid").Int(server.pid);
    AddNumber("rss_anon_mib", server.rss_anon_mib, 1, writer);
    AddNumber("rss_file_mib", server.rss_file_mib, 1, writer);
    writer->EndObject();
  }
  writer->EndArray();
}

void AddChecks(const LoadReport& report, remoting::JsonWriter* writer) {
  if (!report.has_checks) return;
  writer->Key("verified").BeginArray();
  for (const PeerCheck& check : report.checks) {
    writer->BeginObject();
    writer->Key("damaged").Int(static_cast<std::int64_t>(check.damaged));
    writer->Key("missing").Int(static_cast<std::int64_t>(check.missing));
    writer->Key("peer").String(check.address);
    writer->Key("repeated").Int(static_cast<std::int64_t>(check.repeated));
    writer->Key("stored").Int(static_cast<std::int64_t>(check.stored));
    writer->EndObject();
  }
  writer->EndArray();
}

void PrintUsage(const LoadReport& report) {
  const UsageDelta& usage = report.usage;
  std::printf("disk: %.0f flushes/s during the load, %.0f/s in the pause before (whole machine)\n",
              usage.flushes_per_s, report.flushes_before_per_s);
  std::printf("CPU:  client %.2f s per million messages", report.per_million(usage.own_cpu_s));
  if (!usage.knows_servers) {
    std::printf("; the servers do not run on this machine\n");
    return;
  }
  std::printf(", servers %.2f s per million (%.2f cores)\n", report.per_million(usage.server_cpu_s),
              usage.seconds > 0 ? usage.server_cpu_s / usage.seconds : 0);
  for (const ServerProcess& server : usage.servers) {
    std::printf("      %s (pid %d): CPU %.2f s, RssAnon %.0f MiB, RssFile %.0f MiB\n",
                server.name.c_str(), static_cast<int>(server.pid), server.cpu_s,
                server.rss_anon_mib, server.rss_file_mib);
  }
}

}  // namespace

void PrintJson(const LoadReport& report) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("batch").Int(static_cast<std::int64_t>(report.batch));
  AddUsage(report, &writer);
  writer.Key("errors").Int(static_cast<std::int64_t>(report.errors));
  if (!report.first_error.empty()) writer.Key("first_error").String(report.first_error);
  writer.Key("inflight").Int(static_cast<std::int64_t>(report.inflight));
  AddNumber("max_ms", Milliseconds(report.latency.max()), 3, &writer);
  AddNumber("mb_per_s",
            report.seconds > 0 ? static_cast<double>(report.bytes) / report.seconds / 1e6 : 0, 2,
            &writer);
  writer.Key("messages").Int(static_cast<std::int64_t>(report.messages));
  AddNumber("msg_per_s", report.per_second(), 1, &writer);
  for (const auto& [name, fraction] : kPercentiles) {
    AddNumber((std::string(name) + "_ms").c_str(),
              Milliseconds(report.latency.Percentile(fraction)), 3, &writer);
  }
  AddNumber("rate", report.rate, 0, &writer);
  AddNumber("seconds", report.seconds, 3, &writer);
  writer.Key("size").Int(static_cast<std::int64_t>(report.size));
  writer.Key("timed").String(report.timed);
  writer.Key("unanswered").Int(static_cast<std::int64_t>(report.unanswered));
  AddChecks(report, &writer);
  writer.Key("what").String(report.what);
  writer.EndObject();
  std::printf("%s\n", writer.text().c_str());
}

void PrintTable(const LoadReport& report) {
  const auto ms = [&](double fraction) {
    return Milliseconds(report.latency.Percentile(fraction));
  };
  std::printf("%-9s %10s %9s %9s %9s %9s %9s %9s %9s %10s %7s\n", report.what.c_str(), "msg/s",
              "MB/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "p99.99 ms", "max ms", "messages",
              "errors");
  std::printf("%-9s %10.0f %9.1f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %10llu %7llu\n", "",
              report.per_second(),
              report.seconds > 0 ? static_cast<double>(report.bytes) / report.seconds / 1e6 : 0,
              ms(0.5), ms(0.9), ms(0.99), ms(0.999), ms(0.9999), Milliseconds(report.latency.max()),
              static_cast<unsigned long long>(report.messages),
              static_cast<unsigned long long>(report.errors));
  std::printf("time: %s, over %.2f s\n", report.timed.c_str(), report.seconds);
  PrintUsage(report);
  if (report.errors > 0) std::printf("first error: %s\n", report.first_error.c_str());
  if (report.unanswered > 0)
    std::printf("%llu requests were never answered\n",
                static_cast<unsigned long long>(report.unanswered));
  for (const PeerCheck& check : report.checks) {
    std::printf("peer %s: %llu stored, %llu missing, %llu more than once, %llu damaged\n",
                check.address.c_str(), static_cast<unsigned long long>(check.stored),
                static_cast<unsigned long long>(check.missing),
                static_cast<unsigned long long>(check.repeated),
                static_cast<unsigned long long>(check.damaged));
  }
}

}  // namespace triad::bench
