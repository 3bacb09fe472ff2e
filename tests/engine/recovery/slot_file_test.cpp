#include "engine/recovery/slot_file.h"

#include <cstring>
#include <limits>
#include <numeric>

#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::SlotFile;
using engine::SlotReader;

constexpr Index kSlotFloats = 11;
const std::string kSlotText = "what is in it, of step ";

std::vector<float> floats_of(Index step) {
  std::vector<float> floats(kSlotFloats);
  std::iota(floats.begin(), floats.end(), static_cast<float>(100 * step));
  return floats;
}

void write_step(SlotFile& file, Index step) {
  const std::vector<float> floats = floats_of(step);
  const std::span<const float> all(floats);
  file.write(step, kSlotText + std::to_string(step), {all.first(5), all.subspan(5)});
}

// The steps in a file, each of which must have what was written of it.
std::vector<Index> steps_in(const std::filesystem::path& path) {
  const SlotReader reader(path);
  std::vector<Index> steps;
  for (const SlotReader::Content& content : reader.contents()) {
    steps.push_back(content.step);
    std::vector<float> floats(static_cast<std::size_t>(content.floats));
    reader.read(content, 0, floats);
    CHECK(floats == floats_of(content.step));
    CHECK(content.text == kSlotText + std::to_string(content.step));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

struct Written {
  std::string before;  // with steps 1 and 2
  std::string begun;   // with step 3 begun in the place of 1
  std::string after;   // with steps 2 and 3
};

Written written(const std::filesystem::path& path) {
  Written bytes;
  SlotFile file(path, 40, kSlotFloats);
  write_step(file, 1);
  write_step(file, 2);
  bytes.before = tests::bytes_of(path);
  const std::span<float> place = file.begin();
  bytes.begun = tests::bytes_of(path);
  const std::vector<float> floats = floats_of(3);
  std::copy(floats.begin(), floats.end(), place.begin());
  file.finish(3, kSlotText + "3");
  bytes.after = tests::bytes_of(path);
  return bytes;
}

TEST_CASE("a slot file has the last two contents that were finished") {
  const tests::TemporaryFolder folder;
  SlotFile file(folder / "slots", 40, kSlotFloats);
  CHECK(steps_in(folder / "slots").empty());
  write_step(file, 1);
  CHECK(steps_in(folder / "slots") == std::vector<Index>{1});
  write_step(file, 2);
  CHECK(steps_in(folder / "slots") == std::vector<Index>{1, 2});
  (void)file.begin();
  CHECK(steps_in(folder / "slots") == std::vector<Index>{2});
  write_step(file, 3);
  write_step(file, 4);
  CHECK(steps_in(folder / "slots") == std::vector<Index>{3, 4});
}

TEST_CASE("what was written in pieces and what came by itself have the same bytes") {
  const tests::TemporaryFolder folder;
  const Written by_itself = written(folder / "one");
  SlotFile file(folder / "other", 40, kSlotFloats);
  for (const Index step : {1, 2, 3}) {
    write_step(file, step);
  }
  CHECK(tests::bytes_of(folder / "other") == by_itself.after);
}

TEST_CASE("wherever writing ends, the content before is whole and no other is wrong") {
  const tests::TemporaryFolder folder;
  const Written bytes = written(folder / "slots");
  const auto torn = [&](const std::string& left, const std::string& right, std::size_t at) {
    tests::put_bytes(folder / "torn", left.substr(0, at) + right.substr(at));
    const std::vector<Index> steps = steps_in(folder / "torn");
    CHECK(std::count(steps.begin(), steps.end(), 2) == 1);
  };
  for (std::size_t at = 0; at <= bytes.after.size(); ++at) {
    torn(bytes.begun, bytes.after, at);  // the head comes last
    torn(bytes.after, bytes.begun, at);
    torn(bytes.before, bytes.begun, at);
    torn(bytes.begun, bytes.before, at);
    torn(bytes.after, bytes.before, at);
  }
}

TEST_CASE("a slot file that was cut or changed anywhere has no content that is not as written") {
  const tests::TemporaryFolder folder;
  const Written bytes = written(folder / "slots");
  for (std::size_t at = 0; at < bytes.after.size(); ++at) {
    tests::put_bytes(folder / "cut", bytes.after.substr(0, at));
    (void)steps_in(folder / "cut");
    std::string changed = bytes.after;
    changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1U << at % 8));
    tests::put_bytes(folder / "changed", changed);
    CHECK(steps_in(folder / "changed").size() >= 1);  // of two, the other one is whole
  }
}

TEST_CASE("numbers in the head of a slot file lead nowhere outside it") {
  const tests::TemporaryFolder folder;
  const Written bytes = written(folder / "slots");
  constexpr std::size_t kWords = 8;
  for (std::size_t word = 0; word < kWords; ++word) {
    for (const std::uint64_t number : {std::uint64_t{0},
                                       std::uint64_t{1},
                                       std::uint64_t{1} << 31U,
                                       std::uint64_t{1} << 32U,
                                       std::uint64_t{1} << 62U,
                                       std::uint64_t{1} << 63U,
                                       std::numeric_limits<std::uint64_t>::max() - 63,
                                       std::numeric_limits<std::uint64_t>::max()}) {
      std::string changed = bytes.after;
      std::memcpy(changed.data() + word * sizeof(number), &number, sizeof(number));
      tests::put_bytes(folder / "changed", changed);
      (void)steps_in(folder / "changed");
    }
  }
}

TEST_CASE("random bytes are no slot file") {
  const tests::TemporaryFolder folder;
  const Written bytes = written(folder / "slots");
  tests::Draw draw(7);
  for (int round = 0; round < 300; ++round) {
    std::string garbage = draw.chance(0.5) ? bytes.after : std::string();
    garbage.resize(static_cast<std::size_t>(draw.between(0, 3000)), '\0');
    const Index changes = draw.between(1, 200);
    for (Index i = 0; i < changes && !garbage.empty(); ++i) {
      garbage[static_cast<std::size_t>(draw.between(0, std::ssize(garbage) - 1))] =
          static_cast<char>(draw.between(0, 255));
    }
    tests::put_bytes(folder / "garbage", garbage);
    (void)steps_in(folder / "garbage");
  }
}

TEST_CASE("links, folders, and files that are too large or not there have no content") {
  const tests::TemporaryFolder folder;
  (void)written(folder / "slots");
  std::filesystem::create_symlink(folder / "slots", folder / "link");
  CHECK(steps_in(folder / "link").empty());
  CHECK(steps_in(folder.path()).empty());
  CHECK(steps_in(folder / "none").empty());
  CHECK(SlotReader(folder / "slots", 100).contents().empty());
  CHECK_THROWS_AS(SlotFile(folder / "slots", 40, kSlotFloats), InputError);  // never another's file
}

}  // namespace
