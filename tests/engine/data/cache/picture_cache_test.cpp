#include "engine/data/cache/picture_cache.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/engine/data/samples.h"
#include "tests/support/open_dataset.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/data/batch/batch.h"
#include "engine/data/inspection/inspection.h"
#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

namespace fs = std::filesystem;

using engine::Detail;
using engine::Picture;
using engine::PictureCache;
using engine::PictureCacheOptions;
using engine::PictureTable;
using engine::SharedMemory;

constexpr Detail kCachedDetail{8, 8};
constexpr Index kRoom = Index{1} << 20U;

// Pictures of several formats, sizes and colours; their keys are their places.
class CachedPictures {
 public:
  explicit CachedPictures(const tests::TemporaryFolder& folder, int count = 4) {
    for (int i = 0; i < count; ++i) {
      const int rows = 20 + 7 * i;
      const int cols = 45 - i;
      const int channels = i % 3 == 2 ? 1 : 3;
      const tests::Bytes pixels =
          tests::random_bytes(Index{rows} * cols * channels, static_cast<std::uint64_t>(i));
      paths_.push_back(folder / (std::to_string(i) + (i % 2 == 0 ? ".jpg" : ".png")));
      i % 2 == 0 ? tests::write_jpeg(paths_.back(), rows, cols, channels, pixels)
                 : tests::write_png(paths_.back(), rows, cols, channels, pixels);
    }
  }
  [[nodiscard]] Index size() const { return std::ssize(paths_); }
  [[nodiscard]] const fs::path& path(Index item) const {
    return paths_[static_cast<std::size_t>(item)];
  }
  [[nodiscard]] Picture decoded(Index item, Index channels = 3) const {
    return engine::read_picture_file(path(item), channels, kCachedDetail);
  }
  // Waits for others.
  [[nodiscard]] Picture read(PictureCache& cache, Index item, Index channels = 3) const {
    auto picture =
        cache.read(path(item), static_cast<std::uint64_t>(item) + 1, channels, kCachedDetail, true);
    REQUIRE(picture);
    return std::move(*picture);
  }

 private:
  std::vector<fs::path> paths_;
};

bool same_pictures(const Picture& a, const Picture& b) {
  const auto pixels = [](const Picture& picture) {
    return std::vector(picture.pixels().begin(), picture.pixels().end());
  };
  return a.shape == b.shape && a.reduction == b.reduction && a.held_rows == b.held_rows &&
         a.held_cols == b.held_cols && a.held_channels == b.held_channels &&
         a.lead_rows == b.lead_rows && a.lead_cols == b.lead_cols && pixels(a) == pixels(b);
}

std::unique_ptr<PictureCache> cache_in(const fs::path& folder, Index room = kRoom) {
  return std::make_unique<PictureCache>(
      SharedMemory(),
      PictureCacheOptions{.pictures = 64, .bytes = folder.empty() ? room : 0, .folder = folder});
}

// The files of pictures in a cache's folder.
std::set<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.insert(entry.path());
    }
  }
  return files;
}

// Work in a process of its own, which begins while this one has no other thread: of these a copy
// would have nothing but the locks that they hold.
class AnotherProcess {
 public:
  explicit AnotherProcess(const std::function<int()>& work) : child_(::fork()) {
    if (child_ == 0) {
      int found = 255;
      try {
        found = work();
      } catch (...) {
      }
      ::_exit(found);
    }
  }

  // What it has found, from 0 to 255.
  [[nodiscard]] int wait() const {
    int status = 0;
    REQUIRE(::waitpid(child_, &status, 0) == child_);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

 private:
  pid_t child_;
};

}  // namespace

TEST_CASE("a picture from a cache is what decoding gives, in grey and in colour") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder);
  for (const fs::path& place : {fs::path(), folder / "kept"}) {
    const auto cache = cache_in(place);
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (Index item = 0; item < pictures.size(); ++item) {
        const Index channels = epoch == 2 ? 1 : 3;
        CHECK(
            same_pictures(pictures.read(*cache, item, channels), pictures.decoded(item, channels)));
      }
    }
    CHECK(cache->counts().decoded == pictures.size());
    CHECK(cache->counts().kept == 2 * pictures.size());
    CHECK(cache->bytes() > 0);
    CHECK((cache->memory_bytes() == 0) == !place.empty());
  }
}

TEST_CASE("a cache without room for all pictures decodes those it has no room for") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder);
  Index room = 0;
  for (Index item = 0; item < 2; ++item) {
    room += PictureTable::entry_bytes(std::ssize(pictures.decoded(item).bytes));
  }
  const auto cache = cache_in({}, room);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (Index item = 0; item < pictures.size(); ++item) {
      CHECK(same_pictures(pictures.read(*cache, item), pictures.decoded(item)));
    }
  }
  CHECK(cache->counts().kept == 2);
  CHECK(cache->bytes() == room);
}

