#include "engine/files/tensor_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "engine/files/safetensors_header.h"
#include "engine/files/tensor_digest.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kChunkBytes = Index{1} << 16U;  // a multiple of every element

template <class T>
std::optional<Index> first_unfit(std::span<const std::byte> bytes, Numbers allowed, double& value) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  const auto unfit = [allowed](T number) {
    return !std::isfinite(number) || (allowed == Numbers::FiniteNotNegative && number < 0);
  };
  const auto found = std::find_if(numbers.begin(), numbers.end(), unfit);
  if (found == numbers.end()) {
    return std::nullopt;
  }
  value = static_cast<double>(*found);
  return found - numbers.begin();
}

// What is wrong with a chunk of a tensor that begins with element `first`.
std::optional<std::string> unfit_number(const StoredTensor& tensor,
                                        Numbers allowed,
                                        std::span<const std::byte> bytes,
                                        Index first) {
  double value = 0;
  const auto found = tensor.type == ElementType::F32 ? first_unfit<float>(bytes, allowed, value)
                                                     : first_unfit<double>(bytes, allowed, value);
  if (!found) {
    return std::nullopt;
  }
  return fmt::format(
      "tensor {} holds {} at element {}, expected {}: the training that wrote it has diverged, or "
      "the file is damaged; use an earlier one",
      in_quotes(tensor.name),
      number_text(value),
      first + *found,
      std::isfinite(value) ? "numbers of at least 0" : "finite numbers");
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  return std::isinf(value) ? (value < 0 ? "-infinity" : "infinity") : fmt::format("{:g}", value);
}

void expect_sound_tensor(const SafetensorsReader& file,
                         const StoredTensor& tensor,
                         Numbers allowed) {
  const std::string path = file.path().string();
  const bool real = tensor.type == ElementType::F32 || tensor.type == ElementType::F64;
  const Index bytes = element_count(tensor) * element_bytes(tensor.type);
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(bytes, kChunkBytes)));
  TensorDigest digest(tensor);
  std::optional<std::string> problem;
  for (Index begin = 0; begin < bytes; begin += kChunkBytes) {
    const auto part =
        std::span(chunk).first(static_cast<std::size_t>(std::min(kChunkBytes, bytes - begin)));
    file.read_bytes(tensor.name, begin, part);
    digest.add(part);
    if (real && allowed != Numbers::Any && !problem) {
      problem = unfit_number(tensor, allowed, part, begin / element_bytes(tensor.type));
    }
  }
  // Where numbers are unfit because they were damaged, it is the damage that matters.
  const auto recorded = file.digests().find(tensor.name);
  if (recorded != file.digests().end() && recorded->second != digest.text()) {
    throw InputError(path,
                     0,
                     fmt::format("tensor {} is not what was written, by its digest: the file has "
                                 "been damaged or changed; use another copy",
                                 in_quotes(tensor.name)));
  }
  if (problem) {
    throw InputError(path, 0, *problem);
  }
}

}  // namespace tessera::engine
