#include "engine/data/sets/labelled_pictures.h"

#include <fmt/format.h>
#include <unordered_map>
#include <vector>

#include "engine/base/in_threads.h"
#include "engine/data/sets/box_sets.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace fs = std::filesystem;

DataProblem unlabelled(const fs::path& list,
                       int line,
                       std::string_view path,
                       const std::string& why) {
  constexpr std::size_t kShownBytes = 200;
  const bool shown = is_picture_name(path);
  return {DataFault::Unlabelled,
          fmt::format("{}:{}", list.string(), line),
          shown ? fmt::format("{}: {}", printable_start(path, kShownBytes), why)
                : "this line is not the path of a picture: expected one per line"};
}

namespace {

// The boxes of one picture of a list, and where they are.
struct BoxesBeside {
  ReadBoxes read;
  fs::path file = {};  // empty: there are none
  bool twice = false;  // there is another file of them, beside the picture
};

BoxesBeside read_boxes_beside(const PictureFiles& listed,
                              Index item,
                              int classes,
                              const LabelRules& rules) {
  const fs::path picture = picture_path(listed, item);
  const fs::path file = label_path(picture);
  if (is_there(file)) {
    const fs::path beside = fs::path(picture).replace_extension(".txt");
    return {read_label_text(file, classes, rules.lines), file, beside != file && is_there(beside)};
  }
  if (rules.may_lack) {
    return {};
  }
  const std::string labels = printable_start(file.string(), 200);
  const std::string why =
      is_there(picture)
          ? fmt::format(
                "there is no {}, which says what is on this picture: add one (an empty "
                "file where nothing is), or give --allow-unlabelled if nothing is on such "
                "pictures",
                labels)
          : fmt::format(
                "there is no such picture, and no {}: paths of a list are relative to the "
                "folder of the .data file, or to the current one",
                labels);
  return {{{},
           {unlabelled(listed.list,
                       listed.line_numbers[static_cast<std::size_t>(item)],
                       listed.paths[item],
                       why)}}};
}

// Label texts that two pictures share, and pictures that have two.
void add_shared_labels(const PictureFiles& listed,
                       const std::vector<BoxesBeside>& read,
                       PictureFiles& files) {
  std::unordered_map<std::string_view, Index> first_of;
  SharedNames shared;
  SharedNames twice;
  for (Index item = 0; item < listed.paths.size(); ++item) {
    const BoxesBeside& its = read[static_cast<std::size_t>(item)];
    if (its.file.empty()) {
      continue;
    }
    const auto [first, is_new] = first_of.emplace(its.file.native(), item);
    if (!is_new && listed.paths[first->second] != listed.paths[item]) {
      shared.add(fmt::format("{} is of {} and of {}",
                             its.file.string(),
                             listed.paths[first->second],
                             listed.paths[item]));
    }
    if (its.twice) {
      twice.add(
          fmt::format("{} counts, not that beside {}", its.file.string(), listed.paths[item]));
    }
  }
  const fs::path& where = listed.list.empty() ? listed.base : listed.list;
  shared.add_problem(where, "pictures share the label text of another", files);
  twice.add_problem(where, "pictures have two label texts", files);
}

}  // namespace

LabelCounts add_labelled_pictures(const PictureFiles& listed,
                                  const LabelRules& rules,
                                  PictureFiles& files) {
  const auto classes = static_cast<int>(files.class_names.size());
  std::vector<BoxesBeside> all(static_cast<std::size_t>(listed.paths.size()));
  for_each_in_threads(listed.paths.size(), [&](Index item) {
    all[static_cast<std::size_t>(item)] = read_boxes_beside(listed, item, classes, rules);
  });
  LabelCounts counts;
  for (Index item = 0; item < listed.paths.size(); ++item) {
    const auto i = static_cast<std::size_t>(item);
    const BoxesBeside& its = all[i];
    add_picture_with_boxes(
        listed.paths[item], listed.list.empty() ? 0 : listed.line_numbers[i], its.read, files);
    if (its.read.polygons > 0 && counts.polygons == 0) {
      counts.first_polygon = its.file.string();
    }
    counts.polygons += its.read.polygons;
    counts.texts += its.file.empty() ? 0 : 1;
    if (its.file.empty() && is_there(picture_path(listed, item))) {
      counts.first_without =
          counts.without++ == 0 ? picture_path(listed, item).string() : counts.first_without;
    }
  }
  add_shared_labels(listed, all, files);
  return counts;
}

}  // namespace tessera::engine
