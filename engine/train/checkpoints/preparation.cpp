#include "engine/train/checkpoints/preparation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "engine/comm/agreement.h"
#include "engine/data/text/unicode_names.h"
#include "engine/train/checkpoints/stored_metadata.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using OrderedJson = nlohmann::ordered_json;
using partitioner::MapShape;

namespace {

constexpr const char* kResizeRule = "scaled to cover, cut at the centre";
constexpr const char* kStretchRule = "stretched to the input";
constexpr const char* kLetterBoxRule = "scaled to fit between grey bars";
constexpr const char* kTopLeftRule = "scaled to fit at the top left, grey beside it";

const char* resize_rule(const RenderingRules& rules) {
  if (!rules.detects) {
    return kResizeRule;
  }
  return rules.augmentation.top_left     ? kTopLeftRule
         : rules.augmentation.letter_box ? kLetterBoxRule
                                         : kStretchRule;
}

bool are_numbers_in_order(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != std::to_string(i)) {
      return false;
    }
  }
  return true;
}

// As it comes back from a file: bytes that are no UTF-8 are replaced there.
std::string as_stored(const std::string& name) {
  return OrderedJson::parse(
             OrderedJson(name).dump(-1, ' ', false, OrderedJson::error_handler_t::replace))
      .get<std::string>();
}

std::string size_text(const MapShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.rows, shape.cols);
}

// One number where all channels have the same, which goes with any number of channels.
std::vector<float> one_if_alike(const std::vector<float>& numbers) {
  const bool alike = std::all_of(
      numbers.begin(), numbers.end(), [&](float number) { return number == numbers.front(); });
  return alike && !numbers.empty() ? std::vector<float>{numbers.front()} : numbers;
}

std::string numbers_text(const std::vector<float>& numbers) {
  return fmt::format("{}", fmt::join(one_if_alike(numbers), ", "));
}

OrderedJson sizes(const MapShape& shape) {
  return {shape.channels, shape.rows, shape.cols};
}

MapShape parse_sizes(const OrderedJson& json) {
  return {json.at(0).get<Index>(), json.at(1).get<Index>(), json.at(2).get<Index>()};
}

void expect_usable(const Preparation& preparation, const std::string& where) {
  const auto channels = static_cast<std::size_t>(std::max<Index>(preparation.input.channels, 0));
  const auto finite = [](float value) { return std::isfinite(value); };
  const bool usable =
      preparation.mean.size() == channels && preparation.stddev.size() == channels &&
      std::all_of(preparation.mean.begin(), preparation.mean.end(), finite) &&
      std::all_of(preparation.stddev.begin(), preparation.stddev.end(), [](float value) {
        return std::isfinite(value) && value > 0;
      });
  if (!usable) {
    throw InputError(where,
                     0,
                     "its record of how pictures are prepared does not give each channel a mean "
                     "and a positive standard deviation: the file is damaged");
  }
}

}  // namespace

Preparation preparation_of(const RenderingRules& rules,
                           const std::vector<std::string>& class_names) {
  Preparation preparation;
  const ChannelValues values = channel_values(rules);
  preparation.mean = values.mean;
  preparation.stddev = values.stddev;
  if (!are_numbers_in_order(class_names)) {
    std::transform(class_names.begin(),
                   class_names.end(),
                   std::back_inserter(preparation.class_names),
                   as_stored);
  }
  preparation.input = rules.input;
  preparation.picture = rules.picture;
  preparation.resize = resize_rule(rules);
  return preparation;
}

std::string to_json(const Preparation& preparation) {
  return OrderedJson{{"mean", preparation.mean},
                     {"std", preparation.stddev},
                     {"classes", preparation.class_names},
                     {"input", sizes(preparation.input)},
                     {"picture", sizes(preparation.picture)},
                     {"resize", preparation.resize}}
      .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Preparation parse_preparation(const std::string& json, const std::string& where) {
  Preparation preparation;
  try {
    const OrderedJson record = OrderedJson::parse(json);
    preparation.mean = record.at("mean").get<std::vector<float>>();
    preparation.stddev = record.at("std").get<std::vector<float>>();
    for (const std::string& name : record.at("classes").get<std::vector<std::string>>()) {
      preparation.class_names.push_back(composed(name));
    }
    preparation.input = parse_sizes(record.at("input"));
    preparation.picture = parse_sizes(record.at("picture"));
    preparation.resize = record.at("resize").get<std::string>();
  } catch (const OrderedJson::exception&) {
    throw InputError(
        where,
        0,
        "its record of how pictures are prepared cannot be read: another version of this program "
        "wrote the file, or it is damaged");
  }
  expect_usable(preparation, where);
  return preparation;
}

std::optional<Preparation> stored_preparation(const std::filesystem::path& path,
                                              const Communicator& communicator) {
  const std::string record = stored_metadata(path, kPreparationKey, communicator);
  if (record.empty()) {
    return std::nullopt;
  }
  return agreed(communicator, [&] { return parse_preparation(record, path.string()); });
}

PixelConvention convention_in_effect(const PixelConvention& given,
                                     const std::optional<Preparation>& stored) {
  PixelConvention convention = given;
  if (stored && convention.mean.empty()) {
    convention.mean = one_if_alike(stored->mean);
  }
  if (stored && convention.stddev.empty()) {
    convention.stddev = one_if_alike(stored->stddev);
  }
  return convention;
}

std::optional<std::string> pixel_difference(const Preparation& stored, const Preparation& now) {
  std::vector<std::string> then;
  std::vector<std::string> here;
  const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
    if (before != after) {
      then.push_back(fmt::format("{} {}", what, before));
      here.push_back(fmt::format("{} {}", what, after));
    }
  };
  compare("mean", numbers_text(stored.mean), numbers_text(now.mean));
  compare("standard deviation", numbers_text(stored.stddev), numbers_text(now.stddev));
  compare("input", size_text(stored.input), size_text(now.input));
  compare("pictures scaled to", size_text(stored.picture), size_text(now.picture));
  compare("pictures", stored.resize, now.resize);
  if (then.empty()) {
    return std::nullopt;
  }
  return fmt::format(
      "was trained with {}, now there is {}", fmt::join(then, ", "), fmt::join(here, ", "));
}

std::optional<std::string> class_difference(const Preparation& stored, const Preparation& now) {
  const auto& before = stored.class_names;
  const auto& after = now.class_names;
  if (before.empty() || after.empty()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i] != after[i]) {
      return fmt::format("was trained with \"{}\" as class {}, in the data set it is \"{}\"",
                         before[i],
                         i,
                         after[i]);
    }
  }
  if (before.size() != after.size()) {
    return fmt::format(
        "was trained with {} classes, the data set has {}", before.size(), after.size());
  }
  return std::nullopt;
}

}  // namespace tessera::engine
