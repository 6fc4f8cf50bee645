#include "common/config_table.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "common/nearest.h"

namespace triad {
namespace {

constexpr std::string_view kBlanks = " \t\f\r\n";

// Where a value seems to be followed by a comment: " #", " !" or " //".
bool LooksCommented(const std::string& value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (kBlanks.find(value[i - 1]) == std::string_view::npos) continue;
    if (value[i] == '#' || value[i] == '!') return true;
    if (value.compare(i, 2, "//") == 0) return true;
  }
  return false;
}

// "C:Usersmq": a Windows path after single backslashes were read as escapes.
bool LooksLikeALostBackslash(const std::string& path) {
  return path.size() > 2 && std::isalpha(static_cast<unsigned char>(path[0])) != 0 &&
         path[1] == ':' && path[2] != '/' && path[2] != '\\';
}

std::string Where(const std::string& file, int line) {
  if (line == 0) return file;
  return file + ":" + std::to_string(line);
}

// Control characters would break the terminal and the log line.
std::string Shown(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out;
}

std::string RangeText(const KeyOptions& options) {
  const bool has_min = options.min > std::numeric_limits<std::int64_t>::min();
  const bool has_max = options.max < std::numeric_limits<std::int64_t>::max();
  std::string text;
  if (has_min) text += " from " + std::to_string(options.min);
  if (has_max) text += (has_min ? " to " : " up to ") + std::to_string(options.max);
  if (!options.unit.empty()) text += " (" + options.unit + ")";
  return text;
}

}  // namespace

std::string_view TrimBlanks(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string> ListedItems(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(';'));
    const std::string_view trimmed = TrimBlanks(item);
    if (!trimmed.empty()) items.emplace_back(trimmed);
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  return items;
}

std::string ConfigFault::ToString() const {
  return Where(file, line) + ": " + key + "=" + Shown(value) + ": expected " + expected;
}

namespace config_internal {

std::string ParseInteger(const std::string& text, const KeyOptions& options, std::int64_t* out) {
  const std::string expected = "a whole number" + RangeText(options);
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+' && begin + 1 != end && begin[1] != '-') ++begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, 10);
  if (error != std::errc() || stop != end) return expected;
  if (value < options.min || value > options.max) return expected;
  *out = value;
  return {};
}

std::string ParseDouble(const std::string& text, const KeyOptions& options, double* out) {
  const std::string expected = "a number" + RangeText(options);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return expected;
  if (!std::isfinite(value)) return expected;
  if (value < static_cast<double>(options.min) || value > static_cast<double>(options.max)) {
    return expected;
  }
  *out = value;
  return {};
}

std::string ParseBool(const std::string& text, bool* out) {
  const std::string lower = Lower(text);
  if (lower != "true" && lower != "false") return "true or false";
  *out = lower == "true";
  return {};
}

std::string CheckPath(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return "a path without control characters (a backslash begins an escape here: write / or "
             "\\\\)";
    }
  }
  return {};
}

std::string PrintDouble(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace config_internal

void ConfigTableBase::Section(std::string title) {
  section_ = std::move(title);
}

void ConfigTableBase::Alias(std::string old_spelling, std::string key, std::string note) {
  CHECK(FindRow(key) != nullptr) << "alias " << old_spelling << " of the unknown key " << key;
  CHECK(!IsKnown(old_spelling)) << old_spelling << " is in the table twice";
  aliases_[std::move(old_spelling)] = AliasRow{std::move(key), std::move(note)};
}

void ConfigTableBase::NoEffect(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    CHECK(!IsKnown(std::string(key))) << key << " is in the table twice";
    no_effect_.insert(std::upper_bound(no_effect_.begin(), no_effect_.end(), key),
                      std::string(key));
  }
}

void ConfigTableBase::AddRow(Row row) {
  CHECK(!IsKnown(row.key)) << row.key << " is in the table twice";
  CHECK(!row.options.help.empty()) << row.key << " has no help";
  row.section = section_;
  row_of_key_[row.key] = rows_.size();
  rows_.push_back(std::move(row));
}

const ConfigTableBase::Row* ConfigTableBase::FindRow(const std::string& key) const {
  const auto found = row_of_key_.find(key);
  return found == row_of_key_.end() ? nullptr : &rows_[found->second];
}

bool ConfigTableBase::IsKnown(const std::string& key) const {
  return row_of_key_.contains(key) || aliases_.contains(key) ||
         std::binary_search(no_effect_.begin(), no_effect_.end(), key);
}

const KeyOptions* ConfigTableBase::FindOptions(const std::string& key) const {
  const Row* row = FindRow(key);
  return row == nullptr ? nullptr : &row->options;
}

std::string ConfigTableBase::SpellingIn(const Properties& properties,
                                        const std::string& key) const {
  if (properties.Find(key) != nullptr) return key;
  for (const auto& [spelling, alias] : aliases_) {
    if (alias.key == key && properties.Find(spelling) != nullptr) return spelling;
  }
  return key;
}

