#include "engine/data/inspection/data_summary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <tuple>
#include <type_traits>

#include "engine/data/inspection/box_checks.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr Index kUnlikeSizes = 10;  // classes as unlike as that are worth a warning

void add_repeats(const InspectedData& data, std::vector<DataProblem>& problems) {
  for (const InspectedHalf* half : data.halves()) {
    for (const Repeat& each : repeats(half->contents)) {
      problems.push_back({DataFault::Duplicate,
                          half->dataset.place(each.item),
                          "the same picture as " + half->dataset.place(each.first)});
    }
  }
  if (data.training && data.testing) {
    for (const Repeat& each : repeats_of(data.testing->contents, data.training->contents)) {
      problems.push_back({DataFault::InBothHalves,
                          data.testing->dataset.place(each.item),
                          "this test picture is also a training picture: " +
                              data.training->dataset.place(each.first)});
    }
  }
}

void add_same_names(const InspectedData& data, std::vector<DataProblem>& problems) {
  if (data.halves().empty()) {
    return;
  }
  const std::vector<std::string>& names = data.halves().front()->dataset.class_names();
  std::map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto [before, is_new] = first.emplace(names[i], i); !is_new) {
      problems.push_back(
          {DataFault::SameName,
           data.path,
           fmt::format("classes {} and {} are both called {}: their pictures count as two classes",
                       before->second,
                       i,
                       printable_start(names[i]))});
    }
  }
}

void add_class_sizes(const InspectedData& data, std::vector<DataProblem>& problems) {
  if (!data.training || data.training->dataset.classes() == 0) {
    return;
  }
  const std::vector<std::string>& names = data.training->dataset.class_names();
  const std::vector<Index> sizes = class_sizes(data.training->dataset);
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const auto name = [&](auto size) {
    return printable_start(names[static_cast<std::size_t>(size - sizes.begin())]);
  };
  const std::string thing = data.training->dataset.has_boxes() ? "object" : "picture";
  const bool has_none =
      *least == 0 && data.training->dataset.has_boxes();  // box_problems() says so
  if (*least * kUnlikeSizes < *most && !has_none) {
    problems.push_back({DataFault::Unbalanced,
                        data.path,
                        fmt::format("{} has {}, {} has {}: training may neglect the small class",
                                    name(most),
                                    counted(*most, thing),
                                    name(least),
                                    counted(*least, thing))});
  }
  if (!data.testing) {
    return;
  }
  const std::vector<Index> tested = class_sizes(data.testing->dataset);
  const auto untested = std::find(tested.begin(), tested.end(), 0);
  const auto more = std::count(tested.begin(), tested.end(), 0) - 1;
  const bool of_all =
      thing == "object" && more + 1 == std::ssize(tested);  // box_problems() says so
  if (untested != tested.end() && !of_all) {
    problems.push_back(
        {DataFault::Unbalanced,
         data.path,
         fmt::format("there is no {} of {}{} to test with",
                     thing,
                     printable_start(names[static_cast<std::size_t>(untested - tested.begin())]),
                     more == 0   ? ""
                     : more == 1 ? " and of another class"
                                 : fmt::format(" and of {} other classes", more))});
  }
}

// Files of both halves that name unlike classes.
void add_unlike_classes(const InspectedData& data, std::vector<DataProblem>& problems) {
  if (!data.training || !data.testing) {
    return;
  }
  const std::vector<std::string>& names = data.training->dataset.class_names();
  const std::vector<std::string>& tested = data.testing->dataset.class_names();
  const auto [mine, theirs] =
      std::mismatch(names.begin(), names.end(), tested.begin(), tested.end());
  if (mine == names.end() && theirs == tested.end()) {
    return;
  }
  const auto shown = [](auto at, const std::vector<std::string>& all) {
    return at == all.end() ? "nothing" : printable_start(*at);
  };
  problems.push_back({DataFault::UnknownClass,
                      data.path,
                      fmt::format("class {} is {} for training and {} for testing",
                                  mine - names.begin(),
                                  shown(mine, names),
                                  shown(theirs, tested))});
}

