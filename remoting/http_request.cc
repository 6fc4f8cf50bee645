#include "remoting/http_request.h"

#include <algorithm>
#include <cctype>

namespace triad::remoting {
namespace {

bool IsTokenCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

bool IsVisible(char c) {
  return c > ' ' && c < '\x7f';
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the next line off, without its end; "\n" alone ends one too.
std::string_view TakeLine(std::string_view* rest) {
  const std::size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The length of the head, its empty line included; 0: the end has not come.
std::size_t HeadBytes(std::string_view bytes) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos;
       end = bytes.find('\n', end + 1)) {
    std::string_view next = bytes.substr(end + 1);
    if (next.starts_with("\r\n")) return end + 3;
    if (next.starts_with('\n')) return end + 2;
  }
  return 0;
}

Status ReadRequestLine(std::string_view line, HttpRequest* request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Status::InvalidArgument("the first line is not: METHOD PATH HTTP/1.1");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(line.substr(0, first))) return Status::InvalidArgument("the method is no word");
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), IsVisible)) {
    return Status::InvalidArgument("the path has to begin with / and hold no blanks");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return Status::InvalidArgument("HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  request->method = line.substr(0, first);
  request->path = target.substr(0, target.find('?'));
  request->keep_alive = version == "HTTP/1.1";
  return Status::Ok();
}

Status ReadField(std::string_view line, HttpRequest* request) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Status::InvalidArgument("a header field is not: NAME: VALUE");
  }
  const std::string name = Lower(line.substr(0, colon));
  const std::string value = Lower(Trimmed(line.substr(colon + 1)));
  if (name == "connection") {
    if (value.find("close") != std::string::npos) request->keep_alive = false;
    if (value == "keep-alive") request->keep_alive = true;
  }
  if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
    request->has_body = true;
  }
  return Status::Ok();
}

}  // namespace

Result<std::size_t> ReadHttpRequest(std::string_view bytes, HttpRequest* request) {
  *request = HttpRequest();
  const std::size_t size = HeadBytes(bytes);
  if (size == 0) return size;
  std::string_view rest = bytes.substr(0, size);
  TRIAD_RETURN_IF_ERROR(ReadRequestLine(TakeLine(&rest), request));
  for (std::string_view line = TakeLine(&rest); !line.empty(); line = TakeLine(&rest)) {
    TRIAD_RETURN_IF_ERROR(ReadField(line, request));
  }
  return size;
}

}  // namespace triad::remoting
