#include "engine/files/weights_format.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/files/input_file.h"

namespace tessera::engine {

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
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof(length));
  return start[8] == std::byte{'{'} && length < static_cast<std::uint64_t>(file.size());
}

}  // namespace tessera::engine
