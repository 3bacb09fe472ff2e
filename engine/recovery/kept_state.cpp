#include "engine/recovery/kept_state.h"

#include <exception>
#include <fmt/format.h>
#include <random>
#include <utility>

#include "engine/comm/texts_of_ranks.h"
#include "engine/execution/parameter_chunks.h"
#include "engine/recovery/device_name.h"
#include "engine/recovery/slot_file.h"
#include "engine/system/kept_files.h"
#include "partitioner/network/network.h"
#include "partitioner/plan/plan_fingerprint.h"

namespace tessera::engine {

namespace {

Index elements_of(const std::vector<KeptPart>& parts) {
  Index elements = 0;
  for (const KeptPart& part : parts) {
    elements += part.elements.size();
  }
  return elements;
}

std::string own_device(const std::filesystem::path& folder, const Communicator& communicator) {
  return communicator.takes_part(communicator.rank()) ? device_name(folder) : std::string();
}

}  // namespace

// The two files of a rank, and what has to be where for them. The floats of second copies begin
// with those that are sent here, rank after rank; those that the all-gather brings follow.
class KeptState::Files {
 public:
  Files(std::filesystem::path folder,
        const partitioner::Network& network,
        const partitioner::Plan& plan,
        Trainer& trainer,
        const Communicator& communicator)
      : folder_(std::move(folder)), plan_(plan), trainer_(trainer), rank_(communicator.rank()) {
    // Its own names: until all ranks have kept two steps, files of before may be the newest.
    start_ = communicator.share(std::uint64_t{std::random_device()()});
    lay_out(communicator);
    KeptText text{.network = fingerprint(network),
                  .start = start_,
                  .plan = fingerprint(plan),
                  .adam = trainer.optimizer().trained().adam,
                  .copies = plan.copies(),
                  .first_learns = plan.replicas.sync.mode == partitioner::SyncMode::ParameterRank};
    const auto make = [&](const char* name, const std::vector<KeptPart>& parts, KeptFile& kept) {
      text.parts = parts;
      kept.texts.emplace(text);
      kept.path = folder_ / fmt::format("{}-{}-{:08x}{}", name, rank_, start_, kKeptEnding);
      kept.file.emplace(kept.path, kept.texts->most_bytes(), elements_of(parts));
    };
    throw_agreed(communicator, problem_of([&] {
                   make("own", own_parts_, own_);
                   if (!second_parts_.empty()) {
                     make("second", second_parts_, second_);
                   }
                 }));
    trainer_.when_forward_is_done([this] { settle(); });
  }

