#include "engine/ops/loops/threads.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include <omp.h>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

// What the environment says of threads; nothing where it is silent.
std::string_view asked_threads() {
  const char* asked = std::getenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe): at start
  return asked == nullptr ? "" : asked;
}

[[noreturn]] void refuse(std::string_view where, std::string_view count) {
  throw InputError(where,
                   0,
                   "\"" + printable_start(count) +
                       "\" is not a number of threads for this machine: expected 1 to " +
                       std::to_string(most_threads()));
}

}  // namespace

int most_threads() {
  constexpr long kOfProcessor = 16;
  constexpr long kAlways = 64;
  return static_cast<int>(std::max(kAlways, kOfProcessor * ::sysconf(_SC_NPROCESSORS_ONLN)));
}

void expect_usable_threads() {
  const std::string_view asked = asked_threads();
  if (asked.empty()) {
    return;
  }
  // A number, or a list of them for loops in loops, of which there are none here.
  const std::string_view first = trimmed(asked.substr(0, asked.find(',')));
  if (!parsed_number<int>(first, 1, most_threads())) {
    refuse("OMP_NUM_THREADS", asked);
  }
}

void set_threads(int count) {
  if (count < 1 || count > most_threads()) {
    refuse("--threads", std::to_string(count));
  }
  omp_set_num_threads(count);
}

void share_processors(int ranks_on_this_machine) {
  if (asked_threads().empty()) {
    omp_set_num_threads(std::max(1, omp_get_num_procs() / ranks_on_this_machine));
  }
}

int threads() {
  return omp_get_max_threads();
}

Index parts_for_threads(Index least, Index most, Index jobs) {
  constexpr Index kManyJobs = 8;  // for each thread: one more or less does not matter
  Index parts = least;
  while (parts < most && parts * jobs < kManyJobs * threads() && parts * jobs % threads() != 0) {
    ++parts;
  }
  return parts;
}

}  // namespace tessera::engine
