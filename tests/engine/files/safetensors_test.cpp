#include "engine/files/safetensors.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ElementType;
using engine::SafetensorsReader;
using engine::SafetensorsWriter;
using engine::StoredTensor;
using tests::bytes_of;
using tests::has;
using tests::put_bytes;
using tests::TemporaryFolder;

std::vector<double> random_values(Index count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    value = normal(generator);
  }
  return values;
}

std::vector<float> as_float(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// A file of a given header and so many bytes of data.
std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(std::uint64_t{header.size()} >> shift);
  }
  return bytes + header + std::string(data_bytes, '\1');
}

// The message with which a file is refused; it must name the file and be one line.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder / "damaged.safetensors";
  put_bytes(path, bytes);
  try {
    const SafetensorsReader reader(path);
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with(path.string() + ": "));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.size() < path.string().size() + 300);
    return message.substr(path.string().size() + 2);
  }
  return "";
}

const std::vector<std::vector<Index>> kShapes = {
    {}, {1}, {7}, {0}, {3, 0, 5}, {2, 3}, {1, 1, 1}, {5, 3, 2, 7}, {20000}, {3, 1, 4, 1, 5}};

TEST_CASE("tensors of every shape come back as they were written") {
  const TemporaryFolder folder;
  const auto path = folder / "shapes.safetensors";
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    tensors.push_back({.name = "float." + std::to_string(i), .shape = kShapes[i]});
    tensors.push_back(
        {.name = "double." + std::to_string(i), .shape = kShapes[i], .type = ElementType::F64});
  }
  SafetensorsWriter writer(path, tensors, {});
  for (const StoredTensor& tensor : tensors) {
    const std::vector<double> values = random_values(element_count(tensor), 1);
    if (tensor.type == ElementType::F32) {
      writer.write<float>(as_float(values));
    } else {
      writer.write<double>(values);
    }
  }
  writer.commit();

  const SafetensorsReader reader(path);
  CHECK(reader.tensors().size() == tensors.size());
  CHECK(reader.metadata().empty());
  for (const StoredTensor& tensor : tensors) {
    CAPTURE(tensor.name);
    CHECK(reader.find(tensor.name) == tensor);
    const std::vector<double> values = random_values(element_count(tensor), 1);
    CHECK(reader.read_all<float>(tensor.name) == as_float(values));
    if (tensor.type == ElementType::F64) {
      CHECK(reader.read_all<double>(tensor.name) == values);
    }
  }
}

TEST_CASE("single and double precision convert into each other, in chunks of any size") {
  const TemporaryFolder folder;
  const auto path = folder / "converted.safetensors";
  const Index count = 20011;  // more than is converted at once
  const std::vector<double> values = random_values(count, 2);
  SafetensorsWriter writer(path,
                           {{.name = "single", .shape = {count}, .type = ElementType::F32},
                            {.name = "double", .shape = {count}, .type = ElementType::F64}},
                           {});
  const std::span<const double> all(values);
  writer.write(all.first(1));
  writer.write(all.subspan(1, 12345));
  writer.write(all.subspan(1, 0));
  writer.write(all.subspan(12346));
  writer.write<float>(as_float(values));
  writer.commit();

  const SafetensorsReader reader(path);
  CHECK(reader.read_all<float>("single") == as_float(values));
  CHECK(reader.read_all<float>("double") == as_float(values));
  const std::vector<double> wide = reader.read_all<double>("single");
  std::vector<double> part(9000);
  reader.read<double>("double", 11011, part);
  for (std::size_t i = 0; i < part.size(); ++i) {
    REQUIRE(part[i] == wide[11011 + i]);
  }
}

