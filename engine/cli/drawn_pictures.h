// The folder of `predict --out`.

#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace tessera::engine {

// Files for pictures to look at: each has a name of its own, whatever folder its picture came from.
class DrawnPictures {
 public:
  // Makes the folder. Throws InputError where that cannot be, or where it is not empty.
  explicit DrawnPictures(std::filesystem::path folder);

  // Returns the file that the picture of this name is drawn in.
  std::string add(const std::string& name, const std::vector<std::byte>& png);

 private:
  std::string free_name(const std::string& stem);

  std::filesystem::path folder_;
  std::set<std::string> taken_;
};

}  // namespace tessera::engine
