#include "dledger/log/block_reader.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "dledger/log/entry_codec.h"

namespace triad::dledger {

Result<std::vector<EntryRef>> ReadBlock(const EntryIndex::Block& block) {
  std::string bytes(static_cast<std::size_t>(block.end - block.begin), '\0');
  const Result<std::size_t> n = block.file->Read(block.begin, std::span<char>(bytes));
  if (!n.ok()) return n.status();
  std::vector<EntryRef> entries;
  std::string_view rest(bytes.data(), *n);
  PhysicalOffset at = block.begin;
  LogIndex index = block.first;
  while (at < block.end) {
    Result<EntryRef> entry = DecodeEntry(rest, true);
    const bool good = entry.ok() && (*entry)->position == at && (*entry)->index == index;
    if (!good) {
      return Status::Corruption("entry " + std::to_string(index.value()) + " at position " +
                                std::to_string(at.value()) + " in " + block.file->path() + ": " +
                                (entry.ok() ? "another entry" : entry.status().ToString()));
    }
    rest.remove_prefix((*entry)->size());
    at = (*entry)->end();
    ++index;
    entries.push_back(std::move(entry).value());
  }
  return entries;
}

EntryRef FindAt(const std::vector<EntryRef>& entries, PhysicalOffset inside) {
  for (const EntryRef& entry : entries) {
    if (inside >= entry->position && inside < entry->end()) return entry;
  }
  return nullptr;
}

}  // namespace triad::dledger
