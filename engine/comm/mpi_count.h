// MPI counts in int. Only the files that call MPI include this.

#pragma once

#include <cstddef>
#include <limits>

#include "partitioner/base/errors.h"

namespace tessera::engine {

[[nodiscard]] inline int mpi_count(std::size_t count) {
  expects(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
          "a message has less than 2 GiB");
  return static_cast<int>(count);
}

}  // namespace tessera::engine
