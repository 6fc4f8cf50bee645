// GitCommit: the commit of the sources, for a failure block. Asks git, of the folder that was
// built.

#pragma once

#include <string>

namespace triad::sim {

std::string GitCommit();  // "unknown" where git cannot tell

}  // namespace triad::sim
