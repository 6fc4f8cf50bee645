// Verbs: what mqadmin can do. A verb is data (name, options, an example) and a function that runs
// it; families of verbs live in a file each, which defines ...Verbs().
//
// How words become a verb and what was given for its options: parse.h. Thread: main.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bin/admin/session.h"
#include "bin/admin/table.h"

namespace triad::admin {

struct Option {
  enum class Kind : std::uint8_t {
    kText,
    kNumber,
    kCount,       // a number >= 0
    kSwitch,      // without a value
    kMaybeValue,  // a text, or none
  };
  const char* names;  // "-t,--topic"; the long name is what Given knows it by
  const char* help;
  const char* fallback = nullptr;  // when it is not given; null: it must be
  Kind kind = Kind::kText;
  const char* choices = "";  // "2|4|6"; empty: any text
};
inline constexpr auto kText = Option::Kind::kText;
inline constexpr auto kNumber = Option::Kind::kNumber;
inline constexpr auto kCount = Option::Kind::kCount;
inline constexpr auto kSwitch = Option::Kind::kSwitch;
inline constexpr auto kMaybeValue = Option::Kind::kMaybeValue;
inline constexpr const char* kYesNo = "true|false";

// What was given, or the fallback, by the option's long name. Asking for a name that the verb does
// not have is a programmer's mistake.
class Given {
 public:
  void Set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }

  const std::string& Text(std::string_view name) const;
  std::int64_t Number(std::string_view name) const;
  int Int(std::string_view name) const;  // the nearest that an int can hold
  bool Is(std::string_view name) const { return Text(name) == "true"; }
  bool Has(std::string_view name) const { return !Text(name).empty(); }
  bool json() const { return Text("output") == "json"; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

struct Verb {
  const char* name;  // "topicList"; "dlq list" stands below "dlq"
  const char* help;
  const char* example;  // its options but -n
  std::vector<Option> options;
  int (*run)(const Given&, Session*);  // the exit code
  bool until_stopped = false;          // goes on until it gets a signal (rounds.h)
};

// ---- Options that several verbs have -----------------------------------------------------------

// -c and -b: where a change or a question goes.
std::vector<Option> WithPlace(std::vector<Option> options);
// -c, -g and -b: which replication groups (peers.h).
struct GroupChoice;
std::vector<Option> WithGroupChoice(std::vector<Option> options);
GroupChoice ChoiceOf(const Given& given);

// ---- What a verb prints: for people, or JSON (--output) ----------------------------------------

void Print(const Table& table, const Given& given);
// Several tables; in JSON members of one object.
void Print(const std::vector<std::pair<const char*, Table>>& tables, const Given& given);
// Things with many properties: a line per property; in JSON a list of objects.
using Record = std::vector<std::pair<std::string, std::string>>;
void Print(const std::vector<Record>& records, const Given& given);
// A change that was made; kDone.
int Done(const std::string& sentence, const Given& given);
// Printed for people only.
void Note(const std::string& line, const Given& given);

// ---- The families ------------------------------------------------------------------------------

std::vector<Verb> ClientVerbs();
std::vector<Verb> ClusterVerbs();
std::vector<Verb> ConfigVerbs();
std::vector<Verb> DlqVerbs();
std::vector<Verb> ExportVerbs();
std::vector<Verb> GroupVerbs();
std::vector<Verb> MessageVerbs();
std::vector<Verb> ProgressVerbs();
std::vector<Verb> QueryVerbs();
std::vector<Verb> ReplicationVerbs();
std::vector<Verb> TopicVerbs();
std::vector<Verb> TopicSettingVerbs();
std::vector<Verb> VerifyVerbs();
std::vector<Verb> WatchVerbs();
std::vector<Verb> AllVerbs();

}  // namespace triad::admin
