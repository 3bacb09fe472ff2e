#include "engine/recovery/slot_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::engine {

using tests::TemporaryFolder;

namespace {

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void write_step(SlotFile& file, Index step) {
  const std::vector<float> one = numbers(5, static_cast<float>(step));
  const std::vector<float> two = numbers(3, static_cast<float>(-step));
  file.write(step, "step " + std::to_string(step), {one, two});
}

// The contents, the newest first.
std::vector<Index> steps_in(const std::filesystem::path& path) {
  std::vector<Index> steps;
  for (const SlotContent& content : read_slots(path)) {
    CHECK(content.text == "step " + std::to_string(content.step));
    REQUIRE(content.floats.size() == 8);
    CHECK(content.floats[4] == static_cast<float>(content.step + 4));
    CHECK(content.floats[7] == static_cast<float>(2 - content.step));
    steps.push_back(content.step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string slot_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("a file keeps the two latest of what was written into it") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a";
  SlotFile file(path, 20, 8);
  CHECK(read_slots(path).empty());
  write_step(file, 1);
  CHECK(steps_in(path) == std::vector<Index>{1});
  for (Index step = 2; step < 6; ++step) {
    write_step(file, step);
    CHECK(steps_in(path) == std::vector<Index>{step, step - 1});
  }
  CHECK_THROWS_AS(SlotFile(path, 20, 8), InputError);  // it is somebody's already
}

TEST_CASE("of a write that was cut at any byte nothing counts, and the content before stays") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a";
  SlotFile file(path, 20, 8);
  write_step(file, 1);
  write_step(file, 2);
  const std::string before = slot_bytes(path);
  write_step(file, 3);
  const std::string after = slot_bytes(path);
  REQUIRE(before.size() == after.size());
  const std::size_t half = after.size() / 2;
  const auto torn = folder.path() / "torn";
  for (std::size_t cut = 0; cut < half; ++cut) {
    // The head comes last; before it was written its first word is 0.
    std::string bytes = after.substr(0, cut) + before.substr(cut);
    bytes.replace(0, 8, 8, '\0');
    put_bytes(torn, bytes);
    REQUIRE(steps_in(torn) == std::vector<Index>{2});
  }
}

TEST_CASE("a flipped bit anywhere costs one content at most, and never gives a wrong one") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a";
  SlotFile file(path, 20, 8);
  write_step(file, 1);
  write_step(file, 2);
  const std::string whole = slot_bytes(path);
  const auto damaged = folder.path() / "damaged";
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 0x10);
    put_bytes(damaged, bytes);
    const std::vector<Index> steps = steps_in(damaged);
    REQUIRE(!steps.empty());
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put_bytes(damaged, whole.substr(0, size));
    (void)steps_in(damaged);
  }
}

TEST_CASE("files that are none of ours are empty") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a";
  CHECK(read_slots(path).empty());
  put_bytes(path, std::string(100'000, '\x7f'));
  CHECK(read_slots(path).empty());
  put_bytes(path, std::string("tesslot1") + std::string(1000, '\xff'));
  CHECK(read_slots(path).empty());
  CHECK(read_slots("/dev/zero").empty());
  CHECK(read_slots(folder.path()).empty());
  std::filesystem::create_symlink(path, folder.path() / "link");
  CHECK(read_slots(folder.path() / "link").empty());
}

}  // namespace tessera::engine
