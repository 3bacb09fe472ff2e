#include "engine/data/idx.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <system_error>
#include <zlib.h>

#include "engine/data/class_names.h"
#include "partitioner/errors.h"

namespace engine {

namespace {

namespace fs = std::filesystem;
using partitioner::InputError;

constexpr unsigned kPictureSizes = 3;  // pictures, rows, columns
constexpr unsigned kLabelSizes = 1;
constexpr Index kMaxSide = 1 << 14;

// A file that zlib reads, as it is or unpacking it.
class GzipFile {
 public:
  explicit GzipFile(const fs::path& path) : path_(path) {
    std::error_code error;
    stored_ = static_cast<Index>(fs::file_size(path, error));
    file_.reset(error ? nullptr : gzopen(path.c_str(), "rb"));
    if (file_ == nullptr) {
      throw InputError(path.string(), 0, "cannot open this file: a readable IDX file was expected");
    }
  }

  // Fills `bytes`, a mebibyte at most; fails where the file ends before.
  void read(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
      if (got <= 0) {
        fail_reading(got);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

  // The next `size` bytes; memory grows with what is really there, whatever a header said.
  std::vector<std::uint8_t> read_vector(Index size) {
    constexpr Index kChunk = Index{1} << 20;
    constexpr Index kUsualPacking = 8;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(static_cast<std::size_t>(std::min(size, stored_ * kUsualPacking)));
    for (Index done = 0; done < size; done = static_cast<Index>(bytes.size())) {
      bytes.resize(static_cast<std::size_t>(std::min(size, done + kChunk)));
      read(std::span(bytes).subspan(static_cast<std::size_t>(done)));
    }
    return bytes;
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
      throw InputError(path_.string(),
                       0,
                       "this file goes on after the values that its header counts: get it again");
    }
  }

 private:
  [[noreturn]] void fail_reading(int got) const {
    int code = Z_OK;
    const char* reason = gzerror(file_.get(), &code);
    if (got == 0 || code == Z_BUF_ERROR) {
      throw InputError(
          path_.string(),
          0,
          "this file is cut off: it ends before the values that its header counts; get it again");
    }
    throw InputError(
        path_.string(), 0, fmt::format("cannot read this file ({}): get it again", reason));
  }

  struct Closer {
    void operator()(gzFile file) const { gzclose_r(file); }
  };
  fs::path path_;
  Index stored_ = 0;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Closer> file_;
};

struct IdxBytes {
  std::vector<Index> sizes;
  std::vector<std::uint8_t> values;
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
              "its header says size {} is {}: at least 1{} was expected; get the file again",
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
                                 "to hold: get it again",
                                 std::min(volume, most)));
  }
  return sizes;
}

IdxBytes read_idx(const fs::path& path, unsigned dimensions) {
  GzipFile file(path);
  IdxBytes idx{read_header(file, path, dimensions), {}};
  Index volume = 1;
  for (const Index size : idx.sizes) {
    volume *= size;
  }
  idx.values = file.read_vector(volume);
  file.expect_end();
  return idx;
}

// "train-images-idx3-ubyte" and its variants in `folder`; empty if there is none.
fs::path find_idx(const fs::path& folder, const std::string& half, const std::string& content) {
  const std::string dimensions = content == "images" ? "idx3" : "idx1";
  for (const char* separator : {"-", "."}) {
    for (const char* packed : {"", ".gz"}) {
      fs::path path =
          folder / fmt::format("{}-{}{}{}-ubyte{}", half, content, separator, dimensions, packed);
      std::error_code error;
      if (fs::exists(path, error)) {
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
std::vector<std::string> read_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const char* name : {"labels.txt", "classes.txt"}) {
    std::error_code error;
    if (names.empty() && fs::exists(folder / name, error)) {
      names = read_class_names(folder / name);
    }
  }
  return names;
}

}  // namespace

bool has_idx_files(const fs::path& folder) {
  return !find_idx(folder, "train", "images").empty() ||
         !find_idx(folder, "t10k", "images").empty();
}

BytePictures read_idx_pictures(const fs::path& file) {
  IdxBytes idx = read_idx(file, kPictureSizes);
  return {{1, idx.sizes[1], idx.sizes[2]}, std::move(idx.values), {}, {}};
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
  const std::string other = training ? "t10k" : "train";
  const fs::path picture_path = require_idx(folder, half, "images");
  const fs::path label_path = require_idx(folder, half, "labels");
  BytePictures pictures = read_idx_pictures(picture_path);
  pictures.labels = read_idx(label_path, kLabelSizes).values;
  if (static_cast<Index>(pictures.labels.size()) != pictures.size()) {
    throw InputError(
        label_path.string(),
        0,
        fmt::format("{} labels for the {} pictures of {}: the two files do not belong together",
                    pictures.labels.size(),
                    pictures.size(),
                    picture_path.string()));
  }
  const int used = classes_used(pictures.labels);
  pictures.class_names = read_names(folder);
  if (pictures.class_names.empty()) {
    const fs::path other_labels = find_idx(folder, other, "labels");
    const int used_there =
        other_labels.empty() ? 0 : classes_used(read_idx(other_labels, kLabelSizes).values);
    pictures.class_names = numbered_names(std::max(used, used_there));
  }
  if (used > static_cast<int>(pictures.class_names.size())) {
    throw InputError(label_path.string(),
                     0,
                     fmt::format("label {} was found, but the folder names only {} classes: "
                                 "complete the list or get the labels again",
                                 used - 1,
                                 pictures.class_names.size()));
  }
  return pictures;
}

}  // namespace engine
