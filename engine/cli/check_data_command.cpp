#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/data/augment.h"
#include "engine/data/data_summary.h"
#include "engine/session/class_outputs.h"
#include "engine/session/data_needs.h"
#include "engine/session/model_setup.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

namespace {

using nlohmann::ordered_json;

// What was looked at and what was found.
struct Check {
  InspectedData data;
  std::vector<DataProblem> problems;
  Index dropped = 0;                // pictures that --skip-broken leaves out
  std::vector<PictureSizes> sizes;  // of halves that are picture files

  [[nodiscard]] Index errors() const {
    return std::count_if(problems.begin(), problems.end(), [](const DataProblem& each) {
      return is_error(each.fault);
    });
  }
};

// A half, unless it cannot be used at all: then why.
std::optional<InspectedHalf> open_half(const CheckDataCommand& command,
                                       Split split,
                                       const std::optional<partitioner::ModelFile>& model,
                                       std::vector<DataProblem>& problems) {
  try {
    return InspectedHalf(model ? open_labelled(command.data, split, model->network, command.model)
                               : list_dataset(command.data, split, 3));
  } catch (const InputError& error) {
    problems.push_back({DataFault::Unusable, "", error.what()});
    return std::nullopt;
  }
}

// Takes out pictures that cannot be used; returns how many.
Index drop_broken(InspectedData& data) {
  Index dropped = 0;
  for (InspectedHalf* half : data.halves()) {
    std::vector<Index> items;
    for (const BadPicture& bad : half->bad) {
      items.push_back(bad.item);
    }
    if (!items.empty()) {
      half->drop(items);
    }
    dropped += std::ssize(items);
  }
  return dropped;
}

Check check_data(const CheckDataCommand& command) {
  std::optional<partitioner::ModelFile> model;
  if (!command.model.empty()) {
    model = partitioner::read_model(command.model);
  }
  Check check;
  check.data.path = command.data;
  check.data.training = open_half(command, Split::Train, model, check.problems);
  check.data.testing = open_half(command, Split::Test, model, check.problems);
  // Whole files, all of them, whatever they take.
  inspect(check.data, ReadingRules{}, {.decode = true, .memory_bytes = memory_to_look(1)});
  for (const InspectedHalf* half : check.data.halves()) {
    if (const PictureFiles* files = half->dataset.files()) {
      check.sizes.push_back(
          sizes_of(*files, model ? needed_detail(rendering_rules(*model)) : Detail()));
    }
  }
  if (command.skip_broken) {
    check.dropped = drop_broken(check.data);
  }
  const std::vector<DataProblem> found = problems_of(check.data);
  check.problems.insert(check.problems.end(), found.begin(), found.end());
  if (model && !check.data.halves().empty()) {
    if (auto spare =
            spare_outputs(model->network, command.model, check.data.halves().front()->dataset)) {
      check.problems.push_back({DataFault::SpareOutputs, command.data, *std::move(spare)});
    }
  }
  if (command.skip_broken) {
    check.dropped += std::erase_if(
        check.problems, [](const DataProblem& each) { return is_of_picture(each.fault); });
  }
  return check;
}

std::string problem_line(const DataProblem& problem) {
  return problem.where.empty() ? problem.what : problem.where + ": " + problem.what;
}

void print_half(const char* name, const InspectedHalf& half) {
  constexpr std::size_t kMostClasses = 30;
  const std::vector<Index> sizes = class_sizes(half.dataset);
  fmt::print("{}: {} pictures\n", name, half.dataset.size());
  for (std::size_t i = 0; i < std::min(sizes.size(), kMostClasses); ++i) {
    fmt::print("  {:>8}  {}\n", sizes[i], printable(half.dataset.class_names()[i]));
  }
  if (sizes.size() > kMostClasses) {
    fmt::print("  and {} more classes (--json lists all)\n", sizes.size() - kMostClasses);
  }
}

void print_problems(const std::vector<DataProblem>& problems) {
  constexpr Index kMostOfKind = 10;
  for (int fault = 0; fault < kDataFaults; ++fault) {
    const auto kind = static_cast<DataFault>(fault);
    Index count = 0;
    for (const DataProblem& problem : problems) {
      if (problem.fault != kind) {
        continue;
      }
      if (count == 0) {
        fmt::print("{}: {}\n", is_error(kind) ? "error" : "warning", fault_name(kind));
      }
      if (++count <= kMostOfKind) {
        fmt::print("  {}\n", printable(problem_line(problem)));
      }
    }
    if (count > kMostOfKind) {
      fmt::print("  and {} more, {} in all (--json lists them)\n", count - kMostOfKind, count);
    }
  }
}

void print_sizes(const std::vector<PictureSizes>& halves) {
  for (const PictureSizes& sizes : halves) {
    if (sizes.pictures > 0) {
      fmt::print("  {} x {} to {} x {} pixels; decoding one takes up to {} beside its file\n",
                 sizes.least_cols,
                 sizes.least_rows,
                 sizes.most_cols,
                 sizes.most_rows,
                 readable_bytes(sizes.decoding_bytes));
    }
  }
}

void print_problems(const Check& check) {
  if (!check.data.halves().empty()) {
    fmt::print("{}\n", summary_of(check.data));
  }
  print_sizes(check.sizes);
  if (check.data.training) {
    print_half("for training", *check.data.training);
  }
  if (check.data.testing) {
    print_half("for testing", *check.data.testing);
  }
  if (check.dropped > 0) {
    fmt::print("--skip-broken leaves out {} pictures that cannot be used\n", check.dropped);
  }
  print_problems(check.problems);
  if (check.problems.empty()) {
    fmt::print("no problems found\n");
  }
}

ordered_json half_json(const InspectedHalf& half) {
  ordered_json json{{"pictures", half.dataset.size()}, {"classes", ordered_json::array()}};
  const std::vector<Index> sizes = class_sizes(half.dataset);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    json["classes"].push_back({{"name", half.dataset.class_names()[i]}, {"pictures", sizes[i]}});
  }
  return json;
}

void print_problems_json(const Check& check) {
  ordered_json json{{"data", check.data.path},
                    {"errors", check.errors()},
                    {"warnings", std::ssize(check.problems) - check.errors()}};
  if (check.data.training) {
    json["training"] = half_json(*check.data.training);
  }
  if (check.data.testing) {
    json["testing"] = half_json(*check.data.testing);
  }
  json["picture_sizes"] = ordered_json::array();
  for (const PictureSizes& sizes : check.sizes) {
    json["picture_sizes"].push_back({{"smallest", {sizes.least_cols, sizes.least_rows}},
                                     {"largest", {sizes.most_cols, sizes.most_rows}},
                                     {"decoding_bytes", sizes.decoding_bytes}});
  }
  json["left_out_by_skip_broken"] = check.dropped;
  json["problems"] = ordered_json::array();
  for (const DataProblem& problem : check.problems) {
    json["problems"].push_back({{"kind", fault_name(problem.fault)},
                                {"severity", is_error(problem.fault) ? "error" : "warning"},
                                {"where", problem.where},
                                {"what", problem.what}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void run_check_data(const CheckDataCommand& command) {
  const Check check = check_data(command);
  if (command.json) {
    print_problems_json(check);
  } else {
    print_problems(check);
  }
  std::vector<DataProblem> errors = check.problems;
  std::erase_if(errors, [](const DataProblem& each) { return !is_error(each.fault); });
  if (!errors.empty()) {
    throw InputError(command.data, 0, count_of(errors));
  }
}

}  // namespace tessera::engine
