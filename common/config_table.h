// ConfigTable: one table per program says which keys its configuration file may hold. It fills a
// plain struct, checks values, prints them (-p, -m) and writes the documentation.
//
//   struct BrokerConfig {
//     std::int32_t listen_port = 10911;            // member initialisers ARE the defaults
//     std::string broker_name;
//     bool auto_create_topic = true;
//     FlushDiskType flush = FlushDiskType::kSync;
//     std::chrono::milliseconds heartbeat{50};
//   };
//   const ConfigTable<BrokerConfig>& BrokerConfigTable() {
//     static const ConfigTable<BrokerConfig> table = [] {
//       ConfigTable<BrokerConfig> t;
//       t.Section("Identity and addresses");
//       t.Int("listenPort", &BrokerConfig::listen_port,
//             {.help = "main port", .min = 1, .max = 65535, .important = true});
//       t.Text("brokerName", &BrokerConfig::broker_name,
//              {.help = "group name", .default_text = "local host name"});
//       t.Bool("autoCreateTopicEnable", &BrokerConfig::auto_create_topic, {.help = "..."});
//       t.Choice("flushDiskType", &BrokerConfig::flush,
//                {{"SYNC_FLUSH", FlushDiskType::kSync}, {"ASYNC_FLUSH", FlushDiskType::kAsync}},
//                {.help = "when a message counts as stored"});
//       t.Duration("heartBeatTimeIntervalMs", &BrokerConfig::heartbeat,
//                  {.help = "...", .min = 10, .max = 60000});
//       t.Alias("isEnableBatchPush", "enableBatchPush", "spelled without 'is'");
//       t.NoEffect({"useEpollNativeSelector", "haListenPort"});  // genuine keys, no meaning here
//       return t;
//     }();
//     return table;
//   }
//
//   BrokerConfig config;
//   ConfigReport report = BrokerConfigTable().Apply(properties, "conf/broker.conf", &config);
//   for (auto& w : report.warnings) LOG(WARNING) << w;  // report.no_effect: an INFO line, no
//   warning if (!report.ok()) { print report.faults, exit }
//
// Rules: every value is trimmed; a bad value leaves its member alone and becomes a fault; all
// faults come in one list, in file order. An unknown key is a warning with the nearest known key.
// Pure; a finished table is read-only and safe on every thread. Source: dledger.md §2.3.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/live.h"
#include "common/properties.h"

namespace triad {

// What the table says about one key, besides its name and its member.
struct KeyOptions {
  std::string help;                                             // one line
  std::int64_t min = std::numeric_limits<std::int64_t>::min();  // inclusive; numbers only
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::string unit = {};   // "bytes", "percent"; Duration fills it in
  bool important = false;  // printed by -m
  bool dynamic = false;    // may be changed while the program runs
  bool group = false;      // dynamic, and a change is one of the whole group
  std::string default_text =
      {};  // shown instead of the member initialiser when that is found at start
  // Text and Path only: returns "" when good, else what is expected.
  std::function<std::string(const std::string&)> check = {};
};

struct ConfigFault {
  std::string file;
  int line = 0;
  std::string key;
  std::string value;
  std::string expected;
  std::string ToString() const;  // "conf/broker.conf:3: listenPort=70000: expected ..."
};

struct UnknownKey {
  std::string key;
  std::string suggestion;  // empty: nothing is near
  int line = 0;
};

struct ConfigReport {
  std::vector<ConfigFault> faults;
  std::vector<std::string> warnings;  // ready to print; includes one line per unknown key
  std::vector<UnknownKey> unknown;
  std::vector<std::string> no_effect;  // genuine keys of the original that were accepted
  bool ok() const { return faults.empty(); }
};

// White space (blank, tab, form feed, CR, LF) off both ends.
std::string_view TrimBlanks(std::string_view text);
// "a; b" to its items; blanks and empty items are harmless.
std::vector<std::string> ListedItems(std::string_view list);

// The part that does not know the struct.
class ConfigTableBase {
 public:
  void Section(std::string title);  // heads the following keys in the documentation
  void Alias(std::string old_spelling, std::string key, std::string note);
  void NoEffect(std::initializer_list<std::string_view> keys);

  bool IsKnown(const std::string& key) const;  // a key, an alias or a key without effect
  // null: no such key (aliases and keys without effect have no options).
  const KeyOptions* FindOptions(const std::string& key) const;
  // As the file spells `key`: itself, or an alias of it; itself too when neither is given.
  std::string SpellingIn(const Properties& properties, const std::string& key) const;
  // "" when nothing known is near.
  std::string Nearest(const std::string& key) const;

