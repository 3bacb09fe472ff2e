#include "engine/supervisor/left_segments.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

bool is_segment_name(const std::string& name) {
  constexpr std::array kBeginnings{"mpich_shar_tmp", "ucx_shm_posix_"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view beginning) {
    return name.starts_with(beginning);
  });
}

std::vector<fs::path> own_segments(std::time_t since, const fs::path& folder) {
  std::vector<fs::path> segments;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status = {};
    if (is_segment_name(entry->path().filename().string()) &&
        ::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid() && status.st_ctim.tv_sec >= since) {
      segments.push_back(entry->path());
    }
  }
  return segments;
}

// Takes out what the process uses.
void take_out_used(const fs::path& process, std::vector<fs::path>& segments) {
  const auto take_out = [&](std::string_view text) {
    std::erase_if(segments, [&](const fs::path& segment) {
      return text.find(segment.native()) != std::string_view::npos;
    });
  };
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    take_out(line);
  }
  std::error_code error;
  for (fs::directory_iterator open(process / "fd", error), end; !error && open != end;
       open.increment(error)) {
    std::error_code gone;
    take_out(fs::read_symlink(open->path(), gone).native());
  }
}

}  // namespace

int remove_left_segments(std::time_t since, const fs::path& folder) {
  std::vector<fs::path> segments = own_segments(since, folder);
  std::error_code error;
  fs::directory_iterator process("/proc", error);
  for (const fs::directory_iterator end; !segments.empty() && !error && process != end;
       process.increment(error)) {
    const std::string name = process->path().filename().string();
    if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      take_out_used(process->path(), segments);
    }
  }
  int removed = 0;
  if (!error) {
    for (const fs::path& segment : segments) {
      removed += ::unlink(segment.c_str()) == 0 ? 1 : 0;
    }
  }
  return removed;
}

}  // namespace tessera::engine
