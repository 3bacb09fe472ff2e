// Every input in corpus/ once more, without a fuzzer: what was found stays fixed.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/harness.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> corpus(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / name;
  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(folder), {});
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("inputs of the fuzzers are taken or refused, and seeds named valid are taken") {
  for (const tests::Harness& harness : tests::harnesses()) {
    bool any_valid = false;
    for (const std::filesystem::path& path : corpus(harness.name)) {
      CAPTURE(path);
      const std::vector<std::uint8_t> bytes = bytes_of(path);
      const bool valid = path.filename().string().starts_with("valid");
      any_valid = any_valid || valid;
      bool taken = false;
      CHECK_NOTHROW(taken = harness.run(bytes));
      CHECK((taken || !valid));
    }
    CAPTURE(harness.name);
    CHECK(any_valid);
  }
}

TEST_CASE("every valid seed is refused or taken, never worse, when it is cut anywhere") {
  for (const tests::Harness& harness : tests::harnesses()) {
    for (const std::filesystem::path& path : corpus(harness.name)) {
      CAPTURE(path);
      const std::vector<std::uint8_t> bytes = bytes_of(path);
      const std::size_t step = 1 + bytes.size() / 40;
      for (std::size_t length = 0; length < bytes.size(); length += step) {
        CAPTURE(length);
        CHECK_NOTHROW((void)harness.run(tests::Bytes(bytes).first(length)));
      }
    }
  }
}

}  // namespace
