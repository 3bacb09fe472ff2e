#include "engine/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

#include "engine/files/safetensors_header.h"
#include "engine/files/tensor_digest.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

static_assert(std::endian::native == std::endian::little,
              "elements are stored as they lie in memory");

namespace {

constexpr Index kLengthBytes = 8;              // before the header
constexpr Index kLongestHeader = 100'000'000;  // bytes, the limit of the format's own library
constexpr std::size_t kChunk = 8192;           // elements converted at once

template <class T>
constexpr bool kIsReal = std::is_floating_point_v<T>;

// Whether values of type T can be stored as, or come from, elements of `type`.
template <class T>
bool convertible(ElementType type) {
  switch (type) {
    case ElementType::F32:
    case ElementType::F64:
      return kIsReal<T>;
    case ElementType::I64:
      return std::is_same_v<T, std::int64_t>;
    case ElementType::U8:
      return std::is_same_v<T, std::uint8_t>;
  }
  return false;
}

template <class T>
constexpr const char* type_text() {
  return kIsReal<T> ? "F32 or F64" : sizeof(T) == 1 ? "U8" : "I64";
}

template <class T>
bool same_bytes(ElementType type) {
  return element_bytes(type) == Index{sizeof(T)};
}

template <class Stored, class T>
void read_converted(const InputFile& file, Index offset, std::span<T> out) {
  std::vector<Stored> chunk(std::min(out.size(), kChunk));
  while (!out.empty()) {
    const std::span<Stored> part = std::span(chunk).first(std::min(out.size(), chunk.size()));
    file.read(offset, std::as_writable_bytes(part));
    std::transform(
        part.begin(), part.end(), out.begin(), [](Stored value) { return static_cast<T>(value); });
    out = out.subspan(part.size());
    offset += static_cast<Index>(part.size_bytes());
  }
}

// Single insertions, deletions and replacements that make one name the other.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest_names(const std::string& name, const std::vector<StoredTensor>& tensors) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kLongestName = 200;  // others are not compared
  std::vector<std::pair<std::size_t, std::string>> names;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name.size() <= kLongestName && name.size() <= kLongestName) {
      names.emplace_back(edit_distance(name, tensor.name), tensor.name);
    }
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "; the nearest names are " : ", ") + in_quotes(names[i].second);
  }
  return text;
}

// The header's text; `file` must hold it.
std::string read_header_text(const InputFile& file) {
  const std::string name = file.path().string();
  if (file.size() < kLengthBytes) {
    throw InputError(
        name, 0, fmt::format("has {} bytes; a safetensors file has at least 10", file.size()));
  }
  std::uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  const Index rest = file.size() - kLengthBytes;
  if (length > std::uint64_t{kLongestHeader} || static_cast<Index>(length) > rest) {
    throw InputError(
        name,
        0,
        fmt::format("claims a header of {} bytes, has {}: cut short, or not a safetensors file",
                    length,
                    rest));
  }
  std::string text(static_cast<std::size_t>(length), ' ');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path) {
  const std::string text = read_header_text(file_);
  const Index data_begin = kLengthBytes + static_cast<Index>(text.size());
  SafetensorsHeader header =
      parse_safetensors_header(text, file_.path().string(), file_.size() - data_begin);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  if (const auto digests = metadata_.extract(kDigestsKey)) {
    digests_ = parse_digests(digests.mapped(), tensors_, metadata_, path.string()).tensors;
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    begins_.push_back(data_begin + header.begins[i]);
    by_name_[tensors_[i].name] = i;
  }
}

bool SafetensorsReader::has(const std::string& name) const {
  return by_name_.count(name) > 0;
}

std::size_t SafetensorsReader::position(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw InputError(
        path().string(),
        0,
        fmt::format("has no tensor {}{}", in_quotes(name), nearest_names(name, tensors_)));
  }
  return found->second;
}

const StoredTensor& SafetensorsReader::find(const std::string& name) const {
  return tensors_[position(name)];
}

template <class T>
void SafetensorsReader::read(const std::string& name, Index begin, std::span<T> out) const {
  const std::size_t index = position(name);
  const StoredTensor& tensor = tensors_[index];
  const Index count = element_count(tensor);
  expects(begin >= 0 && begin <= count && std::cmp_less_equal(out.size(), count - begin),
          "elements to read lie in the tensor");
  if (!convertible<T>(tensor.type)) {
    throw InputError(path().string(),
                     0,
                     fmt::format("tensor {} is of type {}, expected {}",
                                 in_quotes(name),
                                 element_type_name(tensor.type),
                                 type_text<T>()));
  }
  const Index offset = begins_[index] + begin * element_bytes(tensor.type);
  if (same_bytes<T>(tensor.type)) {
    file_.read(offset, std::as_writable_bytes(out));
  } else if (tensor.type == ElementType::F32) {
    read_converted<float>(file_, offset, out);
  } else {
    read_converted<double>(file_, offset, out);
  }
}

