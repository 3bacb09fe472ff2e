#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/median.h"
#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/step_parts.h"
#include "engine/comm/agreement.h"
#include "engine/comm/run_clock.h"
#include "engine/files/atomic_file.h"
#include "engine/monitor/monitor.h"
#include "engine/ops/loops/threads.h"
#include "engine/run_log/trace.h"
#include "engine/session/memory_needs.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/session/step_prediction.h"
#include "engine/system/clock.h"
#include "engine/system/system_memory.h"
#include "engine/train/trainer.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/search/explained_plan.h"

namespace tessera::engine {

namespace {

// Operations of a training step of the whole network on one device: two a multiply-add, forward, to
// weights that learn, and to the data wherever there is a layer below that learns.
double step_flops(const partitioner::Network& network, Index batch) {
  double flops = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    const double forward =
        2 * static_cast<double>(multiply_adds(network, layer, whole_map(network, layer, batch)));
    const int input = network.layer(layer).inputs[0];
    const bool to_data = input != partitioner::kImage && network.takes_gradient(input);
    flops += (1 + (network.layer(layer).has_backward ? 1 : 0) + (to_data ? 1 : 0)) * forward;
  }
  return flops;
}

// A step takes as long as its slowest rank; its parts are those of this rank.
struct Measurement {
  std::vector<double> step_s;
  StepTimes median;
  double exchange_s = 0;
  StepParts parts;  // of a mean step, too
  std::vector<LayerComputing> layers;
  double gflops = 0;
  std::vector<Index> peak_bytes;
  std::optional<double> monitor_share;                // of a core, on the rank where it is most
  std::vector<std::vector<PerformedAction>> actions;  // of the last step, by rank; where traced