Index objects_of(const InspectedData& data) {
  Index objects = 0;
  for (const InspectedHalf* half : data.halves()) {
    for (Index item = 0; item < half->dataset.size(); ++item) {
      objects += std::ssize(half->dataset.boxes(item));
    }
  }
  return objects;
}

}  // namespace

bool lists_files(const InspectedData& data, const InspectedHalf& half) {
  const PictureFiles* files = half.dataset.files();
  return files != nullptr && !(files->divided && data.training && &half != &*data.training);
}

InspectedHalf::InspectedHalf(Dataset opened) : dataset(std::move(opened)) {
  if (dataset.files() != nullptr) {
    records = record_sizes(*dataset.files());
  }
}

void InspectedHalf::drop(const std::vector<Index>& items) {
  const auto keep = [&](auto& list) {
    std::remove_reference_t<decltype(list)> kept;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!std::binary_search(items.begin(), items.end(), static_cast<Index>(i))) {
        kept.push_back(list[i]);
      }
    }
    list = std::move(kept);
  };
  keep(records.pictures);
  keep(headers);
  keep(contents);
  bad.clear();
  dataset.drop(items);
}

std::vector<const InspectedHalf*> InspectedData::halves() const {
  std::vector<const InspectedHalf*> both;
  for (const auto* half : {&training, &testing}) {
    if (*half) {
      both.push_back(&**half);
    }
  }
  return both;
}

std::vector<InspectedHalf*> InspectedData::halves() {
  std::vector<InspectedHalf*> both;
  for (auto* half : {&training, &testing}) {
    if (*half) {
      both.push_back(&**half);
    }
  }
  return both;
}

ReadingRules reading_rules_for(const PictureRecords& records) {
  ReadingRules rules{std::ssize(records.pictures), 0};
  for (const PictureRecord& record : records.pictures) {
    rules.total_bytes += std::max<Index>(record.bytes, 0);
  }
  return rules;
}

ReadingRules reading_rules_for(const InspectedData& data) {
  ReadingRules both;
  for (const InspectedHalf* half : data.halves()) {
    const ReadingRules rules = reading_rules_for(half->records);
    both.pictures += rules.pictures;
    both.total_bytes += rules.total_bytes;
  }
  return both;
}

void inspect(InspectedData& data, const ReadingRules& rules, const Look& look) {
  for (InspectedHalf* half : data.halves()) {
    if (const PictureFiles* files = half->dataset.files()) {
      record_contents(*files, rules, half->records, half->known_contents);
      half->known_contents = {};
      half->bad = bad_pictures(*files, half->records, look, half->headers);
      half->contents = whole_contents(half->records);
    } else {
      half->contents = whole_contents(*half->dataset.byte_pictures());
    }
  }
}

std::vector<Index> class_sizes(const Dataset& dataset) {
  std::vector<Index> sizes(dataset.class_names().size());
  for (Index item = 0; item < dataset.size(); ++item) {
    if (!dataset.has_boxes()) {
      ++sizes[static_cast<std::size_t>(dataset.label(item))];
    }
    for (const Box& box : dataset.boxes(item)) {
      ++sizes[static_cast<std::size_t>(box.label)];
    }
  }
  return sizes;
}

std::optional<std::string> few_tested(const InspectedData& data) {
  constexpr Index kFew = 10;
  constexpr Index kMany = 30;
  constexpr Index kOneOf = 15;  // a tenth, by class, may be a little less
  const Index tested = data.testing ? data.testing->dataset.size() : kFew;
  const Index trained = data.training ? data.training->dataset.size() : 0;
  return tested >= kFew || tested == 0 || trained < std::max(kMany, (kOneOf - 1) * tested)
             ? std::nullopt
             : std::optional(fmt::format("{} to test with beside {} to train on: so few say little "
                                         "about others",
                                         counted(tested, "picture"),
                                         trained));
}

