#include "engine/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/execution/parameter_chunks.h"
#include "engine/files/tensor_check.h"
#include "engine/files/weights_format.h"
#include "engine/train/intact_checkpoint.h"
#include "engine/train/root_work.h"

namespace tessera::engine {

namespace {

constexpr const char* kMetric = "metric";  // the name of the one below which its value is
constexpr const char* kSmallerIsBetter = "smaller_is_better";
constexpr const char* kNoShare = "no_share";
constexpr const char* kBestF1 = "best_f1";
constexpr const char* kBestF1Score = "best_f1_score";
constexpr const char* kFormat = "tessera-checkpoint-2";  // which has digests; 1 has none
constexpr const char* kRankStates = "rank_states";       // the layout of states of ranks
constexpr const char* kLatestLosses = "latest_losses";
constexpr const char* kPostLocalSteps = "post_local_steps";

std::string state_name(const Parameter<float>& parameter, const char* part) {
  return fmt::format("optimizer.{}.{}", parameter_name(*parameter.plan), part);
}

// What a checkpoint of these parameters holds, in the order of the file.
std::vector<StoredTensor> stored_tensors(const partitioner::Network& network,
                                         const ParameterSet<float>& parameters,
                                         bool adam) {
  std::vector<StoredTensor> tensors;
  for (const Parameter<float>& parameter : parameters.all()) {
    const auto shape = parameter_shape(network, *parameter.plan);
    tensors.push_back({parameter_name(*parameter.plan), shape, ElementType::F32});
    if (is_learnt(*parameter.plan)) {
      tensors.push_back({state_name(parameter, "first"), shape, ElementType::F32});
      if (adam) {
        tensors.push_back({state_name(parameter, "second"), shape, ElementType::F32});
      }
    }
  }
  return tensors;
}

std::string rank_state_name(std::size_t rank) {
  return fmt::format("ranks.{}.state", rank);
}

// [rank][array]: how many numbers there are.
using ArraySizes = std::vector<std::vector<Index>>;

ArraySizes sizes_of_ranks(const RankState& state, const Communicator& communicator) {
  std::vector<Index> mine;
  for (const std::span<float> array : state.arrays) {
    mine.push_back(static_cast<Index>(array.size()));
  }
  ArraySizes sizes;
  for (const auto& bytes :
       communicator.gather_all(bytes_of(std::as_const(mine).data(), std::ssize(mine)))) {
    std::vector<Index>& theirs = sizes.emplace_back(bytes.size() / sizeof(Index));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
  }
  return sizes;
}

void add_rank_states(const ArraySizes& sizes, std::vector<StoredTensor>& tensors) {
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const Index all = std::accumulate(sizes[rank].begin(), sizes[rank].end(), Index{0});
    tensors.push_back({rank_state_name(rank), {all}, ElementType::F32});
  }
}

// Nothing where no rank has a number of its own, as on one rank alone.
bool is_empty(const ArraySizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const std::vector<Index>& of_rank) {
    return std::all_of(of_rank.begin(), of_rank.end(), [](Index size) { return size == 0; });
  });
}

// Calls visit(where the numbers of an array lie, numbers of its rank before it, array of this rank)
// for each array of each rank in turn.
template <class Visit>
void for_each_rank_array(const ArraySizes& sizes, const RankState& state, Visit visit) {
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    Index before = 0;
    for (std::size_t i = 0; i < sizes[rank].size(); ++i) {
      const Index size = sizes[rank][i];
      visit(PlacedRun{static_cast<int>(rank), {0, size}, 0}, before, state.arrays[i].data());
      before += size;
    }
  }
}

Index parse_number(const SafetensorsReader& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  Index value = 0;
  if (found != file.metadata().end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [last, error] = std::from_chars(found->second.data(), end, value);
    if (error == std::errc{} && last == end && value >= 0) {
      return value;
    }
  }
  throw InputError(
      file.path().string(),
      0,
      fmt::format("its metadata has no number '{}': it is not a checkpoint of this program", key));
}

void expect_shape(const SafetensorsReader& file,
                  const std::string& name,
                  const std::vector<Index>& shape) {
  const StoredTensor& stored = file.find(name);
  if (stored.shape != shape) {
    throw InputError(file.path().string(),
                     0,
                     fmt::format("tensor '{}' has a different shape than in the model: the "
                                 "checkpoint belongs to another model",
                                 name));
  }
}

// Without this a file could lose its digests by the damage that they are there to show.
void expect_digests(const SafetensorsReader& file) {
  const auto format = file.metadata().find("format");
  if (format != file.metadata().end() && format->second == kFormat && file.digests().empty()) {
    throw InputError(file.path().string(),
                     0,
                     "its digests are missing: an earlier version of this program wrote it without "
                     "any, or it has been damaged or changed since; use another copy, or go on "
                     "with the version that wrote it");
  }
}