 protected:
  struct Row {
    std::string key;
    std::string section;
    std::string type;  // for the documentation: "integer", "true/false", "A / B"
    KeyOptions options;
    bool is_path = false;
    // "" when the value was taken, else what is expected.
    std::function<std::string(void* config, const std::string& value)> set;
    std::function<std::string(const void* config)> get;
  };

  void AddRow(Row row);
  void ApplyTo(const Properties& properties, const std::string& file, void* config,
               ConfigReport* report) const;
  std::map<std::string, std::string> ValuesOf(const void* config) const;
  std::string PrintFrom(const void* config, bool only_important) const;
  std::string MarkdownFrom(const void* defaults) const;

 private:
  struct AliasRow {
    std::string key;
    std::string note;
  };
  const Row* FindRow(const std::string& key) const;
  void ApplyRow(const Row& row, const Properties::Entry& entry, const std::string& file,
                void* config, ConfigReport* report) const;
  void ReportOther(const std::string& key, int line, const std::string& file,
                   ConfigReport* report) const;

  std::vector<Row> rows_;
  std::map<std::string, std::size_t> row_of_key_;
  std::map<std::string, AliasRow> aliases_;
  std::vector<std::string> no_effect_;  // sorted
  std::string section_;
};

namespace config_internal {
// Each returns "" and sets *out, or what is expected.
std::string ParseInteger(const std::string& text, const KeyOptions& options, std::int64_t* out);
std::string ParseDouble(const std::string& text, const KeyOptions& options, double* out);
std::string ParseBool(const std::string& text, bool* out);
std::string CheckPath(const std::string& text);
std::string PrintDouble(double value);
template <typename Duration>
constexpr const char* UnitOf() {
  using Period = typename Duration::period;
  if (std::is_same_v<Period, std::milli>) return "ms";
  if (std::is_same_v<Period, std::ratio<1>>) return "s";
  if (std::is_same_v<Period, std::ratio<60>>) return "min";
  return "h";
}
}  // namespace config_internal

template <typename Config>
class ConfigTable : public ConfigTableBase {
 public:
  template <typename T>
  void Int(std::string key, T Config::*member, KeyOptions options) {
    AddInt<T>(std::move(key), member, std::move(options));
  }
  // Live members may be changed while the program runs.
  template <typename T>
  void Int(std::string key, Live<T> Config::*member, KeyOptions options) {
    options.dynamic = true;
    AddInt<T>(std::move(key), member, std::move(options));
  }
  void Double(std::string key, double Config::*member, KeyOptions options) {
    const KeyOptions limits = options;
    Add<double>(
        std::move(key), "number", std::move(options), member,
        [limits](const std::string& text, double* out) {
          return config_internal::ParseDouble(text, limits, out);
        },
        config_internal::PrintDouble);
  }

  void Bool(std::string key, bool Config::*member, KeyOptions options) {
    AddBool(std::move(key), member, std::move(options));
  }
  void Bool(std::string key, Live<bool> Config::*member, KeyOptions options) {
    options.dynamic = true;
    AddBool(std::move(key), member, std::move(options));
  }

  void Text(std::string key, std::string Config::*member, KeyOptions options) {
    const auto check = options.check;
    Add<std::string>(
        std::move(key), "text", std::move(options), member,
        [check](const std::string& text, std::string* out) {
          std::string expected = check ? check(text) : std::string();
          if (expected.empty()) *out = text;
          return expected;
        },
        [](const std::string& value) { return value; });
  }

  // A file or directory name: no control characters (a Windows path whose backslashes were read as
  // escapes).
  void Path(std::string key, std::string Config::*member, KeyOptions options) {
    const auto check = options.check;
    Add<std::string>(
        std::move(key), "path", std::move(options), member,
        [check](const std::string& text, std::string* out) {
          std::string expected = config_internal::CheckPath(text);
          if (expected.empty() && check) expected = check(text);
          if (expected.empty()) *out = text;
          return expected;
        },
        [](const std::string& value) { return value; }, /*is_path=*/true);
  }

