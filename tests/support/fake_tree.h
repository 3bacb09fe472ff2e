// A temporary folder that stands for the root of a machine's files: /sys, /proc, /dev.

#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace tessera::tests {

class FakeTree {
 public:
  [[nodiscard]] std::filesystem::path root() const { return folder_.path(); }

  // A file at a path below the root, with its folders.
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root() / path); }

  // In the place of a file: reading it fails, whoever tries.
  void make_unreadable(const std::string& path) const {
    remove(path);
    std::filesystem::create_directories(root() / path);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tessera::tests
