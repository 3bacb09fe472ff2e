#include "engine/data/sets/idx.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <system_error>
#include <unistd.h>
#include <zlib.h>

#include "engine/data/text/class_names.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kPictureSizes = 3;  // pictures, rows, columns
constexpr unsigned kLabelSizes = 1;
constexpr Index kMaxSide = 1 << 14;

// A file that zlib reads, as it is or unpacking it.
class GzipFile {
 public:
  explicit GzipFile(const fs::path& path) : path_(path) {
    const RegularFile file(path, "an IDX file");
    stored_ = file.bytes();
    const int descriptor = ::dup(file.descriptor());
    file_.reset(descriptor < 0 ? nullptr : gzdopen(descriptor, "rb"));
    if (file_ == nullptr) {
      if (descriptor >= 0) {
        ::close(descriptor);
      }
      throw InputError(path.string(), 0, "cannot open this file: expected a readable IDX file");
    }
  }

  // Fills `bytes`; fails where the file ends before.
  void read(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const std::size_t most = std::min(bytes.size(), kAtOnce);
      const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(most));
      if (got <= 0) {
        fail_reading(got);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

  // Fails where what follows is not `size` bytes and then the end; keeps none of them.
  void expect_bytes(Index size) {
    std::vector<std::uint8_t> some(kAtOnce);
    for (Index left = size; left > 0; left -= std::ssize(some)) {
      some.resize(static_cast<std::size_t>(std::min<Index>(left, std::ssize(some))));
      read(some);
    }
    expect_end();
  }

  // What no honest file of this length exceeds: deflate packs at most 1032 to 1.
  [[nodiscard]] Index most_bytes() const {
    return gzdirect(file_.get()) != 0 ? stored_ : stored_ * 1032;
  }

  // The end must be here; reading it also checks gzip's own checksum.
  void expect_end() {
    std::uint8_t more = 0;
    const int got = gzread(file_.get(), &more, 1);
    int code = Z_OK;  // a checksum that is cut off is an error, but reads as the end
    (void)gzerror(file_.get(), &code);
    if (got < 0 || (got == 0 && code != Z_OK)) {
      fail_reading(got);
    }
    if (got > 0) {
      throw InputError(
          path_.string(),
          0,
          "this file continues after the values that its header counts: download it again");
    }
  }

 private:
  [[noreturn]] void fail_reading(int got) const {
    int code = Z_OK;
    const char* reason = gzerror(file_.get(), &code);
    if (got == 0 || code == Z_BUF_ERROR) {
      throw InputError(path_.string(),
                       0,
                       "this file is cut off: it ends before the values that its header counts; "
                       "download it again");
    }
    throw InputError(
        path_.string(), 0, fmt::format("cannot read this file ({}): download it again", reason));
  }

  static constexpr std::size_t kAtOnce = std::size_t{1} << 20;

  struct Closer {
    void operator()(gzFile file) const { gzclose_r(file); }
  };
  fs::path path_;
  Index stored_ = 0;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Closer> file_;
};

// The header's sizes, none of them zero and their product one that the file can hold.
std::vector<Index> read_header(GzipFile& file, const fs::path& path, unsigned dimensions) {
  std::array<std::uint8_t, 4> word{};
  file.read(word);
  if (word[0] != 0 || word[1] != 0 || word[2] != 8 || word[3] != dimensions) {
    throw InputError(path.string(),
                     0,
                     fmt::format("this file starts with {:02x} {:02x} {:02x} {:02x}; an IDX file "
                                 "of {} starts with 00 00 08 {:02x}",
                                 word[0],
                                 word[1],
                                 word[2],
                                 word[3],
                                 dimensions == kLabelSizes ? "labels" : "pictures",
                                 dimensions));
  }
  std::vector<Index> sizes;
  Index volume = 1;
  const Index most = file.most_bytes();
  for (unsigned i = 0; i < dimensions; ++i) {
    file.read(word);
    const Index size =
        (Index{word[0]} << 24) | (Index{word[1]} << 16) | (Index{word[2]} << 8) | Index{word[3]};
    if (size == 0 || (i > 0 && size > kMaxSide)) {
      throw InputError(
          path.string(),
          0,
          fmt::format(
              "its header says size {} is {}, expected at least 1{}; download the file again",
              i + 1,
              size,
              i > 0 ? " and at most 16384" : ""));
    }
    volume = size > most / volume ? most + 1 : volume * size;
    sizes.push_back(size);
  }
  if (volume > most || volume > std::numeric_limits<std::ptrdiff_t>::max()) {
    throw InputError(path.string(),
                     0,
                     fmt::format("its header counts {} values or more, which the file is too short "
                                 "to hold: download it again",
                                 std::min(volume, most)));
  }
  return sizes;
}

// An IDX file whose header has been read.
class IdxFile {
 public:
  IdxFile(const fs::path& path, unsigned dimensions)
      : path_(path), file_(path), sizes_(read_header(file_, path, dimensions)) {}

  [[nodiscard]] const std::vector<Index>& sizes() const { return sizes_; }

  // All values. A file of some kilobytes may unpack to gigabytes, and be found wanting at its end:
  // so one that says it is large is unpacked once before any memory is taken for it.
  [[nodiscard]] std::vector<std::uint8_t> read() {
    constexpr Index kTakenAtOnce = Index{1} << 26;
    const Index volume = count();
    if (volume > kTakenAtOnce) {
      expect_memory(volume);
      expect_whole();
    }
    std::vector<std::uint8_t> values(static_cast<std::size_t>(volume));
    file_.read(values);
    file_.expect_end();
    return values;
  }

