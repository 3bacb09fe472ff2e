// A text that is compressed once, however many answers it is a part of.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

struct Piece {
  std::string text;
  std::string deflated;  // blocks of RFC 1951 that end with a byte, none of them the last one
  unsigned long crc = 0;
};
[[nodiscard]] Piece make_piece(std::string text);

// Their texts one after the other, as they are or as a file of gzip (RFC 1952).
[[nodiscard]] std::string plain_text(const std::vector<const Piece*>& pieces);
[[nodiscard]] std::string gzip_file(const std::vector<const Piece*>& pieces);

}  // namespace tessera::engine
