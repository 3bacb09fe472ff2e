#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <system_error>
#include <utility>

#include "engine/data/sets/box_sets.h"
#include "engine/data/sets/data_yaml.h"
#include "engine/data/sets/labelled_pictures.h"
#include "engine/data/text/class_names.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

// A path of a list: from the folder of the list or from the base of the set, where CVAT may write
// data/ before it.
fs::path listed_path(const fs::path& line, const fs::path& list, const fs::path& base) {
  const bool has_data = line.has_relative_path() && *line.begin() == "data";
  const fs::path beside = has_data ? line.lexically_relative("data") : line;
  for (const fs::path& path :
       {list.parent_path() / line, line, list.parent_path() / beside, beside}) {
    if (is_there(base / path)) {
      return path;
    }
  }
  return list.parent_path() / line;
}

void add_listed(const PictureSource& source, const fs::path& base, PictureFiles& listed) {
  const TextLines lines(base / source.path, "a list of pictures");
  for (Index i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines.text(i);
    if (is_picture_name(line)) {
      listed.paths.add(listed_path(line, source.path, base).string());
      listed.line_numbers.push_back(lines.number(i));
    } else {
      listed.problems.push_back(unlabelled(base / source.path, lines.number(i), line, ""));
    }
  }
}

void add_folder(const PictureSource& source, const fs::path& base, PictureFiles& listed) {
  const FolderListing listing = list_pictures(base / source.path);
  for (const std::string& picture : listing.pictures) {
    listed.paths.add((source.path / picture).string());
  }
  listed.problems.insert(listed.problems.end(), listing.problems.begin(), listing.problems.end());
  for (const auto& [ending, count] : listing.left_out) {
    if (ending != ".txt") {  // label texts may lie beside their pictures
      listed.left_out[ending] += count;
    }
  }
}

bool is_list(const PictureSource& source) {
  return ending_of(source.path) == ".txt";
}

// Where a source is, by one spelling of its path.
fs::path source_place(const LabelledSet& set, const PictureSource& source) {
  const fs::path given = set.base / source.path;
  const fs::path path = given.has_filename() ? given : given.parent_path();
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? path : canonical;
}

std::set<fs::path> places(const LabelledSet& set, const std::vector<PictureSource>& sources) {
  std::set<fs::path> all;
  for (const PictureSource& source : sources) {
    if (!all.insert(source_place(set, source)).second) {
      throw InputError(set.file.string(),
                       source.line,
                       fmt::format("{}: {} is there a second time: remove one of them",
                                   source.key,
                                   printable_start(source.path.string(), 200)));
    }
  }
  return all;
}

PictureFiles list_sources(const LabelledSet& set, const std::vector<PictureSource>& sources) {
  PictureFiles listed;
  listed.base = set.base;
  for (const PictureSource& source : sources) {
    const fs::path path = set.base / source.path;
    if (is_folder(path)) {
      add_folder(source, set.base, listed);
    } else if (is_file(path) && is_list(source)) {
      add_listed(source, set.base, listed);
    } else {
      throw InputError(
          set.file.string(),
          source.line,
          fmt::format("{}: there is no folder and no list (.txt) {}: correct the path{}",
                      source.key,
                      printable_start(path.string(), 200),
                      source.key == "train" ? "" : ", or remove this line"));
    }
  }
  if (sources.size() == 1 && !is_folder(set.base / sources[0].path)) {
    listed.list = set.base / sources[0].path;
  } else {
    listed.line_numbers.clear();
  }
  return listed;
}

// What is for testing; empty: a tenth of what is for training. Says so, where the set does not.
std::vector<PictureSource> sources_to_test(LabelledSet& set) {
  const bool same = places(set, set.validation) == places(set, set.training);
  std::string said;
  if (!set.validation.empty() && !same) {
    said = set.testing.empty() ? "" : "only train and val are used, not test";
  } else {
    said = fmt::format(
        "{}: {} for testing",
        set.validation.empty() ? "there is no val" : "val is the same as train",
        set.testing.empty() ? "every tenth picture, chosen by a hash of its name, is" : "test is");
  }
  if (!said.empty()) {
    set.problems.push_back({DataFault::Assumed, set.file.string(), said});
  }
  return set.validation.empty() || same ? set.testing : set.validation;
}

