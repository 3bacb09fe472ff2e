#include "engine/supervisor/left_segments.h"

#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::remove_left_segments;

TEST_CASE("segments that nobody uses are removed, and nothing else is") {
  const tests::TemporaryFolder folder;
  const std::time_t now = std::time(nullptr);
  for (const char* name : {"mpich_shar_tmpaaaaaa",
                           "mpich_shar_tmpmapped",
                           "ucx_shm_posix_12",
                           "ucx_shm_posix_open",
                           "tessera-0-1",
                           "mpich"}) {
    std::ofstream(folder / name) << std::string(4096, 'x');
  }
  const int open = ::open((folder / "ucx_shm_posix_open").c_str(), O_RDWR | O_CLOEXEC);
  const int other = ::open((folder / "mpich_shar_tmpmapped").c_str(), O_RDWR | O_CLOEXEC);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, other, 0);
  ::close(other);
  REQUIRE(mapped != MAP_FAILED);
  CHECK(remove_left_segments(now + 100, folder.path()) == 0);
  CHECK(folder.entries() == 6);
  CHECK(remove_left_segments(now - 1, folder.path()) == 2);
  CHECK(!std::filesystem::exists(folder / "mpich_shar_tmpaaaaaa"));
  CHECK(!std::filesystem::exists(folder / "ucx_shm_posix_12"));
  ::munmap(mapped, 4096);
  ::close(open);
  CHECK(remove_left_segments(now - 1, folder.path()) == 2);
  CHECK(folder.entries() == 2);
  CHECK(remove_left_segments(now - 1, folder / "nowhere") == 0);
}

}  // namespace
