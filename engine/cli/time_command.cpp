#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/cli/commands.h"
#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/ops/threads.h"
#include "engine/train/run_report.h"

namespace engine {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Operations of a training step of the whole network on one device: two a multiply-add, forward, to
// the weights, and to the data wherever there is a layer below.
double step_flops(const partitioner::Network& network, Index batch) {
  double flops = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    const double forward =
        2 * static_cast<double>(multiply_adds(network, layer, whole_map(network, layer, batch)));
    flops += network.layer(layer).inputs[0] == partitioner::kImage ? 2 * forward : 3 * forward;
  }
  return flops;
}

}  // namespace

void run_time(const TimeCommand& command, const Communicator& communicator) {
  partitioner::ModelFile model = load_model(command.model, communicator);
  model.network = agreed(communicator, [&] { return resized(model.network, command.size); });
  const partitioner::Partition partition = agreed(communicator, [&] {
    return choose_partition(model.network, command.partition, communicator.size(), command.batch);
  });
  warn_of_idle_ranks(partition, communicator);
  if (command.threads > 0) {
    set_threads(command.threads);
  }
  const partitioner::Plan plan = make_plan(model.network, partition, command.batch);
  expect_memory(model.network,
                plan,
                report_options(command.model, model.network, plan, model.training.adam),
                communicator);
  partitioner::TrainingOptions training = model.training;
  training.batch = command.batch;
  training.subdivisions = 1;
  training.max_batches = std::max<Index>(training.max_batches, command.steps + 1);
  Trainer trainer(model.network, plan, communicator, {training, BatchNormMode::Sync, 1});
  std::vector<StepTimes> times;
  (void)trainer.time_random_step();  // warm-up: page faults, first messages
  for (Index step = 0; step < command.steps; ++step) {
    communicator.barrier();
    times.push_back(trainer.time_random_step());
  }
  const auto all = [&](double StepTimes::*part) {
    std::vector<double> values;
    for (const StepTimes& step : times) {
      values.push_back(step.*part);
    }
    return values;
  };
  const std::vector<double> steps = all(&StepTimes::step_s);
  const double gflops = step_flops(model.network, command.batch) / median(steps) * 1e-9;
  std::vector<Index> peaks;
  const Index peak = peak_resident_bytes();
  for (const auto& bytes : communicator.gather_all(bytes_of(&peak, 1))) {
    std::memcpy(&peaks.emplace_back(), bytes.data(), sizeof(Index));
  }
  if (communicator.rank() != 0) {
    return;
  }
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  if (command.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"step_s", {{"median", median(steps)}, {"min", *least}, {"max", *most}}},
                   {"forward_s", median(all(&StepTimes::forward_s))},
                   {"backward_s", median(all(&StepTimes::backward_s))},
                   {"update_s", median(all(&StepTimes::update_s))},
                   {"exchange_s", median(all(&StepTimes::exchange_s))},
                   {"gflops", gflops},
                   {"peak_bytes", peaks}}
                   .dump());
    return;
  }
  fmt::print("{}, {}x{}, batch {}, {} rank{}, {} threads each, {} steps\n",
             command.model,
             model.network.image.rows,
             model.network.image.cols,
             command.batch,
             communicator.size(),
             communicator.size() == 1 ? "" : "s",
             threads(),
             command.steps);
  fmt::print("step     {:9.4f} s  (median; {:.4f} to {:.4f})\n", median(steps), *least, *most);
  fmt::print("forward  {:9.4f} s\n", median(all(&StepTimes::forward_s)));
  fmt::print("backward {:9.4f} s\n", median(all(&StepTimes::backward_s)));
  fmt::print("update   {:9.4f} s\n", median(all(&StepTimes::update_s)));
  fmt::print("exchange {:9.4f} s  (part of the above, rank 0)\n",
             median(all(&StepTimes::exchange_s)));
  fmt::print("rate     {:9.2f} GFLOP/s\n", gflops);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    fmt::print("memory   {:9.1f} MiB at most on rank {}\n",
               static_cast<double>(peaks[rank]) / (1024.0 * 1024.0),
               rank);
  }
}

}  // namespace engine
