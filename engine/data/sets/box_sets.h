// Data sets of pictures with boxes around the objects on them: Darknet's lists and label texts,
// what a data.yaml describes, VOC's folders and COCO's. All become PictureFiles with boxes.
//
// A picture whose boxes cannot be used is a problem, and not in the list. Objects that VOC calls
// difficult and COCO's crowds are ignored (base/targets.h).

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/sets/box_labels.h"
#include "engine/data/sets/picture_files.h"

namespace tessera::engine {

// Whether label texts belong to a Darknet .data file: it has no key `labels`, by which classes are
// found in paths, and one of its first hundred pictures has a label text.
[[nodiscard]] bool has_label_texts(const std::filesystem::path& file);

// Reads a Darknet .data file: train, valid (files of one path per line), names, or classes alone.
// `allow_unlabelled`: nothing is on pictures without a label text.
[[nodiscard]] PictureFiles open_darknet_boxes(const std::filesystem::path& file,
                                              bool training,
                                              bool allow_unlabelled);

// The data.yaml that a path is, or that lies in a folder; empty where there is none.
[[nodiscard]] std::filesystem::path data_yaml_at(const std::filesystem::path& path);

// Reads what a data.yaml describes, as Ultralytics, Roboflow and CVAT write it. Pictures for
// testing are those of val, else of test; where neither is there or val is train, by tenth_by_name.
// Nothing is on pictures without a label text. Throws InputError where no picture has one.
[[nodiscard]] PictureFiles open_data_yaml(const std::filesystem::path& file, bool training);

// Whether `folder` holds images, labels, and classes.txt or notes.json, as Label Studio exports
// them.
[[nodiscard]] bool is_images_and_labels(const std::filesystem::path& folder);

// The same of such a folder. Where images holds a folder for each half, these are the halves.
[[nodiscard]] PictureFiles open_images_and_labels(const std::filesystem::path& folder,
                                                  bool training);

// Whether `folder` holds Annotations and JPEGImages.
[[nodiscard]] bool is_voc_folder(const std::filesystem::path& folder);

// Annotations/*.xml beside JPEGImages. ImageSets/Main says which are for training (trainval.txt
// beside a test.txt, else train.txt) and for testing (test.txt, else val.txt); without them every
// tenth is for testing. Classes are those of classes.txt, else the sorted names of all objects.
[[nodiscard]] PictureFiles open_voc_folder(const std::filesystem::path& folder,
                                           bool training,
                                           bool allow_unlabelled);

// Whether `folder` holds annotations/*.json.
[[nodiscard]] bool is_coco_folder(const std::filesystem::path& folder);

// annotations/instances_train*.json and instances_val*.json (or _test) in a folder, or one such
// file: without another every tenth picture is for testing. Pictures are in the folder that is
// called as the file ("train2017"), in images, or in the data set's folder. A picture that no
// annotation names has no objects.
[[nodiscard]] PictureFiles open_coco(const std::filesystem::path& path, bool training);

// Adds a picture with what was read of its boxes: to the list where all of them can be used, else
// its problems. `line` of files.list, 0 where it is not from there.
void add_picture_with_boxes(std::string_view path,
                            int line,
                            const ReadBoxes& read,
                            PictureFiles& files);

// Compares the sizes that boxes were given for with those of the pictures as they are used. Boxes
// of a picture as it is stored, which its EXIF orientation lays on its side, are turned with it;
// where proportions differ otherwise, the picture is a problem, and leaves the list. What lies
// upside down or mirrored has the same size, and cannot be told.
void fit_to_pictures(PictureFiles& files);

// Every tenth picture (the last of fewer, but not an only one), or all others.
[[nodiscard]] PictureFiles tenth_or_others(const PictureFiles& all, bool tenth);

// About every tenth picture, by a hash of the file's name, or all others: what a picture is for
// does not change when others are added. That of the least hash of all is always among the tenth,
// that of the greatest never.
[[nodiscard]] PictureFiles tenth_by_name(const PictureFiles& all, bool tenth);

// Counts pictures of which the boxes are doubtful since names are not unique.
class SharedNames {
 public:
  // How it is with one of them.
  void add(std::string example) { first_ = count_++ == 0 ? std::move(example) : std::move(first_); }
  // One problem for all of them, if there are any.
  void add_problem(const std::filesystem::path& where,
                   const std::string& what,
                   PictureFiles& files) const;

 private:
  Index count_ = 0;
  std::string first_;
};

// Adds that there is nothing, unless a problem says why.
void add_missing_pictures(const std::filesystem::path& where, bool training, PictureFiles& files);

}  // namespace tessera::engine
