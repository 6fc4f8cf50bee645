// Floor: the least that a group of three can do and still keep the promise; the yardstick.
//
// Three processes on the loopback. The leader takes messages (header, checksum, body), appends them
// to a file that was written before, sends the same bytes to two followers, syncs what has gathered
// and acknowledges each message when two of the three files hold it durably. A follower checks the
// checksums, appends, syncs, and tells how far it is. No topic, no queue, no election, no recovery.
// The files are reused in a ring, so a long run does not fill the disk.
//
// For bench only. Own thread per process plus one that owns the leader's file.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bin/bench/publish_loop.h"

namespace triad::bench {

struct FloorOptions {
  std::string directory;
  bool syncs = true;
};

class Floor {
 public:
  // Prepares the files and starts the three processes. kIoError.
  Status Start(const FloorOptions& options);
  ~Floor();
  const std::string& address() const { return address_; }
  std::vector<pid_t> pids() const { return pids_; }

 private:
  std::string address_;
  std::vector<pid_t> pids_;
};

// Publishes to the floor.
class FloorProtocol : public PublishProtocol {
 public:
  FloorProtocol(std::string address, std::size_t size);
  Status Open(std::size_t i, Stream* stream) override;
  void Append(std::uint64_t request, Nanos now, std::string* out) override;
  Status Read(Stream* stream, AnswerSink* sink) override;

 private:
  const std::string address_;
  std::string message_;
};

}  // namespace triad::bench