// Variances and mean squares, of which roots are taken, are not negative.
Numbers numbers_of_checkpoint(const std::string& name) {
  return name.ends_with(".variance") || name.ends_with(".second") ? Numbers::FiniteNotNegative
                                                                  : Numbers::Finite;
}

// Momentum and Adam keep different things under the same names.
void expect_optimizer(const SafetensorsReader& file,
                      const ParameterSet<float>& parameters,
                      bool adam) {
  for (const Parameter<float>& parameter : parameters.all()) {
    if (is_learnt(*parameter.plan) && file.has(state_name(parameter, "second")) != adam) {
      throw InputError(
          file.path().string(),
          0,
          fmt::format("its optimizer state is that of {}, the model file asks for {}: change adam= "
                      "in [net], or start over from its weights with --weights",
                      adam ? "momentum" : "Adam",
                      adam ? "Adam" : "momentum"));
    }
  }
}

std::map<std::string, std::string> metadata_of(const TrainingState& state) {
  std::map<std::string, std::string> metadata{{"format", kFormat},
                                              {"step", std::to_string(state.step)},
                                              {"seed", std::to_string(state.seed)},
                                              {"images_seen", std::to_string(state.images_seen)},
                                              {"network", state.fingerprint},
                                              {"model", state.model}};
  if (state.last_frozen >= 0) {
    metadata["last_frozen"] = std::to_string(state.last_frozen);
  }
  if (state.post_local_steps > 0) {
    metadata[kPostLocalSteps] = std::to_string(state.post_local_steps);
  }
  if (state.preparation) {
    metadata[kPreparationKey] = to_json(*state.preparation);
  }
  if (!state.latest_losses.empty()) {
    metadata[kLatestLosses] = fmt::format("{}", fmt::join(state.latest_losses, " "));
  }
  if (state.record) {
    metadata[kTrainingRecordKey] = to_json(*state.record);
  }
  if (state.tested) {
    const MetricValue& score = state.tested->score;
    metadata[kMetric] = score.name;
    metadata[score.name] = fmt::format("{}", score.value);
    if (!score.larger_is_better) {
      metadata.emplace(kSmallerIsBetter, "1");
    }
    if (!score.is_share) {
      metadata.emplace(kNoShare, "1");
    }
    metadata["test_loss"] = fmt::format("{}", state.tested->loss);
    if (const auto& best = state.tested->best_f1) {
      metadata[kBestF1] = fmt::format("{}", best->f1);
      metadata[kBestF1Score] = fmt::format("{}", best->score);
    }
  }
  return metadata;
}

// Rank 0's, on all ranks.
std::vector<double> shared_numbers(const std::vector<double>& mine,
                                   const Communicator& communicator) {
  const auto bytes = communicator.gather_all(bytes_of(mine.data(), std::ssize(mine))).front();
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
  }
  return numbers;
}

double parse_real(const SafetensorsReader& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  double value = 0;
  if (found != file.metadata().end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [last, error] = std::from_chars(found->second.data(), end, value);
    if (error == std::errc{} && last == end) {
      return value;
    }
  }
  throw InputError(file.path().string(), 0, fmt::format("its metadata has no number '{}'", key));
}

TestResult read_test_result(const SafetensorsReader& file) {
  const auto has = [&file](const char* key) { return file.metadata().count(key) > 0; };
  const auto metric = file.metadata().find(kMetric);
  TestResult tested;
  tested.score.name = metric == file.metadata().end() ? std::string("accuracy") : metric->second;
  tested.score.value = parse_real(file, tested.score.name);
  tested.score.larger_is_better = !has(kSmallerIsBetter);
  tested.score.is_share = !has(kNoShare);
  tested.loss = parse_real(file, "test_loss");
  return tested;
}

TrainingState read_state(const SafetensorsReader& file, const partitioner::Network& network) {
  TrainingState state;
  state.step = parse_number(file, "step");
  state.seed = static_cast<std::uint64_t>(parse_number(file, "seed"));
  if (file.metadata().count("images_seen") > 0) {
    state.images_seen = parse_number(file, "images_seen");
  }
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  std::istringstream losses(text(kLatestLosses));
  for (std::string word; losses >> word;) {
    double loss = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), loss);
    if (error != std::errc() || end != word.data() + word.size()) {
      throw InputError(file.path().string(), 0, "its metadata has losses that are no numbers");
    }
    state.latest_losses.push_back(loss);
  }
  state.model = text("model");
  state.fingerprint = text("network");
  if (state.fingerprint != fingerprint(network)) {
    throw InputError(file.path().string(),
                     0,
                     fmt::format("the checkpoint is of network {}, the model file is network {}: "
                                 "give the model that it was trained with",
                                 state.fingerprint,
                                 fingerprint(network)));
  }
  return state;
}

}  // namespace

