#include "engine/moving/arrivals.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/in_threads.h"
#include "engine/data/inspection/inspection.h"
#include "engine/files/input_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

std::vector<std::byte> content_of(const fs::path& path) {
  const InputFile file(path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

}  // namespace

std::string harmless_name(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  std::string harmless = name.size() > kLongest ? name.substr(name.size() - kLongest) : name;
  for (char& letter : harmless) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f || letter == '/' || letter == '\\') {
      letter = '_';
    }
  }
  if (harmless.empty() || harmless.front() == '.') {
    harmless.insert(harmless.begin(), '_');
  }
  return harmless;
}

Arrivals::Arrivals(fs::path folder,
                   int from,
                   std::vector<MovedSample> samples,
                   const std::vector<std::string>& classes)
    : folder_(std::move(folder) / fmt::format("from-{}", from)),
      samples_(std::move(samples)),
      files_(moved_files(samples_)) {
  class_folders_.reserve(classes.size());
  for (const std::string& name : classes) {
    class_folders_.push_back(harmless_name(name));
  }
}

fs::path Arrivals::path_of(const MovedFile& file) const {
  const MovedSample& first = samples_[file.begin];
  return first.name.empty() ? folder_ / fmt::format("{:08}.samples", first.item)
                            : folder_ / class_folders_.at(static_cast<std::size_t>(first.label)) /
                                  fmt::format("{:08}-{}", first.item, harmless_name(first.name));
}

std::vector<std::uint64_t> Arrivals::checksums_there() const {
  std::vector<std::uint64_t> sums(samples_.size());
  for_each_in_threads(std::ssize(files_), [&](Index number) {
    const MovedFile& file = files_[static_cast<std::size_t>(number)];
    const fs::path path = path_of(file);
    if (record_of(path).bytes != file.bytes) {
      return;
    }
    try {
      const std::vector<std::byte> content = content_of(path);
      std::span<const std::byte> rest(content);
      for (std::size_t i = file.begin; i < file.end; ++i) {
        const auto size = static_cast<std::size_t>(samples_[i].bytes);
        sums[i] = checksum(rest.first(size));
        rest = rest.subspan(size);
      }
    } catch (const InputError&) {  // as if it were not there: it comes again
      std::fill(sums.begin() + static_cast<std::ptrdiff_t>(file.begin),
                sums.begin() + static_cast<std::ptrdiff_t>(file.end),
                0);
    }
  });
  return sums;
}

void Arrivals::store(std::size_t file, std::span<const std::byte> bytes, FileGroup& group) const {
  group.add(path_of(files_[file]), bytes);
}

void Arrivals::add_to(PictureFiles& pictures, PictureRecords& records) const {
  for (const MovedFile& file : files_) {
    const fs::path path = fs::absolute(path_of(file));
    pictures.paths.add(path.string());
    pictures.labels.push_back(samples_[file.begin].label);
    records.pictures.push_back(record_of(path));
  }
}

void Arrivals::add_to(BytePictures& pictures) const {
  const auto volume = static_cast<std::size_t>(pictures.shape.volume());
  for (const MovedFile& file : files_) {
    const std::vector<std::byte> content = content_of(path_of(file));
    expects(content.size() == (volume + 1) * (file.end - file.begin),
            "whole samples of the shape that all ranks have");
    for (std::size_t at = 0; at < content.size(); at += volume + 1) {
      pictures.labels.push_back(std::to_integer<std::uint8_t>(content[at]));
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(content.data() + at + 1);
      pictures.pixels.insert(pictures.pixels.end(), pixels, pixels + volume);
    }
  }
}

}  // namespace tessera::engine
