// Options that several subcommands have, and what options are made of.

#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/layer.h"
#include "engine/power/meter_spec.h"

namespace tessera::engine {

inline constexpr Index kMostCount = 1'000'000'000;  // steps, images, ranks
inline constexpr Index kMostThreads = 1024;
inline constexpr Index kMostSeed = 0x7fffffffffffffff;  // checkpoints keep it as a signed number
inline constexpr double kLeastQuantity = 1e-12;         // of seconds, watts, bytes
inline constexpr double kMostQuantity = 1e12;

// Accept what is written like one, from `least` to `most`.
[[nodiscard]] CLI::Validator whole_number(Index least, Index most);
[[nodiscard]] CLI::Validator real_number(double least, double most);

// Accepts what `parse` does not refuse by an InputError, which is the message.
[[nodiscard]] CLI::Validator accepted_by(std::function<void(const std::string&)> parse);

// The two parts of an option's form, "--size HxW": what is typed, and what it takes, which may be
// missing.
[[nodiscard]] std::string name_in(const std::string& form);
[[nodiscard]] std::string type_in(const std::string& form);

CLI::Option* add_text(CLI::App& app,
                      const std::string& form,
                      std::string& value,
                      const std::string& help);

// An option whose text `read` turns into a value. What it refuses by an InputError is what is wrong
// with the command line.
CLI::Option* add_read(CLI::App& app,
                      const std::string& form,
                      std::function<void(const std::string&)> read,
                      const std::string& help);

// A number from 1 on; one above 0 that is there already is the default.
template <class Count>
CLI::Option* add_count(
    CLI::App& app, const char* name, Count& value, const char* help, Index most = kMostCount) {
  auto* option = app.add_option(name, value, help)->type_name("N")->check(whole_number(1, most));
  return value > 0 ? option->capture_default_str() : option;
}

// A positive number.
template <class Number>
CLI::Option* add_number(CLI::App& app,
                        const std::string& form,
                        Number& value,
                        const std::string& help) {
  return app.add_option(name_in(form), value, help)
      ->type_name(type_in(form))
      ->check(real_number(kLeastQuantity, kMostQuantity));
}

// One of several words; what is there already is the default.
void add_choice(CLI::App& app,
                const char* name,
                std::string& value,
                const std::vector<std::string>& choices,
                const char* help);

// The same for words that mean values, the first of which is the default.
template <class Value>
CLI::Option* add_choice(CLI::App& app,
                        const char* name,
                        Value& value,
                        const std::vector<std::pair<std::string, Value>>& choices,
                        const char* help) {
  const auto read = [&value, choices](const std::string& text) {
    for (const auto& [word, meaning] : choices) {
      value = word == text ? meaning : value;
    }
  };
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) {
    words.push_back(word);
  }
  return add_read(app, std::string(name) + " HOW", read, help)
      ->check(CLI::IsMember(words))
      ->default_str(words.front());
}

// A list of numbers, one per device.
template <class Number>
CLI::Option* add_numbers(CLI::App& app,
                         const char* name,
                         std::vector<Number>& numbers,
                         const CLI::Validator& each,
                         const char* help) {
  return app.add_option(name, numbers, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N,...")
      ->check(each);
}

// An older name of an option: accepted, and not in the help.
template <class Value>
CLI::Option* add_alias(CLI::App& app, const char* name, Value& value, CLI::Option* option) {
  return app.add_option(name, value)->group("")->excludes(option);
}

template <class Seed>
CLI::Option* add_seed(CLI::App& app, Seed& seed, const char* help) {
  return app.add_option("--seed", seed, help)->type_name("N")->check(whole_number(0, kMostSeed));
}

void add_model(CLI::App& app, std::string& model);
void add_size(CLI::App& app, std::string& size);
void add_subdivisions(CLI::App& app, Index& subdivisions);
void add_freeze(CLI::App& app, std::string& layer, bool takes_weights = false);
// How the size of a detector's input changes, 0: not at all; nothing is set where it is not given.
void add_multi_scale(CLI::App& app, std::optional<double>& factor);
void add_json(CLI::App& app, bool& json, const char* help);
void add_weights(CLI::App& app, std::string& weights);
void add_skip_broken(CLI::App& app, bool& skip_broken);
void add_allow_unlabelled(CLI::App& app, bool& allow_unlabelled);
// The statistics by which batches are normalised; nothing is set where the option is not given.
void add_batch_norm(CLI::App& app, std::optional<BatchNormMode>& mode, const char* help);
void add_pixels(CLI::App& app, std::vector<float>& mean, std::vector<float>& stddev);
// See comm/watchdog.h.
void add_stall_timeout(CLI::App& app, Index& seconds);
// `example` is one more of a meter.
void add_meters(CLI::App& app, std::vector<MeterSpec>& meters, const char* example);

}  // namespace tessera::engine
