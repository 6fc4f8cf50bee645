// Charset: bodies that were written in another character set, for printing.
//
// Pure. Thread: any.

#pragma once

#include <string>

#include "common/status.h"

namespace triad::admin {

// `text`, which is in `charset`, as UTF-8; what is no character of the set becomes U+FFFD. With ""
// or UTF-8 it stays as it is. Errors: kInvalidArgument: there is no such character set.
Result<std::string> ToUtf8(const std::string& text, const std::string& charset);

}  // namespace triad::admin
