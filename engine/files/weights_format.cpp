#include "engine/files/weights_format.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "engine/files/input_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// What people have weights in beside: known by how a file begins or, where that says little, by its
// name. Null: none of them.
const char* other_format(const std::filesystem::path& path, std::span<const std::byte> start) {
  const auto begins = [&](std::string_view text) {
    return std::memcmp(start.data(), text.data(), text.size()) == 0;
  };
  const std::string ending = path.extension().string();
  if (begins("PK\x03\x04")) {
    return ending == ".npz" ? "an archive of NumPy arrays" : "a file of PyTorch (.pt)";
  }
  if (begins("\x89HDF\r\n")) {
    return "an HDF5 file, as Keras writes them";
  }
  if (begins("\x80\x02") || ending == ".pt" || ending == ".pth") {
    return "a file of PyTorch (.pt)";
  }
  if (ending == ".onnx") {
    return "an ONNX file";
  }
  return nullptr;
}

}  // namespace

// A safetensors file begins with the header's length in 8 bytes and the header's '{'. Darknet's
// begins with the version, two numbers of 4 bytes: the second, read as the upper half of a length,
// makes it longer than any file unless it is 0; then '{' would be a revision of 123.
bool is_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  if (path.extension() == ".safetensors") {
    return true;
  }
  std::array<std::byte, 9> start{};
  if (file.size() < std::ssize(start)) {
    return false;
  }
  file.read(0, start);
  if (const char* const other = other_format(path, start)) {
    throw InputError(path.string(),
                     0,
                     fmt::format("this is {}, which cannot be read: save its weights as "
                                 ".safetensors or in Darknet's .weights",
                                 other));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof(length));
  return start[8] == std::byte{'{'} && length < static_cast<std::uint64_t>(file.size());
}

}  // namespace tessera::engine
