#include "engine/run_view/line_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "engine/files/json_text.h"
#include "engine/processes/descriptor.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18U;

}  // namespace

void LineFollower::add_half(std::string_view text) {
  too_long_ = too_long_ || half_.size() + text.size() > kMostJsonLine;
  if (too_long_) {
    half_.clear();
  } else {
    half_ += text;
  }
}

// Whether a line ended in the chunk. One that is too long counts as an empty one.
bool LineFollower::take(std::string_view chunk, const std::function<void(std::string_view)>& line) {
  bool any = false;
  for (std::size_t end = chunk.find('\n'); end != std::string_view::npos; end = chunk.find('\n')) {
    if (half_.empty() && !too_long_) {
      line(chunk.substr(0, end));
    } else {
      add_half(chunk.substr(0, end));
      line(half_);
    }
    half_.clear();
    too_long_ = false;
    any = true;
    chunk.remove_prefix(end + 1);
  }
  if (!chunk.empty()) {
    add_half(chunk);
  }
  return any;
}

bool LineFollower::read(const std::function<void(std::string_view line)>& line,
                        const std::function<void()>& restart) {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat what = {};
  if (!file.is_open() || ::fstat(file.number(), &what) != 0 || !S_ISREG(what.st_mode)) {
    return false;
  }
  bool any = false;
  const bool same = what.st_dev == device_ && what.st_ino == inode_ && what.st_size >= offset_;
  if (!same) {
    any = inode_ != 0;
    if (any) {
      restart();
    }
    device_ = what.st_dev;
    inode_ = what.st_ino;
    offset_ = 0;
    half_.clear();
    too_long_ = false;
  }
  std::vector<char> chunk;
  while (offset_ < what.st_size) {
    chunk.resize(kChunk);
    const ssize_t count = ::pread(file.number(), chunk.data(), chunk.size(), offset_);
    if (count <= 0) {
      break;
    }
    offset_ += count;
    any = take({chunk.data(), static_cast<std::size_t>(count)}, line) || any;
  }
  return any;
}

}  // namespace tessera::engine
