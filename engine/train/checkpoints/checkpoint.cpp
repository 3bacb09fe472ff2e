#include "engine/train/checkpoints/checkpoint.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/execution/parameter_chunks.h"
#include "engine/files/tensor_check.h"
#include "engine/files/weights_format.h"
#include "engine/train/checkpoints/checkpoint_metadata.h"
#include "engine/train/checkpoints/intact_checkpoint.h"
#include "engine/train/checkpoints/root_work.h"

namespace tessera::engine {

namespace {

constexpr const char* kRankStates = "rank_states";  // the layout of states of ranks
constexpr const char* kAverages = "ema.";           // what their names begin with

std::string state_name(const Parameter<float>& parameter, const char* part) {
  return fmt::format("optimizer.{}.{}", parameter_name(*parameter.plan), part);
}

std::string average_name(const partitioner::ParameterPlan& parameter) {
  return kAverages + parameter_name(parameter);
}

// What a checkpoint of these parameters holds, in the order of the file.
std::vector<StoredTensor> stored_tensors(const partitioner::Network& network,
                                         const ParameterSet<float>& parameters,
                                         const partitioner::TrainedArrays& trained) {
  std::vector<StoredTensor> tensors;
  for (const Parameter<float>& parameter : parameters.all()) {
    const auto shape = parameter_shape(network, *parameter.plan);
    tensors.push_back({parameter_name(*parameter.plan), shape, ElementType::F32});
    if (is_learnt(*parameter.plan)) {
      tensors.push_back({state_name(parameter, "first"), shape, ElementType::F32});
      if (trained.adam) {
        tensors.push_back({state_name(parameter, "second"), shape, ElementType::F32});
      }
    }
    if (trained.averages && !parameter.plan->frozen) {
      tensors.push_back({average_name(*parameter.plan), shape, ElementType::F32});
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
  return communicator.of_ranks(mine);
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
  if (format != file.metadata().end() && format->second == kCheckpointFormat &&
      file.digests().empty()) {
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

// The state in a file that fits the model and, in its layout, these tensors of ranks.
TrainingState checked_state(const SafetensorsReader& file,
                            const partitioner::Network& network,
                            const ParameterSet<float>& parameters,
                            const partitioner::TrainedArrays& trained,
                            const std::string& layout,
                            const std::vector<StoredTensor>& of_ranks) {
  using RankStates = TrainingState::RankStates;
  TrainingState state = state_in_metadata(file, network);
  expect_optimizer(file, parameters, trained.adam);
  for (const StoredTensor& tensor : stored_tensors(network, parameters, trained)) {
    if (file.has(tensor.name) || !tensor.name.starts_with(kAverages)) {
      expect_shape(file, tensor.name, tensor.shape);
    }
  }
  const auto its_layout = file.metadata().find(kRankStates);
  if (its_layout != file.metadata().end()) {
    state.rank_states =
        its_layout->second == layout ? RankStates::Restored : RankStates::OfAnotherPlan;
  }
  for (const StoredTensor& tensor : of_ranks) {
    if (state.rank_states == RankStates::Restored) {
      expect_shape(file, tensor.name, tensor.shape);
    }
  }
  try {
    expect_digests(file);
    expect_sound_tensors(file, numbers_of_checkpoint);
  } catch (const InputError& error) {
    throw InputError(with_intact_other(error.what(), file.path()));
  }
  return state;
}

}  // namespace

std::string used_tensor(const SafetensorsReader& file,
                        const partitioner::ParameterPlan& parameter) {
  const std::string average = average_name(parameter);
  return file.has(average) ? average : parameter_name(parameter);
}

void expect_sound_parameters(const SafetensorsReader& file,
                             const std::vector<const partitioner::ParameterPlan*>& wanted) {
  std::map<std::string, Numbers> numbers;
  for (const partitioner::ParameterPlan* parameter : wanted) {
    const std::string name = used_tensor(file, *parameter);
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
  auto tensors = stored_tensors(parameters.network(), parameters, optimizer.trained());
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
      if (optimizer.trained().adam) {
        write(owned_states(*parameter.plan), optimizer.states()[i].second);
      }
    }
    if (optimizer.trained().averages && !parameter.plan->frozen) {
      write(owned_states(*parameter.plan), optimizer.states()[i].average);
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

Index expect_intact_checkpoint(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  const Index step = number_in_metadata(file, "step");
  expect_digests(file);
  expect_sound_tensors(file, numbers_of_checkpoint);
  return step;
}

TrainingState load_checkpoint(const std::filesystem::path& path,
                              const partitioner::Network& network,
                              ParameterSet<float>& parameters,
                              Optimizer<float>& optimizer,
                              const RankState& rank_state,
                              const Communicator& communicator) {
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
    state =
        checked_state(*file, network, parameters, optimizer.trained(), rank_state.layout, of_ranks);
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
      if (optimizer.trained().adam) {
        read(state_name(parameter, "second"), all_states(*parameter.plan), remembered.second);
      }
    }
    if (optimizer.trained().averages && !parameter.plan->frozen) {
      read(file ? used_tensor(*file, *parameter.plan) : "",
           all_states(*parameter.plan),
           remembered.average);
    }
  }
  if (state.rank_states == TrainingState::RankStates::Restored) {
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
  state.latest_losses = communicator.of_ranks(state.latest_losses).front();
  return state;
}

}  // namespace tessera::engine
