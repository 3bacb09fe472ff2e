#include "tests/engine/data/samples.h"
#include "tests/support/open_dataset.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/dataset.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

using engine::Split;
using tests::Bytes;
using tests::has;
using tests::idx_bytes;
using tests::input_error_of;
using tests::open_dataset;
using tests::random_bytes;
using tests::TemporaryFolder;
using tests::write_bytes;
using tests::write_gzip;

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kItems = 5;
constexpr std::uint32_t kRows = 3;
constexpr std::uint32_t kCols = 4;
constexpr std::size_t kVolume = 12;
const Bytes kLabels = {2, 0, 1, 2, 1};

Bytes sample_pixels() {
  return random_bytes(kItems * kVolume, 11);
}

// A whole data set with both halves.
void write_idx_set(const fs::path& folder) {
  write_bytes(folder / "train-images-idx3-ubyte",
              idx_bytes({kItems, kRows, kCols}, sample_pixels()));
  write_bytes(folder / "train-labels-idx1-ubyte", idx_bytes({kItems}, kLabels));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz",
             idx_bytes({2, kRows, kCols}, random_bytes(2 * kVolume, 12)));
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", idx_bytes({2}, {4, 0}));
}

std::string opened_as(const fs::path& path, Split split = Split::Train) {
  return input_error_of([&] { (void)open_dataset(path, split, 1); });
}

// Opening fails with the path of the damaged file and with `reason`.
void check_damage(const fs::path& folder, const fs::path& file, const std::string& reason) {
  const std::string message = opened_as(folder);
  INFO(message);
  CHECK(has(message, file.string() + ":"));
  CHECK(has(message, reason));
}

}  // namespace

TEST_CASE("IDX files give back the bytes and labels that were written, as 0..1") {
  const TemporaryFolder folder;
  write_idx_set(folder.path());
  const engine::Dataset data = open_dataset(folder.path(), Split::Train, 1);
  REQUIRE(data.size() == kItems);
  const Bytes pixels = sample_pixels();
  for (Index item = 0; item < data.size(); ++item) {
    const engine::Picture picture = data.read(item);
    CHECK(data.label(item) == kLabels[static_cast<std::size_t>(item)]);
    REQUIRE(picture.shape == partitioner::MapShape{1, kRows, kCols});
    const std::vector<float> values = tests::values_of(picture);
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(values[i] ==
            static_cast<float>(pixels[static_cast<std::size_t>(item) * kVolume + i]) / 255.0F);
    }
  }
}

TEST_CASE(
    "both halves of an IDX set have the same classes, also where one half does not use them all") {
  const TemporaryFolder folder;
  write_idx_set(folder.path());
  CHECK(open_dataset(folder.path(), Split::Train, 1).classes() == 5);
  const engine::Dataset test = open_dataset(folder.path(), Split::Test, 1);
  CHECK(test.classes() == 5);
  CHECK(test.size() == 2);
  CHECK(test.class_names().back() == "4");
  tests::write_text(folder / "labels.txt", "a\nb\nc d\ne\nf\n\n");
  CHECK(open_dataset(folder.path(), Split::Train, 1).class_names()[2] == "c d");
  tests::write_text(folder / "labels.txt", "a\nb\nc d\n\ne\nf\n");
  CHECK(has(opened_as(folder.path()), "labels.txt:4: this line is blank"));
}

TEST_CASE("IDX files are found under dotted names too, and gzipped ones read the same") {
  const TemporaryFolder folder;
  write_gzip(folder / "train-images.idx3-ubyte.gz",
             idx_bytes({kItems, kRows, kCols}, sample_pixels()));
  write_bytes(folder / "train-labels.idx1-ubyte", idx_bytes({kItems}, kLabels));
  const engine::Dataset data = open_dataset(folder.path(), Split::Train, 3);
  CHECK(data.classes() == 3);
  const engine::Picture picture = data.read(4);
  CHECK(picture.shape == partitioner::MapShape{3, kRows, kCols});
  CHECK(picture.value(0, 0, 0) == static_cast<float>(sample_pixels()[4 * kVolume]) / 255.0F);
  CHECK(picture.value(2, 0, 0) == picture.value(0, 0, 0));
}

