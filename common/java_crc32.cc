#include "common/java_crc32.h"

#include <libdeflate.h>

namespace triad {

std::uint32_t JavaCrc32(std::string_view bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size()) & 0x7fffffffu;
}

}  // namespace triad
