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

OpenRecords RecordsOf(dledger::StoredPieces* pieces) {
  return [pieces] {
    pieces->Rewind();
    return std::make_unique<ImageRecords>(
        [pieces](std::string* piece) { return pieces->Next(piece); });
  };
}

}  // namespace triad::broker
