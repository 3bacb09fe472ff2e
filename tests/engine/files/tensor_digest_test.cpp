// What a safetensors file was written with is what is read, or it is refused by file and tensor.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/safetensors.h"
#include "engine/files/tensor_check.h"
#include "engine/files/weights_format.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ElementType;
using engine::expect_sound_tensors;
using engine::is_safetensors;
using engine::Numbers;
using engine::SafetensorsReader;
using engine::SafetensorsWriter;
using tests::bytes_of;
using tests::has;
using tests::put_bytes;
using tests::TemporaryFolder;

Numbers finite(const std::string& name) {
  return name.ends_with("variance") ? Numbers::FiniteNotNegative : Numbers::Finite;
}

// A file of each type of element, one of them in two chunks.
void write_sample(const std::filesystem::path& path, const std::vector<float>& first) {
  SafetensorsWriter writer(
      path,
      {{.name = "a.weight", .shape = {2, 3}},
       {.name = "b.weight", .shape = {3, 2}},
       {.name = "b.variance", .shape = {2}, .type = ElementType::F64},
       {.name = "empty", .shape = {0}},
       {.name = "counts", .shape = {1}, .type = ElementType::I64},
       {.name = "flags", .shape = {3}, .type = ElementType::U8}},
      {{"model", "[net]\nheight=8\n# caf\xc3\xa9 \"quoted\"\n"}, {"step", "12"}, {"odd", "a\xff"}});
  writer.write(std::span(first).first(2));
  writer.write(std::span(first).subspan(2));
  writer.write<double>(std::vector<double>{1, 2, 3, 4, 5, 6});
  writer.write<double>(std::vector<double>{0, 0.5});
  writer.write<std::int64_t>(std::vector<std::int64_t>{7});
  writer.write<std::uint8_t>(std::vector<std::uint8_t>{1, 0, 1});
  writer.commit();
}

const std::vector<float> kFirst = {1, -2, 3, -4, 5, -6};

// What is wrong with a file; empty where nothing is.
std::string problem_of(const std::filesystem::path& path) {
  try {
    const SafetensorsReader file(path);
    expect_sound_tensors(file, finite);
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with(path.string() + ": "));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "";
}

TEST_CASE("a file as it was written is sound") {
  const TemporaryFolder folder;
  write_sample(folder / "a.safetensors", kFirst);
  CHECK(problem_of(folder / "a.safetensors").empty());
  const SafetensorsReader file(folder / "a.safetensors");
  CHECK(file.digests().size() == file.tensors().size());
  CHECK(file.metadata().count("digests") == 0);
  CHECK(file.metadata().at("step") == "12");
}

TEST_CASE("the same tensors and metadata are the same bytes") {
  const TemporaryFolder folder;
  write_sample(folder / "a.safetensors", kFirst);
  write_sample(folder / "b.safetensors", kFirst);
  CHECK(bytes_of(folder / "a.safetensors") == bytes_of(folder / "b.safetensors"));
}

TEST_CASE("no bit of a file may be another one") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_sample(path, kFirst);
  const std::string good = bytes_of(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << bit));
      put_bytes(path, bad);
      if (problem_of(path).empty()) {
        // Only the name under which the digests stand can go by unseen, by who does not know that
        // there are to be some.
        const std::size_t key = good.find("digests");
        const bool of_the_key = key <= at && at < key + std::strlen("digests");
        CHECK_MESSAGE(of_the_key, "byte ", at, ", bit ", bit);
      }
    }
  }
}

TEST_CASE("a damaged tensor is named") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_sample(path, kFirst);
  std::string bytes = bytes_of(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes[static_cast<std::size_t>(8 + header + 24 + 5)] ^= 0x10;  // in the second tensor
  put_bytes(path, bytes);
  CHECK(has(problem_of(path), "tensor 'b.weight' is not what was written"));
}

TEST_CASE("tensors that have changed places are named") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_sample(path, kFirst);
  const std::string good = bytes_of(path);
  // By their names in the header ...
  std::string swapped = good;
  const auto a = swapped.find("\"a.weight\":{");
  const auto b = swapped.find("\"b.weight\":{");
  REQUIRE(a != std::string::npos);
  REQUIRE(b != std::string::npos);
  std::swap(swapped[a + 1], swapped[b + 1]);
  put_bytes(path, swapped);
  CHECK(has(problem_of(path), "tensor 'b.weight' is not what was written"));
  // ... and by their elements.
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), sizeof(header));
  swapped = good;
  std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(8 + header),
                   swapped.begin() + static_cast<std::ptrdiff_t>(8 + header + 24),
                   swapped.begin() + static_cast<std::ptrdiff_t>(8 + header + 24));
  put_bytes(path, swapped);
  CHECK(has(problem_of(path), "tensor 'a.weight' is not what was written"));
}

TEST_CASE("metadata that has changed is refused when the file is opened") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_sample(path, kFirst);
  std::string bytes = bytes_of(path);
  const auto step = bytes.find("\"12\"");
  REQUIRE(step != std::string::npos);
  bytes[step + 1] = '9';
  put_bytes(path, bytes);
  CHECK_THROWS_WITH_AS(SafetensorsReader{path},
                       doctest::Contains("its metadata is not what was written"),
                       InputError);
}

TEST_CASE("numbers that no network has are refused by tensor and element, digest or not") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  write_sample(path, {1, 2, nan, 4, 5, 6});
  CHECK(has(problem_of(path), "tensor 'a.weight' holds NaN at element 2, expected finite"));
  write_sample(path, {1, 2, 3, 4, 5, -infinity});
  CHECK(has(problem_of(path), "tensor 'a.weight' holds -infinity at element 5"));

  const auto variances = folder / "v.safetensors";
  SafetensorsWriter writer(
      variances, {{.name = "bn.variance", .shape = {40000}, .type = ElementType::F64}}, {});
  std::vector<double> values(40000, 1);
  values[39999] = -0.25;
  writer.write<double>(values);
  writer.commit();
  CHECK(has(problem_of(variances), "tensor 'bn.variance' holds -0.25 at element 39999"));

  // A file of another program.
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  const float numbers[2] = {1, nan};
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += header + std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers));
  put_bytes(path, bytes);
  CHECK(has(problem_of(path), "tensor 'w' holds NaN at element 1"));
  CHECK(SafetensorsReader(path).digests().empty());
}

TEST_CASE("formats are told apart by content, whatever the file is called") {
  const TemporaryFolder folder;
  write_sample(folder / "a.safetensors", kFirst);
  const std::string tensors = bytes_of(folder / "a.safetensors");
  put_bytes(folder / "model", tensors);
  put_bytes(folder / "odd.weights", tensors);
  CHECK(is_safetensors(folder / "model"));
  CHECK(is_safetensors(folder / "odd.weights"));
  const std::string darknet("\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0{{{{", 24);
  for (const char* name : {"m.conv.15", "m.weights", "m"}) {
    put_bytes(folder / name, darknet);
    CHECK_FALSE(is_safetensors(folder / name));
  }
  put_bytes(folder / "old", std::string("\0\0\0\0\1\0\0\0{\0\0\0\0\0\0\0", 16));
  CHECK_FALSE(is_safetensors(folder / "old"));
  put_bytes(folder / "short", "");
  CHECK_FALSE(is_safetensors(folder / "short"));
  put_bytes(folder / "damaged.safetensors", darknet);
  CHECK(is_safetensors(folder / "damaged.safetensors"));
}

}  // namespace