bool has_label_text(const PictureFiles& listed) {
  for (Index item = 0; item < listed.paths.size(); ++item) {
    if (is_there(label_path(picture_path(listed, item)))) {
      return true;
    }
  }
  return false;
}

void add_counts(const LabelledSet& set,
                const LabelCounts& counts,
                const char* purpose,
                PictureFiles& files) {
  if (counts.without > 0) {
    files.problems.push_back({DataFault::Assumed,
                              set.file.string(),
                              fmt::format("{} {} without a label text, {} first: nothing is on {}",
                                          counted(counts.without, "picture"),
                                          purpose,
                                          printable_start(counts.first_without, 200),
                                          counts.without == 1 ? "it" : "them")});
  }
  if (counts.polygons > 0) {
    files.problems.push_back(
        {DataFault::Assumed,
         set.file.string(),
         fmt::format("{} {} given by corners, in {} first: the box around {} counts",
                     counted(counts.polygons, "object"),
                     purpose,
                     printable_start(counts.first_polygon, 200),
                     counts.polygons == 1 ? "it" : "each")});
  }
}

PictureFiles open_labelled_set(LabelledSet set, bool training) {
  const std::vector<PictureSource> to_test = sources_to_test(set);
  const bool divided = to_test.empty();
  const bool of_training = training || divided;
  if (set.training.empty() && of_training) {
    throw InputError(
        set.file.string(), 0, "the key train (a folder of pictures, or a list) is missing: add it");
  }
  PictureFiles listed = list_sources(set, of_training ? set.training : to_test);
  PictureFiles files;
  files.base = listed.base;
  files.list = listed.list;
  files.class_names = set.class_names;
  files.boxes.emplace();
  files.problems = std::move(set.problems);
  files.problems.insert(files.problems.end(), listed.problems.begin(), listed.problems.end());
  files.left_out = std::move(listed.left_out);
  const LabelCounts counts =
      add_labelled_pictures(listed, {.lines = set.lines, .may_lack = true}, files);
  const auto other_half = [&] { return list_sources(set, of_training ? to_test : set.training); };
  if (counts.texts == 0 && counts.without > 0 && !has_label_text(other_half())) {
    throw InputError(
        set.file.string(),
        0,
        fmt::format("no picture has a label text: that of {} would be {}, or beside it",
                    printable_start(counts.first_without, 200),
                    printable_start(label_path(counts.first_without).string(), 200)));
  }
  add_counts(set, counts, divided ? "of all" : training ? "for training" : "for testing", files);
  if (divided) {
    files = tenth_by_name(files, !training);
  }
  add_missing_pictures(set.file, training, files);
  return files;
}

}  // namespace

fs::path data_yaml_at(const fs::path& path) {
  const std::string ending = ending_of(path);
  if ((ending == ".yaml" || ending == ".yml") && !is_folder(path)) {
    return path;
  }
  return is_file(path / "data.yaml") ? path / "data.yaml" : fs::path();
}

PictureFiles open_data_yaml(const fs::path& file, bool training) {
  return open_labelled_set(read_data_yaml(file), training);
}

bool is_images_and_labels(const fs::path& folder) {
  return is_folder(folder / "images") && is_folder(folder / "labels") &&
         (is_file(folder / "classes.txt") || is_file(folder / "notes.json"));
}

PictureFiles open_images_and_labels(const fs::path& folder, bool training) {
  LabelledSet set;
  set.file = folder;
  set.base = folder;
  set.lines.polygons = true;
  set.class_names = is_file(folder / "classes.txt") ? read_class_names(folder / "classes.txt")
                                                    : read_notes_names(folder / "notes.json");
  const HalfFolders halves = half_folders(folder / "images");
  const fs::path images = "images";
  set.training = {{halves.training.empty() ? images : images / halves.training, "train"}};
  if (!halves.training.empty() && !halves.testing.empty()) {
    set.validation = {{images / halves.testing, "val"}};
  }
  return open_labelled_set(std::move(set), training);
}

}  // namespace tessera::engine