TEST_CASE("a missing or damaged IDX file is named together with what is wrong") {
  const TemporaryFolder folder;
  write_idx_set(folder.path());
  const fs::path images = folder / "train-images-idx3-ubyte";
  const fs::path labels = folder / "train-labels-idx1-ubyte";
  const Bytes good = idx_bytes({kItems, kRows, kCols}, sample_pixels());

  SUBCASE("cut off") {
    write_bytes(images, Bytes(good.begin(), good.end() - 1));
    check_damage(folder.path(), images, "cut off");
  }
  SUBCASE("cut off in the header") {
    write_bytes(images, Bytes(good.begin(), good.begin() + 9));
    check_damage(folder.path(), images, "cut off");
  }
  SUBCASE("empty") {
    write_bytes(images, {});
    check_damage(folder.path(), images, "cut off");
  }
  SUBCASE("longer than it says") {
    Bytes longer = good;
    longer.push_back(1);
    write_bytes(images, longer);
    check_damage(folder.path(), images, "continues after");
  }
  SUBCASE("another magic number") {
    write_bytes(images, idx_bytes({kItems}, kLabels));
    check_damage(folder.path(), images, "00 00 08 03");
  }
  SUBCASE("sizes whose product is beyond 64 bits") {
    write_bytes(images, idx_bytes({0xffffffffU, 0x4000U, 0x4000U}, sample_pixels()));
    check_damage(folder.path(), images, "too short");
  }
  SUBCASE("a side beyond any picture") {
    write_bytes(images, idx_bytes({1, 0xffffffffU, 0xffffffffU}, sample_pixels()));
    check_damage(folder.path(), images, "size 2 is 4294967295");
  }
  SUBCASE("a size of zero") {
    write_bytes(images, idx_bytes({kItems, 0, kCols}, {}));
    check_damage(folder.path(), images, "size 2 is 0");
  }
  SUBCASE("fewer labels than pictures") {
    write_bytes(labels, idx_bytes({kItems - 1}, Bytes(kLabels.begin(), kLabels.end() - 1)));
    check_damage(folder.path(), labels, "4 labels for the 5 pictures");
  }
  SUBCASE("no labels") {
    fs::remove(labels);
    check_damage(folder.path(), folder.path(), "train-labels-idx1-ubyte");
  }
  SUBCASE("a label that no name is left for") {
    tests::write_text(folder / "labels.txt", "one\ntwo\n");
    check_damage(folder.path(), labels, "label 2");
  }
}

TEST_CASE("a damaged gzip file is named together with what is wrong") {
  const TemporaryFolder folder;
  write_bytes(folder / "train-labels-idx1-ubyte", idx_bytes({kItems}, kLabels));
  const fs::path images = folder / "train-images-idx3-ubyte.gz";
  write_gzip(images, idx_bytes({kItems, kRows, kCols}, sample_pixels()));
  Bytes packed = tests::read_back(images);

  SUBCASE("cut off in the middle") {
    write_bytes(
        images,
        Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(packed.size() / 2)));
    check_damage(folder.path(), images, "cut off");
  }
  SUBCASE("cut off in the checksum") {
    write_bytes(images, Bytes(packed.begin(), packed.end() - 6));
    check_damage(folder.path(), images, "cut off");
  }
  SUBCASE("a changed value") {
    packed[packed.size() / 2] = static_cast<std::uint8_t>(packed[packed.size() / 2] ^ 0x55U);
    write_bytes(images, packed);
    check_damage(folder.path(), images, "download it again");
  }
  SUBCASE("a header that counts more than deflate could have packed") {
    write_gzip(images, idx_bytes({0xffffffffU, 28, 28}, sample_pixels()));
    check_damage(folder.path(), images, "too short");
  }
  SUBCASE("a header that counts a little more than there is") {
    write_gzip(images, idx_bytes({kItems + 1, kRows, kCols}, sample_pixels()));
    check_damage(folder.path(), images, "cut off");
  }
}

