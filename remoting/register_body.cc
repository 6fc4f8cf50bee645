// RegisterBrokerBody in its two forms (wire.md §3.2).

#include <zlib.h>

#include <charconv>
#include <optional>
#include <vector>

#include "common/byte_order.h"
#include "remoting/body_codec.h"
#include "remoting/route_bodies.h"

namespace triad::remoting {
namespace {

Status Bad(const std::string& what) {
  return Status::InvalidArgument("compressed RegisterBrokerBody: " + what);
}

// zlib's stream, ended whatever happens.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit(&stream_) == Z_OK; }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<std::string> Run(std::string_view in, std::size_t max_bytes) {
    if (!ready_) return Bad("zlib did not start");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());  // a frame is below 16 MiB
    std::string out;
    std::vector<char> chunk(64u << 10);
    for (int result = Z_OK; result != Z_STREAM_END;) {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream_.avail_out = static_cast<uInt>(chunk.size());
      result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END) return Bad("not a whole zlib stream");
      const std::size_t made = chunk.size() - stream_.avail_out;
      if (out.size() + made > max_bytes) {
        return Bad("inflates to more than " + std::to_string(max_bytes) + " bytes");
      }
      out.append(chunk.data(), made);
    }
    return out;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

// Pieces behind 4-byte lengths.
class PieceReader {
 public:
  explicit PieceReader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::uint32_t> Number() {
    if (bytes_.size() < 4) return std::nullopt;
    const std::uint32_t value = LoadBe32(bytes_.data());
    bytes_.remove_prefix(4);
    return value;
  }
  std::optional<std::string_view> Piece() {
    const auto length = Number();
    if (!length || *length > bytes_.size()) return std::nullopt;
    const std::string_view piece = bytes_.substr(0, *length);
    bytes_.remove_prefix(*length);
    return piece;
  }

 private:
  std::string_view bytes_;
};

// Cuts the first word off; the rest of the text when no blank follows.
std::string_view TakeWord(std::string_view* text) {
  const std::size_t blank = text->find(' ');
  const std::string_view word = text->substr(0, blank);
  text->remove_prefix(blank == std::string_view::npos ? text->size() : blank + 1);
  return word;
}

bool TakeInt(std::string_view* text, std::int32_t* out) {
  const std::string_view word = TakeWord(text);
  const char* end = word.data() + word.size();
  const auto [ptr, error] = std::from_chars(word.data(), end, *out);
  return error == std::errc() && ptr == end && !word.empty();
}

// "name readQueueNums writeQueueNums perm topicFilterType[ attributesJson]"
Result<TopicConfigBody> ParseTopicLine(std::string_view line) {
  const std::string whole(line.substr(0, 200));
  TopicConfigBody config;
  config.topic_name = TakeWord(&line);
  if (config.topic_name.empty() || !TakeInt(&line, &config.read_queue_nums) ||
      !TakeInt(&line, &config.write_queue_nums) || !TakeInt(&line, &config.perm)) {
    return Bad("'" + whole + "' is no topic");
  }
  config.multi_tag = TakeWord(&line) == "MULTI_TAG";
  if (!line.empty()) {
    const Result<Json> attributes = Json::Parse(line);
    if (!attributes.ok()) return Bad("attributes of '" + config.topic_name + "' are no JSON");
    config.attributes = AsStringMap(*attributes);
  }
  return config;
}

// Mappings of static topics follow from 5.0 on; they mean nothing here and are left alone.
Result<RegisterBrokerBody> ParseInflated(std::string_view text) {
  PieceReader reader(text);
  RegisterBrokerBody body;
  const auto version = reader.Piece();
  if (!version) return Bad("the data version is cut short");
  const Result<DataVersion> data_version = DataVersion::Decode(*version);
  if (!data_version.ok()) return data_version.status();
  body.topics.data_version = *data_version;
  const auto count = reader.Number();
  if (!count) return Bad("the topic count is cut short");
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto line = reader.Piece();
    if (!line) {
      return Bad("topic " + std::to_string(i + 1) + " of " + std::to_string(*count) +
                 " is cut short");
    }
    Result<TopicConfigBody> config = ParseTopicLine(*line);
    if (!config.ok()) return config.status();
    const std::string name = config->topic_name;
    body.topics.topic_config_table[name] = std::move(config).value();
  }
  const auto servers = reader.Piece();
  if (!servers) return Bad("the filter server list is cut short");
  const Result<Json> list = Json::Parse(*servers);
  if (!list.ok()) return Bad("the filter server list is no JSON");
  body.filter_server_list = AsStrings(*list);
  return body;
}

}  // namespace

std::string RegisterBrokerBody::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteStrings("filterServerList", filter_server_list, &writer);
  writer.Key("topicConfigSerializeWrapper");
  topics.WriteTo(&writer);
  writer.EndObject();
  return writer.Take();
}

Result<RegisterBrokerBody> RegisterBrokerBody::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("RegisterBrokerBody", body);
  if (!json.ok()) return json.status();
  return RegisterBrokerBody{
      .filter_server_list = AsStrings((*json)["filterServerList"]),
      .topics = TopicConfigSerializeWrapper::From((*json)["topicConfigSerializeWrapper"])};
}

Result<RegisterBrokerBody> RegisterBrokerBody::DecodeCompressed(std::string_view body) {
  const Result<std::string> text = Inflater().Run(body, kMaxInflatedBytes);
  if (!text.ok()) return text.status();
  return ParseInflated(*text);
}

}  // namespace triad::remoting
