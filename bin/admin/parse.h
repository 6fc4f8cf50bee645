// Parse: the words of a command line as a verb and what was given for its options.
//
//   mqadmin VERB [options]     mqadmin help [VERB]     mqadmin VERB --help
//
// Pure, but for the environment's NAMESRV_ADDR; prints help and what is wrong. Thread: main.

#pragma once

#include <vector>

#include "bin/admin/verbs.h"

namespace triad::admin {

struct Asked {
  const Verb* verb = nullptr;  // null: it is answered, the program ends with `code`
  Given given;                 // also "namesrvAddr" and "output"
  int code = kDone;
};

// `verbs` outlives the answer.
Asked Parse(const std::vector<Verb>& verbs, const std::vector<std::string>& words);

}  // namespace triad::admin
