#include "engine/monitor/monitor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <pthread.h>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/own_address.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/system/host_name.h"

namespace tessera::engine {

namespace {

// A letter begins with what it is.
enum class Kind : std::uint8_t { Sample, Problem, Throttling };

std::vector<std::byte> letter_of(Kind kind, std::span<const std::byte> content) {
  std::vector<std::byte> letter(1 + content.size(), static_cast<std::byte>(kind));
  std::copy(content.begin(), content.end(), letter.begin() + 1);
  return letter;
}

std::optional<DeviceSample> sample_in(const std::vector<std::byte>& letter) {
  DeviceSample sample;
  if (letter.size() != 1 + sizeof sample || letter[0] != static_cast<std::byte>(Kind::Sample)) {
    return std::nullopt;
  }
  std::memcpy(&sample, letter.data() + 1, sizeof sample);
  return sample;
}

std::string text_in(const std::vector<std::byte>& letter) {
  return {reinterpret_cast<const char*>(letter.data()) + 1, letter.size() - 1};
}

DeviceSampler sampler_of(const MonitorOptions& options,
                         const Communicator& communicator,
                         const std::vector<std::string>& hosts) {
  return DeviceSampler({.root = options.root,
                        .interface = own_interface(),
                        .pulse = communicator.pulse(),
                        .meters = meters_of_rank(options.meters, hosts, communicator.rank())});
}

// Of a run that goes on, by the last power until it does.
RunEnergy energy_before(const DeviceLog* log,
                        const RunClock& clock,
                        int ranks,
                        const std::optional<double>& said_j) {
  RunEnergy energy = log == nullptr ? RunEnergy() : log->energy_at(clock.begun_s(), ranks);
  if (said_j) {
    energy.total_j = std::max(energy.total_j.value_or(0), *said_j);
  }
  return energy;
}

}  // namespace

void expect_meters(const MonitorOptions& options, const Communicator& communicator) {
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  (void)agreed(communicator, [&] { return sampler_of(options, communicator, hosts); });
}

Monitor::Monitor(MonitorOptions options,
                 const Communicator& communicator,
                 const RunClock& clock,
                 DeviceLog* log,
                 const std::optional<double>& said_j)
    : Monitor(std::move(options), communicator, clock, log, said_j, hosts_of_ranks(communicator)) {}

Monitor::Monitor(MonitorOptions options,
                 const Communicator& communicator,
                 const RunClock& clock,
                 DeviceLog* log,
                 const std::optional<double>& said_j,
                 std::vector<std::string> hosts)
    : options_(std::move(options)),
      communicator_(&communicator),
      clock_(&clock),
      log_(log),
      sampler_(agreed(communicator, [&] { return sampler_of(options_, communicator, hosts); })),
      mailbox_(communicator),
      hosts_(std::move(hosts)),
      account_(communicator.size(), energy_before(log, clock, communicator.size(), said_j)) {
  if (log != nullptr && log->kept_until_s() > 0) {
    stood_s_ = clock.begun_s() - log->kept_until_s();
  }
  exchange_meters();
  thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  stop();
}

void Monitor::exchange_meters() {
  std::vector<RankMeter> mine;
  if (const MeterDescription* const meter = sampler_.board_meter()) {
    mine.push_back(rank_meter(*meter));
  }
  if (const MeterDescription* const meter = sampler_.cluster_meter()) {
    mine.push_back(rank_meter(*meter));
    mine.back().cluster = true;
  }
  for (const std::string& line : texts_of_ranks(*communicator_, to_line(mine))) {
    meters_.push_back(meters_of_line(line));
  }
}

// Samples are of whole periods of the run's clock, besides the first and the last one. Rank 0 gives
// those of the same moment some time to arrive.
void Monitor::run() {
  constexpr double kOnTheWay = 0.2;  // of a period
  ::pthread_setname_np(::pthread_self(), "monitor");
  const double period_s = options_.period_s;
  take_sample();
  (void)sleep_until(clock_->t_s() + kOnTheWay * period_s);
  collect();
  for (bool goes_on = true; goes_on;) {
    goes_on = sleep_until(period_s * (1 + std::floor(clock_->t_s() / period_s)));
    take_sample();
    post_problems();
    if (communicator_->rank() == 0) {
      (void)sleep_until(clock_->t_s() + kOnTheWay * period_s);
      collect();
    }
    processor_s_ = processor_s();
  }
}

// False where the thread is to end.
bool Monitor::sleep_until(double t_s) {
  std::unique_lock lock(mutex_);
  const auto time = std::chrono::duration<double>(std::max(0.0, t_s - clock_->t_s()));
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

void Monitor::take_sample() {
  DeviceSample sample = sampler_.take();
  sample.t_s = clock_->t_s();
  sample.step = step_;
  (void)mailbox_.post(letter_of(Kind::Sample, bytes_of(&std::as_const(sample), 1)));
  look_at_throttling(sample);
}

void Monitor::look_at_throttling(const DeviceSample& sample) {
  if (!is_first_on_host(hosts_, communicator_->rank())) {
    return;
  }
  if (const auto text = throttle_watch_.look(sample)) {
    (void)mailbox_.post(letter_of(Kind::Throttling, bytes_of(text->data(), std::ssize(*text))));
  }
}

void Monitor::post_problems() {
  for (const std::string& problem : sampler_.new_problems()) {
    (void)mailbox_.post(letter_of(Kind::Problem, bytes_of(problem.data(), std::ssize(problem))));
  }
}

void Monitor::collect() {
  std::string lines;
  for (const Mailbox::Letter& letter : mailbox_.take()) {
    if (const auto sample = sample_in(letter.bytes)) {
      const std::lock_guard lock(account_mutex_);
      account_.add(letter.from, *sample);
      const auto rank = static_cast<std::size_t>(letter.from);
      DeviceLine line = measured_line(account_.since_start(letter.from, *sample), meters_[rank]);
      line.rank = letter.from;
      line.host = hosts_[rank];
      lines += line_of(line) + "\n";
    } else if (!letter.bytes.empty() &&
               letter.bytes[0] == static_cast<std::byte>(Kind::Throttling)) {
      if (options_.throttling) {
        options_.throttling(hosts_[static_cast<std::size_t>(letter.from)], text_in(letter.bytes));
      }
    } else if (!letter.bytes.empty()) {
      const std::string text = text_in(letter.bytes);
      warn(communicator_->size() == 1
               ? text
               : rank_on(letter.from, hosts_[static_cast<std::size_t>(letter.from)]) + ": " + text);
    }
  }
  write(lines);
}

void Monitor::warn(const std::string& text) const {
  if (options_.warn) {
    options_.warn(text);
  }
}

void Monitor::write(const std::string& lines) {
  if (lines.empty() || log_ == nullptr || !log_works_) {
    return;
  }
  try {
    log_->lines().add_line(lines.substr(0, lines.size() - 1));
  } catch (const InputError& error) {
    log_works_ = false;
    warn(fmt::format("{}; devices are not recorded any more", error.what()));
  }
}

void Monitor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Monitor::finish() {
  if (communicator_->rank() != 0) {
    stop();
  }
  communicator_->barrier();  // behind the last samples of all others
  stop();
  finished_ = true;
}

RunEnergy Monitor::energy() {
  const std::lock_guard lock(account_mutex_);
  return finished_ ? account_.of_samples() : account_.at(clock_->t_s());
}

std::string Monitor::energy_line() {
  const RunEnergy energy = this->energy();
  const std::lock_guard lock(account_mutex_);
  const double unknown_s = std::max(stood_s_ - DeviceLog::kLongestAssumed_s, 0.0);
  return energy.total_j ? energy_text(*energy.total_j,
                                      account_.longest_gap_s() + unknown_s,
                                      meters_,
                                      hosts_,
                                      stood_s_ - unknown_s)
                        : "";
}

}  // namespace tessera::engine
