// CheckSame: whether two commands say the same. For fuzz targets; CHECKs.

#pragma once

#include <glog/logging.h>

#include "remoting/command.h"

namespace triad::fuzz {

// The binary encoding knows a list of languages only; what is not on it is read as "OTHER".
inline void CheckSame(const remoting::Command& a, const remoting::Command& b, bool with_language) {
  CHECK_EQ(a.code, b.code);
  CHECK_EQ(a.version, b.version);
  CHECK_EQ(a.opaque, b.opaque);
  CHECK_EQ(a.flag, b.flag);
  CHECK_EQ(a.remark, b.remark);
  CHECK(a.ext.items() == b.ext.items());
  CHECK_EQ(a.body, b.body);
  if (with_language) CHECK_EQ(a.language, b.language);
}

}  // namespace triad::fuzz
