// The command line of a training run, changed for going on: on other devices, or after a fault.

#pragma once

#include <set>
#include <string>
#include <vector>

namespace tessera::engine {

// Options that are left out: together with a value, given as the next word or after "=", or alone.
struct LeftOut {
  std::set<std::string, std::less<>> with_value;
  std::set<std::string, std::less<>> flags;
};

[[nodiscard]] std::vector<std::string> without(const std::vector<std::string>& words,
                                               const LeftOut& left_out);

// The value of an option; empty where it is not given.
[[nodiscard]] std::string value_of(const std::vector<std::string>& words, const std::string& name);

// What says how to cut the network for certain devices, and which of them reads.
[[nodiscard]] LeftOut cut_for_devices(const std::vector<std::string>& words);

// `choose` without the devices that the choice was among is `train`.
[[nodiscard]] std::vector<std::string> training_of_choice(const std::vector<std::string>& words);

// The words after the program's name, "train" or "choose" first, for devices other than those that
// they were written for: by a partition that a search finds, or that of a file.
[[nodiscard]] std::vector<std::string> words_for_other_devices(
    const std::vector<std::string>& words,
    const std::string& partition_file,
    const std::string& cluster_file);

// The words of `tessera plan` that searches a partition of the same training for so many ranks.
// `model` is the model file, which has no option of its own.
[[nodiscard]] std::vector<std::string> words_to_plan(const std::vector<std::string>& words,
                                                     const std::string& model,
                                                     int ranks,
                                                     const std::string& cluster_file,
                                                     const std::string& out);

}  // namespace tessera::engine
