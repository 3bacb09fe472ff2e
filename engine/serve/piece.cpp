#include "engine/serve/piece.h"

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <zlib.h>

namespace tessera::engine {

namespace {

constexpr int kRaw = -15;  // no header, the largest window
constexpr int kMemory = 8;

std::string deflated(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("zlib: no memory to compress with");
  }
  constexpr std::size_t kEnd = 64;  // of an empty block that ends with a byte
  std::string bytes(deflateBound(&stream, text.size()) + kEnd, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_SYNC_FLUSH);
  bytes.resize(bytes.size() - stream.avail_out);
  deflateEnd(&stream);
  return bytes;
}

void add_number(std::string& bytes, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(number >> shift & 0xffU);
  }
}

}  // namespace

Piece make_piece(std::string text) {
  const unsigned long crc =
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  std::string bytes = deflated(text);
  return {std::move(text), std::move(bytes), crc};
}

std::string plain_text(const std::vector<const Piece*>& pieces) {
  std::string text;
  for (const Piece* piece : pieces) {
    text += piece->text;
  }
  return text;
}

std::string gzip_file(const std::vector<const Piece*>& pieces) {
  constexpr std::string_view kHeader("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  constexpr std::string_view kLastBlock("\3\0", 2);  // an empty one
  std::string bytes(kHeader);
  unsigned long crc = 0;
  std::size_t size = 0;
  for (const Piece* piece : pieces) {
    bytes += piece->deflated;
    crc = crc32_combine(crc, piece->crc, static_cast<z_off_t>(piece->text.size()));
    size += piece->text.size();
  }
  bytes += kLastBlock;
  add_number(bytes, static_cast<std::uint32_t>(crc));
  add_number(bytes, static_cast<std::uint32_t>(size));
  return bytes;
}

}  // namespace tessera::engine