TEST_CASE("integers and bytes keep their extremes") {
  const TemporaryFolder folder;
  const auto path = folder / "integers.safetensors";
  const std::vector<std::int64_t> integers = {INT64_MIN, -1, 0, INT64_MAX};
  const std::vector<std::uint8_t> bytes = {0, 127, 128, 255, 1};
  SafetensorsWriter writer(path,
                           {{.name = "bytes", .shape = {5}, .type = ElementType::U8},
                            {.name = "integers", .shape = {2, 2}, .type = ElementType::I64}},
                           {});
  writer.write<std::uint8_t>(bytes);
  writer.write<std::int64_t>(integers);
  writer.commit();
  const SafetensorsReader reader(path);
  CHECK(reader.read_all<std::uint8_t>("bytes") == bytes);
  CHECK(reader.read_all<std::int64_t>("integers") == integers);
  CHECK_THROWS_AS((void)reader.read_all<float>("integers"), InputError);
  CHECK_THROWS_AS((void)reader.read_all<std::int64_t>("bytes"), InputError);
}

TEST_CASE("metadata comes back byte for byte, except what is no UTF-8") {
  const TemporaryFolder folder;
  const auto path = folder / "metadata.safetensors";
  const std::map<std::string, std::string> metadata = {
      {"model", "[net]\r\n# \"caf\xC3\xA9\" \\ \t\n\xF0\x9F\x98\x80\nheight=1\n"},
      {"", ""},
      {"zero", std::string("a\0b", 3)}};
  SafetensorsWriter(path, {}, metadata).commit();
  CHECK(SafetensorsReader(path).metadata() == metadata);
  CHECK(SafetensorsReader(path).tensors().empty());

  SafetensorsWriter(path, {}, {{"model", "caf\xE9 = 1"}}).commit();
  CHECK(SafetensorsReader(path).metadata().at("model") == "caf\xEF\xBF\xBD = 1");
}

