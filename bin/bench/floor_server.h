// The processes of the floor: what floor.h describes. A failure ends the process with a message.

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/status.h"

namespace triad::bench {

inline constexpr std::size_t kFloorFollowers = 2;

struct FloorHeader {  // before every body, on the wire and in the files
  std::uint32_t body_bytes;
  std::uint32_t crc;  // of the body; the leader fills it in
  std::uint64_t number;
};
inline constexpr std::size_t kFloorHeaderBytes = sizeof(FloorHeader);
static_assert(kFloorHeaderBytes == 16);

struct FloorAnswer {
  std::uint64_t number;
  std::uint64_t position;  // in the leader's log, behind the message
};

class FloorListener {
 public:
  Status Open();  // on a free port of the loopback
  const std::string& address() const { return address_; }
  int Accept() const;

 private:
  int fd_ = -1;
  std::string address_;
};

std::string FloorFile(const std::string& directory, std::size_t number);
// Written once with zeros and synced; what is there already is kept.
Status PrepareFloorFile(const std::string& path);

void RunFloorFollower(const FloorListener& listener, const std::string& file, bool syncs);
void RunFloorLeader(const FloorListener& listener,
                    const std::array<std::string, kFloorFollowers>& followers,
                    const std::string& file, bool syncs);

}  // namespace triad::bench
