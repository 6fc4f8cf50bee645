// The JSON header. No tree is built: one pass over the text, values straight into the command.

#include <array>
#include <charconv>
#include <cstring>
#include <iterator>

#include "remoting/header_codec.h"
#include "remoting/json.h"
#include "remoting/json_lexer.h"

namespace triad::remoting {
namespace {

class HeaderParser {
 public:
  HeaderParser(std::string_view text, Command* out) : lexer_(text), out_(out) {}

  Status Parse() {
    lexer_.SkipSpace();
    TRIAD_RETURN_IF_ERROR(lexer_.Expect('{'));
    lexer_.SkipSpace();
    while (!lexer_.Consume('}')) {
      std::string_view key;
      TRIAD_RETURN_IF_ERROR(ReadKey(&key));
      TRIAD_RETURN_IF_ERROR(ReadMember(key));
      lexer_.SkipSpace();
      if (!lexer_.Consume(',')) {
        TRIAD_RETURN_IF_ERROR(lexer_.Expect('}'));
        break;
      }
      lexer_.SkipSpace();
    }
    lexer_.SkipSpace();
    return lexer_.at_end() ? Status::Ok() : lexer_.Error("text behind the end of the header");
  }

 private:
  // A key of either kind, and the colon behind it.
  Status ReadKey(std::string_view* key) {
    const char c = lexer_.Peek();
    if (c == '"' || c == '\'') {
      TRIAD_RETURN_IF_ERROR(lexer_.ReadString(&key_scratch_, key));
    } else {
      TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(key));
    }
    lexer_.SkipSpace();
    TRIAD_RETURN_IF_ERROR(lexer_.Expect(':'));
    lexer_.SkipSpace();
    return Status::Ok();
  }

  Status ReadMember(std::string_view key) {
    if (key == "code") return ReadInt(key, &out_->code);
    if (key == "extFields") return ReadExtFields();
    if (key == "flag") return ReadInt(key, &out_->flag);
    if (key == "language") return ReadText(&out_->language);
    if (key == "opaque") return ReadInt(key, &out_->opaque);
    if (key == "remark") return ReadText(&out_->remark);
    if (key == "version") return ReadInt(key, &out_->version);
    return lexer_.SkipValue(1);
  }

  // A scalar as text, good until the next one; null is the empty text with *is_null set.
  Status ReadScalar(std::string_view* text, bool* is_null) {
    *is_null = false;
    const char c = lexer_.Peek();
    if (c == '"' || c == '\'') return lexer_.ReadString(&scratch_, text);
    if (c == '{' || c == '[') {  // as it stands
      const std::size_t from = lexer_.position();
      TRIAD_RETURN_IF_ERROR(lexer_.SkipValue(1));
      *text = lexer_.Slice(from);
      return IsValidUtf8(*text) ? Status::Ok() : lexer_.Error("a value is not UTF-8");
    }
    TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(text));
    *is_null = *text == "null";
    if (*is_null) *text = {};
    return Status::Ok();
  }

  Status ReadText(std::string* out) {
    bool is_null = false;
    std::string_view text;
    TRIAD_RETURN_IF_ERROR(ReadScalar(&text, &is_null));
    if (!is_null) out->assign(text);
    return Status::Ok();
  }

  Status ReadInt(std::string_view key, std::int32_t* out) {
    bool is_null = false;
    std::string_view text;
    TRIAD_RETURN_IF_ERROR(ReadScalar(&text, &is_null));
    if (is_null) return Status::Ok();
    const char* end = text.data() + text.size();
    const auto [ptr, error] = std::from_chars(text.data(), end, *out);
    if (error == std::errc() && ptr == end) return Status::Ok();
    return lexer_.Error(std::string(key) + " is no 32-bit integer");
  }