TEST_CASE("a later run finds in a folder what an earlier one has decoded, by its content alone") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder);
  const fs::path kept = folder / "kept";
  for (Index item = 0; item < pictures.size(); ++item) {
    (void)pictures.read(*cache_in(kept), item);
  }
  CHECK(std::ssize(files_in(kept)) == pictures.size());
  const auto later = cache_in(kept);
  fs::copy_file(pictures.path(0), folder / "copy.jpg");
  CHECK(same_pictures(*later->read(folder / "copy.jpg", 77, 3, kCachedDetail, true),
                      pictures.decoded(0)));
  CHECK(later->counts().decoded == 0);
  fs::copy_file(pictures.path(2), folder / "copy.jpg", fs::copy_options::overwrite_existing);
  CHECK(same_pictures(*later->read(folder / "copy.jpg", 78, 3, kCachedDetail, true),
                      pictures.decoded(2)));
  CHECK(later->counts().decoded == 0);
  // Another reduction is another picture.
  CHECK(later->read(pictures.path(0), 79, 3, Detail{1, 1}, true)->reduction >
        pictures.decoded(0).reduction);
  CHECK(later->counts().decoded == 1);
}

TEST_CASE("a damaged file of a cache is decoded anew and replaced") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 1);
  const fs::path kept = folder / "kept";
  (void)pictures.read(*cache_in(kept), 0);
  REQUIRE(files_in(kept).size() == 1);
  const fs::path file = *files_in(kept).begin();
  const tests::Bytes whole = tests::read_back(file);
  std::vector<tests::Bytes> damaged;
  for (std::size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 101) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 0x10;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{47}, whole.size() - 1}) {
    damaged.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
  }
  damaged.push_back(whole);
  damaged.back().push_back(0);
  const auto during = cache_in(kept);  // that has found it whole
  (void)pictures.read(*during, 0);
  Index decoded = 0;
  for (const tests::Bytes& bytes : damaged) {
    tests::write_bytes(file, bytes);
    CHECK(same_pictures(pictures.read(*during, 0), pictures.decoded(0)));
    CHECK(during->counts().decoded == ++decoded);
    CHECK(tests::read_back(file) == whole);
    tests::write_bytes(file, bytes);
    const auto after = cache_in(kept);
    CHECK(same_pictures(pictures.read(*after, 0), pictures.decoded(0)));
    CHECK(after->counts().decoded == 1);
    CHECK(tests::read_back(file) == whole);
    (void)pictures.read(*during, 0);  // finds it whole again, in another file
  }
  fs::remove(file);
  CHECK(same_pictures(pictures.read(*during, 0), pictures.decoded(0)));
  CHECK(tests::read_back(file) == whole);
}

TEST_CASE("files of a cache under each other's names are decoded anew and replaced") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 2);
  const fs::path kept = folder / "kept";
  (void)pictures.read(*cache_in(kept), 0);
  const fs::path first = *files_in(kept).begin();
  (void)pictures.read(*cache_in(kept), 1);
  for (const fs::path& file : files_in(kept)) {
    if (file != first) {
      fs::copy_file(file, first, fs::copy_options::overwrite_existing);
    }
  }
  const auto later = cache_in(kept);
  CHECK(same_pictures(pictures.read(*later, 0), pictures.decoded(0)));
  CHECK(later->counts().decoded == 1);
  CHECK(same_pictures(pictures.read(*cache_in(kept), 0), pictures.decoded(0)));
}

TEST_CASE("a link in a cache's folder is not written through, nor are files behind it removed") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 1);
  const fs::path kept = folder / "kept";
  (void)pictures.read(*cache_in(kept), 0);
  const fs::path subfolder = files_in(kept).begin()->parent_path();
  const fs::path elsewhere = folder / "elsewhere";
  fs::remove_all(subfolder);
  fs::create_directory(elsewhere);
  fs::create_directory_symlink(elsewhere, subfolder);
  std::string warned;
  PictureCache cache(
      SharedMemory(),
      {.pictures = 4, .folder = kept, .warn = [&](const std::string& text) { warned = text; }});
  CHECK(same_pictures(pictures.read(cache, 0), pictures.decoded(0)));
  CHECK(tests::has(warned, subfolder.string() + ": this is a link"));
  CHECK(fs::is_empty(elsewhere));
  tests::write_text(elsewhere / "mine.picture", "");
  fs::remove_all(kept / "partial");
  fs::create_directory_symlink(elsewhere, kept / "partial");
  CHECK(tests::has(tests::input_error_of([&] { engine::CacheFolder(kept).prepare(); }),
                   "partial: this is a link"));
  engine::CacheFolder(kept).remove();
  CHECK(fs::exists(elsewhere / "mine.picture"));
}

