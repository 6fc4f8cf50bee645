// HttpRequest: the head of an HTTP/1.x request, as far as a server of a few pages needs it.
//
// Pure. Not trusted: any bytes may come. Source: RFC 9112 §3, §5, §9.3.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/status.h"

namespace triad::remoting {

struct HttpRequest {
  std::string method;
  std::string path;         // without the query
  bool keep_alive = false;  // another request may follow on the connection
  bool has_body = false;    // something that nobody reads follows the head
};

// Reads the head that `bytes` begin with: its length, or 0 when its end has not come yet. Errors:
// kInvalidArgument (what is wrong).
Result<std::size_t> ReadHttpRequest(std::string_view bytes, HttpRequest* request);

}  // namespace triad::remoting
