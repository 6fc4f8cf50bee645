// Texts of files, options and answers.

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"

namespace triad::admin {

// Errors: kNotFound with the name and why.
Result<std::string> ReadFile(const std::string& name);
// Makes the folder, too. Errors: kIoError with the name and why.
Status WriteFile(const std::string& folder, const std::string& name, const std::string& text);

// "+dedup=uniqKey,-order": names with their sign.
std::map<std::string, std::string> ParseAttributes(const std::string& text);

// "key=value" lines in their order; other lines are left out.
std::vector<std::pair<std::string, std::string>> ConfigLines(const std::string& text);

}  // namespace triad::admin
