// Input: the fuzzer's bytes as values, taken from the front.
//
// Every fuzz target is one file with LLVMFuzzerTestOneInput; what must hold is CHECKed there. Under
// the preset `fuzz` libFuzzer drives it; elsewhere driver.cc replays the corpus. Thread: one.

#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Changes `data` in place; returns its new size. Of libFuzzer, or of driver.cc.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
// Only some targets have one: repairs lengths and checksums behind LLVMFuzzerMutate.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed);
}

namespace triad::fuzz {

inline std::string_view Bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(Bytes(data, size)) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::uint64_t Below(std::uint64_t end) {  // end <= 65536
    const std::uint64_t high = end > 256 ? Byte() : 0;
    return (high * 256 + Byte()) % end;
  }
  bool Flag() { return (Byte() & 1) != 0; }
  std::string_view Take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

}  // namespace triad::fuzz
