// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/files/tensor_digest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <xxhash.h>

#include "engine/files/safetensors_header.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr const char* kBlank = "00000000000000000000000000000000";

[[noreturn]] void refuse_digest(const std::string& file, const std::string& what) {
  throw InputError(
      file,
      0,
      what + ": the file has been damaged or changed since it was written; use another copy");
}

}  // namespace

struct TensorDigest::State {
  State() { XXH3_128bits_reset(&sum); }

  void add(const void* bytes, std::size_t count) { XXH3_128bits_update(&sum, bytes, count); }

  // Its length goes before it, so that no two lists of texts are alike.
  void add_text(std::string_view text) {
    const std::uint64_t length = text.size();
    add(&length, sizeof(length));
    add(text.data(), text.size());
  }

  [[nodiscard]] std::string text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&sum);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

  XXH3_state_t sum;
};

TensorDigest::TensorDigest(const StoredTensor& tensor) : state_(std::make_unique<State>()) {
  state_->add_text(tensor.name);
  state_->add_text(element_type_name(tensor.type));
  state_->add_text(std::to_string(tensor.shape.size()));
  for (const Index size : tensor.shape) {
    state_->add_text(std::to_string(size));
  }
}

TensorDigest::~TensorDigest() = default;
TensorDigest::TensorDigest(TensorDigest&&) noexcept = default;
TensorDigest& TensorDigest::operator=(TensorDigest&&) noexcept = default;

void TensorDigest::add(std::span<const std::byte> bytes) {
  state_->add(bytes.data(), bytes.size());
}

std::string TensorDigest::text() const {
  return state_->text();
}

std::string metadata_digest(const std::map<std::string, std::string>& metadata,
                            const std::map<std::string, std::string>& tensors) {
  TensorDigest digest({.name = "metadata"});
  const auto add = [&](const std::map<std::string, std::string>& texts) {
    for (const auto& [key, text] : texts) {
      if (&texts == &tensors || key != kDigestsKey) {
        const std::string line = fmt::format("{}:{}{}:{}", key.size(), key, text.size(), text);
        digest.add(std::as_bytes(std::span(line)));
      }
    }
  };
  add(metadata);
  add(tensors);
  return digest.text();
}

std::string digests_text(const FileDigests& digests) {
  return OrderedJson{
      {"kind", "XXH3-128"}, {"metadata", digests.metadata}, {"tensors", digests.tensors}}
      .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

FileDigests blank_digests(const std::vector<StoredTensor>& tensors) {
  FileDigests digests{kBlank, {}};
  for (const StoredTensor& tensor : tensors) {
    digests.tensors[tensor.name] = kBlank;
  }
  return digests;
}

FileDigests parse_digests(const std::string& text,
                          const std::vector<StoredTensor>& tensors,
                          const std::map<std::string, std::string>& metadata,
                          const std::string& file) {
  FileDigests digests;
  try {
    const OrderedJson json = OrderedJson::parse(text);
    digests.metadata = json.at("metadata").get<std::string>();
    digests.tensors = json.at("tensors").get<std::map<std::string, std::string>>();
  } catch (const OrderedJson::exception&) {
    refuse_digest(file, "its digests cannot be read");
  }
  for (const StoredTensor& tensor : tensors) {
    if (digests.tensors.count(tensor.name) == 0) {
      refuse_digest(file, fmt::format("tensor {} has no digest", in_quotes(tensor.name)));
    }
  }
  if (digests.tensors.size() != tensors.size()) {
    refuse_digest(file, "it has digests of tensors that do not exist");
  }
  // Whatever else the text holds would be none of our writing.
  if (digests_text(digests) != text ||
      digests.metadata != metadata_digest(metadata, digests.tensors)) {
    refuse_digest(file, "its metadata is not what was written");
  }
  return digests;
}

}  // namespace tessera::engine
