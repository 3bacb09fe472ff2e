#include "engine/train/checkpoints/checkpoint_metadata.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <sstream>
#include <system_error>

#include "engine/files/weights_format.h"
#include "engine/train/checkpoints/root_work.h"
#include "engine/train/checkpoints/stored_metadata.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

namespace {

constexpr const char* kMetric = "metric";  // the name of the one below which its value is
constexpr const char* kSmallerIsBetter = "smaller_is_better";
constexpr const char* kNoShare = "no_share";
constexpr const char* kBestF1 = "best_f1";
constexpr const char* kBestF1Score = "best_f1_score";
constexpr const char* kLatestLosses = "latest_losses";
constexpr const char* kPostLocalSteps = "post_local_steps";
constexpr const char* kLastFrozen = "last_frozen";         // for good
constexpr const char* kFrozenAtFirst = "frozen_at_first";  // ends and last layers, in turn

Index number_or(const SafetensorsReader& file, const std::string& key, Index otherwise) {
  return file.metadata().count(key) > 0 ? number_in_metadata(file, key) : otherwise;
}

// What rank 0 reads in a file, on all ranks.
template <class Read>
Index shared_number(const std::filesystem::path& path,
                    const Communicator& communicator,
                    Read read) {
  RootWork root(communicator);
  Index number = 0;
  root.run([&] { number = read(SafetensorsReader(path)); });
  root.finish();
  return communicator.share(number);
}

double parse_real(const SafetensorsReader& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) {
    if (const auto value = parsed_number<double>(found->second)) {
      return *value;
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

}  // namespace

Index number_in_metadata(const SafetensorsReader& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) {
    if (const auto value = parsed_number<Index>(found->second, 0)) {
      return *value;
    }
  }
  throw InputError(
      file.path().string(),
      0,
      fmt::format("its metadata has no number '{}': it is not a checkpoint of this program", key));
}

std::map<std::string, std::string> metadata_of(const TrainingState& state) {
  std::map<std::string, std::string> metadata{{"format", kCheckpointFormat},
                                              {"step", std::to_string(state.step)},
                                              {"seed", std::to_string(state.seed)},
                                              {"images_seen", std::to_string(state.images_seen)},
                                              {"network", state.fingerprint},
                                              {"model", state.model}};
  if (state.frozen.last >= 0) {
    metadata[kLastFrozen] = std::to_string(state.frozen.last);
  }
  std::string at_first;
  for (const partitioner::FrozenSteps& part : state.frozen.at_first) {
    at_first += fmt::format("{}{} {}", at_first.empty() ? "" : " ", part.end, part.last);
  }
  if (!at_first.empty()) {
    metadata[kFrozenAtFirst] = at_first;
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

TrainingState state_in_metadata(const SafetensorsReader& file,
                                const partitioner::Network& network) {
  TrainingState state;
  state.step = number_in_metadata(file, "step");
  state.seed = static_cast<std::uint64_t>(number_in_metadata(file, "seed"));
  state.images_seen = number_or(file, "images_seen", state.images_seen);
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  std::istringstream losses(text(kLatestLosses));
  for (std::string word; losses >> word;) {
    const auto loss = parsed_number<double>(word);
    if (!loss) {
      throw InputError(file.path().string(), 0, "its metadata has losses that are no numbers");
    }
    state.latest_losses.push_back(*loss);
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
    return number_in_metadata(SafetensorsReader(path), "step");
  } catch (const InputError&) {
    return 0;
  }
}

std::optional<BestSoFar> best_so_far(const std::filesystem::path& path,
                                     const partitioner::Network& network) {
  if (!is_file(path)) {
    return std::nullopt;
  }
  const SafetensorsReader file(path);
  const BestSoFar best{number_in_metadata(file, "step"), read_test_result(file)};
  const auto its_network = file.metadata().find("network");
  const bool of_this =
      its_network != file.metadata().end() && its_network->second == fingerprint(network);
  return of_this ? std::optional<BestSoFar>(best) : std::nullopt;
}

std::optional<BestF1> stored_best_f1(const std::filesystem::path& path) {
  if (!is_file(path) || !is_safetensors(path)) {
    return std::nullopt;
  }
  const SafetensorsReader file(path);
  if (file.metadata().count(kBestF1) == 0) {
    return std::nullopt;
  }
  return BestF1{parse_real(file, kBestF1), parse_real(file, kBestF1Score)};
}

Index checkpoint_images_seen(const std::filesystem::path& path) {
  return number_or(SafetensorsReader(path), "images_seen", 0);
}

std::uint64_t checkpoint_seed(const std::filesystem::path& path, const Communicator& communicator) {
  return static_cast<std::uint64_t>(
      shared_number(path, communicator, [](const SafetensorsReader& file) {
        return number_in_metadata(file, "seed");
      }));
}

Index checkpoint_post_local_steps(const std::filesystem::path& path,
                                  const Communicator& communicator) {
  return shared_number(path, communicator, [](const SafetensorsReader& file) {
    return number_or(file, kPostLocalSteps, 0);
  });
}

partitioner::FrozenLayers checkpoint_frozen_layers(const std::filesystem::path& path,
                                                   const Communicator& communicator) {
  const Index last = shared_number(path, communicator, [](const SafetensorsReader& file) {
    return number_or(file, kLastFrozen, -1);
  });
  std::istringstream numbers(stored_metadata(path, kFrozenAtFirst, communicator));
  partitioner::FrozenLayers frozen{static_cast<int>(last), {}};
  bool is_sound = last < std::numeric_limits<int>::max();
  partitioner::FrozenSteps before{.end = 0, .last = std::numeric_limits<int>::max()};
  for (std::string end, layer; is_sound && numbers >> end >> layer;) {
    const auto steps = parsed_number<Index>(end, before.end + 1);
    const auto number = parsed_number<int>(layer, frozen.last + 1, before.last - 1);
    is_sound = steps && number;
    before = {steps.value_or(0), number.value_or(0)};
    frozen.at_first.push_back(before);
  }
  if (!is_sound) {
    throw AgreedError(path.string() + ": its metadata names frozen layers that cannot be such");
  }
  return frozen;
}

}  // namespace tessera::engine