  // Throws InputError where the file does not hold what its header counts, no less and no more.
  void expect_whole() const {
    IdxFile again(path_, static_cast<unsigned>(sizes_.size()));
    again.file_.expect_bytes(count());
  }

 private:
  [[nodiscard]] Index count() const {
    Index volume = 1;
    for (const Index size : sizes_) {
      volume *= size;
    }
    return volume;
  }

  void expect_memory(Index volume) const {
    const Index there = static_cast<Index>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
    if (there > 0 && volume > there) {
      throw InputError(
          path_.string(),
          0,
          fmt::format(
              "this file unpacks to {}, and this machine has {} of memory: use a smaller data set",
              readable_bytes(volume),
              readable_bytes(there)));
    }
  }

  fs::path path_;
  GzipFile file_;
  std::vector<Index> sizes_;
};

std::vector<std::uint8_t> read_labels(const fs::path& path) {
  return IdxFile(path, kLabelSizes).read();
}

// "train-images-idx3-ubyte" and its variants in `folder`; empty if there is none.
fs::path find_idx(const fs::path& folder, const std::string& half, const std::string& content) {
  const std::string dimensions = content == "images" ? "idx3" : "idx1";
  for (const char* separator : {"-", "."}) {
    for (const char* packed : {"", ".gz"}) {
      fs::path path =
          folder / fmt::format("{}-{}{}{}-ubyte{}", half, content, separator, dimensions, packed);
      if (is_there(path)) {
        return path;
      }
    }
  }
  return {};
}

fs::path require_idx(const fs::path& folder, const std::string& half, const std::string& content) {
  fs::path path = find_idx(folder, half, content);
  if (path.empty()) {
    throw InputError(folder.string(),
                     0,
                     fmt::format("this folder of IDX files has no {0}-{1}-idx{2}-ubyte or "
                                 "{0}-{1}-idx{2}-ubyte.gz: add it",
                                 half,
                                 content,
                                 content == "images" ? 3 : 1));
  }
  return path;
}

int classes_used(const std::vector<std::uint8_t>& labels) {
  return 1 + *std::max_element(labels.begin(), labels.end());
}

// The names in labels.txt or classes.txt; empty where there is neither.
std::vector<std::string> read_idx_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const char* name : {"labels.txt", "classes.txt"}) {
    if (names.empty() && is_there(folder / name)) {
      names = read_class_names(folder / name);
    }
  }
  return names;
}

// Those that the folder names or, without names, as many as the labels of both halves use.
std::vector<std::string> class_names(const fs::path& folder,
                                     bool training,
                                     const std::vector<std::uint8_t>& labels) {
  std::vector<std::string> names = read_idx_names(folder);
  if (!names.empty()) {
    return names;
  }
  const fs::path others = find_idx(folder, training ? "t10k" : "train", "labels");
  const int used_there = others.empty() ? 0 : classes_used(read_labels(others));
  return numbered_names(std::max(classes_used(labels), used_there));
}

}  // namespace

bool has_idx_files(const fs::path& folder) {
  return !find_idx(folder, "train", "images").empty() ||
         !find_idx(folder, "t10k", "images").empty();
}

BytePictures read_idx_pictures(const fs::path& file) {
  IdxFile idx(file, kPictureSizes);
  return {{1, idx.sizes()[1], idx.sizes()[2]}, idx.read(), {}, {}};
}

bool is_idx_pictures(const fs::path& file) {
  GzipFile bytes(file);
  std::array<std::uint8_t, 4> word{};
  try {
    bytes.read(word);
  } catch (const InputError&) {
    return false;
  }
  return word == std::array<std::uint8_t, 4>{0, 0, 8, kPictureSizes};
}

BytePictures open_idx(const fs::path& folder, bool training) {
  const std::string half = training ? "train" : "t10k";
  const fs::path picture_path = require_idx(folder, half, "images");
  const fs::path label_path = require_idx(folder, half, "labels");
  // The large file comes last, when all that can be said without it is known.
  IdxFile images(picture_path, kPictureSizes);
  IdxFile labels(label_path, kLabelSizes);
  if (labels.sizes()[0] != images.sizes()[0]) {
    images.expect_whole();
    labels.expect_whole();
    throw InputError(
        label_path.string(),
        0,
        fmt::format("{} labels for the {} pictures of {}: the two files do not belong together",
                    labels.sizes()[0],
                    images.sizes()[0],
                    picture_path.string()));
  }
  BytePictures pictures;
  pictures.shape = {1, images.sizes()[1], images.sizes()[2]};
  pictures.labels = labels.read();
  pictures.class_names = class_names(folder, training, pictures.labels);
  const int used = classes_used(pictures.labels);
  if (used > static_cast<int>(pictures.class_names.size())) {
    throw InputError(label_path.string(),
                     0,
                     fmt::format("label {} was found, but the folder names only {} classes: "
                                 "complete the list or download the labels again",
                                 used - 1,
                                 pictures.class_names.size()));
  }
  pictures.pixels = images.read();
  return pictures;
}

}  // namespace tessera::engine
