#include <filesystem>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/read_items.h"
#include "tests/support/open_dataset.h"

#include "engine/data/dataset.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

// The choices: bit 0, one file without labels; bit 1, in colour.
bool fuzz_idx(Bytes bytes) {
  constexpr std::size_t kHead = 3;
  if (bytes.size() < kHead) {
    return false;
  }
  const Index channels = (bytes[0] & 2U) != 0 ? 3 : 1;
  const std::size_t length = bytes[1] + std::size_t{256} * bytes[2];
  const Bytes body = bytes.subspan(kHead);
  const Bytes pictures = body.first(std::min(length, body.size()));
  const Bytes labels = body.subspan(pictures.size());
  const std::string path = fuzz_file("train-images-idx3-ubyte", pictures);
  try {
    if ((bytes[0] & 1U) != 0) {
      read_items(engine::open_pictures(path, channels));
    } else {
      (void)fuzz_file("train-labels-idx1-ubyte", labels);
      (void)fuzz_file("t10k-images-idx3-ubyte", pictures);
      (void)fuzz_file("t10k-labels-idx1-ubyte", labels);
      const std::filesystem::path folder = std::filesystem::path(path).parent_path();
      read_items(open_dataset(folder, engine::Split::Train, channels));
      read_items(open_dataset(folder, engine::Split::Test, channels));
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
