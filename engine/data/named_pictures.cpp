#include "engine/data/named_pictures.h"

#include <utility>

#include "partitioner/errors.h"

namespace engine {

namespace {

void add_paths(const Dataset& dataset, PictureFiles& files) {
  for (Index item = 0; item < dataset.size(); ++item) {
    files.paths.add(dataset.name(item));
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
      } else {
        close_files();
        pictures.sets.push_back(std::move(dataset));
      }
    } catch (const partitioner::InputError& error) {
      pictures.problems.emplace_back(error.what());
    }
  }
  close_files();
  return pictures;
}

}  // namespace engine