  [[nodiscard]] double least_s() const { return *std::min_element(step_s.begin(), step_s.end()); }
  [[nodiscard]] double most_s() const { return *std::max_element(step_s.begin(), step_s.end()); }
};

double most_of_ranks(double mine, const Communicator& communicator) {
  const std::vector<double> all = communicator.of_ranks(mine);
  return *std::max_element(all.begin(), all.end());
}

// Times a step, apart from what handing over its pictures took.
StepTimes time_step(Trainer& trainer, DataLoader& pictures) {
  StepTimes times = trainer.step(pictures).times;
  times.step_s -= times.load_s;
  times.load_s = 0;
  return times;
}

// A step of which each action is noted, by rank. Ranks start it together; seconds are from there.
std::vector<std::vector<PerformedAction>> traced_step(Trainer& trainer,
                                                      DataLoader& pictures,
                                                      std::vector<StepTimes>& times,
                                                      const Communicator& communicator) {
  trainer.execution().record(true);
  communicator.barrier();
  const double start_s = now_s();
  times.push_back(time_step(trainer, pictures));
  std::vector<PerformedAction> mine = trainer.execution().performed();
  trainer.execution().record(false);
  for (PerformedAction& action : mine) {
    action.begin_s -= start_s;
    action.end_s -= start_s;
  }
  return communicator.of_ranks(mine);
}

Measurement measure(Trainer& trainer, Index steps, bool trace, const Communicator& communicator) {
  DataLoader pictures(RandomPictures{}, trainer.execution().plan(), communicator);
  std::vector<StepTimes> times;
  times.reserve(static_cast<std::size_t>(steps));
  (void)time_step(trainer, pictures);  // warm-up: page faults, first messages
  (void)trainer.execution().take_computing_times();
  communicator.barrier();
  // One after the other, as in training: new values travel from one step into the next.
  for (Index step = 0; step < steps - (trace ? 1 : 0); ++step) {
    times.push_back(time_step(trainer, pictures));
  }
  Measurement result;
  if (trace) {
    result.actions = traced_step(trainer, pictures, times, communicator);
  }
  const auto median_of = [&](auto part) {
    std::vector<double> values;
    values.reserve(times.size());
    for (const StepTimes& step : times) {
      values.push_back(part(step));
    }
    return median(values);
  };
  for (const StepTimes& step : times) {
    result.step_s.push_back(most_of_ranks(step.step_s, communicator));
  }
  for (const auto part : {&StepTimes::forward_s, &StepTimes::backward_s, &StepTimes::update_s}) {
    result.median.*part = median_of([part](const StepTimes& step) { return step.*part; });
  }
  result.exchange_s = median_of([](const StepTimes& step) { return step.exchanges.total_s(); });
  result.median.step_s = median(result.step_s);
  result.parts = measured_parts(times, result.step_s, communicator);
  result.layers = measured_layers(trainer.execution().take_computing_times(), steps, communicator);
  result.peak_bytes = communicator.of_ranks(peak_resident_bytes());
  return result;
}

// The same beside a monitor that keeps nothing, for what it costs.
Measurement measure_monitored(Trainer& trainer,
                              Index steps,
                              bool trace,
                              const Communicator& communicator) {
  const RunClock clock(communicator);
  Monitor monitor({}, communicator, clock, nullptr);
  Measurement result = measure(trainer, steps, trace, communicator);
  monitor.finish();
  result.monitor_share = most_of_ranks(monitor.processor_share(), communicator);
  return result;
}

// What --parts and --layers add to the measurement: predictions where a profile says what the
// devices can do.
struct Details {
  bool parts = false;
  bool layers = false;
  std::optional<StepParts> predicted_parts;
  std::optional<std::vector<partitioner::PassSeconds>> predicted_layers;
  std::vector<std::vector<double>> predicted_actions;
};

Details details_of(const TimeCommand& command,
                   const partitioner::Network& network,
                   const Workload& workload,
                   const partitioner::Partition& partition,
                   const partitioner::Plan& plan) {
  Details details{command.parts, command.layers, std::nullopt, std::nullopt, {}};
  if (profiled_devices(command.partition) && (command.parts || command.layers)) {
    const auto cluster = described_cluster(command.partition, partition.ranks, {});
    const auto options = prediction_options(network, command.partition, workload, partition);
    if (command.parts) {  // of a step without a loss
      const partitioner::TimeShares time = time_shares(network, cluster, options, partition);
      details.predicted_parts =
          StepParts{time.computing_s(),
                    {time.maps_s, time.statistics_s + time.loss_s, time.gradients_s},
                    time.idle_s};
    }
    if (command.layers) {
      details.predicted_layers = mean_computing(network, cluster, options, partition);
    }
  }
  if (!command.trace.empty()) {
    details.predicted_actions =
        predicted_actions(command.partition, network, workload, partition, plan);
  }
  return details;
}

void print_measurement_json(const Measurement& measured, const Details& details) {
  nlohmann::ordered_json json{{"step_s",
                               {{"median", measured.median.step_s},
                                {"min", measured.least_s()},
                                {"max", measured.most_s()}}},
                              {"forward_s", measured.median.forward_s},
                              {"backward_s", measured.median.backward_s},
                              {"update_s", measured.median.update_s},
                              {"exchange_s", measured.exchange_s},
                              {"gflops", measured.gflops},
                              {"peak_bytes", measured.peak_bytes}};
  if (measured.monitor_share) {
    json["monitor_share"] = *measured.monitor_share;
  }
  if (details.parts) {
    json["parts"] = parts_json(measured.parts);
  }
  if (details.predicted_parts) {
    json["predicted_parts"] = parts_json(*details.predicted_parts);
  }
  if (details.layers) {
    json["layers"] = layers_json(measured.layers, details.predicted_layers);
  }
  fmt::print("{}\n", json.dump());
}

void print_measurement(const Measurement& measured) {
  const auto ms = [](double seconds) { return 1e3 * seconds; };
  fmt::print("step     {:10.3f} ms  (median; {:.3f} to {:.3f})\n",
             ms(measured.median.step_s),
             ms(measured.least_s()),
             ms(measured.most_s()));
  fmt::print("forward  {:10.3f} ms  (this and the following lines: rank 0)\n",
             ms(measured.median.forward_s));
  fmt::print("backward {:10.3f} ms\n", ms(measured.median.backward_s));
  fmt::print("update   {:10.3f} ms\n", ms(measured.median.update_s));
  fmt::print("exchange {:10.3f} ms  (part of the three above)\n", ms(measured.exchange_s));
  fmt::print("rate     {:10.2f} GFLOP/s, of all ranks\n", measured.gflops);
  for (std::size_t rank = 0; rank < measured.peak_bytes.size(); ++rank) {
    fmt::print(
        "memory   {:>10} MiB at most on rank {}\n", mebibytes(measured.peak_bytes[rank]), rank);
  }
  if (measured.monitor_share) {
    fmt::print("monitor  {:10.3f} % of a core, on the rank where it takes most\n",
               100 * *measured.monitor_share);
  }
}

void print_all(const TimeCommand& command,
               const partitioner::Network& network,
               int ranks,
               const Measurement& measured,
               const Details& details) {
  if (command.json) {
    print_measurement_json(measured, details);
    return;
  }
  fmt::print("{}, {}x{}, batch {}, {}, {} each, {}\n",
             printable(command.model),
             network.image.rows,
             network.image.cols,
             command.batch,
             counted(ranks, "rank"),
             counted(threads(), "thread"),
             counted(command.steps, "step"));
  print_measurement(measured);
  if (command.parts) {
    fmt::print(
        "\n"
        "Average step of an average rank; waiting counts towards what the message carries.\n"
        "{}",
        parts_table(measured.parts, details.predicted_parts));
  }
  if (command.layers) {
    fmt::print(
        "\n"
        "Computing time by layer in an average step: average rank and slowest rank.\n"
        "{}",
        layers_table(network, measured.layers, details.predicted_layers));
  }
}

}  // namespace

