#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/step_parts.h"
#include "engine/ops/loops/threads.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

void print_timing_json(const TimeCommand& command, const TimedSteps& timing) {
  const auto [least, most] = std::minmax_element(timing.step_s.begin(), timing.step_s.end());
  nlohmann::ordered_json json{
      {"step_s", {{"median", timing.median.step_s}, {"min", *least}, {"max", *most}}},
      {"forward_s", timing.median.forward_s},
      {"backward_s", timing.median.backward_s},
      {"update_s", timing.median.update_s},
      {"exchange_s", timing.exchange_s},
      {"gflops", timing.gflops},
      {"peak_bytes", timing.peak_bytes}};
  if (timing.monitor_share) {
    json["monitor_share"] = *timing.monitor_share;
  }
  if (command.parts) {
    json["parts"] = parts_json(timing.parts);
  }
  if (timing.forecast.parts) {
    json["predicted_parts"] = parts_json(*timing.forecast.parts);
  }
  if (command.layers) {
    json["layers"] = layers_json(timing.layers, timing.forecast.layers);
  }
  fmt::print("{}\n", json.dump());
}

void print_timing(const TimedSteps& timing) {
  const auto [least, most] = std::minmax_element(timing.step_s.begin(), timing.step_s.end());
  const auto ms = [](double seconds) { return 1e3 * seconds; };
  fmt::print("step     {:10.3f} ms  (median; {:.3f} to {:.3f})\n",
             ms(timing.median.step_s),
             ms(*least),
             ms(*most));
  fmt::print("forward  {:10.3f} ms  (this and the following lines: rank 0)\n",
             ms(timing.median.forward_s));
  fmt::print("backward {:10.3f} ms\n", ms(timing.median.backward_s));
  fmt::print("update   {:10.3f} ms\n", ms(timing.median.update_s));
  fmt::print("exchange {:10.3f} ms  (part of the three above)\n", ms(timing.exchange_s));
  fmt::print("rate     {:10.2f} GFLOP/s, of all ranks\n", timing.gflops);
  for (std::size_t rank = 0; rank < timing.peak_bytes.size(); ++rank) {
    fmt::print(
        "memory   {:>10} MiB at most on rank {}\n", mebibytes(timing.peak_bytes[rank]), rank);
  }
  if (timing.monitor_share) {
    fmt::print("monitor  {:10.3f} % of a core, on the rank where it takes most\n",
               100 * *timing.monitor_share);
  }
}

void print_all(const TimeCommand& command, const TimedSteps& timing) {
  if (command.json) {
    print_timing_json(command, timing);
    return;
  }
  fmt::print("{}, {}x{}, batch {}, {}, {} each, {}\n",
             printable(command.model),
             timing.network.image.rows,
             timing.network.image.cols,
             command.batch,
             counted(std::ssize(timing.peak_bytes), "rank"),
             counted(threads(), "thread"),
             counted(command.steps, "step"));
  print_timing(timing);
  if (command.parts) {
    fmt::print(
        "\n"
        "Average step of an average rank; waiting counts towards what the message carries.\n"
        "{}",
        parts_table(timing.parts, timing.forecast.parts));
  }
  if (command.layers) {
    fmt::print(
        "\n"
        "Computing time by layer in an average step: average rank and slowest rank.\n"
        "{}",
        layers_table(timing.network, timing.layers, timing.forecast.layers));
  }
}

}  // namespace

void run_time(const TimeCommand& command, const Communicator& communicator) {
  const TimedSteps timing = time_steps(command, communicator, printed_messages());
  if (communicator.rank() == 0) {
    print_all(command, timing);
  }
}

}  // namespace tessera::engine
