#include "remoting/replication_bodies.h"

#include "remoting/body_codec.h"

namespace triad::remoting {
namespace {

// The members of a body, named once for both directions.
template <typename Body, typename Visit>
void VisitMember(Body& m, const Visit& visit) {
  visit("clientAddress", m.client_address);
  visit("connected", m.connected);
  visit("heardAgoMs", m.heard_ago_ms);
  visit("id", m.id);
  visit("lagBytes", m.lag_bytes);
  visit("lagEntries", m.lag_entries);
  visit("lagMs", m.lag_ms);
  visit("learner", m.learner);
  visit("peerAddress", m.peer_address);
  visit("recovering", m.recovering);
}

template <typename Body, typename Visit>
void VisitStatus(Body& s, const Visit& visit) {
  visit("appliedIndex", s.applied_index);
  visit("beginPosition", s.begin_position);
  visit("brokerName", s.broker_name);
  visit("clientAddress", s.client_address);
  visit("cluster", s.cluster);
  visit("commitIndex", s.commit_index);
  visit("diskFreeBytes", s.disk_free_bytes);
  visit("diskUsedRatio", s.disk_used_ratio);
  visit("endPosition", s.end_position);
  visit("firstIndex", s.first_index);
  visit("group", s.group);
  visit("lastIndex", s.last_index);
  visit("leader", s.leader);
  visit("logAlarm", s.log_alarm);
  visit("loopDelayMaxUs", s.loop_delay_max_us);
  visit("loopDelayP99Us", s.loop_delay_p99_us);
  visit("members", s.members);
  visit("peer", s.peer);
  visit("ready", s.ready);
  visit("reason", s.reason);
  visit("role", s.role);
  visit("syncCount", s.sync_count);
  visit("syncMaxUs", s.sync_max_us);
  visit("syncP99Us", s.sync_p99_us);
  visit("term", s.term);
  visit("version", s.version);
}

template <typename Body, typename Visit>
void VisitPiece(Body& p, const Visit& visit) {
  visit("from", p.from);
  visit("hash", p.hash);
  visit("to", p.to);
}

template <typename Body, typename Visit>
void VisitDigest(Body& d, const Visit& visit) {
  visit("begin", d.begin);
  visit("end", d.end);
  visit("pieces", d.pieces);
}

template <typename Body, typename Visit>
void VisitRecord(Body& r, const Visit& visit) {
  visit("bytes", r.bytes);
  visit("damage", r.damage);
  visit("hash", r.hash);
  visit("index", r.index);
  visit("position", r.position);
  visit("term", r.term);
}

struct Writing {
  JsonWriter* writer;
  void operator()(std::string_view key, const std::string& v) const { writer->Key(key).String(v); }
  void operator()(std::string_view key, std::int64_t v) const { writer->Key(key).Int(v); }
  void operator()(std::string_view key, double v) const { writer->Key(key).Double(v); }
  void operator()(std::string_view key, bool v) const { writer->Key(key).Bool(v); }
  template <typename T>
  void operator()(std::string_view key, const std::vector<T>& v) const {
    WriteList(key, v, writer);
  }
};

struct Reading {
  const Json& json;
  void operator()(std::string_view key, std::string& v) const { v = json[key].AsString(v); }
  void operator()(std::string_view key, std::int64_t& v) const { v = json[key].AsInt64(v); }
  void operator()(std::string_view key, double& v) const { v = json[key].AsDouble(v); }
  void operator()(std::string_view key, bool& v) const { v = json[key].AsBool(v); }
  template <typename T>
  void operator()(std::string_view key, std::vector<T>& v) const {
    v = AsList<T>(json[key]);
  }
};

}  // namespace

void GroupStatusBody::Member::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  VisitMember(*this, Writing{writer});
  writer->EndObject();
}
GroupStatusBody::Member GroupStatusBody::Member::From(const Json& json) {
  Member member;
  VisitMember(member, Reading{json});
  return member;
}

std::string GroupStatusBody::Encode() const {
  return EncodeBody(*this);
}
Result<GroupStatusBody> GroupStatusBody::Decode(std::string_view body) {
  return DecodeBody<GroupStatusBody>("GroupStatus", body);
}
void GroupStatusBody::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  VisitStatus(*this, Writing{writer});
  writer->EndObject();
}
GroupStatusBody GroupStatusBody::From(const Json& json) {
  GroupStatusBody status;
  VisitStatus(status, Reading{json});
  return status;
}

void LogDigestBody::Piece::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  VisitPiece(*this, Writing{writer});
  writer->EndObject();
}
LogDigestBody::Piece LogDigestBody::Piece::From(const Json& json) {
  Piece piece;
  VisitPiece(piece, Reading{json});
  return piece;
}
std::string LogDigestBody::Encode() const {
  return EncodeBody(*this);
}
Result<LogDigestBody> LogDigestBody::Decode(std::string_view body) {
  return DecodeBody<LogDigestBody>("LogDigest", body);
}
void LogDigestBody::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  VisitDigest(*this, Writing{writer});
  writer->EndObject();
}
LogDigestBody LogDigestBody::From(const Json& json) {
  LogDigestBody digest;
  VisitDigest(digest, Reading{json});
  return digest;
}

void LogRecordsBody::Record::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  VisitRecord(*this, Writing{writer});
  writer->EndObject();
}
LogRecordsBody::Record LogRecordsBody::Record::From(const Json& json) {
  Record record;
  VisitRecord(record, Reading{json});
  return record;
}
std::string LogRecordsBody::Encode() const {
  return EncodeBody(*this);
}
Result<LogRecordsBody> LogRecordsBody::Decode(std::string_view body) {
  return DecodeBody<LogRecordsBody>("LogRecords", body);
}
void LogRecordsBody::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("records").BeginArray();
  for (const Record& record : records) record.WriteTo(writer);
  writer->EndArray();
  writer->EndObject();
}
LogRecordsBody LogRecordsBody::From(const Json& json) {
  return LogRecordsBody{.records = AsList<Record>(json["records"])};
}

}  // namespace triad::remoting