namespace {

// One record per label; pixels follow from the label's place and `seed`.
Bytes cifar_records(const std::vector<Bytes>& labels, std::uint64_t seed) {
  Bytes records;
  for (const Bytes& label : labels) {
    records.insert(records.end(), label.begin(), label.end());
    const Bytes pixels = random_bytes(3072, seed++);
    records.insert(records.end(), pixels.begin(), pixels.end());
  }
  return records;
}

void write_cifar10(const fs::path& folder) {
  for (std::uint8_t i = 1; i <= 5; ++i) {
    write_bytes(folder / ("data_batch_" + std::to_string(i) + ".bin"),
                cifar_records({{i}, {0}}, std::uint64_t{10} * i));
  }
  write_bytes(folder / "test_batch.bin", cifar_records({{9}}, 99));
  tests::write_text(folder / "batches.meta.txt",
                    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
}

}  // namespace

TEST_CASE("CIFAR-10 files give the records of all five batches in order, in colour and in grey") {
  const TemporaryFolder folder;
  write_cifar10(folder / "cifar-10-batches-bin");
  const engine::Dataset data = open_dataset(folder.path(), Split::Train, 3);
  REQUIRE(data.size() == 10);
  CHECK(data.class_names()[6] == "frog");
  CHECK(data.label(4) == 3);
  const Bytes pixels = random_bytes(3072, 30);
  const engine::Picture picture = data.read(4);
  CHECK(picture.shape == partitioner::MapShape{3, 32, 32});
  const std::vector<float> values = tests::values_of(picture);
  for (std::size_t i = 0; i < pixels.size(); i += 37) {
    CHECK(values[i] == static_cast<float>(pixels[i]) / 255.0F);
  }
  const engine::Picture grey = open_dataset(folder.path(), Split::Train, 1).read(4);
  CHECK(grey.value(0, 0, 7) ==
        doctest::Approx((0.299 * pixels[7] + 0.587 * pixels[1024 + 7] + 0.114 * pixels[2048 + 7]) /
                        255));
  CHECK(open_dataset(folder.path(), Split::Test, 3).label(0) == 9);
}

TEST_CASE("CIFAR-100 files give the fine label") {
  const TemporaryFolder folder;
  write_bytes(folder / "train.bin", cifar_records({{3, 99}, {4, 17}}, 5));
  const engine::Dataset data = open_dataset(folder.path(), Split::Train, 3);
  CHECK(data.classes() == 100);
  CHECK(data.label(0) == 99);
  CHECK(data.read(1).value(0, 0, 0) == static_cast<float>(random_bytes(1, 6).front()) / 255.0F);
}

TEST_CASE("a missing or damaged CIFAR file is named together with what is wrong") {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  const fs::path third = folder / "data_batch_3.bin";
  SUBCASE("missing") {
    fs::remove(third);
    check_damage(folder.path(), third, "missing");
  }
  SUBCASE("cut off") {
    Bytes bytes = tests::read_back(third);
    bytes.pop_back();
    write_bytes(third, bytes);
    check_damage(folder.path(), third, "3073");
  }
  SUBCASE("empty") {
    write_bytes(third, {});
    check_damage(folder.path(), third, "0 bytes");
  }
  SUBCASE("a label without a class") {
    write_bytes(third, cifar_records({{0}, {10}}, 1));
    check_damage(folder.path(), third, "picture 1 has label 10");
  }
  SUBCASE("a name short") {
    tests::write_text(folder / "batches.meta.txt", "airplane\n");
    check_damage(folder.path(), folder / "batches.meta.txt", "1 names");
  }
}

TEST_CASE("what is no data set is refused with what was looked for") {
  const TemporaryFolder folder;
  CHECK(has(opened_as(folder.path()), "data_batch_1.bin"));
  CHECK(has(opened_as(folder / "nowhere"), (folder / "nowhere").string() + ": no such file"));
  tests::write_text(folder / "list.txt", "a.png\n");
  CHECK(has(opened_as(folder / "list.txt"), ".data"));
  write_idx_set(folder.path());
  CHECK(has(input_error_of([&] { (void)open_dataset(folder.path(), Split::Train, 4); }),
            "4 channels"));
}

TEST_CASE("the first picture of an IDX file is read alone, and a whole file without labels") {
  const TemporaryFolder folder;
  write_gzip(folder / "some.gz", idx_bytes({kItems, kRows, kCols}, sample_pixels()));
  CHECK(tests::values_of(engine::open_pictures(folder / "some.gz", 1).read(0))[3] ==
        static_cast<float>(sample_pixels()[3]) / 255.0F);
  const engine::Dataset data = engine::open_pictures(folder / "some.gz", 1);
  CHECK(data.size() == kItems);
  CHECK(data.label(2) == -1);
  CHECK(data.name(2) == (folder / "some.gz").string() + "[2]");
}

TEST_CASE("Debian's Fashion-MNIST has 60000 and 10000 pictures of ten classes") {
  const fs::path path = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(path)) {
    return;
  }
  const engine::Dataset train = open_dataset(path, Split::Train, 1);
  CHECK(train.size() == 60000);
  CHECK(train.classes() == 10);
  CHECK(train.label(0) == 9);
  CHECK(train.read(59999).shape == partitioner::MapShape{1, 28, 28});
  CHECK(open_dataset(path, Split::Test, 1).size() == 10000);
}