TEST_CASE("the data of a written file starts at a multiple of 8 bytes") {
  const TemporaryFolder folder;
  for (const std::string name : {"", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"}) {
    const auto path = folder / "aligned.safetensors";
    SafetensorsWriter(path, {{.name = name, .shape = {0}}}, {}).commit();
    CHECK(std::filesystem::file_size(path) % 8 == 0);
    CHECK(SafetensorsReader(path).has(name));
  }
}

TEST_CASE("a tensor that is not there is answered with the nearest names") {
  const TemporaryFolder folder;
  const auto path = folder / "names.safetensors";
  SafetensorsWriter(path,
                    {{.name = "layers.0.weight", .shape = {0}},
                     {.name = "layers.1.weight", .shape = {0}},
                     {.name = "layers.1.bias", .shape = {0}},
                     {.name = "layers.7.bn.variance", .shape = {0}}},
                    {})
      .commit();
  const SafetensorsReader reader(path);
  CHECK_FALSE(reader.has("layers.1.weights"));
  try {
    (void)reader.find("layers.1.weights");
    FAIL("found what is not there");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(has(message, path.string()));
    CHECK(has(message, "'layers.1.weights'; the nearest names are 'layers.1.weight', "));
    CHECK_FALSE(has(message, "variance"));
  }
}

TEST_CASE("headers that lie are refused with the file's name and the reason") {
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  REQUIRE(refusal(file_bytes("{\"a\":" + good + "}", 8)).empty());
  const auto with = [&](const std::string& entry) { return "{\"a\":" + entry + "}"; };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not JSON"},
      {"{\"a\":", "not JSON"},
      {"[1]", "not an object"},
      {"7", "not an object"},
      {"{\"a\":" + good + "} x", "not JSON"},
      {"{\"\xFF\":1}", "not JSON"},
      {"{\"a\":" + good + ",\"a\":" + good + "}", "twice"},
      {with(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "twice"},
      {with("[[[[[[[["), "nested"},
      {with("1e999"), "out of range"},
      {with("3"), "exactly dtype"},
      {with(R"({"dtype":"F32","shape":[2]})"), "exactly dtype"},
      {with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"), "exactly dtype"},
      {with(R"({"dtype":"BF16","shape":[4],"data_offsets":[0,8]})"), "'BF16'"},
      {with(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"), "of type"},
      {with(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "not a list"},
      {with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "integer"},
      {with(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "integer"},
      {with(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})"), "integer"},
      {with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "need 12"},
      {with(R"({"dtype":"F32","shape":[4294967296,4294967298],"data_offsets":[0,8]})"), "any file"},
      {with(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"), "any file"},
      {with(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "begin <= end"},
      {with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4,8]})"), "begin <= end"},
      {with(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "hole"},
      {with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "follows the last"},
      {with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), "cut short"},
      {R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       "overlap"},
      {R"({"__metadata__":[],"a":)" + good + "}", "__metadata__"},
      {R"({"__metadata__":{"step":3},"a":)" + good + "}", "'step' is not a string"},
      {"{\"" + std::string(5000, 'n') + "\\n\":3}", "nnn...'"},
  };
  for (const std::pair<std::string, std::string>& lie : cases) {
    CAPTURE(lie.first);
    const std::string message = refusal(file_bytes(lie.first, 8));
    CAPTURE(message);
    CHECK(has(message, lie.second));
  }
}

TEST_CASE("a file cut at any byte is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "whole.safetensors";
  SafetensorsWriter writer(path, {{.name = "a", .shape = {3}}}, {{"step", "12"}});
  writer.write<float>(std::vector<float>{-1.F, 2.F, -3.F});
  writer.commit();
  const std::string bytes = bytes_of(path);
  REQUIRE(refusal(bytes).empty());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(refusal(bytes.substr(0, length)).empty());
  }
  CHECK_FALSE(refusal(bytes + "x").empty());
  CHECK_FALSE(refusal(std::string(8, '\xFF') + "{}").empty());
  CHECK_FALSE(refusal(std::string(8, '\x7F') + "{}").empty());
}

TEST_CASE("missing files, folders and devices are refused by name") {
  const TemporaryFolder folder;
  for (const std::filesystem::path& path :
       {folder / "missing", folder.path(), std::filesystem::path("/dev/zero")}) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(SafetensorsReader{path}, doctest::Contains(path.c_str()), InputError);
  }
}

TEST_CASE("a writer that is used wrongly breaks a promise and leaves no file") {
  const TemporaryFolder folder;
  const auto path = folder / "wrong.safetensors";
  const std::vector<float> three(3);
  const auto writer_of = [&](std::vector<StoredTensor> tensors) {
    return SafetensorsWriter(path, std::move(tensors), {});
  };
  CHECK_THROWS_AS(writer_of({{.name = "a"}, {.name = "a"}}), std::logic_error);
  CHECK_THROWS_AS(writer_of({{.name = "__metadata__"}}), std::logic_error);
  CHECK_THROWS_AS(writer_of({{.name = "a", .shape = {-1}}}), std::logic_error);
  CHECK_THROWS_AS(writer_of({{.name = "a"}}).commit(), std::logic_error);
  CHECK_THROWS_AS(writer_of({{.name = "a", .shape = {2}}}).write<float>(three), std::logic_error);
  CHECK_THROWS_AS(writer_of({}).write<float>(three), std::logic_error);
  CHECK_THROWS_AS(
      writer_of({{.name = "a", .shape = {3}, .type = ElementType::I64}}).write<float>(three),
      std::logic_error);
  CHECK(folder.entries() == 0);
}

TEST_CASE("elements beyond 2 GiB are read where they are") {
  const TemporaryFolder folder;
  const auto path = folder / "large.safetensors";
  const Index count = (Index{5} << 28) + 3;  // 5 GiB of floats, nearly all of it a hole on the disk
  const Index bytes = 4 * count;
  std::string header = R"({"a":{"dtype":"F32","shape":[)" + std::to_string(count) +
                       R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  put_bytes(path, file_bytes(header, 0));
  const auto start = static_cast<Index>(std::filesystem::file_size(path));
  try {
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(start + bytes));
  } catch (const std::filesystem::filesystem_error&) {
    MESSAGE("skipped: the file system has no files of 5 GiB");
    return;
  }
  const float last = -0.75F;
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(start + bytes - 4));
    file.write(reinterpret_cast<const char*>(&last), 4);
  }
  std::vector<float> end(2);
  SafetensorsReader(path).read<float>("a", count - 2, end);
  CHECK(end == std::vector<float>{0.F, last});
}

}  // namespace
