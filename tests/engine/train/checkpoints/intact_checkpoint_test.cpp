#include "engine/train/checkpoints/intact_checkpoint.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/run_files/names.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::IntactCheckpoint;
using engine::newest_intact_checkpoint;
using tests::bytes_of;
using tests::has;
using tests::input_error_of;
using tests::put_bytes;
using tests::TemporaryFolder;

void put_checkpoint(const std::filesystem::path& path, int step) {
  engine::SafetensorsWriter file(
      path,
      {{.name = "layers.0.weight", .shape = {64}}},
      {{"format", "tessera-checkpoint-2"}, {"step", std::to_string(step)}});
  const std::vector<float> values(64, static_cast<float>(step));
  file.write<float>(values);
  file.commit();
}

// A run folder with the checkpoints of steps 20 and 10.
struct TwoGenerations {
  TwoGenerations() {
    put_checkpoint(latest, 20);
    put_checkpoint(previous, 10);
  }

  TemporaryFolder folder = {};
  std::filesystem::path latest = folder / engine::run_file::kCheckpoint;
  std::filesystem::path previous = folder / engine::run_file::kPreviousCheckpoint;
};

std::string with_header_length(std::uint64_t length, std::string bytes) {
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(length >> (8 * i));
  }
  return bytes;
}

TEST_CASE("of two intact checkpoints the one of the later step is taken, whatever its name") {
  const TwoGenerations run;
  IntactCheckpoint found = newest_intact_checkpoint(run.folder.path());
  CHECK(found.file == run.latest);
  CHECK(found.step == 20);
  CHECK(found.refused.empty());
  put_checkpoint(run.previous, 30);
  found = newest_intact_checkpoint(run.folder.path());
  CHECK(found.file == run.previous);
  CHECK(found.step == 30);
}

TEST_CASE("a checkpoint with any bit changed, or cut anywhere, gives way to the one before it") {
  const TwoGenerations run;
  const std::string whole = bytes_of(run.latest);
  const auto expect_previous = [&](const std::string& damaged) {
    put_bytes(run.latest, damaged);
    const IntactCheckpoint found = newest_intact_checkpoint(run.folder.path());
    CHECK(found.file == run.previous);
    CHECK(found.step == 10);
    REQUIRE(found.refused.size() == 1);
    CHECK(has(found.refused[0], run.latest.string() + ": "));
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    expect_previous(damaged);
  }
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    CAPTURE(size);
    expect_previous(whole.substr(0, size));
  }
  expect_previous(whole + "x");
  expect_previous(std::string(whole.size(), '\0'));  // blocks that a power cut left unwritten
  for (const std::uint64_t length : {std::uint64_t{0},
                                     std::uint64_t{whole.size()},
                                     std::uint64_t{1} << 40U,
                                     ~std::uint64_t{0},
                                     std::uint64_t{1} << 63U}) {
    CAPTURE(length);
    expect_previous(with_header_length(length, whole));
  }
  const std::string deep = std::string(100000, '[');
  expect_previous(with_header_length(deep.size(), std::string(8, ' ') + deep));
}

TEST_CASE("a file that is not there, a folder or a link to nothing gives way, too") {
  const TwoGenerations run;
  std::filesystem::remove(run.latest);
  const auto expect_previous = [&] {
    const IntactCheckpoint found = newest_intact_checkpoint(run.folder.path());
    CHECK(found.file == run.previous);
    REQUIRE(found.refused.size() == 1);
    CHECK(has(found.refused[0], run.latest.string() + ": "));
  };
  expect_previous();
  std::filesystem::create_directory(run.latest);
  expect_previous();
  std::filesystem::remove(run.latest);
  std::filesystem::create_symlink(run.folder / "missing", run.latest);
  expect_previous();
}

TEST_CASE("where no checkpoint is intact all that are there are named, and why") {
  const TwoGenerations run;
  put_bytes(run.latest, "");
  put_bytes(run.previous, "half");
  const std::string problem =
      input_error_of([&] { (void)newest_intact_checkpoint(run.folder.path()); });
  CHECK(has(problem, "no intact checkpoint"));
  CHECK(has(problem, run.latest.string()));
  CHECK(has(problem, run.previous.string()));
  const TemporaryFolder empty;
  CHECK(has(input_error_of([&] { (void)newest_intact_checkpoint(empty.path()); }),
            "has no checkpoint.safetensors"));
}

TEST_CASE(
    "what is said of a damaged checkpoint names the intact other of its folder, if there is one") {
  const TwoGenerations run;
  CHECK(engine::with_intact_other("broken", run.latest) ==
        "broken; " + run.previous.string() + ", after step 10, is intact: resume from it");
  CHECK(has(engine::with_intact_other("broken", run.previous), run.latest.string()));
  CHECK(has(engine::with_intact_other("broken", run.folder / "best.safetensors"), "step 20"));
  put_bytes(run.previous, "half");
  CHECK(engine::with_intact_other("broken", run.latest) == "broken");
}

}  // namespace
