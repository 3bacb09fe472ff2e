#include "engine/train/checkpoints/training_record.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/train/checkpoints/stored_metadata.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/network/input_sizes.h"

namespace tessera::engine {

namespace {

using Json = nlohmann::ordered_json;

BatchNormMode mode_named(const std::string& name, const std::string& where) {
  for (const auto& [known, mode] : kBatchNormModes) {
    if (name == known) {
      return mode;
    }
  }
  throw InputError(where,
                   0,
                   "its record of how it was trained names unknown batch statistics: "
                   "another version of this program wrote the file, or it is damaged");
}

}  // namespace

const char* name_of(BatchNormMode mode) {
  return std::find_if(kBatchNormModes.begin(),
                      kBatchNormModes.end(),
                      [&](const auto& known) { return known.second == mode; })
      ->first;
}

std::string multi_scale_text(double factor) {
  return factor == 0 ? "off" : fmt::format("{}", factor);
}

std::string to_json(const TrainingRecord& record) {
  Json json{{"images", record.images},
            {"subdivisions", record.subdivisions},
            {"pictures", record.pictures},
            {"data_digest", record.data_digest},
            {"schedule_steps", record.schedule_steps},
            {"batch_norm", name_of(record.batch_norm)},
            {"gradient_precision", record.gradient_precision},
            {"sync", record.sync},
            {"replicas", record.replicas},
            {"settings", record.settings},
            {"inexact", record.inexact}};
  if (record.multi_scale != 0) {
    json["multi_scale"] = record.multi_scale;
  }
  if (record.augment_variants != 0) {
    json["augment_variants"] = record.augment_variants;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TrainingRecord parse_training_record(const std::string& json, const std::string& where) {
  const auto damaged = [&] {
    return InputError(
        where,
        0,
        "its record of how it was trained cannot be read: another version of this program wrote "
        "the file, or it is damaged");
  };
  TrainingRecord parsed;
  try {
    const Json record = Json::parse(json);
    parsed = {.images = record.at("images").get<Index>(),
              .subdivisions = record.value("subdivisions", Index{0}),  // what old files lack
              .pictures = record.at("pictures").get<Index>(),
              .data_digest = record.at("data_digest").get<std::string>(),
              .schedule_steps = record.at("schedule_steps").get<Index>(),
              .batch_norm = mode_named(record.at("batch_norm").get<std::string>(), where),
              .gradient_precision = record.at("gradient_precision").get<std::string>(),
              .sync = record.at("sync").get<std::string>(),
              .replicas = record.value("replicas", Index{1}),
              .multi_scale = record.value("multi_scale", 0.0),
              .augment_variants = record.value("augment_variants", Index{0}),
              .settings = record.value("settings", TrainingSettings()),
              .inexact = record.at("inexact").get<std::vector<std::string>>()};
  } catch (const Json::exception&) {
    throw damaged();
  }
  const double factor = parsed.multi_scale;
  const bool scales = factor > 1 && factor <= partitioner::kLargestFactor;
  if (parsed.settings.count("batch_norm_epsilon") > 0) {
    parsed.settings.try_emplace("batch_norm_rule", "pytorch");  // what old files lack
  }
  const Index passes = std::max<Index>(parsed.subdivisions, 1);
  if ((factor != 0 && !scales) || parsed.images < 1 || parsed.subdivisions < 0 ||
      parsed.images % passes != 0 || parsed.augment_variants < 0) {
    throw damaged();
  }
  return parsed;
}

std::optional<TrainingRecord> stored_training_record(const std::filesystem::path& checkpoint,
                                                     const Communicator& communicator) {
  const std::string record = stored_metadata(checkpoint, kTrainingRecordKey, communicator);
  if (record.empty()) {
    return std::nullopt;
  }
  return agreed(communicator, [&] { return parse_training_record(record, checkpoint.string()); });
}

namespace {

// What both know and have otherwise, in a phrase; nothing where there is nothing.
std::optional<std::string> settings_difference(const TrainingSettings& before,
                                               const TrainingSettings& now) {
  std::vector<std::string> then;
  std::vector<std::string> here;
  for (const auto& [name, value] : before) {
    const auto found = now.find(name);
    if (found != now.end() && found->second != value) {
      then.push_back(fmt::format("{}={}", name, value));
      here.push_back(fmt::format("{}={}", name, found->second));
    }
  }
  if (then.empty()) {
    return std::nullopt;
  }
  return fmt::format("was trained with {}, now the model file has {}",
                     fmt::join(then, ", "),
                     fmt::join(here, ", "));
}

}  // namespace

std::optional<std::string> output_difference(const TrainingSettings& before,
                                             const TrainingSettings& now) {
  constexpr std::array<std::string_view, 2> kOfNetwork = {"batch_norm_rule", "batch_norm_epsilon"};
  constexpr std::array<std::string_view, 8> kInTraining = {"probability",
                                                           "learning_rate",
                                                           "held steps",
                                                           "train_only_bn",
                                                           "flip",
                                                           "angle",
                                                           "saturation",
                                                           "exposure"};
  const auto is_one = [](std::string_view name, const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  TrainingSettings counted = before;
  std::erase_if(counted, [&](const auto& setting) {
    const std::string_view name = setting.first;
    const std::size_t end = name.find(" of layer ");
    return end == std::string_view::npos ? !is_one(name, kOfNetwork)
                                         : is_one(name.substr(0, end), kInTraining);
  });
  return settings_difference(counted, now);
}

std::vector<std::string> differences(const TrainingRecord& before, const TrainingRecord& now) {
  std::vector<std::string> found;
  const auto compare = [&](const std::string& what, const auto& then, const auto& here) {
    if (then != here) {
      found.push_back(fmt::format("was trained with {} {}, now it is {}", what, then, here));
    }
  };
  if (before.pictures != now.pictures) {
    found.push_back(
        fmt::format("was trained on {}, now there are {}: some are seen more or less "
                    "often in this epoch",
                    counted(before.pictures, "picture"),
                    now.pictures));
  } else if (!before.data_digest.empty() && !now.data_digest.empty() &&
             before.data_digest != now.data_digest) {
    found.emplace_back(
        "was trained on other pictures: some have been replaced, renamed or sorted into another "
        "class since");
  }
  if (before.schedule_steps != now.schedule_steps) {
    found.push_back(
        fmt::format("had a schedule of {} for its learning rate or its last epochs, now it has {}: "
                    "the rate jumps here, or they begin at another step; --schedule-steps {} keeps "
                    "the old one",
                    counted(before.schedule_steps, "step"),
                    now.schedule_steps,
                    before.schedule_steps));
  }
  compare("--batch-norm", std::string(name_of(before.batch_norm)), name_of(now.batch_norm));
  compare("--gradient-precision", before.gradient_precision, now.gradient_precision);
  compare("--sync", before.sync, now.sync);
  compare("--replicas", before.replicas, now.replicas);
  if (before.subdivisions > 0) {
    compare("--subdivisions", before.subdivisions, now.subdivisions);
  }
  compare("--multi-scale", multi_scale_text(before.multi_scale), multi_scale_text(now.multi_scale));
  if (before.augment_variants == 0 && now.augment_variants > 0) {
    found.push_back(
        fmt::format("was trained without --augment-variants, now it is {}", now.augment_variants));
  } else {
    compare("--augment-variants", before.augment_variants, now.augment_variants);
  }
  if (auto settings = settings_difference(before.settings, now.settings)) {
    found.push_back(std::move(*settings));
  }
  return found;
}

}  // namespace tessera::engine
