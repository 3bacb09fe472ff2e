// The samples that a device gets from another, in a folder of its own: what of them is there, whole
// files that appear when they are complete, and a data set of them when all have come.
//
// FOLDER/from-2/dog/00000017-rex.jpg is item 17 of the data set of rank 2; pictures held as bytes
// lie in FOLDER/from-2/00000000.samples, some hundred a file, named after the first. A file says
// nothing about itself: whether it is the right one shows by its checksums.

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/files/file_group.h"
#include "engine/moving/moved_sample.h"

namespace tessera::engine {

class Arrivals {
 public:
  // From `from`; `classes` are those of all ranks.
  Arrivals(std::filesystem::path folder,
           int from,
           std::vector<MovedSample> samples,
           const std::vector<std::string>& classes);

  [[nodiscard]] const std::vector<MovedSample>& samples() const { return samples_; }
  [[nodiscard]] const std::vector<MovedFile>& files() const { return files_; }

  // For each sample, 0 where its file is not there or has another size.
  [[nodiscard]] std::vector<std::uint64_t> checksums_there() const;

  // Adds a file to the group: it is there when the group is committed.
  void store(std::size_t file, std::span<const std::byte> bytes, FileGroup& group) const;

  // Adds the samples, all of which are there, to a data set. `shape` of pictures held as bytes.
  void add_to(PictureFiles& pictures, PictureRecords& records) const;
  void add_to(BytePictures& pictures) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const MovedFile& file) const;

  std::filesystem::path folder_;
  std::vector<MovedSample> samples_;
  std::vector<MovedFile> files_;
  std::vector<std::string> class_folders_;
};

// A name that is a file's or a folder's everywhere: without separators, control characters and a
// dot in front, and not too long; the end of the name stays.
[[nodiscard]] std::string harmless_name(const std::string& name);

}  // namespace tessera::engine
