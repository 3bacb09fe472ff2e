// Copies the program and what it needs to the devices of a cluster, by rsync over a remote shell.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/cluster/copies.h"
#include "engine/cluster/examination.h"
#include "engine/cluster/findings.h"

namespace tessera::engine {

struct Deployment {
  ExaminationRequest cluster;                // its program is copied, its folder made
  std::vector<std::filesystem::path> paths;  // files and folders for all devices
  DataToCopy data;
  bool dry_run = false;
  bool overwrite = false;  // also files of other content that are newer over there
  // A line about what has been copied, without its end.
  std::function<void(const std::string& line)> say;
};

// Copies to all devices but this one, several at a time. Returns what is wrong: nothing was copied
// where a device cannot be reached, is of another architecture, has no rsync or has newer files of
// other content, and otherwise what a device lacks after copying. Throws InputError where a path is
// not there.
[[nodiscard]] std::vector<Finding> deploy(const Deployment& deployment);

}  // namespace tessera::engine
