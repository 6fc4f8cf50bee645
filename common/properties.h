// Properties: a configuration file exactly as java.util.Properties.load reads it.
//
// Two intended differences: bytes beyond ASCII pass through (UTF-8 stays UTF-8; Java reads
// ISO-8859-1), and a UTF-8 byte order mark is skipped (had_bom) instead of glued to the first key.
// Values keep trailing white space; whoever reads a scalar trims it. Pure value.
// Source: dledger.md §2.2.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace triad {

class Properties {
 public:
  struct Entry {
    std::string value;
    int line = 0;  // where the assignment begins; 0 = not from a file
  };
  // An assignment that a later one replaced.
  struct Overwritten {
    std::string key;
    int old_line = 0;
    int new_line = 0;
  };

  // Errors: kInvalidArgument "line N: ..." for a \u without four hexadecimal digits.
  static Result<Properties> Parse(std::string_view text);

  // The last assignment wins; an earlier one is remembered in overwritten().
  void Set(std::string key, std::string value, int line = 0);

  const Entry* Find(const std::string& key) const;  // null when absent
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::vector<Overwritten>& overwritten() const { return overwritten_; }
  bool had_bom() const { return had_bom_; }

 private:
  std::map<std::string, Entry> entries_;
  std::vector<Overwritten> overwritten_;
  bool had_bom_ = false;
};

// `text` with these assignments: the last line that set a key is replaced, a new key is appended;
// comments and everything else stay. Errors: as Parse, for `text`.
Result<std::string> SetInPropertiesText(std::string_view text,
                                        const std::map<std::string, std::string>& changes);

}  // namespace triad