void expect_sound_parameters(const SafetensorsReader& file,
                             const std::vector<const partitioner::ParameterPlan*>& wanted) {
  std::map<std::string, Numbers> numbers;
  for (const partitioner::ParameterPlan* parameter : wanted) {
    const std::string name = parameter_name(*parameter);
    numbers[name] = numbers_of_checkpoint(name);
  }
  expect_digests(file);
  expect_sound_tensors(file, [&](const std::string& name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? Numbers::Any : found->second;
  });
}

std::unique_ptr<SafetensorsWriter> write_checkpoint(const std::filesystem::path& path,
                                                    const std::filesystem::path& previous,
                                                    const TrainingState& state,
                                                    const ParameterSet<float>& parameters,
                                                    const Optimizer<float>& optimizer,
                                                    const RankState& rank_state,
                                                    const Communicator& communicator) {
  RootWork root(communicator);
  std::unique_ptr<SafetensorsWriter> file;
  auto tensors = stored_tensors(parameters.network(), parameters, optimizer.adam());
  auto metadata = metadata_of(state);
  ArraySizes sizes;
  if (!rank_state.layout.empty()) {
    sizes = sizes_of_ranks(rank_state, communicator);
  }
  if (!is_empty(sizes)) {
    add_rank_states(sizes, tensors);
    metadata[kRankStates] = rank_state.layout;
  }
  root.run([&] {
    file = std::make_unique<SafetensorsWriter>(path, std::move(tensors), metadata, previous);
  });
  const auto write = [&](const std::vector<PlacedRun>& from, const Array<float>& mine) {
    gather_chunks(communicator, from, mine.data(), [&](std::span<const float> chunk) {
      root.run([&] { file->write(chunk); });
    });
  };
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter<float>& parameter = parameters.all()[i];
    write(owned_values(*parameter.plan), parameter.values);
    if (is_learnt(*parameter.plan)) {
      write(owned_states(*parameter.plan), optimizer.states()[i].first);
      if (optimizer.adam()) {
        write(owned_states(*parameter.plan), optimizer.states()[i].second);
      }
    }
  }
  for_each_rank_array(
      sizes, rank_state, [&](const PlacedRun& from, Index /*before*/, const float* mine) {
        gather_chunks(communicator, {from}, mine, [&](std::span<const float> chunk) {
          root.run([&] { file->write(chunk); });
        });
      });
  root.run([&] { file->seal(); });
  root.finish();
  return file;
}

void finish_checkpoint(const std::filesystem::path& path, const std::filesystem::path& previous) {
  AtomicFile::finish_left(path, previous, [](const std::filesystem::path& left) {
    try {
      return expect_intact_checkpoint(left) > 0;
    } catch (const InputError&) {
      return false;
    }
  });
}

void save_checkpoint(const std::filesystem::path& path,
                     const TrainingState& state,
                     const ParameterSet<float>& parameters,
                     const Optimizer<float>& optimizer,
                     const RankState& rank_state,
                     const Communicator& communicator) {
  const auto file =
      write_checkpoint(path, {}, state, parameters, optimizer, rank_state, communicator);
  on_root(communicator, [&] { file->commit(); });
}

bool TestResult::better_than(const TestResult& other) const {
  if (score.name != other.score.name) {
    return true;
  }
  const bool has_score = !std::isnan(score.value);
  if (has_score == std::isnan(other.score.value)) {
    return has_score;
  }
  if (score.value == other.score.value || !has_score) {
    return loss < other.loss || (std::isnan(other.loss) && !std::isnan(loss));
  }
  return score.larger_is_better == (score.value > other.score.value);
}

Index step_of_checkpoint(const std::filesystem::path& path) {
  try {
    return parse_number(SafetensorsReader(path), "step");
  } catch (const InputError&) {
    return 0;
  }
}

std::optional<BestSoFar> best_so_far(const std::filesystem::path& path,
                                     const partitioner::Network& network) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return std::nullopt;
  }
  const SafetensorsReader file(path);
  const BestSoFar best{parse_number(file, "step"), read_test_result(file)};
  const auto its_network = file.metadata().find("network");
  const bool of_this =
      its_network != file.metadata().end() && its_network->second == fingerprint(network);
  return of_this ? std::optional<BestSoFar>(best) : std::nullopt;
}

std::optional<BestF1> stored_best_f1(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || !is_safetensors(path)) {
    return std::nullopt;
  }
  const SafetensorsReader file(path);
  if (file.metadata().count(kBestF1) == 0) {
    return std::nullopt;
  }
  return BestF1{parse_real(file, kBestF1), parse_real(file, kBestF1Score)};
}

