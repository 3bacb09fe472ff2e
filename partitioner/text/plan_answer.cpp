#include "partitioner/text/plan_answer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/search/fitting.h"
#include "partitioner/search/search_space.h"

namespace tessera::partitioner {

namespace {

constexpr int kMostSearchedLayers = 200;
constexpr std::size_t kAnswerWidth = 96;
constexpr std::size_t kAdviceIndent = 8;
constexpr std::size_t kMostListed = 8;  // devices
constexpr std::size_t kNameWidth = 24;
// Predictions are 5 % off in the median: see bench/README.md.
constexpr double kFasterAtAll = 1.05;

// Whether all devices of a cluster are the same but for their names.
bool are_alike(const ClusterProfile& cluster) {
  return std::all_of(cluster.devices.begin(), cluster.devices.end(), [&](DeviceProfile device) {
    device.name = cluster.device(0).name;
    return device == cluster.device(0);
  });
}

std::string shown_name(const std::string& name) {
  return shortened(printable(name), kNameWidth);
}

std::string fits_line(const PlanAnswer& of) {
  const Shortage tightest = largest_shortage(of.memory, of.limits);
  const std::string device = fmt::format(
      "{} (rank {})", shown_name(of.names[static_cast<std::size_t>(tightest.rank)]), tightest.rank);
  const std::string needed = readable_bytes(tightest.needed_bytes);
  const std::string limit = readable_bytes(tightest.limit_bytes);
  if (!of.fits()) {
    return fmt::format("Fits: no, {} needs {}, {} more than its {}\n",
                       device,
                       needed,
                       readable_bytes(tightest.missing_bytes()),
                       limit);
  }
  return fmt::format("Fits: yes, {} needs {} of its {}\n",
                     of.memory.size() > 1 ? fmt::format("the tightest, {},", device) : device,
                     needed,
                     limit);
}

// What each of several devices needs beside what it has; of many those that need the most and the
// least.
std::string memory_line(const PlanAnswer& of) {
  if (of.memory.size() == 1) {
    return "";
  }
  const bool is_equal =
      std::adjacent_find(of.limits.begin(), of.limits.end(), std::not_equal_to()) ==
      of.limits.end();
  std::vector<std::string> words;
  const auto add = [&](std::size_t rank, const char* which) {
    words.push_back(fmt::format("{}{} {}{}",
                                which,
                                shown_name(of.names[rank]),
                                readable_bytes(of.memory[rank].total()),
                                is_equal ? "" : " of " + readable_bytes(of.limits[rank])));
  };
  if (of.memory.size() > kMostListed) {
    const auto [least, most] = std::minmax_element(
        of.memory.begin(), of.memory.end(), [](const MemoryUse& a, const MemoryUse& b) {
          return a.total() < b.total();
        });
    add(static_cast<std::size_t>(most - of.memory.begin()), "most ");
    add(static_cast<std::size_t>(least - of.memory.begin()), "least ");
  } else {
    for (std::size_t rank = 0; rank < of.memory.size(); ++rank) {
      add(rank, "");
    }
  }
  words.front() =
      (is_equal ? fmt::format("Planned memory of {} each: ", readable_bytes(of.limits.front()))
                : "Planned memory: ") +
      words.front();
  std::string text = wrapped(words, kAnswerWidth);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, "  ");
  }
  return text + "\n";
}

std::string epoch_line(const PlanAnswer& of) {
  if (of.pictures == 0) {
    return "";
  }
  const std::string line =
      fmt::format("Epoch of {}: about {} ({} of {}; without reading pictures and testing)",
                  counted(of.pictures, "picture"),
                  predicted_seconds(of.epoch_s()),
                  counted(of.epoch_steps(), "step"),
                  counted(of.images, "image"));
  return in_lines(line, kAnswerWidth, 2) + "\n";
}

std::string worth_line(const PlanAnswer& answer) {
  const auto worth_it = answer.worth_it();
  if (!worth_it) {
    return "";
  }
  const AnsweredStep& of = answer.of;
  if (!of.single) {
    return "Worth it: yes, no single device has the memory to train it alone\n";
  }
  const std::string alone = of.single_device.empty() ? "one device alone"
                                                     : fmt::format("the best device ({}) alone",
                                                                   shown_name(of.single_device));
  const std::string alone_s = predicted_seconds(of.single->time.step_s());
  const std::string times = two_digits(of.speed_up().value());
  if (!*worth_it) {
    return fmt::format(
        "Worth it: no, {} takes about {} for a step; all {} are about {} times as fast\n",
        alone,
        alone_s,
        of.devices,
        times);
  }
  std::string line = fmt::format(
      "Worth it: yes, about {} times as fast as {}: about {} for a step\n", times, alone, alone_s);
  if (const std::string why = why_faster(*of.single, of.step, of.devices); !why.empty()) {
    line +=
        in_lines(fmt::format("more than {} times: {}", of.devices, why), kAnswerWidth, 2) + "\n";
  }
  return line;
}

