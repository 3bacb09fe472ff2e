#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/data/batch/augment.h"
#include "engine/data/inspection/box_checks.h"
#include "engine/data/inspection/box_statistics.h"
#include "engine/data/inspection/data_summary.h"
#include "engine/data/inspection/sample_sheet.h"
#include "engine/files/atomic_file.h"
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
  std::string_view layout;  // empty: there is none
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
    return InspectedHalf(
        model
            ? open_labelled(
                  command.data, split, model->network, command.model, command.allow_unlabelled)
            : list_dataset(command.data, split, 3, {.allow_unlabelled = command.allow_unlabelled}));
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

// How many problems of each kind one half has; of pictures that --skip-broken leaves out, none.
// Those of a list that both halves were taken from count for the first.
std::array<Index, kDataFaults> faults_of(const InspectedData& data, const InspectedHalf& half) {
  std::array<Index, kDataFaults> counts{};
  for (const DataProblem& problem : half.dataset.problems()) {
    counts[static_cast<std::size_t>(problem.fault)] += lists_files(data, half) ? 1 : 0;
  }
  for (const BadPicture& bad : half.bad) {
    ++counts[static_cast<std::size_t>(bad.problem.fault)];
  }
  counts[static_cast<std::size_t>(DataFault::Duplicate)] += std::ssize(repeats(half.contents));
  return counts;
}

// What is not recognised is refused where the halves are opened.
std::string_view layout_at(const std::string& path, TargetKind kind) {
  try {
    return layout_name(layout_of(path, kind));
  } catch (const InputError&) {
    return {};
  }
}