TEST_CASE("threads and processes that share a cache decode each picture once between them") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 24);
  for (const fs::path& place : {fs::path(), folder / "kept"}) {
    const PictureCacheOptions options{
        .pictures = 64, .bytes = place.empty() ? kRoom : 0, .folder = place};
    SharedMemory memory;
    const SharedMemory::Address address = memory.address();
    REQUIRE(address.descriptor >= 0);
    PictureCache mine(std::move(memory), options);
    const AnotherProcess other([&] {
      auto shared = SharedMemory::open(address);
      PictureCache cache(std::move(shared.value()), options);
      for (Index item = 0; item < pictures.size(); ++item) {
        const auto picture = cache.read(
            pictures.path(item), static_cast<std::uint64_t>(item) + 1, 3, kCachedDetail, true);
        if (!same_pictures(picture.value(), pictures.decoded(item))) {
          return 254;
        }
      }
      return static_cast<int>(cache.counts().decoded);
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (Index item = pictures.size() - 1; item >= 0; --item) {
          (void)mine.read(
              pictures.path(item), static_cast<std::uint64_t>(item) + 1, 3, kCachedDetail, true);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    CHECK(mine.counts().decoded + other.wait() == pictures.size());
    CHECK(mine.counts().kept + mine.counts().decoded == 3 * pictures.size());
  }
}

TEST_CASE("shared memory of another process is told from what else has its numbers") {
  SharedMemory memory;
  SharedMemory::Address address = memory.address();
  CHECK(SharedMemory::open(address));
  address.token += 1;
  CHECK(!SharedMemory::open(address));
  address.descriptor = -1;
  CHECK(!SharedMemory::open(address));
}

TEST_CASE("a slot belongs to one at a time, and is found by its key as long as there are slots") {
  constexpr Index kPictures = 100;
  std::vector<std::uint64_t> memory(
      static_cast<std::size_t>(PictureTable::memory_bytes(kPictures, 640)) / 8);
  const PictureTable table(std::as_writable_bytes(std::span(memory)), kPictures);
  std::map<std::uint64_t, PictureTable::Slot*> slots;
  for (std::uint64_t key = 0; key < kPictures; ++key) {
    slots[key * key] = table.find(key * key);
    REQUIRE(slots[key * key] != nullptr);
  }
  for (const auto& [key, slot] : slots) {
    CHECK(table.find(key) == slot);
  }
  PictureTable::Slot& slot = *slots[4];
  CHECK(slot.state() == PictureTable::State::Empty);
  CHECK(PictureTable::claim(slot, PictureTable::State::Empty));
  CHECK(!PictureTable::claim(slot, PictureTable::State::Empty));
  CHECK(!PictureTable::claim(slot, PictureTable::State::Claimed));
  PictureTable::fill(slot, {.first = 7});
  CHECK(slot.state() == PictureTable::State::Filled);
  CHECK(slot.content().first == 7);
  CHECK(table.allocate(600) == PictureTable::memory_bytes(kPictures, 0));
  CHECK(!table.allocate(1));
  CHECK(table.used_bytes() == 640);
  std::uint64_t key = kPictures * kPictures;
  while (table.find(key) != nullptr) {
    ++key;
  }
  CHECK(table.find(4) == &slot);
}

TEST_CASE("a picture that another is decoding is left for later where one does not wait") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 1);
  SharedMemory memory;
  auto shared = SharedMemory::open(memory.address());
  const PictureCacheOptions options{.pictures = 4, .bytes = kRoom};
  PictureCache cache(std::move(memory), options);
  shared.value().map(PictureTable::memory_bytes(options.pictures, options.bytes));
  const PictureTable table(shared->bytes(), options.pictures);
  PictureTable::Slot& slot = *table.find(1);
  REQUIRE(PictureTable::claim(slot, PictureTable::State::Empty));
  CHECK(!cache.read(pictures.path(0), 1, 3, kCachedDetail, false));
  PictureTable::leave(slot, PictureTable::State::Empty);
  CHECK(cache.read(pictures.path(0), 1, 3, kCachedDetail, false));
}

