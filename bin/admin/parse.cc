// The only file here that knows CLI11: its header costs more than all others together.

#include "bin/admin/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "common/nearest.h"

namespace triad::admin {
namespace {

// "-t,--topic" is "topic".
std::string LongName(std::string_view names) {
  return std::string(names.substr(names.rfind("--") + 2));
}

std::vector<std::string> Choices(std::string_view text) {
  std::vector<std::string> choices;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('|'), text.size());
    choices.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return choices;
}

// What is wrong with a count: CLI11's own check takes 1.5 and 1e3, and names 309 digits as its
// limit.
std::string NoCount(const std::string& text) {
  std::int64_t count = -1;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  if (read.ec == std::errc() && read.ptr == end && count >= 0) return "";
  return "'" + text + "' is no whole number from 0 on";
}

// What CLI11 fills: addresses must stay.
struct Slot {
  std::string name;
  std::string text;
  bool is_switch = false;
  bool is_on = false;
};

class CommandLine {
 public:
  explicit CommandLine(const std::vector<Verb>& verbs) : verbs_(verbs) {
    app_.require_subcommand(1);
  }

  Asked Parse(std::vector<std::string> words) {
    for (const Verb& verb : verbs_) Add(verb, words);
    std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
    Asked asked;
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      asked.code = app_.exit(error) == 0 ? kDone : kUnreachable;
      return asked;
    }
    for (const auto& [app, verb] : apps_) {
      if (app->parsed()) asked.verb = verb;
    }
    for (const Slot& value : values_) {
      asked.given.Set(value.name, value.is_switch ? (value.is_on ? "true" : "false") : value.text);
    }
    return asked;
  }

 private:
  // The options only of the verb that is asked for: the others cost time at every call.
  void Add(const Verb& verb, const std::vector<std::string>& words) {
    const std::string name = verb.name;
    const std::size_t blank = name.find(' ');
    const std::string family = blank == std::string::npos ? "" : name.substr(0, blank);
    const std::string own = name.substr(blank + 1);
    CLI::App* parent = family.empty() ? &app_ : Family(family, words);
    CLI::App* app = parent->add_subcommand(own, verb.help);
    apps_.emplace_back(app, &verb);
    const std::size_t at = family.empty() ? 0 : 1;
    if (words.size() <= at || words[at] != own || (at == 1 && words[0] != family)) return;
    app->footer("Example:\n  mqadmin " + name + " -n 127.0.0.1:9876 " + verb.example);
    if (family.empty()) AddNameServer(app);
    app->fallthrough();  // of a family -n may stand anywhere
    for (const Option& option : verb.options) Add(app, option);
    const bool has_o = std::any_of(verb.options.begin(), verb.options.end(), [](const Option& o) {
      return std::string_view(o.names).starts_with("-o,");
    });
    Add(app,
        {has_o ? "--output" : "-o,--output", "for people, or JSON", "table", kText, "table|json"});
  }

  CLI::App* Family(const std::string& name, const std::vector<std::string>& words) {
    CLI::App*& family = families_[name];
    if (family != nullptr) return family;
    family = app_.add_subcommand(name, "see mqadmin help " + name);
    family->require_subcommand(1);
    if (words.empty() || words[0] != name) return family;
    AddNameServer(family);
    std::string examples = "Examples:";
    for (const Verb& verb : verbs_) {
      if (!std::string_view(verb.name).starts_with(name + " ")) continue;
      examples += "\n  mqadmin " + std::string(verb.name) + " -n 127.0.0.1:9876 " + verb.example;
    }
    family->footer(examples);
    return family;
  }

  void AddNameServer(CLI::App* app) {
    Slot& value = values_.emplace_back();
    value.name = "namesrvAddr";
    app->add_option("-n,--namesrvAddr", value.text,
                    "name servers, host:port;host:port (or NAMESRV_ADDR)")
        ->envname("NAMESRV_ADDR")
        ->required();
  }

  void Add(CLI::App* app, const Option& option) {
    Slot& value = values_.emplace_back();
    value.name = LongName(option.names);
    value.is_switch = option.kind == kSwitch;
    if (value.is_switch) {
      app->add_flag(option.names, value.is_on, option.help);
      return;
    }
    if (option.fallback != nullptr) value.text = option.fallback;
    CLI::Option* added = app->add_option(option.names, value.text, option.help);
    if (option.fallback == nullptr) added->required();
    if (!value.text.empty()) added->capture_default_str();
    if (option.kind == kNumber) added->check(CLI::TypeValidator<std::int64_t>("NUMBER"));
    if (option.kind == kCount) added->check(NoCount, "COUNT");
    if (option.kind == kMaybeValue) added->expected(0, 1);
    if (*option.choices != '\0') added->check(CLI::IsMember(Choices(option.choices)));
  }

  CLI::App app_{"Looks at and changes a cluster. 'mqadmin help VERB' explains a verb.", "mqadmin"};
  const std::vector<Verb>& verbs_;
  std::deque<Slot> values_;
  std::map<std::string, CLI::App*> families_;
  std::vector<std::pair<CLI::App*, const Verb*>> apps_;
};

// " did you mean ...?", or nothing.
std::string MaybeMeant(const std::vector<Verb>& verbs, const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    const std::string_view name = verb.name;
    names.emplace_back(name.substr(0, name.find(' ')));
  }
  const std::string nearest = NearestOf(word, names);
  return nearest.empty() ? "" : " did you mean " + nearest + "?";
}

}  // namespace

Asked Parse(const std::vector<Verb>& verbs, const std::vector<std::string>& words) {
  std::vector<std::string> line = words;
  // "help VERB" as in the original.
  if (!line.empty() && line[0] == "help") {
    line.erase(line.begin());
    line.emplace_back("--help");
  }
  const auto is_family_or_verb = [&line](const Verb& verb) {
    const std::string_view name = verb.name;
    return name.substr(0, name.find(' ')) == line[0];
  };
  if (!line.empty() && !line[0].starts_with('-') &&
      std::none_of(verbs.begin(), verbs.end(), is_family_or_verb)) {
    Asked asked;
    asked.code =
        WrongUse(Status::InvalidArgument("there is no verb '" + line[0] + "';" +
                                         MaybeMeant(verbs, line[0]) + " mqadmin help lists them"));
    return asked;
  }
  if (line.empty()) {
    Asked asked;
    asked.code = WrongUse(
        Status::InvalidArgument("a verb is missing, as in mqadmin clusterList; mqadmin help lists "
                                "them"));
    return asked;
  }
  return CommandLine(verbs).Parse(std::move(line));
}

}  // namespace triad::admin
