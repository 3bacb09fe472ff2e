// Prints which rows of a convolution's output and input each of two tiles has; exits 1 unless they
// meet in the middle and read one row of each other.

#include <iostream>

#include "partitioner/plan/plan.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;

int main() {
  Network network{.image = {.channels = 1, .rows = 16, .cols = 16}};
  add_layer(network, Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  const Plan plan = make_plan(network, make_partition(network, {.grid_rows = 2}), 1);
  bool right = plan.ranks == 2;
  for (int rank = 0; rank < 2; ++rank) {
    const Range owned = plan.tile(0, rank).owned.rows;
    const Range read = required_input(network, 0, 0, plan.tile(0, rank).owned).rows;
    std::cout << "tile " << rank << ": rows " << owned << ", computed from " << read << '\n';
    right = right && owned.size() == 8 && contains(read, {7, 9});
  }
  return right ? 0 : 1;
}
