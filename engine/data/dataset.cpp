#include "engine/data/dataset.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "engine/base/digest.h"
#include "engine/data/sets/box_sets.h"
#include "engine/data/sets/cifar.h"
#include "engine/data/sets/idx.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

void require_existing(const fs::path& path) {
  std::error_code error;
  if (!is_there(path)) {
    throw InputError(path.string(),
                     0,
                     fmt::format("no such file or folder{}",
                                 error ? " (" + error.message() + ")" : std::string()));
  }
}

// The format of pictures with boxes at `path`, if it is one.
std::optional<DataLayout> layout_with_boxes(const fs::path& path, TargetKind kind) {
  if (!data_yaml_at(path).empty()) {
    return DataLayout::DataYaml;
  }
  if (!is_folder(path)) {
    if (path.extension() == ".data" &&
        (kind == TargetKind::Boxes || (kind == TargetKind::Either && has_label_texts(path)))) {
      return DataLayout::DarknetBoxes;
    }
    return path.extension() == ".json" ? std::optional(DataLayout::Coco) : std::nullopt;
  }
  return is_voc_folder(path)          ? std::optional(DataLayout::Voc)
         : is_coco_folder(path)       ? std::optional(DataLayout::Coco)
         : is_images_and_labels(path) ? std::optional(DataLayout::ImagesAndLabels)
                                      : std::nullopt;
}

DataLayout layout_with_classes(const fs::path& path) {
  if (!is_folder(path)) {
    if (path.extension() == ".data") {
      return DataLayout::DarknetClasses;
    }
    throw InputError(path.string(),
                     0,
                     "a data set is a folder, or a file whose name ends in .data (Darknet), .yaml "
                     "or .json (COCO); this is neither");
  }
  if (has_idx_files(path)) {
    return DataLayout::Idx;
  }
  if (!find_cifar(path).empty()) {
    return DataLayout::Cifar;
  }
  if (has_class_folders(path)) {
    return DataLayout::ClassFolders;
  }
  expect_labels_in(path);
  throw InputError(
      path.string(),
      0,
      "no data set in this folder: looked for train-images-idx3-ubyte[.gz] (MNIST family), "
      "data_batch_1.bin "
      "or train.bin (CIFAR), data.yaml, Annotations and JPEGImages (VOC), annotations/*.json "
      "(COCO), and folders train/CLASS or CLASS with .jpg or .png files" +
          conversion_of(list_pictures_directly_in(path).left_out));
}

Dataset::Pictures open_as(DataLayout layout,
                          const fs::path& path,
                          bool training,
                          const ListingOptions& options) {
  switch (layout) {
    case DataLayout::DataYaml:
      return open_data_yaml(data_yaml_at(path), training);
    case DataLayout::ImagesAndLabels:
      return open_images_and_labels(path, training);
    case DataLayout::DarknetBoxes:
      return open_darknet_boxes(path, training, options.allow_unlabelled);
    case DataLayout::Voc:
      return open_voc_folder(path, training, options.allow_unlabelled);
    case DataLayout::Coco:
      return open_coco(path, training);
    case DataLayout::DarknetClasses:
      return open_darknet_data(path, training);
    case DataLayout::Idx:
      return open_idx(path, training);
    case DataLayout::Cifar:
      return open_cifar(find_cifar(path), training);
    case DataLayout::ClassFolders:
      break;
  }
  return open_class_folders(path, training, options.is_part);
}

}  // namespace

Dataset::Dataset(Pictures pictures, fs::path path, Index channels)
    : pictures_(std::move(pictures)), path_(std::move(path)), channels_(channels) {
  if (channels != 1 && channels != 3) {
    throw InputError(
        path_.string(),
        0,
        fmt::format(
            "the model's input has {} channels; pictures have 1 (grey) or 3 (colour): change "
            "channels in the model file",
            channels));
  }
}

Index Dataset::size() const {
  if (const auto* bytes = std::get_if<BytePictures>(&pictures_)) {
    return bytes->size();
  }
  return std::get<PictureFiles>(pictures_).paths.size();
}

Index Dataset::bytes() const {
  if (const BytePictures* held = byte_pictures()) {
    return static_cast<Index>(held->pixels.capacity() + held->labels.capacity());
  }
  return memory_of(*files()) +
         static_cast<Index>(records_.pictures.capacity() * sizeof(PictureRecord));
}

