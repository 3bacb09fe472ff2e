#include "partitioner/text/plan_answer.h"

#include <doctest/doctest.h>

namespace tessera::partitioner {
namespace {

// A step that only computes.
ExplainedPlan computing(double forward_s, double recompute_s) {
  ExplainedPlan plan;
  plan.time.forward_s = forward_s;
  plan.time.recompute_s = recompute_s;
  return plan;
}

AnsweredStep of_two(const ExplainedPlan& step, const std::optional<ExplainedPlan>& single) {
  return {step, 2, true, single};
}

std::vector<MemoryUse> memory_of(const std::vector<Index>& bytes) {
  std::vector<MemoryUse> memory(bytes.size());
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
    memory[rank].weights = bytes[rank];
  }
  return memory;
}

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a reason is given only for more than the number of devices") {
  CHECK(why_faster(computing(2, 0), computing(1, 0), 2).empty());
  CHECK(why_faster(computing(2, 0), computing(1.5, 0), 2).empty());
  CHECK_FALSE(why_faster(computing(2.2, 0), computing(1, 0), 2).empty());
}

TEST_CASE("layers that one device computes again are the reason where they are the difference") {
  const std::string why = why_faster(computing(2, 0.5), computing(1, 0), 2);
  CHECK(has(why, "recompute layers for lack of memory (0.5000 s"));
  CHECK_FALSE(has(why, "caches"));
  CHECK(has(why_faster(computing(2.5, 0.1), computing(1, 0.05), 2), "caches"));
  CHECK_FALSE(has(why_faster(computing(2.5, 0.1), computing(1, 0.05), 2), "again"));
}

TEST_CASE("the answer says how many times faster, and why") {
  const std::string answer =
      plan_answer(of_two(computing(1, 0), computing(2, 0.5)), memory_of({1 << 20, 3 << 20}), true);
  CHECK(has(answer, "Predicted step: 1.0000 s"));
  CHECK(has(answer, "2.50 times"));
  CHECK(has(answer, "more than 2 times: "));
  CHECK(has(answer, "Planned memory: 3.0 MiB on rank 1 (most); 1.0 MiB on rank 0"));
  CHECK(has(plan_answer(of_two(computing(1, 0), std::nullopt), memory_of({1, 1}), true),
            "does not fit into its memory"));
}

TEST_CASE("tile sizes are advised about only where something is tiled") {
  ExplainedPlan step = computing(1, 0);
  step.time.idle_s = 3;
  const auto advice = [&] { return plan_answer(of_two(step, step), memory_of({1, 1}), true); };
  Group by_images;
  by_images.images.parts = 2;
  Group by_channels;
  by_channels.channels.parts = 2;
  Group tiled;
  tiled.rows.parts = 2;
  step.partition.groups = {by_images};
  CHECK_FALSE(has(advice(), "tile sizes"));
  CHECK(has(advice(), "shares of images"));
  step.partition.groups = {by_channels};
  CHECK(has(advice(), "shares of channels"));
  step.partition.groups = {Group()};
  CHECK(has(advice(), "nothing is shared out"));
  step.partition.groups = {by_images, tiled};
  CHECK(has(advice(), "tile sizes"));
}

TEST_CASE("without a profile the answer says how to get one") {
  const std::string answer = plan_answer(std::nullopt, memory_of({1 << 20}), false);
  CHECK(has(answer, "tessera probe"));
  CHECK_FALSE(has(answer, "the most"));
}

TEST_CASE("a partition of the user's is to be compared with what a search finds") {
  const AnsweredStep step = of_two(computing(1, 0), computing(1.9, 0));
  CHECK(has(plan_answer(step, memory_of({1, 1}), false), "--partition auto"));
  CHECK_FALSE(has(plan_answer(step, memory_of({1, 1}), true), "--partition auto"));
}

}  // namespace tessera::partitioner