  Status ReadExtFields() {
    bool is_null = false;
    std::string_view value;
    if (lexer_.Peek() != '{') {
      TRIAD_RETURN_IF_ERROR(ReadScalar(&value, &is_null));
      return is_null ? Status::Ok() : lexer_.Error("extFields is no object");
    }
    TRIAD_RETURN_IF_ERROR(lexer_.Expect('{'));
    lexer_.SkipSpace();
    while (!lexer_.Consume('}')) {
      std::string_view key;
      TRIAD_RETURN_IF_ERROR(ReadKey(&key));
      TRIAD_RETURN_IF_ERROR(ReadScalar(&value, &is_null));
      if (!is_null) out_->ext.Add(key, value);
      lexer_.SkipSpace();
      if (!lexer_.Consume(',')) return lexer_.Expect('}');
      lexer_.SkipSpace();
    }
    return Status::Ok();
  }

  JsonLexer lexer_;
  Command* out_;
  std::string key_scratch_;
  std::string scratch_;
};

}  // namespace

// The compact form that clients write: no space, double quotes, known shapes. What is in another
// form, or wrong, is left to HeaderParser, which takes all and says what is wrong.
class CompactHeaderReader {
 public:
  CompactHeaderReader(std::string_view text, Command* out)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), out_(out) {
    // Most fields are views into one copy of the header.
    out->ext.text_.assign(text);
    out->ext.places_.reserve(kPlaces);
  }

  // False: parse it again; *out is half filled.
  bool Read() {
    if (!Take('{')) return false;
    do {
      Piece key;
      if (!ReadPlain(&key) || !Take(':')) return false;
      // Out of the header itself: a text with escapes makes the copy move.
      if (!ReadMember({begin_ + key.at, key.bytes})) return false;
    } while (Take(','));
    return Take('}') && at_ == end_;
  }

 private:
  static constexpr std::size_t kPlaces = 16;
  struct Piece {  // in out_->ext.text_
    std::uint32_t at = 0;
    std::uint32_t bytes = 0;
  };

  std::string_view Text(const Piece& piece) const {
    return {out_->ext.text_.data() + piece.at, piece.bytes};
  }

  bool Take(char expected) {
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // A quoted text without escapes.
  bool ReadPlain(Piece* piece) {
    if (!Take('"')) return false;
    const char* const from = at_;
    bool ascii = true;
    at_ = FindStringStop(at_, end_, '"', &ascii);
    if (at_ == end_ || *at_ != '"') return false;
    *piece = {static_cast<std::uint32_t>(from - begin_), static_cast<std::uint32_t>(at_ - from)};
    ++at_;
    return ascii || IsValidUtf8(Text(*piece));
  }

  bool ReadText(Piece* piece) {
    const char* const from = at_;
    if (ReadPlain(piece)) return true;
    if (at_ == end_ || *at_ != '\\') return false;
    JsonLexer lexer(std::string_view(from, static_cast<std::size_t>(end_ - from)));
    std::string_view text;
    if (!lexer.ReadString(&scratch_, &text).ok()) return false;
    *piece = {out_->ext.Append(text), static_cast<std::uint32_t>(text.size())};
    at_ = from + lexer.position();
    return true;
  }

  // true, false or a number.
  bool ReadWord(Piece* piece) {
    const char* const from = at_;
    while (at_ != end_ && ((*at_ >= '0' && *at_ <= '9') || (*at_ >= 'a' && *at_ <= 'z') ||
                           *at_ == '-' || *at_ == '.')) {
      ++at_;
    }
    *piece = {static_cast<std::uint32_t>(from - begin_), static_cast<std::uint32_t>(at_ - from)};
    return at_ != from;
  }

  bool ReadMember(std::string_view key) {
    if (key == "extFields") return ReadFields();
    if (key == "language" || key == "remark" || key == "serializeTypeCurrentRPC") {
      Piece text;
      if (!ReadText(&text)) return false;
      if (key == "language") out_->language.assign(Text(text));
      if (key == "remark") out_->remark.assign(Text(text));
      return true;
    }
    std::int32_t* number = key == "code"      ? &out_->code
                           : key == "flag"    ? &out_->flag
                           : key == "opaque"  ? &out_->opaque
                           : key == "version" ? &out_->version
                                              : nullptr;
    if (number == nullptr) return false;
    const auto [ptr, error] = std::from_chars(at_, end_, *number);
    at_ = ptr;
    return error == std::errc();
  }

  bool ReadFields() {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      Piece key;
      Piece value;
      if (!ReadPlain(&key) || !Take(':') || at_ == end_) return false;
      const bool quoted = *at_ == '"';
      if (quoted ? !ReadText(&value) : !ReadWord(&value)) return false;
      if (!quoted && Text(value) == "null") continue;
      out_->ext.places_.push_back({key.at, key.bytes, value.at, value.bytes});
    } while (Take(','));
    return Take('}');
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  Command* const out_;
  std::string scratch_;
};

