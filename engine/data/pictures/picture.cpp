#include "engine/data/pictures/picture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <unistd.h>

#include "engine/data/pictures/picture_formats.h"
#include "engine/data/text/read_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

constexpr Index kMaxPixels = Index{1} << 26;

// What files of a format begin with, from a place on.
struct Mark {
  std::string_view bytes;
  std::size_t at = 0;
};

bool has_mark(FileBytes file, const Mark& mark) {
  return file.size() >= mark.at + mark.bytes.size() &&
         std::equal(mark.bytes.begin(),
                    mark.bytes.end(),
                    file.begin() + static_cast<std::ptrdiff_t>(mark.at),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

std::optional<PictureFormat> format_of(FileBytes file) {
  using namespace std::string_view_literals;
  if (has_mark(file, {"\xff\xd8\xff"sv})) {
    return PictureFormat::Jpeg;
  }
  if (has_mark(file, {"\x89PNG\r\n\x1a\n"sv})) {
    return PictureFormat::Png;
  }
  if (has_mark(file, {"RIFF"sv}) && has_mark(file, {"WEBP"sv, 8})) {
    return PictureFormat::WebP;
  }
  if (has_mark(file, {"GIF87a"sv}) || has_mark(file, {"GIF89a"sv})) {
    return PictureFormat::Gif;
  }
  if (has_mark(file, {"BM"sv})) {
    return PictureFormat::Bmp;
  }
  return std::nullopt;
}

// The name of a format that is known and not read.
const char* other_format(FileBytes file) {
  using namespace std::string_view_literals;
  struct Named {
    Mark mark;
    const char* name;
  };
  static constexpr Named kOthers[] = {{{"ftypavi"sv, 4}, "an AVIF"},
                                      {{"ftypheic"sv, 4}, "a HEIC"},
                                      {{"ftyphei"sv, 4}, "a HEIC"},
                                      {{"ftyphev"sv, 4}, "a HEIC"},
                                      {{"ftypmif1"sv, 4}, "a HEIC or AVIF"},
                                      {{"ftypmsf1"sv, 4}, "a HEIC or AVIF"},
                                      {{"ftypcrx"sv, 4}, "a camera's raw"},
                                      {{"II*\0"sv}, "a TIFF, or a camera's raw,"},
                                      {{"MM\0*"sv}, "a TIFF, or a camera's raw,"},
                                      {{"\xff\x0a"sv}, "a JPEG XL"},
                                      {{"JXL "sv, 4}, "a JPEG XL"},
                                      {{"jP  "sv, 4}, "a JPEG 2000"},
                                      {{"8BPS"sv}, "a Photoshop"},
                                      {{"%PDF"sv}, "a PDF"}};
  const auto* const found =
      std::find_if(std::begin(kOthers), std::end(kOthers), [&](const Named& other) {
        return has_mark(file, other.mark);
      });
  return found == std::end(kOthers) ? nullptr : found->name;
}

PictureFormat require_format(FileBytes file) {
  if (const auto format = format_of(file)) {
    return *format;
  }
  if (const char* name = other_format(file)) {
    const bool heif = has_mark(file, {"ftyp", 4});
    throw PictureFault(
        fmt::format("this is {} picture, which is not supported: convert it to JPEG, {}",
                    name,
                    other_picture_converter(heif ? ".heic" : "")));
  }
  throw PictureFault(
      "this is not a JPEG, PNG, WebP, GIF or BMP picture: convert it to one, or remove it from the "
      "data set");
}

PictureHeader header_by_format(FileBytes file) {
  switch (require_format(file)) {
    case PictureFormat::Jpeg:
      return jpeg_header(file);
    case PictureFormat::Png:
      return png_header(file);
    case PictureFormat::WebP:
      return webp_header(file);
    case PictureFormat::Gif:
      return gif_header(file);
    case PictureFormat::Bmp:
      return bmp_header(file);
  }
  throw PictureFault("this is not a picture");
}

PictureHeader checked_header(FileBytes file, Index file_bytes) {
  PictureHeader header = header_by_format(file);
  header.file_bytes = file_bytes;
  if (header.rows < 1 || header.cols < 1) {
    throw PictureDamaged(fmt::format("it claims to have {} x {} pixels", header.cols, header.rows));
  }
  if (header.cols > kMaxPixels / header.rows) {
    throw PictureFault(fmt::format(
        "this picture claims to have {} x {} pixels; at most 2^26 in all are read: scale it down",
        header.cols,
        header.rows));
  }
  if (header.least_file_bytes > file_bytes) {
    throw PictureFault(fmt::format(
        "this picture claims to have {} x {} pixels, but is cut off: a file of {} bytes cannot "
        "hold that many; download it again, or remove it from the data set",
        header.cols,
        header.rows,
        file_bytes));
  }
  return header;
}

Picture read_by_format(FileBytes file,
                       const PictureHeader& header,
                       Index channels,
                       Index reduction) {
  switch (header.format) {
    case PictureFormat::Jpeg:
      return read_jpeg(file, header, channels, reduction);
    case PictureFormat::Png:
      return read_png(file, header, channels, reduction);
    case PictureFormat::WebP:
      return read_webp(file, header, channels, reduction);
    case PictureFormat::Gif:
      return read_gif(file, header, channels, reduction);
    case PictureFormat::Bmp:
      return read_bmp(file, header, channels, reduction);
  }
  throw PictureFault("this is not a picture");
}

// What `work` returns; faults become errors that name the file.
template <class Work>
auto named(const std::string& name, const Work& work) {
  try {
    return work();
  } catch (const PictureFault& fault) {
    throw BrokenPicture(name, 0, fault.what());
  }
}

// Reads on, until there are `bytes` bytes of the file.
void read_until(const RegularFile& file,
                const std::filesystem::path& path,
                Index bytes,
                std::vector<std::uint8_t>& start) {
  std::size_t done = start.size();
  start.resize(static_cast<std::size_t>(bytes));
  while (done < start.size()) {
    const ssize_t got = ::pread(
        file.descriptor(), start.data() + done, start.size() - done, static_cast<off_t>(done));
    if (got <= 0) {
      throw InputError(
          path.string(), 0, fmt::format("cannot read all {} bytes of this file", bytes));
    }
    done += static_cast<std::size_t>(got);
  }
}

std::string lower_case_ending(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& letter : ending) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return ending;
}

}  // namespace

