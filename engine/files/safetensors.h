// Named tensors in one file, in the safetensors format
// (https://github.com/huggingface/safetensors): 8 bytes of little-endian header length, a JSON
// header {name: {dtype, shape, data_offsets}, "__metadata__": {text: text}}, then the elements,
// little-endian, tensor after tensor with nothing between.
//
// Positions count elements of one tensor in row-major order. Every number in a file is checked
// before it is used. What the user's file does wrong is an InputError with its path; what our own
// calls do wrong is a broken promise.
//
// What is written here has digests in its metadata, see tensor_digest.h. A reader holds the
// metadata against its own at once, the tensors only by expect_sound_tensors() of tensor_check.h.

#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/input_file.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

enum class ElementType { F32, F64, I64, U8 };

[[nodiscard]] const char* element_type_name(ElementType type);
[[nodiscard]] Index element_bytes(ElementType type);

struct StoredTensor {
  std::string name;
  std::vector<Index> shape = {};  // empty: a scalar, one element
  ElementType type = ElementType::F32;

  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

// The product of the shape; throws std::overflow_error where that is beyond Index.
[[nodiscard]] Index element_count(const StoredTensor& tensor);

class SafetensorsReader {
 public:
  // Reads and checks the header: JSON, types, shapes, names used once, and that the tensors fill
  // the rest of the file exactly, without holes or overlaps.
  explicit SafetensorsReader(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const {
    return tensors_;
  }  // in the file's order
  // Without the digests.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // By tensor; none where the file has no digests.
  [[nodiscard]] const std::map<std::string, std::string>& digests() const { return digests_; }

  [[nodiscard]] bool has(const std::string& name) const;

  // Throws InputError with the nearest names when there is no such tensor.
  [[nodiscard]] const StoredTensor& find(const std::string& name) const;

  // Assigns elements [begin, begin + out.size()). T is float or double, from F32 or F64;
  // std::int64_t from I64; std::uint8_t from U8. Another type in the file is an InputError.
  template <class T>
  void read(const std::string& name, Index begin, std::span<T> out) const;

  template <class T>
  [[nodiscard]] std::vector<T> read_all(const std::string& name) const;

  // Assigns bytes [begin, begin + out.size()) of the tensor, as they are stored.
  void read_bytes(const std::string& name, Index begin, std::span<std::byte> out) const;

 private:
  [[nodiscard]] std::size_t position(const std::string& name) const;

  InputFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<Index> begins_;  // in bytes from the start of the file, one per tensor
  std::map<std::string, std::size_t> by_name_;  // into tensors_
  std::map<std::string, std::string> metadata_;
  std::map<std::string, std::string> digests_;
};

class TensorDigest;

// The header goes first, so all shapes are known at the start; elements then come in order, in
// chunks of any size. Never holds more than one chunk. The file appears at commit(), see
// atomic_file.h; there the digests take the place that the header has for them.
class SafetensorsWriter {
 public:
  // Names must differ and not be "__metadata__". Metadata may hold any bytes; those that are no
  // UTF-8 are replaced.
  SafetensorsWriter(const std::filesystem::path& path,
                    std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata,
                    Links links = Links::Replace);
  // The same; the file of before stays under the name `previous`, see AtomicFile::keep_old_as().
  // Empty: it is replaced.
  SafetensorsWriter(const std::filesystem::path& path,
                    std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata,
                    const std::filesystem::path& previous);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The next elements, none beyond the end of the current tensor; T as in SafetensorsReader::read.
  template <class T>
  void write(std::span<const T> values);

  // All elements must have been written: what there is is whole then, if not on the disk.
  void seal();
  void commit();

 private:
  void write_header();
  void begin_tensor();
  void skip_complete_tensors();
  void write_bytes(std::span<const std::byte> bytes);
  template <class Stored, class T>
  void write_converted(std::span<const T> values);

  AtomicFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;  // as a reader will find it
  Index header_bytes_ = 0;
  std::map<std::string, std::string> digests_;  // of the tensors that are complete
  std::unique_ptr<TensorDigest> digest_;        // of the current one
  std::size_t current_ = 0;  // tensor being written; tensors_.size() after the last
  Index written_ = 0;        // elements of it
};

}  // namespace tessera::engine
