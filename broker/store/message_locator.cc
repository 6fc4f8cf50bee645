#include "broker/store/message_locator.h"

#include <string>
#include <string_view>
#include <utility>

#include "broker/store/message.h"

namespace triad::broker {

Result<LoadedMessage> LocateMessage(dledger::EntryRef entry, const QueueUnit& unit) {
  const std::int64_t at = unit.position - entry->position;
  const auto header = static_cast<std::int64_t>(entry->header_bytes);
  if (at < header || unit.size_bytes <= 0 ||
      at + unit.size_bytes > static_cast<std::int64_t>(entry->size())) {
    return Status::Corruption("a consume queue points outside of entry " +
                              std::to_string(entry->index.value()));
  }
  LoadedMessage loaded;
  loaded.record =
      std::string_view(entry->bytes)
          .substr(static_cast<std::size_t>(at), static_cast<std::size_t>(unit.size_bytes));
  loaded.entry = std::move(entry);
  if (!IsRecordAt(loaded.record, unit.position)) {
    return Status::Corruption("no record at " + std::to_string(unit.position.value()) +
                              ", where a consume queue points");
  }
  return loaded;
}

Result<LoadedMessage> FindMessage(dledger::EntryRef entry, PhysicalOffset offset) {
  const auto absent = [&] {
    return Status::NotFound("no message begins at " + std::to_string(offset.value()));
  };
  if (entry->type != dledger::EntryType::kBatch) return absent();
  const Result<PayloadView> payload = ParsePayload(entry->payload());
  if (!payload.ok()) return payload.status();
  std::string_view rest = payload.value().records;
  PhysicalOffset at =
      entry->payload_position() + static_cast<std::int64_t>(payload.value().records_at);
  while (at <= offset) {
    const Result<MessageView> message = ParseMessage(rest, at == offset);
    if (!message.ok()) return absent();
    if (at == offset) return LoadedMessage{std::move(entry), message.value().record};
    rest.remove_prefix(message.value().record.size());
    at += static_cast<std::int64_t>(message.value().record.size());
  }
  return absent();
}

}  // namespace triad::broker
