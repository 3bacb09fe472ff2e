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

std::vector<MemoryUse> memory_of(const std::vector<Index>& bytes) {
  std::vector<MemoryUse> memory(bytes.size());
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
    memory[rank].weights = bytes[rank];
  }
  return memory;
}

constexpr Index kMebibyte = Index{1} << 20U;

// Two devices of 4 MiB each, of which the second needs 3.
PlanAnswer of_two(const ExplainedPlan& step, const std::optional<ExplainedPlan>& single) {
  return {.of = {step, 2, true, single},
          .names = {"pi1", "pi2"},
          .memory = memory_of({kMebibyte, 3 * kMebibyte}),
          .limits = {4 * kMebibyte, 4 * kMebibyte},
          .is_searched = true,
          .step_s = step.time.step_s(),
          .images = 64};
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
  CHECK(has(why, "recompute layers for lack of memory (500 ms"));
  CHECK_FALSE(has(why, "caches"));
  CHECK(has(why_faster(computing(2.5, 0.1), computing(1, 0.05), 2), "caches"));
  CHECK_FALSE(has(why_faster(computing(2.5, 0.1), computing(1, 0.05), 2), "again"));
}

TEST_CASE("the answer says how many times faster, and why") {
  const std::string answer = plan_answer(of_two(computing(1, 0), computing(2, 0.5)));
  CHECK(has(answer, "Predicted step: about 1.0 s"));
  CHECK(has(answer, "Worth it: yes, about 2.5 times as fast as one device alone: about 2.5 s"));
  CHECK(has(answer, "more than 2 times: "));
  CHECK(has(plan_answer(of_two(computing(1, 0), std::nullopt)), "Worth it: yes, no single device"));
}

TEST_CASE("what is hardly faster than one device is not worth it") {
  PlanAnswer answer = of_two(computing(1, 0), computing(1.04, 0));
  CHECK(has(plan_answer(answer), "Worth it: no, one device alone takes about 1.0 s"));
  CHECK_FALSE(answer.worth_it().value());
  CHECK_FALSE(has(plan_answer(answer), "Advice"));
  answer.of.single_device = "pi2";
  CHECK(has(plan_answer(answer), "Worth it: no, the best device (pi2) alone takes about 1.0 s"));
  answer.of.devices = 1;
  CHECK_FALSE(answer.worth_it());
  CHECK_FALSE(has(plan_answer(answer), "Worth it"));
}

TEST_CASE("the answer begins with whether it fits, and names the tightest device") {
  PlanAnswer answer = of_two(computing(1, 0), computing(2, 0));
  CHECK(plan_answer(answer).starts_with(
      "Fits: yes, the tightest, pi2 (rank 1), needs 3.0 MiB of its 4.0 MiB\n"
      "Planned memory of 4.0 MiB each: pi1 1.0 MiB, pi2 3.0 MiB\n"));
  answer.limits[0] = kMebibyte / 2;
  CHECK(
      has(plan_answer(answer), "Planned memory: pi1 1.0 MiB of 512.0 KiB, pi2 3.0 MiB of 4.0 MiB"));
  CHECK(plan_answer(answer).starts_with(
      "Fits: no, pi1 (rank 0) needs 1.0 MiB, 512.0 KiB more than its 512.0 KiB\n"));
  CHECK(has(plan_answer(answer), "Advice: a device has too little memory"));
  CHECK_FALSE(has(plan_answer(answer), "one that fits"));
  CHECK_FALSE(answer.worth_it());
  answer.why_nothing_fits = "no partition was found that fits; it would fit on 3 devices";
  CHECK(has(plan_answer(answer), "Advice: no partition was found that fits; it would fit on 3"));
}

TEST_CASE("of many devices those that need the most and the least are shown") {
  PlanAnswer answer = of_two(computing(1, 0), computing(2, 0));
  answer.names.assign(9, "pi");
  answer.names[4] = "pi\x1b[2J";
  answer.memory = memory_of(std::vector<Index>(9, 2 * kMebibyte));
  answer.memory[4].weights = kMebibyte;
  answer.limits.assign(9, 4 * kMebibyte);
  CHECK(has(plan_answer(answer),
            "Planned memory of 4.0 MiB each: most pi 2.0 MiB, least pi\\x1b[2J 1.0"));
}

TEST_CASE("an epoch takes as many steps as see each picture") {
  PlanAnswer answer = of_two(computing(1.5, 0), computing(2, 0));
  CHECK_FALSE(has(plan_answer(answer), "Epoch"));
  answer.pictures = 129;
  CHECK(answer.epoch_s() == 4.5);
  CHECK(has(plan_answer(answer), "Epoch of 129 pictures: about 4.5 s (3 steps of 64 images;"));
  answer.pictures = 1;
  CHECK(answer.epoch_steps() == 1);
}

TEST_CASE("tile sizes are advised about only where something is tiled") {
  ExplainedPlan step = computing(1, 0);
  step.time.idle_s = 3;
  const auto advice = [&] { return plan_answer(of_two(step, std::nullopt)); };
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

TEST_CASE("without a profile the answer says what is assumed, and how to get one") {
  PlanAnswer answer = of_two(computing(1, 0), computing(1.9, 0));
  CHECK_FALSE(has(plan_answer(answer), "tessera probe"));
  answer.is_assumed = true;
  CHECK(has(plan_answer(answer),
            "Assumed: 2 devices, each with 4.0 MiB of memory, as fast as a Raspberry Pi 3"));
  CHECK(has(plan_answer(answer), "tessera probe"));
}

TEST_CASE("a partition of the user's is to be compared with what a search finds") {
  PlanAnswer answer = of_two(computing(1, 0), computing(1.9, 0));
  answer.of.devices = 1;  // so that all advice stands on a line
  CHECK_FALSE(has(plan_answer(answer), "--partition auto"));
  answer.is_searched = false;
  CHECK(has(plan_answer(answer), "--partition auto searches for the fastest"));
  answer.limits[0] = 1;
  CHECK(has(plan_answer(answer), "--partition auto searches for one that fits"));
}

}  // namespace tessera::partitioner