std::string ConfigTableBase::Nearest(const std::string& key) const {
  std::vector<std::string> known;
  for (const Row& row : rows_) known.push_back(row.key);
  for (const auto& alias : aliases_) known.push_back(alias.first);
  known.insert(known.end(), no_effect_.begin(), no_effect_.end());
  return NearestOf(key, known);
}

void ConfigTableBase::ApplyTo(const Properties& properties, const std::string& file, void* config,
                              ConfigReport* report) const {
  if (properties.had_bom()) {
    report->warnings.push_back(file + ": begins with a byte order mark, which was skipped");
  }
  for (const Properties::Overwritten& old : properties.overwritten()) {
    report->warnings.push_back(Where(file, old.old_line) + ": " + old.key +
                               " is overwritten by line " + std::to_string(old.new_line));
  }
  std::vector<std::pair<std::string, Properties::Entry>> by_line(properties.entries().begin(),
                                                                 properties.entries().end());
  std::stable_sort(by_line.begin(), by_line.end(),
                   [](const auto& a, const auto& b) { return a.second.line < b.second.line; });
  for (const auto& [key, entry] : by_line) {
    if (const Row* row = FindRow(key)) {
      ApplyRow(*row, entry, file, config, report);
      continue;
    }
    const auto alias = aliases_.find(key);
    if (alias == aliases_.end()) {
      ReportOther(key, entry.line, file, report);
      continue;
    }
    report->warnings.push_back(Where(file, entry.line) + ": " + key + " is read as " +
                               alias->second.key + ": " + alias->second.note);
    // The proper spelling wins when both are given.
    if (properties.Find(alias->second.key) != nullptr) continue;
    ApplyRow(*FindRow(alias->second.key), entry, file, config, report);
  }
}

void ConfigTableBase::ApplyRow(const Row& row, const Properties::Entry& entry,
                               const std::string& file, void* config, ConfigReport* report) const {
  const std::string value(TrimBlanks(entry.value));
  std::string expected = row.set(config, value);
  const bool commented = LooksCommented(value);
  if (!expected.empty()) {
    if (commented) expected += "; a comment must stand on a line of its own";
    report->faults.push_back({file, entry.line, row.key, value, std::move(expected)});
    return;
  }
  const std::string where = Where(file, entry.line) + ": " + row.key;
  if (commented) {
    report->warnings.push_back(where + ": the value is \"" + Shown(value) +
                               "\", comment included; a comment must stand on a line of its own");
  }
  if (row.is_path && LooksLikeALostBackslash(value)) {
    report->warnings.push_back(where + ": the path is \"" + Shown(value) +
                               "\"; a backslash begins an escape here: write / or \\\\");
  }
}

void ConfigTableBase::ReportOther(const std::string& key, int line, const std::string& file,
                                  ConfigReport* report) const {
  const std::string where = Where(file, line) + ": " + Shown(key);
  if (std::binary_search(no_effect_.begin(), no_effect_.end(), key)) {
    report->no_effect.push_back(key);
    return;
  }
  std::string suggestion = Nearest(key);
  report->warnings.push_back(where + ": unknown key, ignored" +
                             (suggestion.empty() ? "" : "; did you mean " + suggestion + "?"));
  report->unknown.push_back({key, std::move(suggestion), line});
}

std::map<std::string, std::string> ConfigTableBase::ValuesOf(const void* config) const {
  std::map<std::string, std::string> values;
  for (const Row& row : rows_) values[row.key] = row.get(config);
  return values;
}

std::string ConfigTableBase::PrintFrom(const void* config, bool only_important) const {
  std::string out;
  for (const Row& row : rows_) {
    if (only_important && !row.options.important) continue;
    out += row.key + "=" + row.get(config) + "\n";
  }
  return out;
}

std::string ConfigTableBase::MarkdownFrom(const void* defaults) const {
  std::string out;
  std::string section = "\n";  // no title is this
  for (const Row& row : rows_) {
    if (row.section != section) {
      section = row.section;
      if (!section.empty()) out += "\n## " + section + "\n";
      out += "\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
    }
    std::string value =
        row.options.default_text.empty() ? row.get(defaults) : row.options.default_text;
    if (row.options.default_text.empty() && !value.empty()) value = "`" + value + "`";
    const bool is_number = row.type == "integer" || row.type == "number";
    const std::string range(TrimBlanks(is_number ? RangeText(row.options) : std::string()));
    out += "| `" + row.key + "` | " + row.type + " | " + value + " | " + range + " | " +
           (row.options.group ? "**group:** " : "") + row.options.help + " |\n";
  }
  if (!aliases_.empty()) {
    out += "\n## Other spellings\n\n| key | read as | note |\n|---|---|---|\n";
    for (const auto& [old, alias] : aliases_) {
      out += "| `" + old + "` | `" + alias.key + "` | " + alias.note + " |\n";
    }
  }
  if (no_effect_.empty()) return out;
  out += "\n## Accepted without effect\n\nKeys of the original that have no meaning here:";
  for (std::size_t i = 0; i < no_effect_.size(); ++i) {
    out += (i == 0 ? " `" : ", `") + no_effect_[i] + "`";
  }
  return out + ".\n";
}

}  // namespace triad
