#include "partitioner/text/plan_answer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"

namespace tessera::partitioner {

namespace {

constexpr int kMostSearchedLayers = 200;
constexpr std::size_t kAnswerWidth = 96;

std::string seconds_text(double value) {
  return value >= 100 ? fmt::format("{:.1f} s", value) : fmt::format("{:.4f} s", value);
}

std::string speed_line(const AnsweredStep& of) {
  if (of.devices == 1 || !of.searched) {
    return "";
  }
  if (!of.single) {
    return "Compared with one device: the model does not fit into its memory\n";
  }
  const double factor = of.speed_up().value();
  std::string line =
      fmt::format("Compared with one device: {:.2f} times as fast as its best step, {}\n",
                  factor,
                  seconds_text(of.single->time.step_s()));
  if (const std::string why = why_faster(*of.single, of.step, of.devices); !why.empty()) {
    line += fmt::format("  more than {} times: {}\n", of.devices, why);
  }
  return line;
}

std::string memory_line(const std::vector<MemoryUse>& memory) {
  const auto less = [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); };
  const auto most = std::max_element(memory.begin(), memory.end(), less);
  std::string line = fmt::format("Planned memory: {}", readable_bytes(most->total()));
  if (memory.size() > 1) {
    const auto least = std::min_element(memory.begin(), memory.end(), less);
    line += fmt::format(" on rank {} (most); {} on rank {} (least)",
                        most - memory.begin(),
                        readable_bytes(least->total()),
                        least - memory.begin());
  }
  return line + "\n";
}

// What to do where devices wait for others, by what work is shared out by.
std::string remedy_of_idle(const Partition& partition) {
  const auto any = [&](auto parts) {
    return std::any_of(partition.groups.begin(), partition.groups.end(), parts);
  };
  if (any([](const Group& group) { return group.rows.parts * group.cols.parts > 1; })) {
    return "tile sizes do not suit these devices";
  }
  if (any([](const Group& group) { return group.images.parts > 1; })) {
    return "shares of images do not suit these devices: more images per pass (--batch) are shared "
           "out more evenly";
  }
  if (any([](const Group& group) { return group.channels.parts > 1; })) {
    return "shares of channels do not suit these devices";
  }
  return "nothing is shared out: --grid cuts maps into tiles for all devices";
}

// What to do about what limits a step.
std::string remedy(std::string_view limit, const Partition& partition) {
  if (limit == "exchange of maps") {
    return "longer groups exchange fewer maps (--groups)";
  }
  if (limit == "gradient reduction") {
    return "more images per step share one gradient reduction (--batch), --gradient-precision half "
           "halves it";
  }
  if (limit == "statistics") {
    return "more images per pass share the wait for batch statistics (--batch)";
  }
  if (limit == "redundant work") {
    return "shorter groups compute less redundantly (--groups)";
  }
  if (limit == "idle devices") {
    return remedy_of_idle(partition);
  }
  return "--explain shows what more devices would change";
}

std::string advice_line(const std::optional<AnsweredStep>& step, bool searched) {
  std::vector<std::string> advice;
  if (!step) {
    advice.emplace_back("with a cluster profile, --partition auto finds the fastest partition");
  } else {
    if (!step->step.fits) {
      advice.emplace_back(
          "a device has too little memory: try --recompute all or fewer images per pass");
    }
    if (step->devices > 1) {
      advice.push_back(remedy(what_limits(step->step.time), step->step.partition));
    }
    if (!searched) {
      advice.emplace_back("--partition auto searches for the fastest partition");
    }
  }
  if (advice.empty()) {
    return "";
  }
  std::string text = wrapped(advice, kAnswerWidth - 8);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, "        ");
  }
  return "Advice: " + text + "\n";
}

}  // namespace

std::optional<double> AnsweredStep::speed_up() const {
  if (devices == 1) {
    return 1;
  }
  return single ? std::optional(single->time.step_s() / step.time.step_s()) : std::nullopt;
}

AnsweredStep answered_step(const Network& network,
                           const ClusterProfile& cluster,
                           const SearchOptions& options,
                           ExplainedPlan step) {
  AnsweredStep answer{std::move(step), cluster.size(), false, std::nullopt};
  if (cluster.size() == 1 || network.size() > kMostSearchedLayers) {
    return answer;
  }
  SearchOptions alone = options;
  alone.reader = Reader::every_rank();
  alone.candidates = 1;
  const ClusterProfile one = cluster_of_size(network, cluster, 1);
  const SearchResult result = search_partition(network, one, alone);
  answer.searched = true;
  if (!result.candidates.empty()) {
    answer.single = explained(network, one, alone, result.candidates.front().partition);
  }
  return answer;
}

std::string why_faster(const ExplainedPlan& single, const ExplainedPlan& plan, double devices) {
  constexpr double kMoreThanRounding = 1.005;
  const TimeShares& alone = single.time;
  const TimeShares& together = plan.time;
  if (alone.step_s() < kMoreThanRounding * devices * together.step_s()) {
    return "";
  }
  std::vector<std::string> reasons;
  const double again_s = alone.recompute_s - devices * together.recompute_s;
  if (again_s > 0) {
    reasons.push_back(
        fmt::format("one device has to recompute layers for lack of memory ({} of its step)",
                    seconds_text(again_s)));
  }
  const double others_s = (alone.computing_s() - alone.recompute_s) -
                          devices * (together.computing_s() - together.recompute_s);
  if (others_s > 0) {
    reasons.push_back(
        fmt::format("by the profile, the same work takes it {} longer: smaller tiles stay in "
                    "caches, or the others are faster",
                    seconds_text(others_s)));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string plan_answer(const std::optional<AnsweredStep>& step,
                        const std::vector<MemoryUse>& memory,
                        bool searched) {
  std::string text = step ? prediction_text(step->step) + speed_line(*step)
                          : "Predicted step: unknown without a profile of devices and links. "
                            "`tessera probe` under mpiexec\n"
                            "writes one, --cluster FILE reads it\n";
  return text + memory_line(memory) + advice_line(step, searched);
}

}  // namespace tessera::partitioner
