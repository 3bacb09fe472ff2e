#include <memory>
#include <vector>
#include <webp/decode.h>
#include <webp/demux.h>

#include "engine/data/pictures/picture_formats.h"

// The library's own scaling is not used: it rounds differently on ARM and x86. So a WebP picture is
// decoded whole.

namespace tessera::engine {

namespace {

// The first picture of a file, and EXIF's block.
class WebPFile {
 public:
  explicit WebPFile(FileBytes file) {
    const WebPData data{file.data(), file.size()};
    WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
    demuxer_.reset(WebPDemuxPartial(&data, &state));
    WebPIterator first{};
    if (demuxer_ == nullptr || WebPDemuxGetFrame(demuxer_.get(), 1, &first) == 0) {
      throw state == WEBP_DEMUX_PARSE_ERROR ? PictureFault(PictureDamaged("a WebP file's chunks"))
                                            : PictureFault(PictureCutOff());
    }
    picture_ = FileBytes(first.fragment.bytes, first.fragment.size);
    complete_ = first.complete != 0 && state == WEBP_DEMUX_DONE;
    WebPDemuxReleaseIterator(&first);  // what it points to stays: the file's own bytes
  }

  // Compressed; all of it where `complete`.
  [[nodiscard]] FileBytes picture() const { return picture_; }
  [[nodiscard]] bool complete() const { return complete_; }

  [[nodiscard]] int orientation() const {
    WebPChunkIterator chunk{};
    int orientation = 1;
    if (WebPDemuxGetChunk(demuxer_.get(), "EXIF", 1, &chunk) != 0) {
      orientation = exif_orientation(FileBytes(chunk.chunk.bytes, chunk.chunk.size));
    }
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
  }

 private:
  struct Deleter {
    void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
  };
  std::unique_ptr<WebPDemuxer, Deleter> demuxer_;
  FileBytes picture_;
  bool complete_ = false;
};

}  // namespace

std::uint64_t webp_decoder_version() {
  return static_cast<std::uint64_t>(WebPGetDecoderVersion());
}

PictureHeader webp_header(FileBytes file) {
  constexpr int kLossless = 2;
  constexpr Index kLosslessBytes = 4;  // of a pixel, inside the decoder
  constexpr Index kLossyLines =
      64;  // bytes for a column: rows of blocks, and what they follow from
  const WebPFile webp(file);
  WebPBitstreamFeatures features{};
  const VP8StatusCode status =
      WebPGetFeatures(webp.picture().data(), webp.picture().size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) {
    throw PictureCutOff();
  }
  if (status != VP8_STATUS_OK) {
    throw PictureDamaged("its first picture");
  }
  PictureHeader header;
  header.format = PictureFormat::WebP;
  header.rows = features.height;
  header.cols = features.width;
  header.channels = 3;
  header.orientation = webp.orientation();
  const Index pixels = header.rows * header.cols;
  header.decoder_bytes = 3 * pixels + kLossyLines * header.cols +
                         (features.format == kLossless ? kLosslessBytes * pixels : 0);
  return header;
}

Picture read_webp(FileBytes file, const PictureHeader& header, Index channels, Index reduction) {
  const WebPFile webp(file);
  if (!webp.complete()) {
    throw PictureCutOff();
  }
  PictureBuilder builder(header, channels, reduction);
  const auto row_bytes = static_cast<std::size_t>(builder.row_bytes());
  std::vector<std::uint8_t> all(row_bytes * static_cast<std::size_t>(builder.rows()));
  if (WebPDecodeRGBInto(webp.picture().data(),
                        webp.picture().size(),
                        all.data(),
                        all.size(),
                        static_cast<int>(row_bytes)) == nullptr) {
    throw PictureDamaged("its pixels");
  }
  for (std::size_t at = 0; at < all.size(); at += row_bytes) {
    builder.add_row(FileBytes(all).subspan(at, row_bytes));
  }
  return builder.finish();
}

}  // namespace tessera::engine
