// The JSON header. No tree is built: one pass over the text, values straight into the command.

#include <charconv>
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
      TRIAD_RETURN_IF_ERROR(ReadKey(&key_));
      TRIAD_RETURN_IF_ERROR(ReadMember());
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
  Status ReadKey(std::string* key) {
    const char c = lexer_.Peek();
    if (c == '"' || c == '\'') {
      TRIAD_RETURN_IF_ERROR(lexer_.ReadString(key));
    } else {
      std::string_view word;
      TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(&word));
      key->assign(word);
    }
    lexer_.SkipSpace();
    TRIAD_RETURN_IF_ERROR(lexer_.Expect(':'));
    lexer_.SkipSpace();
    return Status::Ok();
  }

  Status ReadMember() {
    if (key_ == "code") return ReadInt(&out_->code);
    if (key_ == "extFields") return ReadExtFields();
    if (key_ == "flag") return ReadInt(&out_->flag);
    if (key_ == "language") return ReadText(&out_->language);
    if (key_ == "opaque") return ReadInt(&out_->opaque);
    if (key_ == "remark") return ReadText(&out_->remark);
    if (key_ == "version") return ReadInt(&out_->version);
    return lexer_.SkipValue(1);
  }

  // A scalar as text; null is the empty text with *is_null set.
  Status ReadScalar(std::string* text, bool* is_null) {
    *is_null = false;
    const char c = lexer_.Peek();
    if (c == '"' || c == '\'') return lexer_.ReadString(text);
    if (c == '{' || c == '[') {  // as it stands
      const std::size_t from = lexer_.position();
      TRIAD_RETURN_IF_ERROR(lexer_.SkipValue(1));
      text->assign(lexer_.Slice(from));
      return IsValidUtf8(*text) ? Status::Ok() : lexer_.Error("a value is not UTF-8");
    }
    std::string_view word;
    TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(&word));
    *is_null = word == "null";
    if (*is_null) word = {};
    text->assign(word);
    return Status::Ok();
  }

  Status ReadText(std::string* out) {
    bool is_null = false;
    TRIAD_RETURN_IF_ERROR(ReadScalar(&scratch_, &is_null));
    if (!is_null) *out = std::move(scratch_);
    return Status::Ok();
  }

  Status ReadInt(std::int32_t* out) {
    bool is_null = false;
    TRIAD_RETURN_IF_ERROR(ReadScalar(&scratch_, &is_null));
    if (is_null) return Status::Ok();
    const char* end = scratch_.data() + scratch_.size();
    const auto [ptr, error] = std::from_chars(scratch_.data(), end, *out);
    if (error == std::errc() && ptr == end) return Status::Ok();
    return lexer_.Error(key_ + " is no 32-bit integer");
  }

  Status ReadExtFields() {
    if (lexer_.Peek() != '{') {
      bool is_null = false;
      TRIAD_RETURN_IF_ERROR(ReadScalar(&scratch_, &is_null));
      return is_null ? Status::Ok() : lexer_.Error("extFields is no object");
    }
    TRIAD_RETURN_IF_ERROR(lexer_.Expect('{'));
    lexer_.SkipSpace();
    while (!lexer_.Consume('}')) {
      std::string key;
      std::string value;
      bool is_null = false;
      TRIAD_RETURN_IF_ERROR(ReadKey(&key));
      TRIAD_RETURN_IF_ERROR(ReadScalar(&value, &is_null));
      if (!is_null) out_->ext.Add(std::move(key), std::move(value));
      lexer_.SkipSpace();
      if (!lexer_.Consume(',')) return lexer_.Expect('}');
      lexer_.SkipSpace();
    }
    return Status::Ok();
  }

  JsonLexer lexer_;
  Command* out_;
  std::string key_;
  std::string scratch_;
};

void AppendInt(std::string_view before, std::int32_t value, std::string* out) {
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out->append(before);
  out->append(digits, end);
}

}  // namespace

Status DecodeJsonHeader(std::string_view header, Command* out) {
  out->version = 0;
  out->ext.Reserve(16);
  return HeaderParser(header, out).Parse();
}

void AppendJsonHeader(const Command& command, std::string* out) {
  AppendInt("{\"code\":", command.code, out);
  char before = '{';
  if (!command.ext.empty()) out->append(",\"extFields\":");
  for (const auto& [key, value] : command.ext.items()) {
    out->push_back(before);
    before = ',';
    AppendJsonString(key, out);
    out->push_back(':');
    AppendJsonString(value, out);
  }
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
