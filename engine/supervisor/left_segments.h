// Segments of shared memory that ranks leave behind where they are killed while they start: MPI
// gives them a name for as long as its ranks on one machine look for each other, and removes it as
// soon as all have found them.

#pragma once

#include <ctime>
#include <filesystem>

namespace tessera::engine {

// Removes files of MPICH and UCX in `folder` that belong to this user, are not older than `since`,
// and that no process has mapped or open. Returns how many; never fails.
int remove_left_segments(std::time_t since, const std::filesystem::path& folder = "/dev/shm");

}  // namespace tessera::engine