Picture picture_of_planes(std::span<const std::uint8_t> planes,
                          const partitioner::MapShape& shape,
                          Index channels,
                          const Detail& detail) {
  expects(static_cast<Index>(planes.size()) == shape.volume(), "planes have the size of the shape");
  PictureHeader header;
  header.rows = shape.rows;
  header.cols = shape.cols;
  header.channels = shape.channels;
  PictureBuilder builder(header, channels, reduction_for(header, detail));
  const Index plane = shape.rows * shape.cols;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(builder.row_bytes()));
  for (Index i = 0; i < shape.rows; ++i) {
    for (Index channel = 0; channel < shape.channels; ++channel) {
      const std::uint8_t* from = planes.data() + channel * plane + i * shape.cols;
      for (Index col = 0; col < shape.cols; ++col) {
        row[static_cast<std::size_t>(col * shape.channels + channel)] = from[col];
      }
    }
    builder.add_row(row);
  }
  return builder.finish();
}

PictureHeader read_picture_header(const std::filesystem::path& path) {
  constexpr Index kFirstBytes = Index{1} << 14;
  const RegularFile file(path, "a picture");
  std::vector<std::uint8_t> start;
  for (Index bytes = kFirstBytes;; bytes *= 8) {
    bytes = std::min({bytes, file.bytes(), kMostPictureBytes});
    read_until(file, path, bytes, start);
    try {
      return checked_header(start, file.bytes());
    } catch (const PictureCutOff& fault) {
      if (bytes == file.bytes() || bytes == kMostPictureBytes) {
        throw InputError(path.string(), 0, fault.what());
      }
    } catch (const PictureFault& fault) {
      throw InputError(path.string(), 0, fault.what());
    }
  }
}

PictureHeader picture_header(FileBytes file, const std::string& name) {
  return named(name, [&] { return checked_header(file, static_cast<Index>(file.size())); });
}

