// Labelled pictures, one at a time, whatever they are stored as: IDX (the MNIST family), CIFAR, a
// Darknet .data file or a folder per class; with boxes, a Darknet .data file, what a data.yaml
// describes, VOC's folders or COCO's. The format is recognised by what is there; README.md says how
// each is laid out.
//
// IDX and CIFAR stay in memory as bytes; picture files are decoded when they are read. Every
// failure is an InputError that starts with the path of the file at fault.

#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/data/cache/picture_cache.h"
#include "engine/data/pictures/byte_pictures.h"
#include "engine/data/pictures/picture.h"
#include "engine/data/sets/picture_files.h"
#include "engine/data/sets/picture_record.h"

namespace tessera::engine {

enum class Split { Train, Test };

// What pictures are judged by. Either: as the data set has it.
enum class TargetKind { Either, Classes, Boxes };

struct ListingOptions {
  bool is_part = false;  // other devices have the rest of the data set: folders may lack classes
  TargetKind kind = TargetKind::Either;
  bool allow_unlabelled = false;  // nothing is on pictures without a file of boxes
};

// Moves, but does not copy: it may hold hundreds of megabytes. All functions may be called from
// several threads.
class Dataset {
 public:
  using Pictures = std::variant<BytePictures, PictureFiles>;

  // `path` is what the pictures came from, for messages.
  Dataset(Pictures pictures, std::filesystem::path path, Index channels);
  Dataset(Dataset&&) = default;
  Dataset& operator=(Dataset&&) = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  ~Dataset() = default;

  [[nodiscard]] Index size() const;
  // Whether each picture is a file of its own.
  [[nodiscard]] bool of_files() const { return std::holds_alternative<PictureFiles>(pictures_); }
  // Memory that the pictures and their list take.
  [[nodiscard]] Index bytes() const;
  // The class index, or -1 where the pictures have no labels.
  [[nodiscard]] int label(Index item) const;
  // Whether pictures have boxes around objects, instead of a class each.
  [[nodiscard]] bool has_boxes() const { return files() != nullptr && files()->boxes.has_value(); }
  // In fractions of the picture; none where has_boxes() is false. Without ignored ones.
  [[nodiscard]] std::span<const Box> boxes(Index item) const;
  // With ignored ones, which are the last.
  [[nodiscard]] std::span<const Box> boxes_to_test(Index item) const;
  // Of the whole picture, upright. Reads the header of a picture file.
  [[nodiscard]] partitioner::MapShape shape(Index item) const;
  // That of all pictures; nothing where they may have several.
  [[nodiscard]] std::optional<partitioner::MapShape> shape_of_all() const {
    const BytePictures* bytes = byte_pictures();
    return bytes != nullptr ? std::optional(bytes->shape) : std::nullopt;
  }
  // Reduced as far as `detail` allows. Throws InputError where a picture file is another one than
  // when it was recorded.
  [[nodiscard]] Picture read(Index item, const Detail& detail = {}) const;
  // The same through a cache, where pictures are files that were recorded. Nothing where another
  // rank or thread is decoding it, unless this one `waits`. The picture must not outlive the cache.
  [[nodiscard]] std::optional<Picture> read(Index item,
                                            const Detail& detail,
                                            PictureCache& cache,
                                            bool waits) const;
  // The path of a picture file, else the path of the data set and the item's number: "train[17]".
  [[nodiscard]] std::string name(Index item) const;
  // The same, or the line of the list that names it: "d.list:401".
  [[nodiscard]] std::string place(Index item) const;
  // "0", "1", ... where the data set has no names.
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  [[nodiscard]] int classes() const { return static_cast<int>(class_names().size()); }
  [[nodiscard]] Index channels() const { return channels_; }
  // What is wrong with it, as far as listing its files tells.
  [[nodiscard]] std::span<const DataProblem> problems() const;

  // Differs, as far as is known, where classes, names below the data set's folder, labels, sizes or
  // contents do: contents of files as they were recorded.
  [[nodiscard]] std::uint64_t digest() const;

  // From now on read() expects the picture files as they were then: a record for each item.
  void expect_files(PictureRecords records);
  // Takes items out, given in rising order.
  void drop(const std::vector<Index>& items);
  // So that as many items in all take no second copy of those there are, where they are in memory.
  void reserve(Index items);
  // Adds the items of another data set of the same kind and classes behind its own; of bytes also
  // of the same shape. Its picture files have absolute paths.
  void append(Dataset more);
  // Renames the classes: `names` are all of the present ones, and perhaps more, in any order.
  void set_classes(std::vector<std::string> names);

  // Which of the two kinds it is; nullptr: the other one.
  [[nodiscard]] const PictureFiles* files() const { return std::get_if<PictureFiles>(&pictures_); }
  [[nodiscard]] const BytePictures* byte_pictures() const {
    return std::get_if<BytePictures>(&pictures_);
  }

 private:
  // Of a picture file, which is checked against its record.
  [[nodiscard]] std::filesystem::path checked_path(Index item) const;

  Pictures pictures_;
  PictureRecords records_;  // of picture files; none: they are not looked at
  std::filesystem::path path_;
  Index channels_;
};

// How a data set is laid out.
enum class DataLayout {
  DataYaml,
  ImagesAndLabels,
  DarknetBoxes,
  Voc,
  Coco,
  DarknetClasses,
  Idx,
  Cifar,
  ClassFolders
};

// That of the data set at `path`, by its files. Throws InputError where there is none of that kind.
[[nodiscard]] DataLayout layout_of(const std::filesystem::path& path, TargetKind kind);

// "data.yaml (Ultralytics)"
[[nodiscard]] std::string_view layout_name(DataLayout layout);

// Opens half of the data set at `path`, a folder, a data.yaml or a .data file. Pictures are
// converted to `channels`, 1 or 3. What is wrong with single pictures or classes is left to
// problems().
[[nodiscard]] Dataset list_dataset(const std::filesystem::path& path,
                                   Split split,
                                   Index channels,
                                   const ListingOptions& options = {});

// Pictures without labels, to be classified: a picture or IDX file, a text file that lists
// pictures, a folder with those in it and below it. What is wrong with single ones of a folder is
// left to problems(); then it may have none.
[[nodiscard]] Dataset open_pictures(const std::filesystem::path& path, Index channels);

}  // namespace tessera::engine