void SafetensorsReader::read_bytes(const std::string& name,
                                   Index begin,
                                   std::span<std::byte> out) const {
  const std::size_t index = position(name);
  const Index bytes = element_count(tensors_[index]) * element_bytes(tensors_[index].type);
  expects(begin >= 0 && begin <= bytes && std::cmp_less_equal(out.size(), bytes - begin),
          "bytes to read lie in the tensor");
  file_.read(begins_[index] + begin, out);
}

template <class T>
std::vector<T> SafetensorsReader::read_all(const std::string& name) const {
  const Index count = element_count(find(name));
  std::vector<T> values;
  if (std::cmp_greater(count, values.max_size())) {
    throw InputError(path().string(),
                     0,
                     fmt::format("tensor {} is too large for this machine", in_quotes(name)));
  }
  values.resize(static_cast<std::size_t>(count));
  read<T>(name, 0, values);
  return values;
}

namespace {

std::string header_with(const std::vector<StoredTensor>& tensors,
                        std::map<std::string, std::string> metadata,
                        const FileDigests& digests) {
  metadata[kDigestsKey] = digests_text(digests);
  return safetensors_header(tensors, metadata);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata,
                                     Links links)
    : file_(path, links), tensors_(std::move(tensors)), metadata_(as_stored(metadata)) {
  write_header();
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata,
                                     const std::filesystem::path& previous)
    : file_(path), tensors_(std::move(tensors)), metadata_(as_stored(metadata)) {
  file_.keep_old_as(previous);
  write_header();
}

void SafetensorsWriter::write_header() {
  expects(metadata_.count(kDigestsKey) == 0, "digests are the writer's");
  const std::string header = header_with(tensors_, metadata_, blank_digests(tensors_));
  expects(std::cmp_less_equal(header.size(), kLongestHeader), "the header is not too long");
  header_bytes_ = static_cast<Index>(header.size());
  const std::uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
  begin_tensor();
  skip_complete_tensors();
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::begin_tensor() {
  written_ = 0;
  digest_ =
      current_ < tensors_.size() ? std::make_unique<TensorDigest>(tensors_[current_]) : nullptr;
}

void SafetensorsWriter::skip_complete_tensors() {
  while (current_ < tensors_.size() && written_ == element_count(tensors_[current_])) {
    digests_[tensors_[current_].name] = digest_->text();
    ++current_;
    begin_tensor();
  }
}

void SafetensorsWriter::write_bytes(std::span<const std::byte> bytes) {
  file_.write(bytes);
  digest_->add(bytes);
}

template <class Stored, class T>
void SafetensorsWriter::write_converted(std::span<const T> values) {
  std::vector<Stored> chunk(std::min(values.size(), kChunk));
  while (!values.empty()) {
    const std::span<Stored> part = std::span(chunk).first(std::min(values.size(), chunk.size()));
    std::transform(values.begin(),
                   values.begin() + static_cast<std::ptrdiff_t>(part.size()),
                   part.begin(),
                   [](T value) { return static_cast<Stored>(value); });
    write_bytes(std::as_bytes(part));
    values = values.subspan(part.size());
  }
}

template <class T>
void SafetensorsWriter::write(std::span<const T> values) {
  if (values.empty()) {
    return;
  }
  expects(current_ < tensors_.size(), "no more elements than the header says");
  const StoredTensor& tensor = tensors_[current_];
  expects(std::cmp_less_equal(values.size(), element_count(tensor) - written_),
          "a chunk ends inside its tensor");
  expects(convertible<T>(tensor.type),
          "real numbers go to F32 and F64, the others to their own type");
  if (same_bytes<T>(tensor.type)) {
    write_bytes(std::as_bytes(values));
  } else if (tensor.type == ElementType::F32) {
    write_converted<float>(values);
  } else {
    write_converted<double>(values);
  }
  written_ += static_cast<Index>(values.size());
  skip_complete_tensors();
}

void SafetensorsWriter::commit() {
  seal();
  file_.commit();
}

void SafetensorsWriter::seal() {
  expects(current_ == tensors_.size(), "all elements are written before commit");
  const FileDigests digests{metadata_digest(metadata_, digests_), digests_};
  const std::string header = header_with(tensors_, metadata_, digests);
  expects(static_cast<Index>(header.size()) == header_bytes_, "digests have the place they need");
  file_.overwrite(kLengthBytes, std::as_bytes(std::span(header)));
}

template void SafetensorsReader::read(const std::string&, Index, std::span<float>) const;
template void SafetensorsReader::read(const std::string&, Index, std::span<double>) const;
template void SafetensorsReader::read(const std::string&, Index, std::span<std::int64_t>) const;
template void SafetensorsReader::read(const std::string&, Index, std::span<std::uint8_t>) const;
template std::vector<float> SafetensorsReader::read_all(const std::string&) const;
template std::vector<double> SafetensorsReader::read_all(const std::string&) const;
template std::vector<std::int64_t> SafetensorsReader::read_all(const std::string&) const;
template std::vector<std::uint8_t> SafetensorsReader::read_all(const std::string&) const;
template void SafetensorsWriter::write(std::span<const float>);
template void SafetensorsWriter::write(std::span<const double>);
template void SafetensorsWriter::write(std::span<const std::int64_t>);
template void SafetensorsWriter::write(std::span<const std::uint8_t>);

}  // namespace tessera::engine
