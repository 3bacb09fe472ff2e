#include "engine/files/json_lines.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "engine/files/own_file.h"
#include "engine/files/written_bytes.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

struct KeptLines {
  std::int64_t bytes = 0;
  Index damaged = 0;  // that are no lines of such a file
};

// Writes the lines of an earlier run that it keeps.
KeptLines keep_lines(const std::filesystem::path& path,
                     Index resumed_step,
                     const JsonLines::Kept& kept,
                     const JsonLines::Stays& stays,
                     AtomicFile& target) {
  constexpr std::size_t kChunk = std::size_t{1} << 16U;
  std::string chunk;
  KeptLines result;
  const Index left_out = for_each_json_line(path, [&](const std::string& line) {
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      ++result.damaged;
      return;
    }
    const Index step = json["step"].get<Index>();
    if (stays ? stays(json, step) : step <= resumed_step) {
      chunk += line + "\n";
      result.bytes += std::ssize(line) + 1;
      if (kept) {
        kept(json);
      }
    }
    if (chunk.size() >= kChunk) {
      target.write(chunk);
      chunk.clear();
    }
  });
  target.write(chunk);
  result.damaged += left_out;
  return result;
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path,
                     Index resumed_step,
                     const Kept& kept,
                     const Stays& stays)
    : path_(path) {
  if (const std::string_view kind = irregular_kind(path); !kind.empty()) {
    throw InputError(
        path.string(), 0, fmt::format("is {}, not a file of a run: move it away", kind));
  }
  AtomicFile file(path);
  if (resumed_step > 0 || stays) {
    const KeptLines lines = keep_lines(path, resumed_step, kept, stays, file);
    bytes_ = lines.bytes;
    damaged_ = resumed_step > 0 ? lines.damaged : 0;
  }
  file.commit();
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!file_.is_open()) {
    fail("cannot be written", errno);
  }
}

void JsonLines::fail(const char* action, int error_number) const {
  throw InputError(path_.string(),
                   0,
                   fmt::format("{} ({}): free space there or give another folder with --run",
                               action,
                               std::generic_category().message(error_number)));
}

std::optional<std::string> JsonLines::damage() const {
  if (damaged_ == 0) {
    return std::nullopt;
  }
  return fmt::format("{}: {} {} left out",
                     path_.string(),
                     counted(damaged_, "damaged line"),
                     damaged_ == 1 ? "is" : "are");
}

void JsonLines::add_line(const std::string& line) {
  const std::string text = line + '\n';
  const int error = write_all(file_.number(), std::as_bytes(std::span(text)));
  if (error != 0) {
    // Where this fails half a line stays, which who resumes leaves out.
    (void)!::ftruncate(file_.number(), bytes_);
    fail("cannot write", error);
  }
  bytes_ += std::ssize(line) + 1;
}

void JsonLines::sync() {
  if (::fsync(file_.number()) != 0) {
    fail("cannot be written to its disk", errno);
  }
}

bool JsonLines::is_there() const {
  return names_open_file(path_, file_.number());
}

void JsonLines::copy_to(const std::filesystem::path& path) const {
  AtomicFile copy(path);
  std::array<char, 4096> chunk{};
  std::int64_t offset = 0;
  while (offset < bytes_) {
    const ssize_t count = ::pread(file_.number(), chunk.data(), chunk.size(), offset);
    if (count <= 0) {
      break;  // its disk is gone: what could be read is better than nothing
    }
    copy.write(std::string_view(chunk.data(), static_cast<std::size_t>(count)));
    offset += count;
  }
  copy.commit();
}

}  // namespace tessera::engine
