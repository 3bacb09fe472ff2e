#include "engine/session/training_phases.h"

#include <set>
#include <string>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/run_log/memory_record.h"
#include "engine/system/stop_request.h"
#include "engine/train/carried_state.h"

namespace tessera::engine {

namespace {

// How a part of a run ended on those who took part in it.
struct PartEnd {
  enum class Kind : int { Done, Error, Stopped };
  Kind kind = Kind::Done;
  int signal = 0;
};

std::set<int> ranks_with_a_part(const partitioner::Partition& partition) {
  std::set<int> ranks{0};
  for (const int rank : busy_ranks(partition)) {
    ranks.insert(rank);
  }
  if (const auto reader = partition.reader.single_rank()) {
    ranks.insert(*reader);
  }
  return ranks;
}

}  // namespace

void TrainingPhases::begin(PhasePlan first, const TrainerOptions& options, PictureSources sources) {
  options_ = options;
  sources_ = std::move(sources);
  phase_.emplace(std::move(first), communicator_, options_, sources_);
}

void TrainingPhases::change_to(const partitioner::Partition& partition, PhasePlan next) {
  const CarriedState state = [this] {
    if (!phase_) {
      return CarriedState(plan(), nullptr);
    }
    const auto common = phase_->trainer().common_model();
    return CarriedState(plan(), &phase_->trainer());
  }();
  sent_bytes_before_ = sent_bytes();
  phase_.reset();
  const std::set<int> ranks = ranks_with_a_part(partition);
  if (ranks.count(communicator_.rank()) > 0) {
    const Communicator taking_part = communicator_.among({ranks.begin(), ranks.end()});
    phase_.emplace(std::move(next), taking_part, options_, sources_);
    resting_ = {};
  } else {
    resting_ = std::move(next);
  }
  state.give(plan(), phase_ ? &phase_->trainer() : nullptr, communicator_);
  some_rest_ = static_cast<int>(ranks.size()) < communicator_.size();
}

void TrainingPhases::take_part(const std::function<void()>& work) {
  if (!some_rest_) {
    work();
    return;
  }
  PartEnd mine;
  std::string what;
  const OrderlyStop orderly;  // a signal to one that rests reaches those who train, too
  if (phase_) {
    try {
      work();
    } catch (const AgreedError& error) {
      mine.kind = PartEnd::Kind::Error;
      what = error.what();
    } catch (const Stopped& stopped) {
      mine = {PartEnd::Kind::Stopped, stopped.signal()};
      what = stopped.what();
    }
  }
  const Communicator waits = phase_ ? communicator_ : communicator_.resting();
  const PartEnd end = waits.share(mine);
  const std::string text =
      waits.agree(communicator_.rank() == 0 ? std::optional(what) : std::nullopt).value_or("");
  if (end.kind == PartEnd::Kind::Error) {
    throw AgreedError(text);
  }
  if (end.kind == PartEnd::Kind::Stopped) {
    throw Stopped(end.signal, text);
  }
}

Index TrainingPhases::steps_done() {
  return communicator_.share(phase_ ? phase_->trainer().steps_done() : 0);
}

std::int64_t TrainingPhases::sent_bytes() {
  return sent_bytes_before_ + (phase_ ? phase_->trainer().sent_bytes() : 0);
}

Index TrainingPhases::trunk_bytes() {
  Index bytes = 0;
  for (const TrunkCache* trunk :
       {phase_ ? phase_->trunk() : nullptr, phase_ ? phase_->testing_trunk() : nullptr}) {
    bytes += trunk != nullptr ? trunk->memory_bytes() : 0;
  }
  return bytes;
}

partitioner::MemoryUse TrainingPhases::memory() {
  if (!phase_) {
    return {};
  }
  Trainer& trainer = phase_->trainer();
  partitioner::MemoryUse memory =
      measured_memory(trainer.execution().memory(), trainer.optimizer().bytes());
  memory.messages += trainer.synchronisation_bytes();
  for (const DataLoader* loader : {&phase_->training(), phase_->testing()}) {
    if (loader != nullptr) {
      memory.pictures += loader->bytes();
      memory.decoding += loader->decoding_bytes();
      memory.data += loader->data_bytes();
    }
  }
  return memory;
}

}  // namespace tessera::engine
