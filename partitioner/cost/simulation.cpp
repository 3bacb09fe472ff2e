#include "partitioner/cost/simulation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/cost/wire.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/partition/gradient_reduction.h"

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
  Simulation(const PricedStep& step, const ClusterProfile& cluster)
      : step_(step),
        cluster_(cluster),
        wire_(cluster, static_cast<double>(kChunkBytes * chunks_in_flight(step.ranks))) {
    const auto ranks = static_cast<std::size_t>(step.ranks);
    clocks_.resize(ranks);
    computed_s_.resize(ranks);
    at_.resize(ranks, PricedActionIndex(0));
    result_.timelines.resize(ranks);
    for (const PricedTransfer& transfer : step.transfers) {
      Outgoing outgoing(ranks);
      for (const Parcel& parcel : transfer.parcels) {
        outgoing[static_cast<std::size_t>(parcel.from)].push_back(&parcel);
      }
      outgoing_.push_back(std::move(outgoing));
    }
    number_exchanges();
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
      expects(at_[rank] == step_.actions.end_index(), "every rank comes to the end of the step");
      result_.step_s = std::max(result_.step_s, clocks_[rank]);
    }
    return std::move(result_);
  }

 private:
  using Outgoing = std::vector<std::vector<const Parcel*>>;  // [rank]

  struct Sent {
    const Parcel* parcel;
    std::size_t exchange;
  };

  // Ranks run ahead into the next pass: a transfer is another exchange in each pass.
  void number_exchanges() {
    std::map<std::pair<Index, TransferIndex>, std::size_t> numbers;
    for (const PricedAction& priced : step_.actions) {
      const TransferIndex transfer = priced.action.transfer;
      if (priced.action.kind == Action::Kind::Compute) {
        exchange_.push_back(0);
        continue;
      }
      const auto [known, is_new] = numbers.try_emplace({priced.pass, transfer}, parts_.size());
      if (is_new) {
        parts_.push_back(parts_of(step_.transfers[transfer]));
      }
      exchange_.push_back(known->second);
    }
  }

  [[nodiscard]] std::vector<Part> parts_of(const PricedTransfer& transfer) const {
    std::vector<Part> parts(static_cast<std::size_t>(step_.ranks));
    for (const Parcel& parcel : transfer.parcels) {
      ++parts[static_cast<std::size_t>(parcel.from)].outgoing;
      ++parts[static_cast<std::size_t>(parcel.to)].incoming;
    }
    return parts;
  }

  void deliver(const Wire::Departure& left) {
    const Sent& sent = sent_[static_cast<std::size_t>(left.message)];
    const Parcel& parcel = *sent.parcel;
    const auto from = static_cast<std::size_t>(parcel.from);
    const auto to = static_cast<std::size_t>(parcel.to);
    Part& sender = parts_[sent.exchange][from];
    ++sender.departed;
    sender.last_departure_s = left.time;
    Part& receiver = parts_[sent.exchange][to];
    ++receiver.arrived;
    receiver.arrivals.push_back({left.time + cluster_.between(parcel.from, parcel.to).latency_s,
                                 processor_seconds(cluster_.device(parcel.to), parcel.flow())});
    advance(to);
    advance(from);
  }

  void advance(std::size_t rank) {
    while (at_[rank] < step_.actions.end_index()) {
      const PricedAction& priced = step_.actions[at_[rank]];
      if (priced.action.kind == Action::Kind::Compute) {
        spend(rank, Doing::Compute, priced.seconds[rank]);
      } else if (priced.action.kind == Action::Kind::Start) {
        start(rank, priced.action);
      } else if (!finish(rank, priced.action)) {
        return;
      } else if (!priced.seconds.empty()) {
        spend(rank, Doing::Compute, priced.seconds[rank]);
      }
      ++at_[rank];
    }
  }

  void spend(std::size_t rank, Doing doing, double seconds) {
    if (seconds > 0) {
      record(rank, doing, clocks_[rank] + seconds);
      computed_s_[rank] = doing == Doing::Compute ? computed_s_[rank] + seconds : 0;
    }
  }

  void pass_message(std::size_t rank, Doing doing, double seconds) {
    const double more_s = first_message_more_s(cluster_.devices[rank], computed_s_[rank]);
    spend(rank, doing, more_s + seconds);
  }

  void record(std::size_t rank, Doing doing, double until) {
    result_.timelines[rank].push_back({doing, at_[rank], clocks_[rank], until});
    clocks_[rank] = until;
  }

  void wait_until(std::size_t rank, double time) {
    if (time > clocks_[rank]) {
      record(rank, Doing::Wait, time);
      computed_s_[rank] = 0;  // looks for messages all the time
    }
  }

  void start(std::size_t rank, const Action& action) {
    const auto kind = step_.transfers[action.transfer].bulk ? Wire::Kind::Bulk : Wire::Kind::Urgent;
    for (const Parcel* parcel : outgoing_[action.transfer][rank]) {
      pass_message(
          rank, Doing::Send, processor_seconds(cluster_.device(parcel->from), parcel->flow()));
      wire_.send(parcel->from, parcel->to, parcel->bytes, clocks_[rank], kind);
      sent_.push_back({parcel, exchange_[at_[rank]]});
    }
  }

  // Whether all that the rank waits for has come and gone.
  bool finish(std::size_t rank, const Action& action) {
    const PricedTransfer& transfer = step_.transfers[action.transfer];
    const bool waits_for_sends = transfer.waits_for_sends;
    Part& part = parts_[exchange_[at_[rank]]][rank];
    if (part.arrived < part.incoming || (waits_for_sends && part.departed < part.outgoing)) {
      return false;
    }
    std::stable_sort(part.arrivals.begin(), part.arrivals.end(), [](const auto& a, const auto& b) {
      return a.time < b.time;
    });
    if (transfer.in_order && !part.arrivals.empty()) {
      wait_until(rank, part.arrivals.back().time);
    }
    for (const Part::Arrival& arrival : part.arrivals) {
      wait_until(rank, arrival.time);
      pass_message(rank, Doing::Receive, arrival.unpack_s);
    }
    if (waits_for_sends) {
      wait_until(rank, part.last_departure_s);
    }
    return true;
  }

  const PricedStep& step_;
  const ClusterProfile& cluster_;
  Wire wire_;
  std::vector<double> clocks_;                              // by rank
  std::vector<double> computed_s_;                          // by rank: since the last message
  std::vector<PricedActionIndex> at_;                       // by rank: its next action
  IndexedVector<PricedActionIndex, std::size_t> exchange_;  // but for Compute
  std::vector<std::vector<Part>> parts_;                    // [exchange][rank]
  IndexedVector<TransferIndex, Outgoing> outgoing_;         // as PricedStep::transfers
  std::vector<Sent> sent_;                                  // by message of the wire
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
  double reductions = 0;  // of statistics and parameters: from each device to each other
  for (const LayerSpec& layer : network.layers) {
    reductions += takes_batch_statistics(layer) ? 2 : 0;
    reductions += learns(layer) ? 2 : 0;
  }
  const double messages = static_cast<double>(devices) * (devices - 1);
  return reductions * messages * messages <= kMostWork;
}

SimulatedStep simulate(const PricedStep& step, const ClusterProfile& cluster) {
  expects(step.ranks == cluster.size(), "a step is for as many ranks as there are devices");
  return Simulation(step, cluster).run();
}

}  // namespace tessera::partitioner
