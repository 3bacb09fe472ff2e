#include "engine/supervisor/training_words.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tessera::engine {

std::vector<std::string> without(const std::vector<std::string>& words, const LeftOut& left_out) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = std::string_view(words[i]).substr(0, words[i].find('='));
    if (left_out.with_value.count(name) > 0) {
      i += name.size() == words[i].size() ? 1 : 0;
    } else if (left_out.flags.count(name) == 0) {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

std::string value_of(const std::vector<std::string>& words, const std::string& name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) {
      return words[i + 1];
    }
    if (words[i].rfind(name + "=", 0) == 0) {
      return words[i].substr(name.size() + 1);
    }
  }
  return "";
}

LeftOut cut_for_devices(const std::vector<std::string>& words) {
  LeftOut cut;
  cut.with_value = {"--grid",
                    "--groups",
                    "--recompute",
                    "--data-parallel-from",
                    "--filter-parallel-from",
                    "--replicas",
                    "--sync",
                    "--local-after",
                    "--cluster"};
  if (value_of(words, "--partition") != "auto") {
    cut.with_value.insert("--partition");
  }
  const std::string reader = value_of(words, "--reader");
  if (reader != "0" && reader != "every") {
    cut.with_value.insert("--reader");
  }
  return cut;
}

std::vector<std::string> training_of_choice(const std::vector<std::string>& words) {
  LeftOut choice;
  choice.with_value = {"--objective", "--deadline", "--power-limit"};
  choice.flags = {"--count-idle", "--try-all"};
  std::vector<std::string> training = without(words, choice);
  std::replace(training.begin(),
               std::min(training.begin() + 2, training.end()),
               std::string("choose"),
               std::string("train"));
  return training;
}

std::vector<std::string> words_for_other_devices(const std::vector<std::string>& words,
                                                 const std::string& partition_file,
                                                 const std::string& cluster_file) {
  LeftOut cut = cut_for_devices(words);
  cut.with_value.insert("--partition");
  std::vector<std::string> changed = without(words, cut);
  if (changed[0] == "choose") {
    changed = training_of_choice(changed);
  }
  changed.insert(changed.end(), {"--partition", partition_file.empty() ? "auto" : partition_file});
  if (!cluster_file.empty()) {
    changed.insert(changed.end(), {"--cluster", cluster_file});
  }
  return changed;
}

std::vector<std::string> words_to_plan(const std::vector<std::string>& words,
                                       const std::string& model,
                                       int ranks,
                                       const std::string& cluster_file,
                                       const std::string& out) {
  std::vector<std::string> plan{"plan",
                                model,
                                "--ranks",
                                std::to_string(ranks),
                                "--partition",
                                "auto",
                                "--keep-state",
                                "--save",
                                out};
  for (const char* option : {"--freeze",
                             "--multi-scale",
                             "--memory-limit",
                             "--objective",
                             "--kernels",
                             "--workspace",
                             "--batch-norm"}) {
    if (const std::string value = value_of(words, option); !value.empty()) {
      plan.insert(plan.end(), {option, value});
    }
  }
  if (const std::string batch = value_of(words, "--batch"); !batch.empty()) {
    const int images = std::atoi(batch.c_str());
    const int parts = std::atoi(value_of(words, "--subdivisions").c_str());
    plan.insert(plan.end(), {"--batch", std::to_string(images / std::max(parts, 1))});
  }
  if (!cluster_file.empty()) {
    plan.insert(plan.end(), {"--cluster", cluster_file});
  }
  return plan;
}

}  // namespace tessera::engine
