// Labelled pictures, one at a time, whatever they are stored as: IDX (the MNIST family), CIFAR, a
// Darknet .data file or a folder per class. The format is recognised by what is there; README.md
// says how each is laid out.
//
// IDX and CIFAR stay in memory as bytes; picture files are decoded when they are read. Every
// failure is an InputError that starts with the path of the file at fault.

#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "engine/data/byte_pictures.h"
#include "engine/data/picture.h"
#include "engine/data/picture_files.h"

namespace engine {

enum class Split { Train, Test };

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
  // The class index, or -1 where the pictures have no labels.
  [[nodiscard]] int label(Index item) const;
  // Reduced as far as `detail` allows.
  [[nodiscard]] Picture read(Index item, const Detail& detail = {}) const;
  // The path of a picture file, else the path of the data set and the item's number: "train[17]".
  [[nodiscard]] std::string name(Index item) const;
  // "0", "1", ... where the data set has no names.
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  [[nodiscard]] int classes() const { return static_cast<int>(class_names().size()); }
  [[nodiscard]] Index channels() const { return channels_; }

 private:
  Pictures pictures_;
  std::filesystem::path path_;
  Index channels_;
};

// Opens half of the data set at `path`, a folder or a .data file. Pictures are converted to
// `channels`, 1 or 3.
[[nodiscard]] Dataset open_dataset(const std::filesystem::path& path, Split split, Index channels);

// Pictures without labels, to be classified: a JPEG, PNG or IDX file, a text file that lists
// pictures, a folder of them.
[[nodiscard]] Dataset open_pictures(const std::filesystem::path& path, Index channels);

// The picture in a JPEG or PNG file, or the first one of an IDX file.
[[nodiscard]] Picture read_picture(const std::filesystem::path& path, Index channels);

}  // namespace engine
