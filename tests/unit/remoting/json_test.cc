#include "remoting/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace triad::remoting {
namespace {

std::string Compact(const Json& json) {
  JsonWriter writer;
  json.WriteTo(&writer);
  return writer.Take();
}

TEST(JsonParse, ReadsTheDialect) {
  const struct {
    const char* name;
    const char* text;
    const char* compact;
  } kCases[] = {
      {"scalars", "[null,true,false,0,-1,1.5,1e3,\"x\"]", "[null,true,false,0,-1,1.5,1e3,\"x\"]"},
      {"white space", " \r\n\t{ \"a\" : [ ] , \"b\" : { } } \n", "{\"a\":[],\"b\":{}}"},
      {"bare keys", "{a:1,b_c:2}", "{\"a\":1,\"b_c\":2}"},
      {"integer keys", "{0:\"h:1\",1:\"h:2\"}", "{\"0\":\"h:1\",\"1\":\"h:2\"}"},
      {"single quotes", "{'a':'it\"s','b':\"it's\"}", "{\"a\":\"it\\\"s\",\"b\":\"it's\"}"},
      {"object keys", "{{\"queueId\":0,\"topic\":\"T\"}:9,{ 'queueId' : 1 }:{}}",
       "{{\"queueId\":0,\"topic\":\"T\"}:9,{\"queueId\":1}:{}}"},
      {"escapes", R"("\"\\\/\b\f\n\r\t\'\u0001")", R"("\"\\/\b\f\n\r\t'\u0001")"},
      {"raw control characters", "\"a\x01\x02\n\"", R"("a\u0001\u0002\n")"},
      {"raw UTF-8", "\"\xe4\xb8\xad\xf0\x9f\x98\x80\"", "\"\xe4\xb8\xad\xf0\x9f\x98\x80\""},
      {"escaped UTF-16", R"("\u4e2d\ud83d\ude00\u00e9")",
       "\"\xe4\xb8\xad\xf0\x9f\x98\x80\xc3\xa9\""},
      {"lone surrogates", R"("\ud83d \ude00\ud83dx\ud83d\u0041")", "\"? ??x?A\""},
      {"trailing comma", "{\"a\":[1,2,],}", "{\"a\":[1,2]}"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto json = Json::Parse(c.text);
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(Compact(*json), c.compact);
  }
}

TEST(JsonParse, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "[",
                           "[1",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1",
                           "{\"a\":1]",
                           "\"x",
                           "'x\"",
                           "\"\\x41\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud83d\\uzzzz\"",
                           "\"\\",
                           "nul",
                           "truee",
                           "nan",
                           "inf",
                           "-",
                           "--1",
                           "1x",
                           "1 2",
                           "{} {}",
                           "{1}",
                           "{[1]:2}",
                           "{:1}",
                           "[,1]",
                           "\x01",
                           "\xff",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xe4\xb8\"",
                           "\"\xf4\x90\x80\x80\""}) {
    const auto json = Json::Parse(text);
    EXPECT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(JsonParse, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(Json::Parse("{\"a\" 1}").status().message(), "bad JSON at byte 5: expected ':'");
  EXPECT_EQ(Json::Parse("[1").status().message(),
            "bad JSON at byte 2: expected ']' (the text ends here)");
}

TEST(JsonParse, NestsUpToSixtyFourDeep) {
  EXPECT_TRUE(Json::Parse(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(Json::Parse(std::string(65, '[') + std::string(65, ']')).ok());
  // Object keys nest as well.
  EXPECT_FALSE(Json::Parse(std::string(1000, '{')).ok());
  EXPECT_FALSE(Json::Parse(std::string(1000000, '[')).ok());
}

TEST(JsonParse, BoundsTheNumberOfValues) {
  std::string text = "[0";
  for (int i = 0; i < 1000000; ++i) text += ",0";
  EXPECT_NE(Json::Parse(text + "]").status().message().find("too many values"), std::string::npos);
}

TEST(Json, ScalarsAreLenient) {
  const Json json =
      Json::Parse(R"({"n":7,"s":"8","f":2.9,"big":9223372036854775807,"huge":1e300,)"
                  R"("yes":"TRUE","no":"false","word":"x","one":1,"null":null,"list":[]})")
          .value();
  EXPECT_EQ(json["n"].AsInt64(), 7);
  EXPECT_EQ(json["n"].AsString(), "7");
  EXPECT_EQ(json["s"].AsInt64(), 8);
  EXPECT_EQ(json["s"].AsDouble(), 8.0);
  EXPECT_EQ(json["f"].AsInt64(), 2);
  EXPECT_EQ(json["big"].AsInt64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(json["huge"].AsInt64(-3), -3);
  EXPECT_TRUE(json["yes"].AsBool());
  EXPECT_FALSE(json["no"].AsBool(true));
  EXPECT_TRUE(json["word"].AsBool(true));
  EXPECT_TRUE(json["one"].AsBool());
  EXPECT_EQ(json["word"].AsInt64(5), 5);
  EXPECT_EQ(json["null"].AsString("fallback"), "fallback");
  EXPECT_EQ(json["list"].AsInt64(4), 4);
  EXPECT_TRUE(json["absent"].is_null());
  EXPECT_TRUE(json["absent"]["deeper"].is_null());
  EXPECT_TRUE(json.Has("null"));
  EXPECT_FALSE(json.Has("absent"));
}

TEST(Json, ALaterDuplicateWins) {
  EXPECT_EQ(Json::Parse(R"({"a":1,"a":2})").value()["a"].AsInt64(), 2);
}

TEST(Json, AnObjectKeyKeepsItsTextAndItsMembers) {
  const Json json = Json::Parse(R"({{"topic":"T", "queueId":3}:9})").value();
  ASSERT_EQ(json.members().size(), 1u);
  EXPECT_EQ(json.members()[0].key, R"({"topic":"T", "queueId":3})");
  EXPECT_EQ(json.members()[0].key_object["queueId"].AsInt64(), 3);
  EXPECT_EQ(json.members()[0].value.AsInt64(), 9);
}

TEST(JsonWriter, WritesCompactText) {
  JsonWriter w;
  w.BeginObject();
  w.Key("a").BeginArray().Int(-1).Bool(true).String("x").BeginObject().EndObject().EndArray();
  w.Key("d").Double(0).Key("e").Double(12.5).Key("f").Raw("{}");
  w.RawKey(R"({"q":0})").Int(1);
  w.EndObject();
  EXPECT_EQ(w.text(), R"({"a":[-1,true,"x",{}],"d":0.0,"e":12.5,"f":{},{"q":0}:1})");
}

TEST(JsonWriter, HasNoNumberForInfinity) {
  JsonWriter w;
  w.BeginArray().Double(std::numeric_limits<double>::infinity()).EndArray();
  EXPECT_EQ(w.text(), "[null]");
}

TEST(AppendJsonString, NeverWritesBytesThatAReaderRefuses) {
  std::string out;
  AppendJsonString("ok\xff\xe4 end", &out);
  EXPECT_EQ(out, "\"ok?? end\"");
}

}  // namespace
}  // namespace triad::remoting
