#include "engine/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/execution/parameter_pieces.h"
#include "engine/files/darknet_weights.h"
#include "engine/files/safetensors.h"
#include "engine/files/weights_format.h"

namespace engine {

using partitioner::InputError;
using partitioner::ParameterKind;

namespace {

constexpr const char* kFormat = "tessera-checkpoint-1";

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
    if (is_learnt(parameter.plan->kind)) {
      tensors.push_back({state_name(parameter, "first"), shape, ElementType::F32});
      if (adam) {
        tensors.push_back({state_name(parameter, "second"), shape, ElementType::F32});
      }
    }
  }
  return tensors;
}

// Runs `work` on rank 0 unless something went wrong there before. Tensors travel all the same:
// other ranks do not know.
class RootWork {
 public:
  explicit RootWork(const Communicator& communicator) : communicator_(communicator) {}

  template <class Work>
  void run(Work work) {
    if (communicator_.rank() == 0 && !problem_) {
      problem_ = problem_of(work);
    }
  }

  void finish() { throw_agreed(communicator_, problem_); }

 private:
  const Communicator& communicator_;
  std::optional<std::string> problem_;
};

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
      fmt::format("its metadata has no number '{}': it is no checkpoint of this program", key));
}

void expect_shape(const SafetensorsReader& file,
                  const std::string& name,
                  const std::vector<Index>& shape) {
  const StoredTensor& stored = file.find(name);
  if (stored.shape != shape) {
    throw InputError(file.path().string(),
                     0,
                     fmt::format("tensor '{}' has another shape than the model gives it: the "
                                 "checkpoint is of another model",
                                 name));
  }
}

