// Digests by which a safetensors file shows that it is as it was written: XXH3 of 128 bits, one of
// each tensor over its name, type, shape and bytes, and one over the metadata and all of these.
// They stand in the metadata under "digests", as JSON in a text: other readers of the format see
// one more text. They are against accidents, not against forgery.

#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/files/safetensors.h"

namespace tessera::engine {

// The key in the metadata; no other text may have it.
inline constexpr const char* kDigestsKey = "digests";

// Takes a tensor's bytes in chunks of any size.
class TensorDigest {
 public:
  explicit TensorDigest(const StoredTensor& tensor);
  ~TensorDigest();
  TensorDigest(TensorDigest&&) noexcept;
  TensorDigest& operator=(TensorDigest&&) noexcept;

  void add(std::span<const std::byte> bytes);

  // 32 hexadecimal digits, of what was added so far.
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct FileDigests {
  std::string metadata;                        // of metadata_digest()
  std::map<std::string, std::string> tensors;  // by name
};

// The digest of all metadata but the digests, and of the tensors' digests.
[[nodiscard]] std::string metadata_digest(const std::map<std::string, std::string>& metadata,
                                          const std::map<std::string, std::string>& tensors);

// As it stands in the metadata; its length depends on the names alone.
[[nodiscard]] std::string digests_text(const FileDigests& digests);

// Digests in place of those that are not known yet.
[[nodiscard]] FileDigests blank_digests(const std::vector<StoredTensor>& tensors);

// Throws InputError that starts with `file` where the text is not one of digests_text() for just
// these tensors, or where the metadata is not what it was.
[[nodiscard]] FileDigests parse_digests(const std::string& text,
                                        const std::vector<StoredTensor>& tensors,
                                        const std::map<std::string, std::string>& metadata,
                                        const std::string& file);

}  // namespace tessera::engine