void run_time(const TimeCommand& command, const Communicator& communicator) {
  const SessionObserver& messages = printed_messages();
  const std::vector<Index> program_bytes = program_bytes_of_ranks(communicator);
  partitioner::ModelFile model = load_model(command.model, communicator, messages);
  model.network = agreed(
      communicator, [&] { return frozen(resized(model.network, command.size), command.freeze); });
  const Workload workload{
      .model = command.model, .batch = command.batch, .adam = model.training.adam};
  const partitioner::Partition partition =
      agreed_partition(model.network, command.partition, workload, communicator, messages);
  Details details;
  const partitioner::Plan plan = make_plan(model.network, partition, command.batch);
  on_root(communicator,
          [&] { details = details_of(command, model.network, workload, partition, plan); });
  warn_of_idle_ranks(partition, communicator, messages);
  on_root(communicator, [&] {
    if (!command.trace.empty()) {
      const AtomicFile writable(command.trace, Links::Follow);  // before anything takes long
    }
  });
  throw_agreed(communicator, problem_of([&] {
                 if (command.threads > 0) {
                   set_threads(command.threads);
                 }
               }));
  partitioner::ReportOptions options =
      report_options(command.model, model.network, plan, model.training.adam);
  options.program_bytes = program_bytes;
  expect_memory(model.network, plan, options, communicator);
  partitioner::TrainingOptions training = model.training;
  training.batch = command.batch;
  training.subdivisions = 1;
  training.learning_rate = 0;  // random pictures teach nothing, and no rate is right for them
  training.max_batches = std::max<Index>(training.max_batches, command.steps + 1);
  Trainer trainer(model.network, plan, communicator, {training, BatchNormMode::Sync, 1});
  const auto measure_steps = command.monitor ? measure_monitored : measure;
  Measurement measured =
      measure_steps(trainer, command.steps, !command.trace.empty(), communicator);
  on_root(communicator, [&] {
    if (!command.trace.empty()) {
      write_atomically(
          command.trace,
          trace_json(plan, plan.schedule, {measured.actions, details.predicted_actions}),
          Links::Follow);
    }
  });
  measured.gflops = step_flops(model.network, command.batch) / measured.median.step_s * 1e-9;
  if (communicator.rank() != 0) {
    return;
  }
  print_all(command, model.network, communicator.size(), measured, details);
}

}  // namespace tessera::engine
