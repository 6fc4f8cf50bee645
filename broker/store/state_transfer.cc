#include "broker/store/state_transfer.h"

#include "broker/state/state_image.h"

namespace triad::broker {
namespace {

class RecordPieces final : public dledger::StatePieces {
 public:
  explicit RecordPieces(std::unique_ptr<StateRecords> records) : records_(std::move(records)) {}
  Result<bool> Next(std::string* piece) override { return NextImagePiece(records_.get(), piece); }

 private:
  const std::unique_ptr<StateRecords> records_;
};

}  // namespace

std::unique_ptr<dledger::StatePieces> PiecesOf(std::unique_ptr<StateRecords> records) {
  return std::make_unique<RecordPieces>(std::move(records));
}

Result<std::vector<std::pair<std::string, std::string>>> RecordsOf(dledger::StatePieces* pieces) {
  StateImageParser parser;
  std::string piece;
  while (true) {
    const Result<bool> more = pieces->Next(&piece);
    if (!more.ok()) return more.status();
    if (!more.value()) return std::move(parser).Finish();
    TRIAD_RETURN_IF_ERROR(parser.Add(piece));
  }
}

}  // namespace triad::broker
