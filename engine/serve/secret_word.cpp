#include "engine/serve/secret_word.h"

#include <array>
#include <sodium.h>
#include <stdexcept>

namespace tessera::engine {

std::string secret_word() {
  if (sodium_init() < 0) {
    throw std::runtime_error("libsodium finds no source of random numbers");
  }
  std::array<unsigned char, 16> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, 2 * bytes.size() + 1> digits{};
  return sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
}

bool is_same_word(std::string_view one, std::string_view other) {
  return one.size() == other.size() && sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace tessera::engine
