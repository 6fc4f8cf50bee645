#include <algorithm>
#include <iterator>

#include "broker/store/message.h"

namespace triad::broker {
namespace {

constexpr char kNameEnd = '\x01';
constexpr char kItemEnd = '\x02';
constexpr std::size_t kMinItemBytes = 3;  // a name, the separator, a value

struct Item {
  std::string_view name;
  std::string_view value;
};

// Takes the next piece off `rest` (with its separator). False at the end.
bool NextPiece(std::string_view* rest, std::string_view* piece) {
  if (rest->empty()) return false;
  const std::size_t end = rest->find(kItemEnd);
  *piece = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return true;
}

// What the piece says; an empty name when readers drop it.
Item ItemOf(std::string_view piece) {
  const std::size_t middle = piece.find(kNameEnd);
  if (piece.size() < kMinItemBytes || middle == std::string_view::npos || middle == 0 ||
      middle + 1 == piece.size()) {
    return {};
  }
  return {piece.substr(0, middle), piece.substr(middle + 1)};
}

// One UTF-8 sequence at text[*at]; moves *at behind it. What is not UTF-8 becomes U+FFFD, as
// Java's decoder makes it, one per ill-formed run.
char32_t NextCodePoint(std::string_view text, std::size_t* at) {
  constexpr char32_t kReplacement = 0xFFFD;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte((*at)++);
  if (first < 0x80) return first;
  std::size_t more = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    more = 1;
  } else if (first >= 0xE0 && first <= 0xEF) {
    more = 2;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    more = 3;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return kReplacement;
  }
  char32_t point = first & (0xFFu >> (more + 2));
  for (; more > 0; --more) {
    if (*at >= text.size() || byte(*at) < low || byte(*at) > high) return kReplacement;
    point = (point << 6) | (byte((*at)++) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return point;
}

}  // namespace

bool PropertyReader::Next(std::string_view* name, std::string_view* value) {
  std::string_view piece;
  while (NextPiece(&rest_, &piece)) {
    const Item item = ItemOf(piece);
    if (item.name.empty()) continue;
    *name = item.name;
    *value = item.value;
    return true;
  }
  return false;
}

std::map<std::string, std::string> ParseProperties(std::string_view properties) {
  std::map<std::string, std::string> parsed;
  PropertyReader reader(properties);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) parsed[std::string(name)] = std::string(value);
  return parsed;
}

std::string_view FindProperty(std::string_view properties, std::string_view wanted) {
  std::string_view found;
  PropertyReader reader(properties);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) {
    if (name == wanted) found = value;
  }
  return found;
}

SearchProperties FindSearchProperties(std::string_view properties) {
  SearchProperties found;
  PropertyReader reader(properties);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) {
    if (name == "TAGS") found.tags = value;
    if (name == "KEYS") found.keys = value;
    if (name == "UNIQ_KEY") found.unique_key = value;
  }
  return found;
}

void AppendProperty(std::string* properties, std::string_view name, std::string_view value) {
  CHECK(!name.empty());
  std::string clean;
  if (value.find(kItemEnd) != std::string_view::npos) {
    std::copy_if(value.begin(), value.end(), std::back_inserter(clean),
                 [](char c) { return c != kItemEnd; });
    value = clean;
  }
  if (value.empty()) return;
  if (!properties->empty() && properties->back() != kItemEnd) properties->push_back(kItemEnd);
  properties->append(name).push_back(kNameEnd);
  properties->append(value).push_back(kItemEnd);
}

void SetProperty(std::string* properties, std::string_view name, std::string_view value) {
  CHECK(name.find_first_of("\x01\x02") == std::string_view::npos);
  RemoveProperty(properties, name);
  AppendProperty(properties, name, value);
}

void RemoveProperty(std::string* properties, std::string_view name) {
  if (FindProperty(*properties, name).empty()) return;
  std::string kept;
  kept.reserve(properties->size());
  std::string_view rest = *properties;
  std::string_view piece;
  while (!rest.empty()) {
    const std::string_view before = rest;
    NextPiece(&rest, &piece);
    if (ItemOf(piece).name == name) continue;
    kept.append(before.substr(0, before.size() - rest.size()));
  }
  *properties = std::move(kept);
}

std::int64_t TagCode(std::string_view tag) {
  std::uint32_t hash = 0;
  for (std::size_t at = 0; at < tag.size();) {
    const char32_t point = NextCodePoint(tag, &at);
    if (point < 0x10000) {
      hash = 31 * hash + point;
      continue;
    }
    const char32_t offset = point - 0x10000;
    hash = 31 * hash + (0xD800 + (offset >> 10));
    hash = 31 * hash + (0xDC00 + (offset & 0x3FF));
  }
  return static_cast<std::int32_t>(hash);
}

}  // namespace triad::broker