Check check_data(const CheckDataCommand& command) {
  std::optional<partitioner::ModelFile> model;
  if (!command.model.empty()) {
    model = partitioner::read_model(command.model);
    for (const std::string& warning : model->warnings) {
      print_warning(warning);
    }
  }
  Check check;
  check.layout = layout_at(command.data, model ? target_kind(model->network) : TargetKind::Either);
  check.data.path = command.data;
  check.data.training = open_half(command, Split::Train, model, check.problems);
  check.data.testing = open_half(command, Split::Test, model, check.problems);
  drop_repeats(check.problems);
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
    if (auto spare = spare_outputs(
            model->network, command.model, check.data.halves().front()->dataset, command.data)) {
      check.problems.push_back({DataFault::SpareOutputs, command.data, *std::move(spare)});
    }
    const std::vector<DataProblem> for_heads = box_problems(check.data, model->network);
    check.problems.insert(check.problems.end(), for_heads.begin(), for_heads.end());
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

// What is on the pictures, and how large it is there.
void print_boxes(const InspectedData& data, const InspectedHalf& half) {
  const BoxStatistics boxes = statistics_of(half.dataset);
  fmt::print(
      "  {} on {} ({} without any): {} small (under 32x32 pixels of the picture; `eval` counts "
      "those "
      "of the network's input), {} medium, {} large (96x96 and more)\n",
      counted(boxes.objects, "object"),
      counted(boxes.pictures, "picture"),
      boxes.empty_pictures,
      boxes.small,
      boxes.medium,
      boxes.large);
  fmt::print("  side of a square of the same area, in pixels:\n");
  const Index most = *std::max_element(boxes.by_side.begin(), boxes.by_side.end());
  for (std::size_t i = 0; i < boxes.by_side.size(); ++i) {
    constexpr Index kMostSigns = 40;
    const Index signs = most > 0 ? (boxes.by_side[i] * kMostSigns + most - 1) / most : 0;
    fmt::print("  {:>8}  {}{}{}\n",
               boxes.by_side[i],
               side_name(i),
               signs > 0 ? " " : "",
               std::string(static_cast<std::size_t>(signs), '#'));
  }
  std::string faults;
  const auto counts = faults_of(data, half);
  for (int fault = 0; fault < kDataFaults; ++fault) {
    if (const Index count = counts[static_cast<std::size_t>(fault)]; count > 0) {
      faults += fmt::format(
          "{}{} {}", faults.empty() ? "" : ", ", count, fault_name(static_cast<DataFault>(fault)));
    }
  }
  fmt::print("  problems: {}\n", faults.empty() ? "none" : faults);
}

void print_half(const char* name, const InspectedData& data, const InspectedHalf& half) {
  constexpr std::size_t kMostClasses = 30;
  const std::vector<Index> sizes = class_sizes(half.dataset);
  const bool boxes = half.dataset.has_boxes();
  fmt::print("{}: {}{}\n",
             name,
             counted(half.dataset.size(), "picture"),
             boxes ? "; objects of each class:" : "");
  for (std::size_t i = 0; i < std::min(sizes.size(), kMostClasses); ++i) {
    fmt::print("  {:>8}  {}\n", sizes[i], printable(half.dataset.class_names()[i]));
  }
  if (sizes.size() > kMostClasses) {
    fmt::print("  and {} more classes (--json lists all)\n", sizes.size() - kMostClasses);
  }
  if (boxes) {
    print_boxes(data, half);
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
  if (!check.layout.empty()) {
    fmt::print("layout: {}\n", check.layout);
  }
  if (!check.data.halves().empty()) {
    fmt::print("{}\n", summary_of(check.data));
  }
  print_sizes(check.sizes);
  if (check.data.training) {
    print_half("for training", check.data, *check.data.training);
  }
  if (check.data.testing) {
    print_half("for testing", check.data, *check.data.testing);
  }
  if (check.dropped > 0) {
    fmt::print("--skip-broken leaves out {} pictures that cannot be used\n", check.dropped);
  }
  print_problems(check.problems);
  if (check.problems.empty()) {
    fmt::print("no problems found\n");
  }
}

void add_boxes_json(const InspectedData& data, const InspectedHalf& half, ordered_json& json) {
  const BoxStatistics boxes = statistics_of(half.dataset);
  json["objects"] = boxes.objects;
  json["empty_pictures"] = boxes.empty_pictures;
  json["small"] = boxes.small;
  json["medium"] = boxes.medium;
  json["large"] = boxes.large;
  json["by_side"] = ordered_json::array();
  for (std::size_t i = 0; i < boxes.by_side.size(); ++i) {
    json["by_side"].push_back({{"pixels", side_name(i)}, {"objects", boxes.by_side[i]}});
  }
  json["problems"] = ordered_json::object();
  const auto counts = faults_of(data, half);
  for (int fault = 0; fault < kDataFaults; ++fault) {
    json["problems"][std::string(fault_name(static_cast<DataFault>(fault)))] =
        counts[static_cast<std::size_t>(fault)];
  }
}

ordered_json half_json(const InspectedData& data, const InspectedHalf& half) {
  ordered_json json{{"pictures", half.dataset.size()}, {"classes", ordered_json::array()}};
  const std::vector<Index> sizes = class_sizes(half.dataset);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    json["classes"].push_back({{"name", half.dataset.class_names()[i]},
                               {half.dataset.has_boxes() ? "objects" : "pictures", sizes[i]}});
  }
  if (half.dataset.has_boxes()) {
    add_boxes_json(data, half, json);
  }
  return json;
}

void print_problems_json(const Check& check) {
  ordered_json json{{"data", check.data.path},
                    {"layout", check.layout},
                    {"errors", check.errors()},
                    {"warnings", std::ssize(check.problems) - check.errors()}};
  if (check.data.training) {
    json["training"] = half_json(check.data, *check.data.training);
  }
  if (check.data.testing) {
    json["testing"] = half_json(check.data, *check.data.testing);
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

// Draws pictures for training, or for testing where there are no others.
void write_sheet(const Check& check, const std::string& file) {
  const std::vector<const InspectedHalf*> halves = check.data.halves();
  if (halves.empty() || !halves.front()->dataset.has_boxes()) {
    throw InputError(check.data.path, 0, "--sheet draws boxes, and this data set has none");
  }
  const SampleSheet sheet = sample_sheet(halves.front()->dataset);
  AtomicFile picture(file);
  picture.write(sheet.picture.png());
  picture.commit();
  write_atomically(file + ".txt", sheet.list);
}

}  // namespace

void run_check_data(const CheckDataCommand& command) {
  const Check check = check_data(command);
  if (!command.sheet.empty()) {
    write_sheet(check, command.sheet);
  }
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