namespace {

void AppendInt(std::string_view before, std::int32_t value, std::string* out) {
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out->append(before);
  out->append(digits, end);
}

}  // namespace

Status DecodeJsonHeader(std::string_view header, Command* out) {
  out->version = 0;
  if (CompactHeaderReader(header, out).Read()) return Status::Ok();
  *out = Command();
  out->version = 0;
  out->ext.Reserve(16, header.size());
  return HeaderParser(header, out).Parse();
}

namespace {

// Writes a header into a buffer of fixed size; false when it does not fit or a text needs care.
class PlainHeaderWriter {
 public:
  bool Write(const Command& command) {
    Raw("{\"code\":");
    Number(command.code);
    if (!command.ext.empty()) {
      char before = '{';
      Raw(",\"extFields\":");
      command.ext.Visit([&](std::string_view key, std::string_view value) {
        Raw({&before, 1});
        before = ',';
        Text(key);
        Raw(":");
        Text(value);
        return fits_;
      });
      Raw("}");
    }
    Raw(",\"flag\":");
    Number(command.flag);
    Raw(",\"language\":");
    Text(command.language);
    Raw(",\"opaque\":");
    Number(command.opaque);
    if (!command.remark.empty()) {
      Raw(",\"remark\":");
      Text(command.remark);
    }
    Raw(",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    Number(command.version);
    Raw("}");
    return fits_;
  }
  std::string_view text() const { return {buffer_.data(), at_}; }

 private:
  void Raw(std::string_view text) {
    if (text.size() > buffer_.size() - at_) fits_ = false;
    if (!fits_) return;
    std::memcpy(buffer_.data() + at_, text.data(), text.size());
    at_ += text.size();
  }
  void Text(std::string_view text) {
    fits_ = fits_ && IsPlainJsonText(text);
    Raw("\"");
    Raw(text);
    Raw("\"");
  }
  void Number(std::int32_t value) {
    const auto end = buffer_.data() + buffer_.size();
    const auto [ptr, error] = std::to_chars(buffer_.data() + at_, end, value);
    fits_ = fits_ && error == std::errc();
    if (fits_) at_ = static_cast<std::size_t>(ptr - buffer_.data());
  }

  std::array<char, 1024> buffer_;
  std::size_t at_ = 0;
  bool fits_ = true;
};

}  // namespace

void AppendJsonHeader(const Command& command, std::string* out) {
  PlainHeaderWriter writer;
  if (writer.Write(command)) {
    out->append(writer.text());
    return;
  }
  AppendInt("{\"code\":", command.code, out);
  char before = '{';
  if (!command.ext.empty()) out->append(",\"extFields\":");
  command.ext.Visit([&](std::string_view key, std::string_view value) {
    out->push_back(before);
    before = ',';
    AppendJsonString(key, out);
    out->push_back(':');
    AppendJsonString(value, out);
    return true;
  });
  if (!command.ext.empty()) out->push_back('}');
  AppendInt(",\"flag\":", command.flag, out);
  out->append(",\"language\":");
  AppendJsonString(command.language, out);
  AppendInt(",\"opaque\":", command.opaque, out);
  if (!command.remark.empty()) {
    out->append(",\"remark\":");
    AppendJsonString(command.remark, out);
  }
  AppendInt(",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":", command.version, out);
  out->push_back('}');
}

}  // namespace triad::remoting