// Momentum and Adam keep different things under the same names.
void expect_optimizer(const SafetensorsReader& file,
                      const ParameterSet<float>& parameters,
                      bool adam) {
  for (const Parameter<float>& parameter : parameters.all()) {
    if (is_learnt(parameter.plan->kind) && file.has(state_name(parameter, "second")) != adam) {
      throw InputError(file.path().string(),
                       0,
                       fmt::format("its optimizer state is that of {}, the model file asks for {}: "
                                   "change adam= in [net], or start anew from its weights with "
                                   "--weights",
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
  if (state.preparation) {
    metadata[kPreparationKey] = to_json(*state.preparation);
  }
  return metadata;
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

void save_checkpoint(const std::filesystem::path& path,
                     const TrainingState& state,
                     const ParameterSet<float>& parameters,
                     const Optimizer<float>& optimizer,
                     const Communicator& communicator) {
  RootWork root(communicator);
  std::optional<SafetensorsWriter> file;
  root.run([&] {
    file.emplace(path,
                 stored_tensors(parameters.network(), parameters, optimizer.adam()),
                 metadata_of(state));
  });
  const auto write = [&](const std::vector<PlacedRun>& from, const Array<float>& mine) {
    gather_pieces(communicator, from, mine.data(), [&](std::span<const float> piece) {
      root.run([&] { file->write(piece); });
    });
  };
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    const Parameter<float>& parameter = parameters.all()[i];
    write(owned_values(*parameter.plan), parameter.values);
    if (is_learnt(parameter.plan->kind)) {
      write(owned_alone(*parameter.plan), optimizer.states()[i].first);
      if (optimizer.adam()) {
        write(owned_alone(*parameter.plan), optimizer.states()[i].second);
      }
    }
  }
  root.run([&] { file->commit(); });
  root.finish();
}

Index images_seen(const std::filesystem::path& path) {
  if (!is_safetensors(path)) {
    return static_cast<Index>(
        std::min(darknet_images_seen(path), std::uint64_t{std::numeric_limits<Index>::max()}));
  }
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

TrainingState load_checkpoint(const std::filesystem::path& path,
                              const partitioner::Network& network,
                              ParameterSet<float>& parameters,
                              Optimizer<float>& optimizer,
                              const Communicator& communicator) {
  RootWork root(communicator);
  std::optional<SafetensorsReader> file;
  TrainingState state;
  root.run([&] {
    file.emplace(path);
    state = read_state(*file, network);
    expect_optimizer(*file, parameters, optimizer.adam());
    for (const StoredTensor& tensor : stored_tensors(network, parameters, optimizer.adam())) {
      expect_shape(*file, tensor.name, tensor.shape);
    }
  });
  root.finish();
  const auto read =
      [&](const std::string& name, const std::vector<PlacedRun>& to, Array<float>& mine) {
        scatter_pieces(communicator, to, mine.data(), [&](Index begin, std::span<float> piece) {
          root.run([&] { file->read(name, begin, piece); });
        });
      };
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    Parameter<float>& parameter = parameters.all()[i];
    OptimizerState<float>& remembered = optimizer.states()[i];
    read(parameter_name(*parameter.plan), held_values(*parameter.plan), parameter.values);
    if (is_learnt(parameter.plan->kind)) {
      read(state_name(parameter, "first"), owned_alone(*parameter.plan), remembered.first);
      if (optimizer.adam()) {
        read(state_name(parameter, "second"), owned_alone(*parameter.plan), remembered.second);
      }
    }
  }
  root.finish();
  state.step = communicator.share(state.step);
  state.seed = communicator.share(state.seed);
  state.images_seen = communicator.share(state.images_seen);
  return state;
}

namespace {

std::vector<float>& of_kind(LayerWeights& weights, ParameterKind kind) {
  switch (kind) {
    case ParameterKind::Weight:
      return weights.weight;
    case ParameterKind::Bias:
      return weights.bias;
    case ParameterKind::Scale:
      return weights.scale;
    case ParameterKind::Mean:
      return weights.mean;
    case ParameterKind::Variance:
      break;
  }
  return weights.variance;
}

void read_parameter(const DarknetWeightsReader& file,
                    const partitioner::ParameterPlan& plan,
                    Index begin,
                    std::span<float> piece) {
  if (plan.kind == ParameterKind::Weight) {
    file.read_weight(plan.layer, begin, piece);
    return;
  }
  LayerWeights vectors = file.vectors(plan.layer);
  std::copy_n(of_kind(vectors, plan.kind).begin() + begin, piece.size(), piece.begin());
}

}  // namespace

void load_weights(const std::filesystem::path& path,
                  const partitioner::Network& network,
                  double batch_norm_epsilon,
                  ParameterSet<float>& parameters,
                  const Communicator& communicator) {
  RootWork root(communicator);
  std::optional<SafetensorsReader> file;
  std::optional<DarknetWeightsReader> darknet;
  root.run([&] {
    if (!is_safetensors(path)) {
      darknet.emplace(path, network, batch_norm_epsilon);
      return;
    }
    file.emplace(path);
    for (const Parameter<float>& parameter : parameters.all()) {
      expect_shape(
          *file, parameter_name(*parameter.plan), parameter_shape(network, *parameter.plan));
    }
  });
  root.finish();
  for (Parameter<float>& parameter : parameters.all()) {
    const auto fill = [&](Index begin, std::span<float> piece) {
      root.run([&] {
        if (darknet) {
          read_parameter(*darknet, *parameter.plan, begin, piece);
        } else {
          file->read(parameter_name(*parameter.plan), begin, piece);
        }
      });
    };
    scatter_pieces(communicator, held_values(*parameter.plan), parameter.values.data(), fill);
  }
  root.finish();
}

void save_darknet_weights(const std::filesystem::path& path,
                          const partitioner::Network& network,
                          double batch_norm_epsilon,
                          Index images_seen,
                          const ParameterSet<float>& parameters,
                          const Communicator& communicator) {
  DarknetWeights weights;
  weights.seen = static_cast<std::uint64_t>(images_seen);
  weights.layers.resize(network.layers.size());
  weights.layers_filled = network.size();
  for (const Parameter<float>& parameter : parameters.all()) {
    std::vector<float> whole = parameters.gather(parameter, parameter.values.data());
    of_kind(weights.layers[static_cast<std::size_t>(parameter.plan->layer)], parameter.plan->kind) =
        std::move(whole);
  }
  RootWork root(communicator);
  root.run([&] { write_darknet_weights(path, network, weights, batch_norm_epsilon); });
  root.finish();
}

}  // namespace engine
