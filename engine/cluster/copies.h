// What a device of a cluster needs of this machine's files, and how rsync is told to copy it.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/processes/host_list.h"
#include "partitioner/balance/data_map.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Of a file, or of a folder with all that is in it, to the same path on a device.
struct Copy {
  int device = 0;  // its place in the host file
  std::filesystem::path path;
  friend bool operator==(const Copy&, const Copy&) = default;
};

struct DataToCopy {
  std::string path;  // as training is given it; empty: none
  std::optional<partitioner::DataMap> map = {};
};

// Copies of the data set, rising by device. Each rank reads its part of every picture, so each
// device needs all of them; with "{rank}" in the path, which stands for the number of a rank,
// those of its own ranks alone, and with a data map not those of ranks without samples. Ranks are
// numbered from the first host. Throws InputError where the map is one of more ranks than there
// are, or goes with a path that is the same for all.
[[nodiscard]] std::vector<Copy> copies_of_data(const std::vector<Host>& hosts,
                                               const DataToCopy& data);

enum class RsyncPass {
  FindNewer,  // copies nothing: a line for each file that is newer over there, for newer_file()
  Compare,    // copies nothing: a line for each file of other content, for different_file()
  Copy        // a line for each file that is not the same yet, for copied_bytes()
};

struct RsyncCall {
  std::string remote_shell;
  std::string host;
  std::filesystem::path path;
  bool is_folder = false;
  bool dry_run = false;
  bool overwrite = false;  // also what is newer over there
  RsyncPass pass = RsyncPass::Copy;
};

// The words that make the path over there like this one, but for what is there alone.
[[nodiscard]] std::vector<std::string> rsync_words(const RsyncCall& call);

// Bytes of the file that a line of rsync's is about; nothing where it is about no file.
[[nodiscard]] std::optional<Index> copied_bytes(const std::string& line);
// The file below the path that is copied; nothing where the line is about something else.
[[nodiscard]] std::optional<std::string> newer_file(const std::string& line);
[[nodiscard]] std::optional<std::string> different_file(const std::string& line);

// The library that a line of `ldd` says is missing; empty: none.
[[nodiscard]] std::string missing_library(const std::string& line);

}  // namespace tessera::engine