  template <typename Enum>
  void Choice(std::string key, Enum Config::*member,
              std::vector<std::pair<std::string, std::type_identity_t<Enum>>> choices,
              KeyOptions options) {
    std::string names;
    for (const auto& choice : choices) names += (names.empty() ? "" : " / ") + choice.first;
    Add<Enum>(
        std::move(key), names, std::move(options), member,
        [choices, names](const std::string& text, Enum* out) -> std::string {
          for (const auto& choice : choices) {
            if (choice.first != text) continue;
            *out = choice.second;
            return {};
          }
          return "one of " + names;
        },
        [choices](const Enum& value) {
          for (const auto& choice : choices) {
            if (choice.second == value) return choice.first;
          }
          return std::string("?");
        });
  }

  // A whole number in the unit of the member's type.
  template <typename Rep, typename Period>
  void Duration(std::string key, std::chrono::duration<Rep, Period> Config::*member,
                KeyOptions options) {
    AddDuration<std::chrono::duration<Rep, Period>>(std::move(key), member, std::move(options));
  }
  template <typename Rep, typename Period>
  void Duration(std::string key, Live<std::chrono::duration<Rep, Period>> Config::*member,
                KeyOptions options) {
    options.dynamic = true;
    AddDuration<std::chrono::duration<Rep, Period>>(std::move(key), member, std::move(options));
  }

  ConfigReport Apply(const Properties& properties, const std::string& file, Config* config) const {
    ConfigReport report;
    ApplyTo(properties, file, config, &report);
    return report;
  }

  // "key=value\n" for each key of the table, or each important one.
  std::string Print(const Config& config) const { return PrintFrom(&config, false); }
  std::string PrintImportant(const Config& config) const { return PrintFrom(&config, true); }
  std::map<std::string, std::string> Values(const Config& config) const {
    return ValuesOf(&config);
  }

  // A page body: one table per section, with the defaults of Config{}.
  std::string Markdown() const {
    const Config defaults{};
    return MarkdownFrom(&defaults);
  }

 private:
  template <typename T>
  static constexpr std::int64_t Lowest() {
    if (std::is_unsigned_v<T>) return 0;
    return static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  template <typename T>
  static constexpr std::int64_t Highest() {
    if (sizeof(T) == sizeof(std::int64_t)) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::numeric_limits<T>::max());
  }

  template <typename T, typename Member>
  void AddInt(std::string key, Member Config::*member, KeyOptions options) {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>);
    options.min = std::max(options.min, Lowest<T>());
    options.max = std::min(options.max, Highest<T>());
    const KeyOptions limits = options;
    Add<T>(
        std::move(key), "integer", std::move(options), member,
        [limits](const std::string& text, T* out) {
          std::int64_t value = 0;
          std::string expected = config_internal::ParseInteger(text, limits, &value);
          if (expected.empty()) *out = static_cast<T>(value);
          return expected;
        },
        [](const T& value) { return std::to_string(value); });
  }
  template <typename Member>
  void AddBool(std::string key, Member Config::*member, KeyOptions options) {
    Add<bool>(std::move(key), "true / false", std::move(options), member,
              config_internal::ParseBool,
              [](const bool& value) { return std::string(value ? "true" : "false"); });
  }

  template <typename D, typename Member>
  void AddDuration(std::string key, Member Config::*member, KeyOptions options) {
    if (options.unit.empty()) options.unit = config_internal::UnitOf<D>();
    const KeyOptions limits = options;
    Add<D>(
        std::move(key), "integer", std::move(options), member,
        [limits](const std::string& text, D* out) {
          std::int64_t value = 0;
          std::string expected = config_internal::ParseInteger(text, limits, &value);
          if (expected.empty()) *out = D(value);
          return expected;
        },
        [](const D& value) { return std::to_string(value.count()); });
  }

  // Member: T or Live<T>.
  template <typename T, typename Member, typename Parse, typename Format>
  void Add(std::string key, std::string type, KeyOptions options, Member Config::*member,
           Parse parse, Format format, bool is_path = false) {
    Row row;
    row.key = std::move(key);
    row.type = std::move(type);
    row.options = std::move(options);
    row.is_path = is_path;
    row.set = [member, parse](void* config, const std::string& value) -> std::string {
      T parsed = static_cast<const Config*>(config)->*member;
      std::string expected = parse(value, &parsed);
      if (expected.empty()) static_cast<Config*>(config)->*member = std::move(parsed);
      return expected;
    };
    row.get = [member, format](const void* config) -> std::string {
      return format(static_cast<const Config*>(config)->*member);
    };
    AddRow(std::move(row));
  }
};

}  // namespace triad
