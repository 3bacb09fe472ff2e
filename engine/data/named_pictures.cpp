#include "engine/data/named_pictures.h"

#include <fmt/format.h>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

void add_paths(const Dataset& dataset, PictureFiles& files) {
  for (Index item = 0; item < dataset.size(); ++item) {
    files.paths.add(dataset.name(item));
  }
}

// Adds what is wrong with a folder.
void add_problems(const PictureFiles& files, NamedPictures& pictures) {
  for (const DataProblem& problem : files.problems) {
    auto& texts = is_error(problem.fault) ? pictures.problems : pictures.left_out;
    texts.push_back(problem.where + ": " + problem.what);
  }
  LeftOutFiles others;
  for (const auto& [ending, count] : files.left_out) {
    if (is_other_picture_name("picture" + ending)) {
      others[ending] = count;
    }
  }
  if (!others.empty()) {
    pictures.left_out.push_back(fmt::format(
        "{}: {} left out{}", files.base.string(), describe(others), conversion_of(others)));
  }
}

}  // namespace

Index NamedPictures::size() const {
  Index size = 0;
  for (const Dataset& set : sets) {
    size += set.size();
  }
  return size;
}

NamedPictures open_named_pictures(const std::vector<std::string>& names, Index channels) {
  NamedPictures pictures;
  PictureFiles files;
  const auto close_files = [&] {
    if (files.paths.size() > 0) {
      pictures.sets.emplace_back(std::exchange(files, {}), "pictures", channels);
    }
  };
  for (const std::string& name : names) {
    try {
      Dataset dataset = open_pictures(name, channels);
      if (dataset.of_files()) {
        add_paths(dataset, files);
        add_problems(*dataset.files(), pictures);
      } else {
        close_files();
        pictures.sets.push_back(std::move(dataset));
      }
    } catch (const InputError& error) {
      pictures.problems.emplace_back(error.what());
    }
  }
  close_files();
  return pictures;
}

}  // namespace tessera::engine