std::span<const DataProblem> Dataset::problems() const {
  return files() != nullptr ? std::span<const DataProblem>(files()->problems)
                            : std::span<const DataProblem>();
}

std::uint64_t Dataset::digest() const {
  Digest digest;
  for (const std::string& name : class_names()) {
    digest.add(name);
  }
  const PictureFiles* const listed = files();
  for (Index item = 0; item < size(); ++item) {
    digest.add(static_cast<std::uint64_t>(label(item)));
    if (listed == nullptr) {
      digest.add(content_digest(*byte_pictures(), item));
      continue;
    }
    digest.add(std::string_view(listed->paths[item]));
    if (listed->boxes) {
      digest.add(digest_of(boxes(item)));
    }
    if (item < std::ssize(records_.pictures)) {
      const PictureRecord& record = records_.pictures[static_cast<std::size_t>(item)];
      digest.add(static_cast<std::uint64_t>(record.bytes));
      digest.add(record.has_content ? record.content : 0);
    }
  }
  return digest.value();
}

void Dataset::expect_files(PictureRecords records) {
  expects(files() != nullptr && std::ssize(records.pictures) == size(), "a record for each item");
  records_ = std::move(records);
}

void Dataset::drop(const std::vector<Index>& items) {
  if (auto* held = std::get_if<BytePictures>(&pictures_)) {
    remove_items(items, *held);
    return;
  }
  std::vector<PictureRecord> kept;
  for (Index item = 0; item < std::ssize(records_.pictures); ++item) {
    if (!std::binary_search(items.begin(), items.end(), item)) {
      kept.push_back(records_.pictures[static_cast<std::size_t>(item)]);
    }
  }
  records_.pictures = std::move(kept);
  pictures_ = without_items(*files(), items);
}

void Dataset::reserve(Index items) {
  if (auto* held = std::get_if<BytePictures>(&pictures_)) {
    engine::reserve(items, *held);
  }
}

void Dataset::append(Dataset more) {
  expects(of_files() == more.of_files() && class_names() == more.class_names(),
          "data sets of one kind, with the same classes");
  if (auto* held = std::get_if<BytePictures>(&pictures_)) {
    add_pictures(std::get<BytePictures>(more.pictures_), *held);
    return;
  }
  expects((size() == 0 || !records_.pictures.empty()) &&
              std::ssize(more.records_.pictures) == more.size(),
          "a record of each picture file");
  records_.pictures.insert(
      records_.pictures.end(), more.records_.pictures.begin(), more.records_.pictures.end());
  add_files(*more.files(), std::get<PictureFiles>(pictures_));
}

void Dataset::set_classes(std::vector<std::string> names) {
  std::vector<int> numbers;
  for (const std::string& name : class_names()) {
    const auto found = std::find(names.begin(), names.end(), name);
    expects(found != names.end(), "each class keeps its name");
    numbers.push_back(static_cast<int>(found - names.begin()));
  }
  std::visit(
      [&](auto& pictures) {
        for (auto& label : pictures.labels) {
          using Label = std::remove_reference_t<decltype(label)>;
          label = static_cast<Label>(numbers[label]);
        }
        pictures.class_names = std::move(names);
      },
      pictures_);
  if (auto* files = std::get_if<PictureFiles>(&pictures_); files != nullptr && files->boxes) {
    for (Box& box : files->boxes->all()) {
      box.label = numbers[static_cast<std::size_t>(box.label)];
    }
  }
}

int Dataset::label(Index item) const {
  expects(item >= 0 && item < size(), "an item lies in its data set");
  const auto i = static_cast<std::size_t>(item);
  return std::visit(
      [i](const auto& pictures) { return pictures.labels.empty() ? -1 : int{pictures.labels[i]}; },
      pictures_);
}