std::vector<DataProblem> problems_of(const InspectedData& data) {
  std::vector<DataProblem> problems;
  for (const InspectedHalf* half : data.halves()) {
    if (lists_files(data, *half)) {
      for (const DataProblem& each : half->dataset.problems()) {
        const bool said = is_of_set(each.fault) &&  // by the other half
                          std::find(problems.begin(), problems.end(), each) != problems.end();
        if (!said) {
          problems.push_back(each);
        }
      }
      for (const auto& [ending, count] : half->dataset.files()->left_out) {
        problems.push_back(
            {DataFault::LeftOut,
             data.path,
             describe({{ending, count}}) + " left out" + conversion_of({{ending, count}})});
      }
    }
    for (const BadPicture& bad : half->bad) {
      problems.push_back(bad.problem);
    }
  }
  add_repeats(data, problems);
  if (std::optional<std::string> few = few_tested(data)) {
    problems.push_back({DataFault::Unbalanced, data.path, *std::move(few)});
  }
  add_class_sizes(data, problems);
  add_same_names(data, problems);
  add_unlike_classes(data, problems);
  const std::vector<DataProblem> of_boxes = box_problems(data);
  problems.insert(problems.end(), of_boxes.begin(), of_boxes.end());
  std::stable_sort(problems.begin(), problems.end(), [](const auto& one, const auto& other) {
    return one.fault < other.fault;
  });
  drop_repeats(problems);
  return problems;
}

void drop_repeats(std::vector<DataProblem>& problems) {
  std::set<std::tuple<DataFault, std::string, std::string>> seen;
  std::erase_if(problems, [&](const DataProblem& each) {
    return !seen.emplace(each.fault, each.where, each.what).second;
  });
}

std::string listed_classes(const Dataset& dataset) {
  constexpr std::size_t kNamesShown = 10;
  const std::vector<std::string>& classes = dataset.class_names();
  std::string names;
  for (std::size_t i = 0; i < std::min(classes.size(), kNamesShown); ++i) {
    names += (i > 0 ? ", " : "") + printable_start(classes[i]);
  }
  return names + (classes.size() > kNamesShown ? ", ..." : "");
}

std::string described_classes(const Dataset& dataset) {
  return fmt::format("{} class{} ({})",
                     dataset.classes(),
                     dataset.classes() == 1 ? "" : "es",
                     listed_classes(dataset));
}

std::string summary_of(const InspectedData& data) {
  Index pictures = 0;
  LeftOutFiles left_out;
  for (const InspectedHalf* half : data.halves()) {
    pictures += half->dataset.size();
    if (lists_files(data, *half)) {
      for (const auto& [ending, count] : half->dataset.files()->left_out) {
        left_out[ending] += count;
      }
    }
  }
  std::string text =
      counted(pictures, "picture") + ", " + described_classes(data.halves().front()->dataset);
  if (data.halves().front()->dataset.has_boxes()) {
    text += ", " + counted(objects_of(data), "object");
  }
  if (data.testing) {
    text += fmt::format(", {} for testing", data.testing->dataset.size());
  }
  if (!left_out.empty()) {
    text += "; " + describe(left_out) + " left out";
  }
  return text;
}

std::string count_of(const std::vector<DataProblem>& problems) {
  std::array<Index, kDataFaults> counts{};
  for (const DataProblem& problem : problems) {
    ++counts[static_cast<std::size_t>(problem.fault)];
  }
  std::string text = counted(std::ssize(problems), "problem") + ":";
  const char* separator = " ";
  for (int fault = 0; fault < kDataFaults; ++fault) {
    if (counts[static_cast<std::size_t>(fault)] > 0) {
      text += fmt::format("{}{} {}",
                          separator,
                          counts[static_cast<std::size_t>(fault)],
                          fault_name(static_cast<DataFault>(fault)));
      separator = ", ";
    }
  }
  return text;
}

}  // namespace tessera::engine
