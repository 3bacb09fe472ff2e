// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/moving/moved_sample.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <xxhash.h>

#include "engine/files/input_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kFileBytes = Index{1} << 18U;  // of pictures held as bytes

struct Head {
  std::int64_t item = 0;
  std::int64_t bytes = 0;
  std::int32_t label = 0;
  std::uint32_t name_bytes = 0;
};

template <class Value>
void append(std::vector<std::byte>& bytes, const Value* values, std::size_t count) {
  const auto raw = std::as_bytes(std::span<const Value>(values, count));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

}  // namespace

MovedSample moved_sample(const Dataset& dataset, Index item) {
  MovedSample sample{.item = item, .label = dataset.label(item)};
  if (const BytePictures* held = dataset.byte_pictures()) {
    sample.bytes = 1 + held->shape.volume();
    return sample;
  }
  const std::filesystem::path path = picture_path(*dataset.files(), item);
  const PictureRecord record = record_of(path);
  if (record.bytes < 0) {
    throw InputError(path.string(), 0, "this picture is not there any more: restore it");
  }
  sample.bytes = record.bytes;
  sample.name = path.filename().string();
  return sample;
}

void read_sample(const Dataset& dataset, const MovedSample& sample, std::span<std::byte> out) {
  expects(std::ssize(out) == sample.bytes, "room for the sample");
  if (const BytePictures* held = dataset.byte_pictures()) {
    const auto volume = static_cast<std::size_t>(held->shape.volume());
    out[0] = static_cast<std::byte>(held->labels[static_cast<std::size_t>(sample.item)]);
    std::memcpy(out.data() + 1,
                held->pixels.data() + static_cast<std::size_t>(sample.item) * volume,
                volume);
    return;
  }
  const InputFile file(picture_path(*dataset.files(), sample.item));
  if (file.size() != sample.bytes) {
    throw InputError(file.path().string(),
                     0,
                     "this picture was changed while samples were moved: restore the old one, or "
                     "start again");
  }
  file.read(0, out);
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  const std::uint64_t sum = XXH3_64bits(bytes.data(), bytes.size());
  return sum == 0 ? 1 : sum;
}

std::vector<std::byte> packed(const std::vector<MovedSample>& samples) {
  std::vector<std::byte> bytes;
  for (const MovedSample& sample : samples) {
    const Head head{
        sample.item, sample.bytes, sample.label, static_cast<std::uint32_t>(sample.name.size())};
    append(bytes, &head, 1);
    append(bytes, sample.name.data(), sample.name.size());
  }
  return bytes;
}

std::vector<MovedSample> unpacked(std::span<const std::byte> bytes) {
  std::vector<MovedSample> samples;
  while (!bytes.empty()) {
    Head head;
    expects(bytes.size() >= sizeof(Head), "a whole list of samples");
    std::memcpy(&head, bytes.data(), sizeof(Head));
    bytes = bytes.subspan(sizeof(Head));
    expects(bytes.size() >= head.name_bytes, "a whole list of samples");
    samples.push_back({head.item,
                       head.bytes,
                       head.label,
                       {reinterpret_cast<const char*>(bytes.data()), head.name_bytes}});
    bytes = bytes.subspan(head.name_bytes);
  }
  return samples;
}

std::vector<MovedFile> moved_files(const std::vector<MovedSample>& samples) {
  std::vector<MovedFile> files;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool goes_on = !files.empty() && samples[i].name.empty() &&
                         files.back().bytes + samples[i].bytes <= kFileBytes;
    if (!goes_on) {
      files.push_back({i, i, 0});
    }
    files.back().end = i + 1;
    files.back().bytes += samples[i].bytes;
  }
  return files;
}

}  // namespace tessera::engine