std::string assumption_line(const PlanAnswer& of) {
  return of.is_assumed
             ? in_lines(
                   fmt::format("Assumed: {} with {} of memory, as fast as a Raspberry Pi 3; "
                               "--cluster FILE describes others, `tessera probe` writes it",
                               of.of.devices == 1 ? std::string("a device")
                                                  : fmt::format("{} devices, each", of.of.devices),
                               readable_bytes(of.limits.front())),
                   kAnswerWidth,
                   2) +
                   "\n"
             : "";
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

// What to do about what is planned; empty where nothing is to be said.
std::string advice_line(const PlanAnswer& answer) {
  std::vector<std::string> advice;
  const ExplainedPlan& step = answer.of.step;
  if (!answer.why_nothing_fits.empty()) {
    advice.push_back(answer.why_nothing_fits);
  } else if (!answer.fits()) {
    advice.emplace_back(
        "a device has too little memory: try --recompute all or fewer images per pass "
        "(--subdivisions)");
  }
  const bool is_best_alone = answer.is_searched && !answer.worth_it().value_or(true);
  if (answer.of.devices > 1 && answer.fits() && !is_best_alone) {
    advice.push_back(remedy(what_limits(step.time), step.partition));
  }
  if (!answer.is_searched) {
    advice.push_back(fmt::format("--partition auto searches for {}",
                                 answer.fits() ? "the fastest partition" : "one that fits"));
  }
  const std::string text = fmt::format("Advice: {}", fmt::join(advice, "; "));
  return advice.empty() ? "" : in_lines(text, kAnswerWidth - kAdviceIndent, kAdviceIndent) + "\n";
}

}  // namespace

std::optional<double> AnsweredStep::speed_up() const {
  if (devices == 1) {
    return 1;
  }
  return single ? std::optional(single->time.step_s() / step.time.step_s()) : std::nullopt;
}

bool PlanAnswer::fits() const {
  return largest_shortage(memory, limits).missing_bytes() <= 0;
}

std::optional<bool> PlanAnswer::worth_it() const {
  if (of.devices == 1 || !of.searched || !fits()) {
    return std::nullopt;
  }
  return of.speed_up().value_or(kInfiniteRate) > kFasterAtAll;
}

AnsweredStep answered_step(const Network& network,
                           const ClusterProfile& cluster,
                           const SearchOptions& options,
                           ExplainedPlan step) {
  AnsweredStep answer{std::move(step), cluster.size(), false, std::nullopt};
  if (cluster.size() == 1 || network.size() > kMostSearchedLayers) {
    return answer;
  }
  answer.searched = true;
  SearchOptions alone = options;
  alone.reader = Reader::every_rank();
  alone.candidates = 1;
  Index tried_bytes = 0;  // of memory: what does not fit there does not fit into less
  for (const int device : by_speed(device_speeds(network, {}, cluster))) {
    const ClusterProfile one = devices_of(cluster, {device});
    if (answer.single || one.device(0).memory_bytes <= tried_bytes) {
      continue;
    }
    tried_bytes = one.device(0).memory_bytes;
    const SearchResult result = search_partition(network, one, alone);
    if (!result.candidates.empty()) {
      answer.single = explained(network, one, alone, result.candidates.front().partition);
      answer.single_device = are_alike(cluster) ? "" : one.device(0).name;
    }
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
                    predicted_seconds(again_s)));
  }
  const double others_s = (alone.computing_s() - alone.recompute_s) -
                          devices * (together.computing_s() - together.recompute_s);
  if (others_s > 0) {
    reasons.push_back(
        fmt::format("by the profile, the same work takes it {} longer: smaller tiles stay in "
                    "caches, or the others are faster",
                    predicted_seconds(others_s)));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string plan_answer(const PlanAnswer& answer) {
  const ExplainedPlan& step = answer.of.step;
  return fits_line(answer) + memory_line(answer) + time_text(step) + epoch_line(answer) +
         worth_line(answer) + traffic_text(step) + assumption_line(answer) + advice_line(answer);
}

std::string answer_json(const PlanAnswer& answer) {
  auto json = nlohmann::ordered_json::parse(prediction_json(answer.of.step));
  json["fits"] = answer.fits();
  json["tightest_rank"] = largest_shortage(answer.memory, answer.limits).rank;
  for (std::size_t rank = 0; rank < answer.memory.size(); ++rank) {
    json["devices"].push_back({{"name", answer.names[rank]},
                               {"needed_bytes", answer.memory[rank].total()},
                               {"limit_bytes", answer.limits[rank]}});
  }
  json["assumed_devices"] = answer.is_assumed;
  if (!answer.why_nothing_fits.empty()) {
    json["why_nothing_fits"] = answer.why_nothing_fits;
  }
  if (answer.pictures > 0) {
    json["pictures"] = answer.pictures;
    json["epoch_steps"] = answer.epoch_steps();
    json["epoch_s"] = answer.epoch_s();
  }
  if (const auto factor = answer.of.speed_up()) {
    json["speed_up"] = *factor;  // beside the best step of one device
  }
  if (answer.of.single) {
    json["one_device_s"] = answer.of.single->time.step_s();
    json["why_faster"] = why_faster(*answer.of.single, answer.of.step, answer.of.devices);
  }
  if (const auto worth_it = answer.worth_it()) {
    json["worth_it"] = *worth_it;
  }
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tessera::partitioner