std::span<const Box> Dataset::boxes(Index item) const {
  const std::span<const Box> all = boxes_to_test(item);
  const auto end = std::find_if(all.begin(), all.end(), [](const Box& box) { return box.ignored; });
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

std::span<const Box> Dataset::boxes_to_test(Index item) const {
  expects(item >= 0 && item < size(), "an item lies in its data set");
  return has_boxes() ? (*files()->boxes)[item] : std::span<const Box>();
}

partitioner::MapShape Dataset::shape(Index item) const {
  expects(item >= 0 && item < size(), "an item lies in its data set");
  if (const BytePictures* held = byte_pictures()) {
    return {channels_, held->shape.rows, held->shape.cols};
  }
  const PictureHeader header = read_picture_header(picture_path(*files(), item));
  return is_on_its_side(header) ? partitioner::MapShape{channels_, header.cols, header.rows}
                                : partitioner::MapShape{channels_, header.rows, header.cols};
}

Picture Dataset::read(Index item, const Detail& detail) const {
  expects(item >= 0 && item < size(), "an item lies in its data set");
  if (const auto* bytes = std::get_if<BytePictures>(&pictures_)) {
    return read_byte_picture(*bytes, item, channels_, detail);
  }
  return read_picture_file(checked_path(item), channels_, detail);
}

std::optional<Picture> Dataset::read(Index item,
                                     const Detail& detail,
                                     PictureCache& cache,
                                     bool waits) const {
  if (!of_files() || records_.pictures.empty()) {
    return read(item, detail);
  }
  const fs::path path = checked_path(item);
  const PictureRecord& record = records_.pictures[static_cast<std::size_t>(item)];
  Digest key;
  key.add(std::string_view(path.native()));
  for (const auto number : {static_cast<std::uint64_t>(record.bytes),
                            record.change,
                            static_cast<std::uint64_t>(detail.rows),
                            static_cast<std::uint64_t>(detail.cols)}) {
    key.add(number);
  }
  return cache.read(path, key.value(), channels_, detail, waits);
}

fs::path Dataset::checked_path(Index item) const {
  fs::path path = picture_path(*files(), item);
  if (!records_.pictures.empty()) {
    expect_unchanged(path, records_.pictures[static_cast<std::size_t>(item)], records_.whole);
  }
  return path;
}

std::string Dataset::name(Index item) const {
  if (const auto* files = std::get_if<PictureFiles>(&pictures_)) {
    return picture_path(*files, item).string();
  }
  return fmt::format("{}[{}]", path_.string(), item);
}

std::string Dataset::place(Index item) const {
  return files() != nullptr ? place_of(*files(), item) : name(item);
}

const std::vector<std::string>& Dataset::class_names() const {
  if (const auto* bytes = std::get_if<BytePictures>(&pictures_)) {
    return bytes->class_names;
  }
  return std::get<PictureFiles>(pictures_).class_names;
}

DataLayout layout_of(const fs::path& path, TargetKind kind) {
  require_existing(path);
  if (const std::optional<DataLayout> layout = layout_with_boxes(path, kind)) {
    if (kind == TargetKind::Classes) {
      throw InputError(path.string(),
                       0,
                       "this data set has boxes around objects, and the model gives a class for a "
                       "whole picture: it needs a head, such as [yolo]");
    }
    return *layout;
  }
  if (kind == TargetKind::Boxes) {
    if (is_folder(path)) {
      expect_labels_in(path);
    }
    throw InputError(path.string(),
                     0,
                     "the model finds objects, and needs a data set with boxes around them: a "
                     "data.yaml or a folder with one, a Darknet .data file, a folder with "
                     "Annotations and JPEGImages (VOC) or with annotations/*.json (COCO), or such "
                     "a JSON file");
  }
  return layout_with_classes(path);
}

std::string_view layout_name(DataLayout layout) {
  constexpr std::array<std::string_view, 9> kNames{"data.yaml (Ultralytics)",
                                                   "images and labels (Label Studio)",
                                                   ".data file, label texts (Darknet)",
                                                   "XML annotations (VOC)",
                                                   "JSON annotations (COCO)",
                                                   ".data file, classes in paths (Darknet)",
                                                   "IDX files (MNIST)",
                                                   "binary files (CIFAR)",
                                                   "a folder per class"};
  return kNames[static_cast<std::size_t>(layout)];
}

Dataset list_dataset(const fs::path& path,
                     Split split,
                     Index channels,
                     const ListingOptions& options) {
  const DataLayout layout = layout_of(path, options.kind);
  return {open_as(layout, path, split == Split::Train, options), path, channels};
}

Dataset open_pictures(const fs::path& path, Index channels) {
  require_existing(path);
  if (is_folder(path)) {
    return {list_folder_pictures(path), path, channels};
  }
  if (is_picture_name(path) || is_other_picture_name(path)) {
    PictureFiles files;
    files.paths.add(path.string());
    return {std::move(files), path, channels};
  }
  if (is_idx_pictures(path)) {
    return {read_idx_pictures(path), path, channels};
  }
  return {list_file_pictures(path), path, channels};
}

}  // namespace tessera::engine
