#include <algorithm>
#include <array>
#include <gif_lib.h>
#include <vector>

#include "engine/data/pictures/picture_formats.h"

namespace tessera::engine {

namespace {

constexpr Index kGifUnpackerBytes = Index{1} << 17;  // tables of the library
constexpr Index kMostRunPixels = 10923;  // pixels a byte: codes of 3 bits for runs of 4096

int read_gif_bytes(GifFileType* gif, GifByteType* out, int size) {
  auto* rest = static_cast<FileBytes*>(gif->UserData);
  const std::size_t count = std::min(rest->size(), static_cast<std::size_t>(size));
  std::copy_n(rest->begin(), count, out);
  *rest = rest->subspan(count);
  return static_cast<int>(count);
}

// Open at the pixels of its first picture.
class GifDecoder {
 public:
  explicit GifDecoder(FileBytes file) : rest_(file) {
    int error = 0;
    gif_ = DGifOpen(&rest_, read_gif_bytes, &error);
    if (gif_ == nullptr) {
      throw fault(error);
    }
    try {
      find_picture();
    } catch (...) {
      DGifCloseFile(gif_, nullptr);
      throw;
    }
  }
  ~GifDecoder() { DGifCloseFile(gif_, nullptr); }
  GifDecoder(const GifDecoder&) = delete;
  GifDecoder& operator=(const GifDecoder&) = delete;

  [[nodiscard]] PictureHeader header() const {
    PictureHeader header;
    header.format = PictureFormat::Gif;
    header.rows = gif_->Image.Height;
    header.cols = gif_->Image.Width;
    header.channels = 3;
    const Index pixels = header.rows * header.cols;
    header.decoder_bytes =
        kGifUnpackerBytes + 4 * header.cols + (gif_->Image.Interlace ? pixels : 0);
    header.least_file_bytes = pixels / kMostRunPixels;
    return header;
  }

  Picture read(const PictureHeader& header, Index channels, Index reduction) {
    PictureBuilder builder(header, channels, reduction);
    const ColorMapObject* palette =
        gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    if (palette == nullptr) {
      throw PictureDamaged("a GIF without colours");
    }
    std::vector<std::uint8_t> colours(static_cast<std::size_t>(builder.row_bytes()));
    const auto add = [&](const GifPixelType* numbers) {
      colours_of(numbers, *palette, colours);
      builder.add_row(colours);
    };
    if (gif_->Image.Interlace) {
      read_interlaced(header, add);
    } else {
      std::vector<GifPixelType> numbers(static_cast<std::size_t>(header.cols));
      for (Index row = 0; row < header.rows; ++row) {
        read_line(numbers.data());
        add(numbers.data());
      }
    }
    GifRecordType next{};  // the file must go on, or say that it ends
    if (DGifGetRecordType(gif_, &next) == GIF_ERROR) {
      throw fault(gif_->Error);
    }
    return builder.finish();
  }

 private:
  // The library has one number for all that can be wrong with reading: the end of the file.
  [[nodiscard]] PictureFault fault(int error) const {
    if (rest_.empty() || error == D_GIF_ERR_READ_FAILED || error == D_GIF_ERR_EOF_TOO_SOON) {
      return PictureCutOff();
    }
    const char* reason = GifErrorString(error);
    return PictureDamaged(reason == nullptr ? "unknown error" : reason);
  }

  void find_picture() {
    GifRecordType record{};
    do {
      if (DGifGetRecordType(gif_, &record) == GIF_ERROR) {
        throw fault(gif_->Error);
      }
      if (record == TERMINATE_RECORD_TYPE) {
        throw PictureDamaged("a GIF without a picture");
      }
      if (record == EXTENSION_RECORD_TYPE) {
        skip_extension();
      }
    } while (record != IMAGE_DESC_RECORD_TYPE);
    if (DGifGetImageDesc(gif_) == GIF_ERROR) {
      throw fault(gif_->Error);
    }
  }

  void skip_extension() {
    int code = 0;
    GifByteType* content = nullptr;
    int result = DGifGetExtension(gif_, &code, &content);
    while (result != GIF_ERROR && content != nullptr) {
      result = DGifGetExtensionNext(gif_, &content);
    }
    if (result == GIF_ERROR) {
      throw fault(gif_->Error);
    }
  }

  void read_line(GifPixelType* numbers) {
    if (DGifGetLine(gif_, numbers, gif_->Image.Width) == GIF_ERROR) {
      throw fault(gif_->Error);
    }
  }

  // Every eighth row first, then those between, in four passes.
  template <class Add>
  void read_interlaced(const PictureHeader& header, const Add& add) {
    struct Pass {
      Index first;
      Index step;
    };
    constexpr std::array<Pass, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    std::vector<GifPixelType> all(static_cast<std::size_t>(header.rows * header.cols));
    for (const Pass& pass : kPasses) {
      for (Index row = pass.first; row < header.rows; row += pass.step) {
        read_line(all.data() + row * header.cols);
      }
    }
    for (Index row = 0; row < header.rows; ++row) {
      add(all.data() + row * header.cols);
    }
  }

  static void colours_of(const GifPixelType* numbers,
                         const ColorMapObject& palette,
                         std::vector<std::uint8_t>& colours) {
    for (std::size_t at = 0; at < colours.size(); at += 3) {
      const int number = *numbers++;
      if (number >= palette.ColorCount) {
        throw PictureDamaged("a colour that its table does not have");
      }
      const GifColorType& colour = palette.Colors[number];
      colours[at] = colour.Red;
      colours[at + 1] = colour.Green;
      colours[at + 2] = colour.Blue;
    }
  }

  FileBytes rest_;
  GifFileType* gif_ = nullptr;
};

}  // namespace

PictureHeader gif_header(FileBytes file) {
  return GifDecoder(file).header();
}

Picture read_gif(FileBytes file, const PictureHeader& header, Index channels, Index reduction) {
  return GifDecoder(file).read(header, channels, reduction);
}

}  // namespace tessera::engine
