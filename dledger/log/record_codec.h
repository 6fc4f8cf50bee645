// RecordWriter and RecordReader: the big-endian fields of the small files beside the segments.
//
// Pure. Whoever writes a record puts a checksum behind it; the reader checks that first, and still
// never trusts a length.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/byte_order.h"
#include "common/ids.h"

namespace triad::dledger {

class RecordWriter {
 public:
  void U32(std::uint32_t value) { AppendBe32(&bytes_, value); }
  void U64(std::uint64_t value) { AppendBe64(&bytes_, value); }
  void I64(std::int64_t value) { U64(static_cast<std::uint64_t>(value)); }
  void Offset(PhysicalOffset value) { I64(value.value()); }
  void Count(std::size_t value) { U64(value); }
  void Bytes(std::string_view value) {
    Count(value.size());
    bytes_.append(value);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Past the end everything is zero and ok() false.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }
  std::uint32_t U32() { return Take(4) ? LoadBe32(at_) : 0; }
  std::uint64_t U64() { return Take(8) ? LoadBe64(at_) : 0; }
  std::int64_t I64() { return static_cast<std::int64_t>(U64()); }
  PhysicalOffset Offset() { return PhysicalOffset(I64()); }
  // Of things that take at least `each` bytes.
  std::size_t Count(std::size_t each) {
    const std::uint64_t count = U64();
    if (count > bytes_.size() / each) ok_ = false;
    return ok_ ? static_cast<std::size_t>(count) : 0;
  }
  std::string_view Bytes() {
    const std::size_t size = Count(1);
    return Take(size) ? std::string_view(at_, size) : std::string_view();
  }

 private:
  bool Take(std::size_t size) {
    if (!ok_ || bytes_.size() < size) return ok_ = false;
    at_ = bytes_.data();
    bytes_.remove_prefix(size);
    return true;
  }

  std::string_view bytes_;
  const char* at_ = nullptr;
  bool ok_ = true;
};

}  // namespace triad::dledger
