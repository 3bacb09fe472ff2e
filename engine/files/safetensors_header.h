// The JSON header of a safetensors file, apart from the file: text to tensors and back, with all
// checks.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/safetensors.h"

namespace tessera::engine {

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their elements
  std::vector<Index> begins;          // byte at which each starts, from the end of the header
  std::map<std::string, std::string> metadata;
};

// `name` is the file's, for messages; the tensors must fill `data_bytes` bytes exactly.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view text,
                                                         const std::string& name,
                                                         Index data_bytes);

// Ends in spaces so that with the 8 bytes before it the header's length is a multiple of 8.
[[nodiscard]] std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                                             const std::map<std::string, std::string>& metadata);

// The metadata that will be read from such a header: bytes that are no UTF-8 are replaced.
[[nodiscard]] std::map<std::string, std::string> as_stored(
    const std::map<std::string, std::string>& metadata);

// Text out of a file, fit for a message of one line: shortened, unprintable bytes as '?', in
// quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace tessera::engine
