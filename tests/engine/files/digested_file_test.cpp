#include "engine/files/digested_file.h"

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

namespace fs = std::filesystem;

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a digested file gives back what was written, of its kind alone") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "a";
  CHECK(!engine::read_digested(path, 1));
  for (const std::size_t count : {0U, 1U, 5000U}) {
    engine::write_digested(path, 1, some_bytes(count));
    CHECK(engine::read_digested(path, 1) == some_bytes(count));
    CHECK(!engine::read_digested(path, 2));
  }
  CHECK(!engine::read_digested(path, 1, 4999));
  fs::create_symlink(path, folder / "link");
  CHECK(!engine::read_digested(folder / "link", 1));
  CHECK(!engine::read_digested(folder.path(), 1));
}

TEST_CASE("a digested file that is cut, longer or has one other byte is as if it were not there") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "a";
  const std::vector<std::byte> content = some_bytes(40);
  for (const std::uintmax_t size : {0U, 8U, 31U, 32U, 71U, 73U}) {
    engine::write_digested(path, 1, content);
    fs::resize_file(path, size);
    CHECK_MESSAGE(!engine::read_digested(path, 1), size);
  }
  for (std::streamoff at = 0; at < 72; ++at) {
    engine::write_digested(path, 1, content);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int was = file.get();
    file.seekp(at);
    file.put(static_cast<char>(was ^ 1));
    file.close();
    CHECK_MESSAGE(!engine::read_digested(path, 1), at);
  }
}