Index held_bytes(const PictureHeader& header, const Detail& detail) {
  const Index reduction = reduction_for(header, detail);
  const auto held = [&](Index size) { return (size + reduction - 1) / reduction; };
  return held(header.rows) * held(header.cols) * header.channels;
}

Index decoding_bytes(const PictureHeader& header, const Detail& detail) {
  const Index reduction = reduction_for(header, detail);
  const auto held = [&](Index size) { return (size + reduction - 1) / reduction; };
  constexpr Index kSums = 9;  // bytes for the means of a row
  return header.file_bytes + header.decoder_bytes +
         header.channels *
             (held(header.rows) * held(header.cols) + kSums * held(header.cols) + header.cols);
}

Picture decode_picture(FileBytes file,
                       const std::string& name,
                       Index channels,
                       const Detail& detail) {
  return named(name, [&] {
    const PictureHeader header = checked_header(file, static_cast<Index>(file.size()));
    const Index needed = decoding_bytes(header, detail);
    if (needed > kMaxDecodingBytes) {
      throw PictureFault(
          fmt::format("decoding this picture of {} x {} pixels takes {}, the limit is {}: scale it "
                      "down, or save it as a non-progressive JPEG",
                      header.cols,
                      header.rows,
                      readable_bytes(needed),
                      readable_bytes(kMaxDecodingBytes)));
    }
    Picture picture = read_by_format(file, header, channels, reduction_for(header, detail));
    picture.decoding_bytes = needed;
    return picture;
  });
}

Picture read_picture_file(const std::filesystem::path& path, Index channels, const Detail& detail) {
  return decode_picture(read_bytes(path, kMostPictureBytes), path.string(), channels, detail);
}

bool lacks_end_mark(const std::filesystem::path& path) {
  constexpr Index kStartBytes = 16;
  constexpr Index kEndBytes = 4096;  // cameras write notes of their own behind a picture
  const RegularFile file(path, "a picture");
  std::array<std::uint8_t, kEndBytes> bytes{};
  const auto read = [&](Index begin, Index size) {
    const ssize_t got = ::pread(file.descriptor(),
                                bytes.data(),
                                static_cast<std::size_t>(size),
                                static_cast<off_t>(std::max<Index>(begin, 0)));
    return FileBytes(bytes).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  const FileBytes start = read(0, kStartBytes);
  const std::optional<PictureFormat> format = format_of(start);
  if (format == PictureFormat::WebP && std::ssize(start) == kStartBytes) {
    Index size = 8;
    for (std::size_t i = 0; i < 4; ++i) {
      size += Index{start[4 + i]} << (8 * i);
    }
    return size > file.bytes();
  }
  const FileBytes end = read(file.bytes() - kEndBytes, kEndBytes);
  const auto ends_with = [&](std::string_view mark) {
    const std::string_view text(reinterpret_cast<const char*>(end.data()), end.size());
    return text.find(mark) != std::string_view::npos;
  };
  return (format == PictureFormat::Jpeg && !ends_with("\xff\xd9")) ||
         (format == PictureFormat::Png && !ends_with("IEND")) ||
         (format == PictureFormat::Gif && !ends_with(";"));
}

bool is_picture_name(const std::filesystem::path& path) {
  static constexpr std::string_view kEndings[] = {
      ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"};
  return std::find(std::begin(kEndings), std::end(kEndings), lower_case_ending(path)) !=
         std::end(kEndings);
}

bool is_other_picture_name(const std::filesystem::path& path) {
  static constexpr std::string_view kEndings[] = {
      ".heic", ".heif", ".avif", ".tif", ".tiff", ".jxl", ".jp2", ".j2k",
      ".psd",  ".svg",  ".ppm",  ".pgm", ".pbm",  ".pnm", ".tga", ".ico",
      ".dng",  ".cr2",  ".cr3",  ".nef", ".arw",  ".orf", ".rw2", ".raf"};
  return std::find(std::begin(kEndings), std::end(kEndings), lower_case_ending(path)) !=
         std::end(kEndings);
}

std::string_view other_picture_converter(std::string_view ending) {
  const bool heif = ending == ".heic" || ending == ".heif" || ending == ".avif";
  return heif ? "for example with heif-convert of Debian's package libheif-examples"
              : "for example with convert of Debian's package imagemagick";
}

}  // namespace tessera::engine
