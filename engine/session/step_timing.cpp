#include "engine/session/step_timing.h"

#include <algorithm>
#include <numeric>

#include "engine/base/median.h"
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

namespace tessera::engine {

namespace {

using partitioner::PassSeconds;

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

double most_of_ranks(double mine, const Communicator& communicator) {
  const std::vector<double> all = communicator.of_ranks(mine);
  return *std::max_element(all.begin(), all.end());
}

double mean_of_ranks(double mine, const Communicator& communicator) {
  const std::vector<double> all = communicator.of_ranks(mine);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

StepParts measured_parts(const std::vector<StepTimes>& times,
                         const std::vector<double>& longest_s,
                         const Communicator& communicator) {
  StepTimes sum;
  for (const StepTimes& step : times) {
    sum.step_s += step.step_s;
    sum.exchanges.maps_s += step.exchanges.maps_s;
    sum.exchanges.statistics_s += step.exchanges.statistics_s;
    sum.exchanges.reduction_s += step.exchanges.reduction_s;
  }
  const auto mean = [&](double seconds) {
    return mean_of_ranks(seconds, communicator) / static_cast<double>(times.size());
  };
  const double steps_s = std::accumulate(longest_s.begin(), longest_s.end(), 0.0);
  StepParts parts;
  parts.computing_s = mean(sum.step_s - sum.exchanges.total_s());
  parts.exchanges.maps_s = mean(sum.exchanges.maps_s);
  parts.exchanges.statistics_s = mean(sum.exchanges.statistics_s);
  parts.exchanges.reduction_s = mean(sum.exchanges.reduction_s);
  parts.idle_s = mean(steps_s - sum.step_s);
  return parts;
}

std::vector<LayerComputing> measured_layers(const std::vector<PassSeconds>& mine,
                                            Index steps,
                                            const Communicator& communicator) {
  const std::vector<std::vector<PassSeconds>> of_ranks = communicator.of_ranks(mine);
  std::vector<LayerComputing> layers(mine.size());
  for (const std::vector<PassSeconds>& of_rank : of_ranks) {
    for (std::size_t layer = 0; layer < mine.size(); ++layer) {
      for (const auto pass :
           {&PassSeconds::forward_s, &PassSeconds::backward_s, &PassSeconds::weights_s}) {
        const double seconds = of_rank[layer].*pass / static_cast<double>(steps);
        double& mean = layers[layer].mean.*pass;
        double& most = layers[layer].most.*pass;
        mean += seconds / static_cast<double>(of_ranks.size());
        most = std::max(most, seconds);
      }
    }
  }
  return layers;
}

struct Measurement {
  TimedSteps timing;
  std::vector<std::vector<PerformedAction>> actions;  // of the last step, by rank; where traced
};

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
  TimedSteps& timing = result.timing;
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
    timing.step_s.push_back(most_of_ranks(step.step_s, communicator));
  }
  for (const auto part : {&StepTimes::forward_s, &StepTimes::backward_s, &StepTimes::update_s}) {
    timing.median.*part = median_of([part](const StepTimes& step) { return step.*part; });
  }
  timing.exchange_s = median_of([](const StepTimes& step) { return step.exchanges.total_s(); });
  timing.median.step_s = median(timing.step_s);
  timing.parts = measured_parts(times, timing.step_s, communicator);
  timing.layers = measured_layers(trainer.execution().take_computing_times(), steps, communicator);
  timing.peak_bytes = communicator.of_ranks(peak_resident_bytes());
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
  result.timing.monitor_share = most_of_ranks(monitor.processor_share(), communicator);
  return result;
}

StepForecast forecast_of(const TimingRequest& request,
                         const partitioner::Network& network,
                         const Workload& workload,
                         const partitioner::Partition& partition,
                         const partitioner::Plan& plan) {
  StepForecast forecast;
  if (profiled_devices(request.partition) && (request.parts || request.layers)) {
    const auto cluster = described_cluster(request.partition, partition.ranks, {});
    const auto options = prediction_options(network, request.partition, workload, partition);
    if (request.parts) {  // of a step without a loss
      const partitioner::TimeShares time = time_shares(network, cluster, options, partition);
      forecast.parts = StepParts{time.computing_s(),
                                 {time.maps_s, time.statistics_s + time.loss_s, time.gradients_s},
                                 time.idle_s};
    }
    if (request.layers) {
      forecast.layers = mean_computing(network, cluster, options, partition);
    }
  }
  if (!request.trace.empty()) {
    forecast.actions = predicted_actions(request.partition, network, workload, partition, plan);
  }
  return forecast;
}

}  // namespace

TimedSteps time_steps(const TimingRequest& request,
                      const Communicator& communicator,
                      const SessionObserver& messages) {
  const std::vector<Index> program_bytes = program_bytes_of_ranks(communicator);
  partitioner::ModelFile model = load_model(request.model, communicator, messages);
  model.network = agreed(
      communicator, [&] { return frozen(resized(model.network, request.size), request.freeze); });
  const Workload workload{
      .model = request.model, .batch = request.batch, .trained = trained_arrays(model.training)};
  const partitioner::Partition partition =
      agreed_partition(model.network, request.partition, workload, communicator, messages);
  const partitioner::Plan plan = make_plan(model.network, partition, request.batch);
  StepForecast forecast;
  on_root(communicator,
          [&] { forecast = forecast_of(request, model.network, workload, partition, plan); });
  warn_of_idle_ranks(partition, communicator, messages);
  on_root(communicator, [&] {
    if (!request.trace.empty()) {
      const AtomicFile writable(request.trace, Links::Follow);  // before anything takes long
    }
  });
  throw_agreed(communicator, problem_of([&] {
                 if (request.threads > 0) {
                   set_threads(request.threads);
                 }
               }));
  partitioner::ReportOptions options =
      report_options(request.model, model.network, plan, trained_arrays(model.training));
  options.program_bytes = program_bytes;
  expect_memory(planned_memory_of_ranks(model.network, plan, options), request.model, communicator);
  partitioner::TrainingOptions training = model.training;
  training.batch = request.batch;
  training.subdivisions = 1;
  training.learning_rate = 0;  // random pictures teach nothing, and no rate is right for them
  training.max_batches = std::max<Index>(training.max_batches, request.steps + 1);
  Trainer trainer(model.network, plan, communicator, {training, BatchNormMode::Sync, 1});
  const auto measure_steps = request.monitor ? measure_monitored : measure;
  Measurement measured =
      measure_steps(trainer, request.steps, !request.trace.empty(), communicator);
  on_root(communicator, [&] {
    if (!request.trace.empty()) {
      write_atomically(request.trace,
                       trace_json(plan, plan.schedule, {measured.actions, forecast.actions}),
                       Links::Follow);
    }
  });
  TimedSteps timing = std::move(measured.timing);
  timing.gflops = step_flops(model.network, request.batch) / timing.median.step_s * 1e-9;
  timing.network = std::move(model.network);
  timing.forecast = std::move(forecast);
  return timing;
}

}  // namespace tessera::engine
