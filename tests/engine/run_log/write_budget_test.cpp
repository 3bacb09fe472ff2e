#include "engine/run_log/write_budget.h"

#include <doctest/doctest.h>

using tessera::engine::is_within_write_budget;
using tessera::engine::kWriteBudgetPerHour;

namespace {

constexpr double kDay_s = 24 * 3600;

// Of checkpoints of so many bytes at the end of epochs of so many seconds, those of a day.
double written_in_a_day(double bytes, double epoch_s) {
  double written = 0;
  for (double t_s = epoch_s; t_s <= kDay_s; t_s += epoch_s) {
    written += is_within_write_budget(written, bytes, t_s) ? bytes : 0;
  }
  return written;
}

TEST_CASE("checkpoints that nobody asked for write no more than the budget, and small ones all") {
  constexpr double kMiB = 1024 * 1024;
  CHECK(written_in_a_day(400 * kMiB, 60) <= 25 * kWriteBudgetPerHour);
  CHECK(written_in_a_day(400 * kMiB, 60) >= 24 * kWriteBudgetPerHour);
  CHECK(written_in_a_day(400 * kMiB, 1800) == 48 * 400 * kMiB);
  CHECK(written_in_a_day(kMiB, 10) == 8640 * kMiB);
  CHECK(!is_within_write_budget(kWriteBudgetPerHour, 1, 0));
}

}  // namespace
