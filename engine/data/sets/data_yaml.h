// What a data.yaml says of a data set, and what the folders of Label Studio's export say instead.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/data/sets/box_labels.h"
#include "engine/data/sets/data_problem.h"

namespace tessera::engine {

// Where pictures are: a folder, or a list file that names them.
struct PictureSource {
  std::filesystem::path path;  // seen from the base of the set
  std::string key;             // that names it: "train"
  int line = 0;
};

struct LabelledSet {
  std::filesystem::path file;  // for messages
  std::filesystem::path base;
  std::vector<std::string> class_names;
  std::vector<PictureSource> training;
  std::vector<PictureSource> validation;
  std::vector<PictureSource> testing;
  LabelLines lines;
  std::vector<DataProblem> problems;
};

// Throws InputError where a key has a value of another kind than it should. Whether there are such
// pictures is not looked at, but for Roboflow's ../train/images, which train/images may be meant
// by.
[[nodiscard]] LabelledSet read_data_yaml(const std::filesystem::path& file);

// The names of the categories of Label Studio's notes.json, by their ids, from 0.
[[nodiscard]] std::vector<std::string> read_notes_names(const std::filesystem::path& file);

}  // namespace tessera::engine