  ~Files() { trainer_.when_forward_is_done({}); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  void keep(const StepLoss& step, Index images_seen) {
    settle();
    step_ = step;
    images_seen_ = images_seen;
    own_.file->write(step.step, own_.texts->after(step, images_seen), own_pieces());
    start_second_copies();
    if (++kept_ == 2) {
      // All ranks have finished the first step that these files have, and its second copies: no
      // rank ends a step before the others have done its forward pass.
      remove_files(fmt::format("-{:08x}{}", start_, kKeptEnding));
    }
  }

  void settle() {
    if (!std::exchange(under_way_, false)) {
      return;
    }
    ParameterSet<float>& parameters = trainer_.execution().parameters();  // all-gathered
    parameters.transfers().wait(batch_);
    if (!second_.file) {
      return;
    }
    for (std::size_t i = arriving_parts_; i < second_parts_.size(); ++i) {
      const std::span<const float> values = values_of(second_parts_[i]);
      std::copy(values.begin(), values.end(), gathered_.begin());
      gathered_ = gathered_.subspan(values.size());
    }
    second_.file->finish(step_.step, second_.texts->after(step_, images_seen_));
  }

  void discard() {
    settle();
    own_.file.reset();
    second_.file.reset();
    remove_files({});
  }

  [[nodiscard]] bool is_under_way() const { return under_way_; }
  [[nodiscard]] Index file_bytes() const {
    return (own_.file ? own_.file->bytes() : 0) + (second_.file ? second_.file->bytes() : 0);
  }
  [[nodiscard]] Index sent_bytes() const {
    return elements_of(sent_parts_) * static_cast<Index>(sizeof(float));
  }

 private:
  struct KeptFile {
    std::filesystem::path path;
    std::optional<SlotFile> file;
    std::optional<KeptTexts> texts;
  };
  struct Arrival {
    int from = 0;
    Index size = 0;
  };

  void lay_out(const Communicator& communicator) {
    const partitioner::TrainedArrays trained = trainer_.optimizer().trained();
    const partitioner::SecondPlaces places(
        plan_, texts_of_ranks(communicator, own_device(folder_, communicator)));
    Index own = 0;
    for (const std::span<float> array : trainer_.own_arrays()) {
      own += std::ssize(array);
    }
    const std::vector<Index> own_of_ranks = communicator.of_ranks(own);
    own_parts_ = owned_parts(plan_, trained, rank_, own);
    for (const KeptPart& part : own_parts_) {
      const int keeper = places.keeper(rank_, part);
      if (keeper >= 0 && !is_gathered_by(plan_, part, keeper)) {
        keeper_ = keeper;
        sent_parts_.push_back(part);
      }
    }
    sent_.resize(static_cast<std::size_t>(elements_of(sent_parts_)));
    std::vector<KeptPart> gathered;
    for (int from = 0; from < communicator.size(); ++from) {
      Arrival arrival{.from = from};
      for (const KeptPart& part :
           owned_parts(plan_, trained, from, own_of_ranks[static_cast<std::size_t>(from)])) {
        if (places.keeper(from, part) != rank_) {
          continue;
        }
        const bool arrives = !is_gathered_by(plan_, part, rank_);
        (arrives ? second_parts_ : gathered).push_back(part);
        arrival.size += arrives ? part.elements.size() : 0;
      }
      if (arrival.size > 0) {
        arrivals_.push_back(arrival);
      }
    }
    arriving_parts_ = second_parts_.size();
    second_parts_.insert(second_parts_.end(), gathered.begin(), gathered.end());
  }

  // Owned values are those after the update, whatever of others is under way.
  [[nodiscard]] std::vector<std::span<const float>> own_pieces() {
    std::vector<std::span<const float>> pieces;
    for (const KeptPart& part : own_parts_) {
      add_pieces(part, pieces);
    }
    return pieces;
  }

  void add_pieces(const KeptPart& part, std::vector<std::span<const float>>& pieces) {
    if (part.array.kind != ArrayKind::OfRank) {
      pieces.push_back(values_of(part));
      return;
    }
    for (const std::span<const float> array : trainer_.own_arrays()) {
      pieces.push_back(array);
    }
  }

  // Elements of a tensor that this rank holds.
  [[nodiscard]] std::span<const float> values_of(const KeptPart& part) {
    const auto tensor = static_cast<std::size_t>(part.array.tensor);
    const auto size = static_cast<std::size_t>(part.elements.size());
    if (part.array.kind == ArrayKind::Values) {
      const auto& parameter = trainer_.execution().parameters_under_way().all()[tensor];
      return {parameter.values.data() + part.elements.begin - parameter.held.begin, size};
    }
    const OptimizerState<float>& state = trainer_.optimizer().states()[tensor];
    const Index at = place_in_state(plan_.parameters[tensor], rank_, part.elements);
    const Array<float>& array = part.array.kind == ArrayKind::Average ? state.average
                                : part.array.kind == ArrayKind::First ? state.first
                                                                      : state.second;
    return {array.data() + at, size};
  }

  void start_second_copies() {
    BulkTransfers& transfers = trainer_.execution().parameters_under_way().transfers();
    under_way_ = true;
    if (second_.file) {
      std::span<float> floats = second_.file->begin();
      for (const Arrival& arrival : arrivals_) {
        const auto size = static_cast<std::size_t>(arrival.size);
        transfers.post_receive(batch_, arrival.from, std::as_writable_bytes(floats.first(size)));
        floats = floats.subspan(size);
      }
      gathered_ = floats;
    }
    if (keeper_ >= 0) {
      std::vector<std::span<const float>> pieces;
      for (const KeptPart& part : sent_parts_) {
        add_pieces(part, pieces);
      }
      auto at = sent_.begin();
      for (const std::span<const float> piece : pieces) {
        at = std::copy(piece.begin(), piece.end(), at);
      }
      transfers.post_send(batch_, keeper_, std::as_bytes(std::span(sent_)));
    }
  }

  // Those on this device, but for names with that ending.
  void remove_files(const std::string& left) const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(kKeptEnding) && (left.empty() || !name.ends_with(left))) {
        std::error_code gone;  // another rank here does the same
        std::filesystem::remove(entry.path(), gone);
      }
    }
  }

  std::filesystem::path folder_;
  const partitioner::Plan& plan_;
  Trainer& trainer_;
  int rank_;
  int keeper_ = -1;
  std::uint64_t start_ = 0;
  std::vector<KeptPart> own_parts_;
  std::vector<KeptPart> sent_parts_;    // of these
  std::vector<KeptPart> second_parts_;  // of other ranks
  std::size_t arriving_parts_ = 0;      // of these: the first ones
  std::vector<Arrival> arrivals_;
  KeptFile own_;
  KeptFile second_;
  StepLoss step_;  // the last one that was kept
  Index images_seen_ = 0;
  int kept_ = 0;  // steps
  // While second copies are under way:
  bool under_way_ = false;
  BulkTransfers::Batch batch_;
  std::vector<float> sent_;
  std::span<float> gathered_;  // the place of what the all-gather brings
};

KeptState::KeptState(std::filesystem::path folder,
                     const partitioner::Network& network,
                     const partitioner::Plan& plan,
                     Trainer& trainer,
                     const Communicator& communicator)
    : files_(std::make_unique<Files>(std::move(folder), network, plan, trainer, communicator)) {}

KeptState::~KeptState() {
  if (std::uncaught_exceptions() == 0) {
    files_->settle();
  } else if (files_->is_under_way()) {
    (void)files_.release();  // messages still read and write its memory
  }
}

void KeptState::keep(const StepLoss& step, Index images_seen) {
  files_->keep(step, images_seen);
}

void KeptState::settle() {
  files_->settle();
}

void KeptState::discard() {
  files_->discard();
}

Index KeptState::file_bytes() const {
  return files_->file_bytes();
}

Index KeptState::sent_bytes() const {
  return files_->sent_bytes();
}

}  // namespace tessera::engine
