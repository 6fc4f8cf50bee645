#include "client/compression.h"

#include <glog/logging.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <memory>

namespace triad::client {

namespace {

constexpr int kLevel = 5;              // the Java client's
constexpr int kZstdWindowLogMax = 25;  // what a hostile frame may make us allocate: 32 MiB
using Chunk = std::array<char, 16384>;

Status Bad() {
  return Status::Corruption("a compressed body cannot be unpacked");
}

Result<std::string> UnpackZlib(std::string_view bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return Status::Internal("zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  Chunk chunk{};
  int result = Z_OK;
  while (result == Z_OK && out.size() <= kMaxInflatedBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) return Bad();
  return out;
}

Result<std::string> UnpackLz4(std::string_view bytes) {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0) {
    return Status::Internal("LZ4 cannot start");
  }
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
      made, &LZ4F_freeDecompressionContext);
  std::string out;
  Chunk chunk{};
  for (std::size_t more = 1; more != 0;) {  // 0: the frame is complete
    std::size_t produced = chunk.size();
    std::size_t consumed = bytes.size();
    more =
        LZ4F_decompress(context.get(), chunk.data(), &produced, bytes.data(), &consumed, nullptr);
    if (LZ4F_isError(more) != 0) return Bad();
    out.append(chunk.data(), produced);
    bytes.remove_prefix(consumed);
    const bool stuck = more != 0 && produced == 0 && consumed == 0;
    if (stuck || out.size() > kMaxInflatedBytes) return Bad();
  }
  return out;
}

Result<std::string> UnpackZstd(std::string_view bytes) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (context == nullptr) return Status::Internal("ZSTD cannot start");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::string out;
  Chunk chunk{};
  for (std::size_t more = 1; more != 0;) {  // 0: the frame is complete
    ZSTD_outBuffer produced{chunk.data(), chunk.size(), 0};
    const std::size_t before = in.pos;
    more = ZSTD_decompressStream(context.get(), &produced, &in);
    if (ZSTD_isError(more) != 0) return Bad();
    out.append(chunk.data(), produced.pos);
    const bool stuck = more != 0 && produced.pos == 0 && in.pos == before;
    if (stuck || out.size() > kMaxInflatedBytes) return Bad();
  }
  return out;
}

}  // namespace

std::string Deflate(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               static_cast<uLong>(bytes.size()), kLevel);
  CHECK_EQ(result, Z_OK);
  out.resize(size);
  return out;
}

bool CanUnpack(std::int32_t sys_flag) {
  return (sys_flag & kCompressed) == 0 || (sys_flag & kCompressionTypeMask) <= kCompressedZlib;
}

Result<std::string> Unpack(std::int32_t sys_flag, std::string_view body) {
  if ((sys_flag & kCompressed) == 0 || !CanUnpack(sys_flag)) return std::string(body);
  switch (sys_flag & kCompressionTypeMask) {
    case kCompressedLz4: return UnpackLz4(body);
    case kCompressedZstd: return UnpackZstd(body);
    default: return UnpackZlib(body);
  }
}

}  // namespace triad::client