Index expect_intact_checkpoint(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  const Index step = parse_number(file, "step");
  expect_digests(file);
  expect_sound_tensors(file, numbers_of_checkpoint);
  return step;
}

Index checkpoint_images_seen(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  return file.metadata().count("images_seen") > 0 ? parse_number(file, "images_seen") : 0;
}

std::uint64_t checkpoint_seed(const std::filesystem::path& path, const Communicator& communicator) {
  RootWork root(communicator);
  Index seed = 0;
  root.run([&] { seed = parse_number(SafetensorsReader(path), "seed"); });
  root.finish();
  return static_cast<std::uint64_t>(communicator.share(seed));
}

Index checkpoint_post_local_steps(const std::filesystem::path& path,
                                  const Communicator& communicator) {
  RootWork root(communicator);
  Index steps = 0;
  root.run([&] {
    const SafetensorsReader file(path);
    steps = file.metadata().count(kPostLocalSteps) > 0 ? parse_number(file, kPostLocalSteps) : 0;
  });
  root.finish();
  return communicator.share(steps);
}

int checkpoint_last_frozen(const std::filesystem::path& path, const Communicator& communicator) {
  RootWork root(communicator);
  Index layer = -1;
  root.run([&] {
    const SafetensorsReader file(path);
    layer = file.metadata().count("last_frozen") > 0 ? parse_number(file, "last_frozen") : -1;
    if (layer > std::numeric_limits<int>::max()) {
      throw InputError(path.string(), 0, "its metadata names a frozen layer that cannot be one");
    }
  });
  root.finish();
  return static_cast<int>(communicator.share(layer));
}

TrainingState load_checkpoint(const std::filesystem::path& path,
                              const partitioner::Network& network,
                              ParameterSet<float>& parameters,
                              Optimizer<float>& optimizer,
                              const RankState& rank_state,
                              const Communicator& communicator) {
  using RankStates = TrainingState::RankStates;
  RootWork root(communicator);
  std::optional<SafetensorsReader> file;
  TrainingState state;
  std::vector<StoredTensor> of_ranks;
  ArraySizes sizes;
  if (!rank_state.layout.empty()) {
    sizes = sizes_of_ranks(rank_state, communicator);
    add_rank_states(sizes, of_ranks);
  }
  root.run([&] {
    file.emplace(path);
    state = read_state(*file, network);
    expect_optimizer(*file, parameters, optimizer.adam());
    for (const StoredTensor& tensor : stored_tensors(network, parameters, optimizer.adam())) {
      expect_shape(*file, tensor.name, tensor.shape);
    }
    const auto layout = file->metadata().find(kRankStates);
    if (layout != file->metadata().end()) {
      state.rank_states =
          layout->second == rank_state.layout ? RankStates::Restored : RankStates::OfAnotherPlan;
    }
    for (const StoredTensor& tensor : of_ranks) {
      if (state.rank_states == RankStates::Restored) {
        expect_shape(*file, tensor.name, tensor.shape);
      }
    }
    try {
      expect_digests(*file);
      expect_sound_tensors(*file, numbers_of_checkpoint);
    } catch (const InputError& error) {
      throw InputError(with_intact_other(error.what(), path));
    }
  });
  root.finish();
  state.rank_states = communicator.share(state.rank_states);
  const auto read =
      [&](const std::string& name, const std::vector<PlacedRun>& to, Array<float>& mine) {
        scatter_chunks(communicator, to, mine.data(), [&](Index begin, std::span<float> chunk) {
          root.run([&] { file->read(name, begin, chunk); });
        });
      };
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    Parameter<float>& parameter = parameters.all()[i];
    OptimizerState<float>& remembered = optimizer.states()[i];
    read(parameter_name(*parameter.plan), held_values(*parameter.plan), parameter.values);
    if (is_learnt(*parameter.plan)) {
      read(state_name(parameter, "first"), all_states(*parameter.plan), remembered.first);
      if (optimizer.adam()) {
        read(state_name(parameter, "second"), all_states(*parameter.plan), remembered.second);
      }
    }
  }
  if (state.rank_states == RankStates::Restored) {
    for_each_rank_array(sizes, rank_state, [&](const PlacedRun& to, Index before, float* mine) {
      const std::string name = rank_state_name(static_cast<std::size_t>(to.rank));
      scatter_chunks(communicator, {to}, mine, [&](Index begin, std::span<float> chunk) {
        root.run([&] { file->read(name, before + begin, chunk); });
      });
    });
  }
  root.finish();
  state.step = communicator.share(state.step);
  state.seed = communicator.share(state.seed);
  state.images_seen = communicator.share(state.images_seen);
  state.latest_losses = shared_numbers(state.latest_losses, communicator);
  return state;
}

}  // namespace tessera::engine
