// SetThreadName: what `top -H` and gdb show for the calling thread; at most 15 characters.

#pragma once

#include <pthread.h>

namespace triad::dledger {

inline void SetThreadName(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
}

}  // namespace triad::dledger
