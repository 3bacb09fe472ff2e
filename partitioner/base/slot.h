// A rank, layer or map as the index of a std::vector.

#pragma once

#include <cstddef>

namespace tessera {

[[nodiscard]] constexpr std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace tessera