TEST_CASE("a picture that cannot be decoded is an error each time, until it is mended") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder, 1);
  const tests::Bytes whole = tests::read_back(pictures.path(0));
  for (const fs::path& place : {fs::path(), folder / "kept"}) {
    tests::write_bytes(pictures.path(0), tests::Bytes(whole.begin(), whole.end() - 40));
    const auto cache = cache_in(place);
    CHECK_THROWS_AS((void)pictures.read(*cache, 0), InputError);
    CHECK_THROWS_AS((void)pictures.read(*cache, 0), InputError);
    tests::write_bytes(pictures.path(0), whole);
    CHECK(same_pictures(pictures.read(*cache, 0), pictures.decoded(0)));
  }
}

TEST_CASE("where a folder cannot be written a run goes on without, and says so once") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder);
  const fs::path kept = folder / "kept";
  const AnotherProcess other([&] {
    int warnings = 0;
    PictureCache cache(SharedMemory(),
                       {.pictures = 64, .folder = kept, .warn = [&](const std::string& text) {
                          warnings += text.find(kept.string()) != std::string::npos ? 1 : 100;
                        }});
    // As on a full disk: no file may be longer than that.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64, 64};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (Index item = 0; item < 2 * pictures.size(); ++item) {
      const Index at = item % pictures.size();
      if (!same_pictures(pictures.read(cache, at), pictures.decoded(at))) {
        return 254;
      }
    }
    return warnings == 1 ? static_cast<int>(cache.counts().decoded) : 253;
  });
  CHECK(other.wait() == 2 * pictures.size());
  CHECK(files_in(kept).empty());
}

TEST_CASE("what a killed run was writing is removed, and what another is writing is not") {
  const tests::TemporaryFolder folder;
  const fs::path partial = folder / "partial";
  const engine::CacheFolder cache(folder.path());
  cache.prepare();
  tests::write_text(partial / "old", "half a picture");
  tests::write_text(partial / "new", "half a picture");
  fs::last_write_time(partial / "old", fs::file_time_type::clock::now() - std::chrono::hours(1));
  cache.prepare();
  CHECK(!fs::exists(partial / "old"));
  CHECK(fs::exists(partial / "new"));
}

TEST_CASE("removing a cache's folder leaves what is not of it") {
  const tests::TemporaryFolder folder;
  const CachedPictures pictures(folder);
  const fs::path kept = folder / "kept";
  (void)pictures.read(*cache_in(kept), 0);
  tests::write_text(kept / "notes.txt", "mine");
  engine::CacheFolder(kept).remove();
  CHECK(files_in(kept) == std::set<fs::path>{kept / "notes.txt"});
  fs::remove(kept / "notes.txt");
  (void)pictures.read(*cache_in(kept), 0);
  engine::CacheFolder(kept).remove();
  CHECK(!fs::exists(kept));
}

TEST_CASE("batches have the same bits with and without a cache, however pictures are augmented") {
  const tests::TemporaryFolder folder;
  for (int i = 0; i < 6; ++i) {
    const int rows = 40 + 9 * i;
    tests::write_jpeg(
        folder / ("train/" + std::string(i % 2 == 0 ? "a" : "b")) / (std::to_string(i) + ".jpg"),
        rows,
        60,
        3,
        tests::random_bytes(Index{rows} * 60 * 3, static_cast<std::uint64_t>(i)));
  }
  const auto source = [&](std::shared_ptr<PictureCache> cache) {
    engine::Dataset dataset = tests::open_dataset(folder.path(), engine::Split::Train, 3);
    dataset.expect_files(engine::record_sizes(*dataset.files()));
    engine::BatchOptions options;
    options.rules.input = {3, 8, 8};
    options.rules.picture = {3, 8, 8};
    options.rules.augmentation.angle = 20;
    options.rules.augmentation.hue = 0.1;
    options.rules.augmentation.max_crop = 12;
    options.batch = 4;
    options.cache = std::move(cache);
    return engine::BatchSource(std::move(dataset), options, "net.cfg");
  };
  const Region region{{0, 4}, {0, 3}, {2, 8}, {0, 5}};
  const auto cells = [&](const engine::BatchSource& batches) {
    std::vector<float> all;
    for (Index step = 0; step < 9; ++step) {
      std::vector<float> some(static_cast<std::size_t>(region.volume()));
      (void)batches.read_region(step, region, some);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  };
  const std::vector<float> without = cells(source(nullptr));
  const Index pictures = source(nullptr).dataset().size();
  REQUIRE(pictures > 3);
  for (const fs::path& place : {fs::path(), folder / "kept"}) {
    const std::shared_ptr<PictureCache> cache = cache_in(place);
    CHECK(cells(source(cache)) == without);
    CHECK(cells(source(cache)) == without);
    CHECK(cache->counts().decoded == pictures);
  }
}
