#include "partitioner/cost/simulation.h"

#include <algorithm>

#include "partitioner/base/errors.h"
#include "partitioner/cost/wire.h"
#include "partitioner/network/layer_memory.h"
#include "partitioner/partition/gradient_sums.h"

namespace tessera::partitioner {

namespace {

using Doing = TimelineSpan::Doing;

// A rank's part in one transfer, from when it is started.
struct Part {
  int incoming = 0;
  int outgoing = 0;
  int arrived = 0;
  int departed = 0;
  double last_departure_s = 0;
  struct Arrival {
    double time = 0;
    double unpack_s = 0;
  };
  std::vector<Arrival> arrivals;  // in the order of time
};

class Simulation {
 public:
  Simulation(const StepProgram& program, const ClusterProfile& cluster)
      : program_(program),
        cluster_(cluster),
        wire_(cluster, static_cast<double>(kPieceBytes * pieces_under_way(program.ranks))) {
    const auto ranks = static_cast<std::size_t>(program.ranks);
    clocks_.resize(ranks);
    at_.resize(ranks);
    result_.timelines.resize(ranks);
    for (const PricedTransfer& transfer : program.transfers) {
      auto& parts = parts_.emplace_back(ranks);
      auto& outgoing = outgoing_.emplace_back(ranks);
      for (const Parcel& parcel : transfer.parcels) {
        ++parts[static_cast<std::size_t>(parcel.from)].outgoing;
        ++parts[static_cast<std::size_t>(parcel.to)].incoming;
        outgoing[static_cast<std::size_t>(parcel.from)].push_back(&parcel);
      }
    }
  }

  // Ranks run ahead as far as they can; a message takes them further. What they send lies after the
  // event that let them run, so the wire sees messages in time.
  SimulatedStep run() {
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      advance(rank);
    }
    for (Wire::Departure left = wire_.next(); left.message >= 0; left = wire_.next()) {
      deliver(left);
    }
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      expects(at_[rank] == program_.actions.size(), "every rank comes to the end of its program");
      result_.step_s = std::max(result_.step_s, clocks_[rank]);
    }
    return std::move(result_);
  }

 private:
  struct Sent {
    const Parcel* parcel;
    std::size_t transfer;
  };

  void deliver(const Wire::Departure& left) {
    const Sent& sent = sent_[static_cast<std::size_t>(left.message)];
    const Parcel& parcel = *sent.parcel;
    const auto from = static_cast<std::size_t>(parcel.from);
    const auto to = static_cast<std::size_t>(parcel.to);
    Part& sender = parts_[sent.transfer][from];
    ++sender.departed;
    sender.last_departure_s = left.time;
    Part& receiver = parts_[sent.transfer][to];
    ++receiver.arrived;
    receiver.arrivals.push_back({left.time + cluster_.between(parcel.from, parcel.to).latency_s,
                                 parcel_processor_seconds(cluster_.device(parcel.to), parcel)});
    advance(to);
    advance(from);
  }

  void advance(std::size_t rank) {
    while (at_[rank] < program_.actions.size()) {
      const StepAction& action = program_.actions[at_[rank]];
      if (action.kind == StepAction::Kind::Compute) {
        spend(rank, Doing::Compute, action, action.seconds[rank]);
      } else if (action.kind == StepAction::Kind::Start) {
        start(rank, action);
      } else if (!finish(rank, action)) {
        return;
      }
      ++at_[rank];
    }
  }

  void spend(std::size_t rank, Doing doing, const StepAction& action, double seconds) {
    if (seconds > 0) {
      record(rank, doing, action, clocks_[rank] + seconds);
    }
  }

  void record(std::size_t rank, Doing doing, const StepAction& action, double until) {
    result_.timelines[rank].push_back({doing, action.part, action.layer, clocks_[rank], until});
    clocks_[rank] = until;
  }

  void wait_until(std::size_t rank, const StepAction& action, double time) {
    if (time > clocks_[rank]) {
      record(rank, Doing::Wait, action, time);
    }
  }

  void start(std::size_t rank, const StepAction& action) {
    const auto transfer = static_cast<std::size_t>(action.transfer);
    const auto kind = program_.transfers[transfer].bulk ? Wire::Kind::Bulk : Wire::Kind::Urgent;
    for (const Parcel* parcel : outgoing_[transfer][rank]) {
      spend(rank,
            Doing::Send,
            action,
            parcel_processor_seconds(cluster_.device(parcel->from), *parcel));
      wire_.send(parcel->from, parcel->to, parcel->bytes, clocks_[rank], kind);
      sent_.push_back({parcel, transfer});
    }
  }

  // Whether all that the rank waits for has come and gone.
  bool finish(std::size_t rank, const StepAction& action) {
    const auto transfer = static_cast<std::size_t>(action.transfer);
    const bool waits_for_sends = program_.transfers[transfer].waits_for_sends;
    Part& part = parts_[transfer][rank];
    if (part.arrived < part.incoming || (waits_for_sends && part.departed < part.outgoing)) {
      return false;
    }
    std::stable_sort(part.arrivals.begin(), part.arrivals.end(), [](const auto& a, const auto& b) {
      return a.time < b.time;
    });
    if (program_.transfers[transfer].in_order && !part.arrivals.empty()) {
      wait_until(rank, action, part.arrivals.back().time);
    }
    for (const Part::Arrival& arrival : part.arrivals) {
      wait_until(rank, action, arrival.time);
      spend(rank, Doing::Receive, action, arrival.unpack_s);
    }
    if (waits_for_sends) {
      wait_until(rank, action, part.last_departure_s);
    }
    return true;
  }

  const StepProgram& program_;
  const ClusterProfile& cluster_;
  Wire wire_;
  std::vector<double> clocks_;                                     // by rank
  std::vector<std::size_t> at_;                                    // by rank: its next action
  std::vector<std::vector<Part>> parts_;                           // [transfer][rank]
  std::vector<std::vector<std::vector<const Parcel*>>> outgoing_;  // [transfer][rank]
  std::vector<Sent> sent_;                                         // by message of the wire
  SimulatedStep result_;
};

}  // namespace

double SimulatedStep::seconds(int rank, TimelineSpan::Doing doing) const {
  double sum = 0;
  for (const TimelineSpan& span : timelines[static_cast<std::size_t>(rank)]) {
    sum += span.doing == doing ? span.end_s - span.begin_s : 0;
  }
  return sum;
}

bool is_simulable(const Network& network, int devices) {
  constexpr double kMostWork = 1e7;
  double sums = 0;  // of statistics and parameters: from each device to each other
  for (const LayerSpec& layer : network.layers) {
    sums += normalizes(layer.operation) ? 2 : 0;
    sums += std::holds_alternative<Convolution>(layer.operation) ||
                    std::holds_alternative<Connected>(layer.operation)
                ? 2
                : 0;
  }
  const double messages = static_cast<double>(devices) * (devices - 1);
  return sums * messages * messages <= kMostWork;
}

SimulatedStep simulate(const StepProgram& program, const ClusterProfile& cluster) {
  expects(program.ranks == cluster.size(), "a program is for as many ranks as there are devices");
  return Simulation(program, cluster).run();
}

}  // namespace tessera::partitioner
