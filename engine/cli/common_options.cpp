#include "engine/cli/common_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/train/checkpoints/training_record.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/network/input_sizes.h"

namespace tessera::engine {

namespace {

template <class Number>
CLI::Validator number_in(Number least, Number most, const char* what) {
  const auto check = [least, most, what](const std::string& text) {
    return parsed_number<Number>(text, least, most)
               ? std::string()
               : fmt::format("\"{}\" is not {} from {} to {}", text, what, least, most);
  };
  return CLI::Validator(check, "");
}

}  // namespace

std::string name_in(const std::string& form) {
  return form.substr(0, form.find(' '));
}

std::string type_in(const std::string& form) {
  return form.substr(std::min(form.find(' '), form.size() - 1) + 1);
}

CLI::Validator whole_number(Index least, Index most) {
  return number_in(least, most, "an integer");
}

CLI::Validator real_number(double least, double most) {
  return number_in(least, most, "a number");
}

CLI::Validator accepted_by(std::function<void(const std::string&)> parse) {
  const auto check = [parse = std::move(parse)](const std::string& text) {
    try {
      parse(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  return CLI::Validator(check, "");
}

CLI::Option* add_text(CLI::App& app,
                      const std::string& form,
                      std::string& value,
                      const std::string& help) {
  return app.add_option(name_in(form), value, help)->type_name(type_in(form));
}

CLI::Option* add_read(CLI::App& app,
                      const std::string& form,
                      std::function<void(const std::string&)> read,
                      const std::string& help) {
  return app.add_option_function<std::string>(name_in(form), std::move(read), help)
      ->type_name(type_in(form));
}

void add_choice(CLI::App& app,
                const char* name,
                std::string& value,
                const std::vector<std::string>& choices,
                const char* help) {
  app.add_option(name, value, help)
      ->type_name("HOW")
      ->check(CLI::IsMember(choices))
      ->capture_default_str();
}

void add_model(CLI::App& app, std::string& model) {
  add_text(app, "MODEL", model, "model file, Darknet's .cfg")->required();
}

void add_subdivisions(CLI::App& app, Index& subdivisions) {
  add_count(app,
            "--subdivisions",
            subdivisions,
            "passes a step is divided into, to save memory (default: the model's, 1 with --batch)");
}

void add_size(CLI::App& app, std::string& size) {
  add_text(app, "--size HxW", size, "input size, if other than the model's");
}

void add_freeze(CLI::App& app, std::string& layer, bool takes_weights) {
  add_text(app,
           "--freeze LAYER",
           layer,
           std::string("freeze the layers up to this one, counted from 0: they do not change") +
               (takes_weights ? "; weights: those in --weights; or "
                              : " and have no backward pass; or ") +
               "none (default: by the model's stopbackward=)");
}

void add_multi_scale(CLI::App& app, std::optional<double>& factor) {
  const auto parse = [](const std::string& text) {
    const double value = parsed_number<double>(text).value_or(0);
    if (text != "off" && !(value > 1 && value <= partitioner::kLargestFactor)) {
      throw InputError(fmt::format("expected off, or a factor above 1, at most {}",
                                   partitioner::kLargestFactor));
    }
    return value;
  };
  add_read(
      app,
      "--multi-scale FACTOR",
      [&factor, parse](const std::string& text) { factor = parse(text); },
      "inputs up to so much larger and smaller, or off (default: `random` in the model)")
      ->check(accepted_by([parse](const std::string& text) { (void)parse(text); }));
}

void add_json(CLI::App& app, bool& json, const char* help) {
  app.add_flag("--json", json, help);
}

void add_weights(CLI::App& app, std::string& weights) {
  add_text(app,
           "--weights FILE",
           weights,
           "a checkpoint, a run folder (its best weights), or a file in Darknet's .weights")
      ->required();
}

void add_skip_broken(CLI::App& app, bool& skip_broken) {
  app.add_flag(
      "--skip-broken", skip_broken, "skip missing or damaged pictures (decodes all first)");
}

void add_allow_unlabelled(CLI::App& app, bool& allow_unlabelled) {
  app.add_flag(
      "--allow-unlabelled", allow_unlabelled, "pictures without a file of boxes have no objects");
}

void add_batch_norm(CLI::App& app, std::optional<BatchNormMode>& mode, const char* help) {
  add_choice<std::optional<BatchNormMode>>(
      app, "--batch-norm", mode, {kBatchNormModes.begin(), kBatchNormModes.end()}, help);
}

void add_pixels(CLI::App& app, std::vector<float>& mean, std::vector<float>& stddev) {
  app.add_option(
         "--mean", mean, "subtracted from pixel values in 0..1: one number, or one per channel")
      ->type_name("X,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--std", stddev, "pixels are then divided by this")
      ->type_name("X,...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_stall_timeout(CLI::App& app, Index& seconds) {
  constexpr Index kMostStallTimeout = 86400;
  app.add_option("--stall-timeout",
                 seconds,
                 "exit with code 75 if a rank has not answered for this long (default: 60)")
      ->type_name("SECONDS")
      ->check(whole_number(1, kMostStallTimeout));
}

void add_meters(CLI::App& app, std::vector<MeterSpec>& meters, const char* example) {
  const auto read = [&meters](const std::vector<std::string>& texts) {
    meters.clear();
    for (const std::string& text : texts) {
      meters.push_back(parse_meter(text));
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--meter",
         read,
         fmt::format("meter of electric power, [HOST=]KIND[:ARGUMENT], such as hwmon, "
                     "command:PROGRAM or {}; can be repeated (default: auto)",
                     example))
      ->type_name("SPEC")
      ->allow_extra_args(false)
      ->check(accepted_by([](const std::string& text) { (void)parse_meter(text); }));
}

}  // namespace tessera::engine
