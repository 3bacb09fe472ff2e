#include "engine/session/data_move.h"

#include <fmt/format.h>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/system/clock.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

DataMove::DataMove(const partitioner::DataMap& data_map,
                   const SampleMoveOptions& options,
                   const MoveObserver& observer,
                   std::shared_ptr<BatchSource> source,
                   const Communicator& communicator)
    : source_(std::move(source)),
      move_(data_map, options, communicator, source_->dataset()),
      observer_(observer),
      communicator_(communicator),
      begun_s_(now_s()) {
  show(move_.progress());
}

void DataMove::show(const MoveProgress& progress) const {
  if (communicator_.rank() == 0 && observer_.progress) {
    observer_.progress(progress);
  }
}

void DataMove::note(const std::string& line) const {
  if (communicator_.rank() == 0 && observer_.note) {
    observer_.note(line);
  }
}

bool DataMove::look(Index most) {
  over_ = move_.look();
  if (!std::exchange(looked_, true) && !over_) {
    note(fmt::format("meanwhile up to {} on what stays where it is", counted(most, "step")));
  }
  return over_;
}

std::string DataMove::finish(Index steps) {
  const double waiting_s = now_s();
  if (over_) {
    show(move_.progress());
  } else {
    move_.finish([this](const MoveProgress& progress) { show(progress); });
  }
  const double end_s = now_s();
  throw_agreed(communicator_, problem_of([this] {
                 source_->change([this](Dataset& dataset) { move_.add_arrivals(dataset); });
               }));
  const MoveProgress& all = move_.progress();
  std::string happened = fmt::format("{} ({}) moved between devices in {:.1f} s",
                                     counted(all.samples - all.there_before, "sample"),
                                     readable_bytes(all.bytes),
                                     end_s - begun_s_);
  if (looked_) {
    const std::string meanwhile = fmt::format(
        "{} ran meanwhile, then {:.1f} s of waiting", counted(steps, "step"), end_s - waiting_s);
    note(meanwhile);
    happened += ", " + meanwhile;
  }
  return happened;
}

}  // namespace tessera::engine
