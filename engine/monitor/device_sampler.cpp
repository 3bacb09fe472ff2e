#include "engine/monitor/device_sampler.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/system/clock.h"
#include "engine/system/system_memory.h"

namespace tessera::engine {

namespace {

double or_unknown(const std::optional<double>& value) {
  return value.value_or(kUnknown);
}

double waited_s(const Pulse* pulse) {
  return pulse == nullptr ? 0 : pulse->waited_s();
}

}  // namespace

void DeviceSampler::Meter::open(const MeterSpec& spec, const std::filesystem::path& root) {
  MeterPlaces places;
  places.root = root;
  if (OpenedMeter opened = open_meter(spec, places); opened.meter) {
    sampler = std::make_unique<PowerSampler>(std::move(*opened.meter));
  }
}

double DeviceSampler::Meter::look(double time_s, double& power_w, double& energy_j) const {
  if (sampler == nullptr) {
    return 0;
  }
  const EnergyTotal total = sampler->state(time_s).total;
  power_w = or_unknown(total.power_w);
  energy_j = total.energy_j;
  return total.gap_s;
}

void DeviceSampler::Meter::add_problem(std::vector<std::string>& problems) {
  if (sampler == nullptr || reported) {
    return;
  }
  if (const PowerState state = sampler->state(); state.failures > 0) {
    reported = true;
    problems.push_back(fmt::format("{}: {}; power is unknown while that lasts",
                                   sampler->description().source,
                                   state.problem.empty() ? "a reading failed" : state.problem));
  }
}

MeterReading::Meter DeviceSampler::Meter::reading() const {
  if (sampler == nullptr) {
    return {};
  }
  const MeterDescription& meter = sampler->description();
  const EnergyTotal total = sampler->state().total;
  return {
      true, total.energy_j, total.measured_s, meter.relative_error.value_or(0), meter.estimated};
}

DeviceSampler::DeviceSampler(Options options)
    : root_(std::move(options.root)),
      pulse_(options.pulse),
      waited_before_s_(waited_s(options.pulse)),
      network_(root_, std::move(options.interface)),
      board_(root_),
      busy_(root_) {
  board_meter_.open(options.meters.board, root_);
  if (options.meters.cluster) {
    cluster_meter_.open(*options.meters.cluster, root_);
  }
}

DeviceSample DeviceSampler::take() {
  DeviceSample sample;
  const ProcessTimes times = process_times();
  sample.cpu_user_s = times.user_s;
  sample.cpu_system_s = times.system_s;
  // A wait that ends in between may be seen late, never twice.
  waited_s_ = std::max(waited_s_, waited_s(pulse_) - waited_before_s_);
  sample.wait_s = waited_s_;
  sample.rss_bytes = or_unknown(resident_now_bytes(root_));
  if (const auto free = free_memory_bytes(root_); free > 0) {
    sample.free_bytes = static_cast<double>(free);
  }
  if (const auto network = network_.look()) {
    sample.rx_bytes = network->rx_bytes;
    sample.tx_bytes = network->tx_bytes;
    sample.rx_packets = network->rx_packets;
    sample.tx_packets = network->tx_packets;
  }
  sample.temperature_c = or_unknown(board_.temperature_c());
  sample.clock_hz = or_unknown(board_.clock_hz());
  sample.throttled = or_unknown(board_.throttled());
  if (board_meter_.sampler != nullptr) {
    board_meter_.sampler->set_busy_cores(busy_.look());
  }
  const double time_s = now_s();
  sample.gap_s =
      std::max(board_meter_.look(time_s, sample.power_w, sample.energy_j),
               cluster_meter_.look(time_s, sample.cluster_power_w, sample.cluster_energy_j));
  return sample;
}

std::vector<std::string> DeviceSampler::new_problems() {
  std::vector<std::string> problems = board_.new_problems();
  board_meter_.add_problem(problems);
  cluster_meter_.add_problem(problems);
  return problems;
}

MeterReading DeviceSampler::meter_reading() const {
  return {board_meter_.reading(), cluster_meter_.reading()};
}

const MeterDescription* DeviceSampler::board_meter() const {
  return board_meter_.sampler == nullptr ? nullptr : &board_meter_.sampler->description();
}

const MeterDescription* DeviceSampler::cluster_meter() const {
  return cluster_meter_.sampler == nullptr ? nullptr : &cluster_meter_.sampler->description();
}

}  // namespace tessera::engine
