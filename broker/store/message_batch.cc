#include "broker/store/message.h"
#include "common/byte_order.h"

namespace triad::broker {
namespace {

constexpr std::size_t kItemFixedBytes = 22;
constexpr std::size_t kItemBodyLengthAt = 16;

Status Wrong(std::size_t item, const char* what) {
  return Status::InvalidArgument("batch item " + std::to_string(item) + ": " + what);
}

}  // namespace

Result<PayloadView> ParsePayload(std::string_view payload) {
  if (payload.size() < 4) return Status::Corruption("payload: shorter than its command length");
  const std::size_t command_bytes = LoadBe32(payload.data());
  if (command_bytes > payload.size() - 4) {
    return Status::Corruption("payload: the command is longer than the payload");
  }
  PayloadView view;
  view.command = payload.substr(4, command_bytes);
  view.records_at = (4 + command_bytes + 7) & ~std::size_t{7};
  if (view.records_at > payload.size()) {
    return Status::Corruption("payload: ends inside the padding of its command");
  }
  view.records = payload.substr(view.records_at);
  return view;
}

Result<std::vector<BatchItem>> ParseBatchBody(std::string_view body) {
  if (body.empty()) return Status::InvalidArgument("an empty batch");
  std::vector<BatchItem> items;
  while (!body.empty()) {
    const std::size_t number = items.size();
    if (body.size() < kItemFixedBytes) return Wrong(number, "shorter than its fixed fields");
    const std::size_t total_bytes = LoadBe32(body.data());
    if (total_bytes > body.size()) return Wrong(number, "longer than the batch");
    if (total_bytes < kItemFixedBytes) return Wrong(number, "total size is too small");
    const std::string_view bytes = body.substr(0, total_bytes);
    const std::size_t body_bytes = LoadBe32(bytes.data() + kItemBodyLengthAt);
    if (body_bytes > total_bytes - kItemFixedBytes) return Wrong(number, "body length");
    BatchItem item;
    item.flag = static_cast<std::int32_t>(LoadBe32(bytes.data() + 12));
    item.body = bytes.substr(kItemBodyLengthAt + 4, body_bytes);
    const std::size_t properties_at = kItemFixedBytes + body_bytes;
    const std::size_t properties_bytes = LoadBe16(bytes.data() + properties_at - 2);
    if (properties_at + properties_bytes != total_bytes || properties_bytes > 32767) {
      return Wrong(number, "properties length");
    }
    item.properties = bytes.substr(properties_at);
    items.push_back(item);
    body.remove_prefix(total_bytes);
  }
  return items;
}

}  // namespace triad::broker
