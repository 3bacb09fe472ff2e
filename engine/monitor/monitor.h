// Looks at every device once a second while a run is going: a thread of each rank takes a sample
// and sends it to rank 0, which keeps them in DIR/devices.jsonl and adds up the energy. Training
// never waits for it, and what goes wrong with it does not end training: a sample that is late or
// lost is a gap in the file.
//
// Figures of the process are this rank's; those of the interface, the board and its power are of
// the machine, whoever uses it: ranks on one machine have the same ones.

#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/mailbox.h"
#include "engine/comm/run_clock.h"
#include "engine/monitor/device_log.h"
#include "engine/monitor/device_sampler.h"
#include "engine/monitor/energy_account.h"
#include "engine/monitor/meter_summary.h"
#include "engine/monitor/throttle_watch.h"
#include "engine/power/meter_spec.h"
#include "engine/run_files/device_sample.h"
#include "engine/system/clock.h"

namespace tessera::engine {

struct MonitorOptions {
  std::vector<MeterSpec> meters = {};  // none: the best that each machine has
  double period_s = 1;
  std::filesystem::path root = "/";  // that proc, sys and dev lie in
  // What somebody should know of: rank 0's, called by another thread.
  std::function<void(const std::string&)> warn = {};
  // That a machine begins to be slowed down by its firmware, or that this is over; likewise.
  std::function<void(const std::string& host, const std::string& text)> throttling = {};
};

// AgreedError where a meter that was asked for by name does not work on the rank that would read
// it. All ranks call this together.
void expect_meters(const MonitorOptions& options, const Communicator& communicator);

class Monitor {
 public:
  // `log` is rank 0's, null on others and where nothing is to be kept; clock and log must outlive
  // this. `said_j` is what rank 0 has said of the energy of a run that goes on: what follows is not
  // less. All ranks call this together; AgreedError where a meter that was asked for by name does
  // not work.
  Monitor(MonitorOptions options,
          const Communicator& communicator,
          const RunClock& clock,
          DeviceLog* log,
          const std::optional<double>& said_j = {});
  // Ends with a last sample, which may not reach rank 0 any more.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // How many steps are done.
  void set_step(Index step) { step_ = step; }

  // Takes the last sample of each rank. All ranks call this together; nothing happens afterwards.
  void finish();

  // The share of a core that this rank's thread has used so far.
  [[nodiscard]] double processor_share() const { return processor_s_ / (now_s() - made_s_); }

  // What this rank's meters show now. Any thread may call it.
  [[nodiscard]] MeterReading meter_reading() const { return sampler_.meter_reading(); }

  // Rank 0's, as of now or of the last sample.
  [[nodiscard]] RunEnergy energy();

  // Rank 0's, see energy_text(). Empty where there is no meter.
  [[nodiscard]] std::string energy_line();

 private:
  Monitor(MonitorOptions options,
          const Communicator& communicator,
          const RunClock& clock,
          DeviceLog* log,
          const std::optional<double>& said_j,
          std::vector<std::string> hosts);

  void exchange_meters();
  void run();
  bool sleep_until(double t_s);
  void take_sample();
  void post_problems();
  void look_at_throttling(const DeviceSample& sample);
  void collect();
  void warn(const std::string& text) const;
  void write(const std::string& lines);
  void stop();

  MonitorOptions options_;
  const Communicator* communicator_;
  const RunClock* clock_;
  DeviceLog* log_;
  bool log_works_ = true;
  std::atomic<Index> step_{0};
  double made_s_ = now_s();
  std::atomic<double> processor_s_{0};
  DeviceSampler sampler_;
  Mailbox mailbox_;  // of the thread
  std::vector<std::string> hosts_;
  ThrottleWatch throttle_watch_;                // of the thread
  std::vector<std::vector<RankMeter>> meters_;  // of ranks
  std::mutex account_mutex_;                    // of the account
  EnergyAccount account_;
  double stood_s_ = 0;  // before it began, of a run that goes on: without samples
  bool finished_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tessera::engine
