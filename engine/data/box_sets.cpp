#include "engine/data/box_sets.h"

#include <algorithm>
#include <fmt/format.h>

namespace tessera::engine {

void add_picture_with_boxes(std::string_view path,
                            int line,
                            const ReadBoxes& read,
                            PictureFiles& files) {
  files.problems.insert(files.problems.end(), read.problems.begin(), read.problems.end());
  const bool usable = std::none_of(read.problems.begin(),
                                   read.problems.end(),
                                   [](const DataProblem& each) { return is_error(each.fault); });
  if (!usable) {
    return;
  }
  files.paths.add(path);
  std::vector<Box> boxes = read.boxes;
  std::stable_partition(boxes.begin(), boxes.end(), [](const Box& box) { return !box.ignored; });
  files.boxes->add(boxes);
  if (!files.list.empty()) {
    files.line_numbers.push_back(line);
  }
}

PictureFiles tenth_or_others(const PictureFiles& all, bool tenth) {
  constexpr Index kTenth = 10;
  const Index size = all.paths.size();
  std::vector<Index> dropped;
  for (Index i = 0; i < size; ++i) {
    const bool is_tenth = size > 1 && size < kTenth ? i == size - 1 : i % kTenth == kTenth - 1;
    if (is_tenth != tenth) {
      dropped.push_back(i);
    }
  }
  PictureFiles part = without_items(all, dropped);
  part.divided = true;
  return part;
}

void add_missing_pictures(const std::filesystem::path& where, bool training, PictureFiles& files) {
  const bool explained = std::any_of(files.problems.begin(),
                                     files.problems.end(),
                                     [](const DataProblem& each) { return is_error(each.fault); });
  if (files.paths.size() == 0 && !explained) {
    files.problems.push_back({DataFault::Unusable,
                              where.string(),
                              fmt::format("no picture for {} was found here: add some",
                                          training ? "training" : "testing")});
  }
}

}  // namespace tessera::engine
