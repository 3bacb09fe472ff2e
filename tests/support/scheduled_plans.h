// Random plans and every way to schedule them.

#pragma once

#include <functional>
#include <vector>

#include "tests/support/random_network.h"

#include "partitioner/plan/plan.h"

namespace tessera::tests {

// Calls visit(case, plan) for random networks and partitions on 1 to 6 ranks, with all kernels and
// recomputed groups.
inline void for_each_scheduled_plan(
    int count, const std::function<void(const RandomCase&, const partitioner::Plan&)>& visit) {
  Draw draw(71);
  for (int i = 0; i < count; ++i) {
    RandomCase random = random_case(static_cast<std::uint64_t>(i), 1 + i % 6, {.frozen = 0.3});
    draw_kernels(draw, random);
    draw_recomputation(draw, random.partition);
    random.partition.gradient_reduction.bucket_bytes = draw.among<Index>({1, 4000, 262144});
    visit(random, make_plan(random.network, random.partition, random.batch));
  }
}

// Every schedule that somebody asks for.
inline std::vector<partitioner::ScheduleOptions> all_schedule_options() {
  using partitioner::Statistics;
  std::vector<partitioner::ScheduleOptions> result;
  for (const bool training : {true, false}) {
    for (const Statistics statistics : {Statistics::Batch, Statistics::Tile, Statistics::Running}) {
      for (const bool has_loss : {true, false}) {
        for (const bool image_gradient : {true, false}) {
          for (const bool update : {true, false}) {
            result.push_back({training, statistics, has_loss, image_gradient, update});
          }
        }
      }
    }
  }
  return result;
}

}  // namespace tessera::tests
