// What a request's header must have: a test names the fields, and this proves of each that it is
// needed and that no other is.

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "remoting/command.h"

namespace triad::test {

// Required fields in the order in which they are asked for, each with a value that can be read.
using RequiredFields = std::vector<std::pair<std::string, std::string>>;

// `ask` sends a request with the fields it is given. Without one of `fields` the answer is `code`
// with a remark that names it; with all of them nothing is missing.
template <typename Ask>
void ExpectEachFieldIsRequired(const RequiredFields& fields, std::int32_t code, const Ask& ask) {
  for (std::size_t left_out = 0; left_out < fields.size(); ++left_out) {
    RequiredFields others = fields;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const remoting::Command answer = ask(others);
    EXPECT_EQ(answer.code, code) << fields[left_out].first << ": " << answer.remark;
    // The fields of a short header are named in full: "flag (h)".
    const std::string& name = fields[left_out].first;
    EXPECT_THAT(answer.remark, testing::StartsWith("missing required field "));
    EXPECT_THAT(answer.remark, testing::AnyOf(testing::EndsWith(" " + name),
                                              testing::EndsWith(" (" + name + ")")));
  }
  EXPECT_THAT(ask(fields).remark, testing::Not(testing::HasSubstr("missing required field")));
}

}  // namespace triad::test
