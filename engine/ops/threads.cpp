#include "engine/ops/threads.h"

#include <omp.h>

namespace engine {

void set_threads(int count) {
  omp_set_num_threads(count);
}

int threads() {
  return omp_get_max_threads();
}

}  // namespace engine
