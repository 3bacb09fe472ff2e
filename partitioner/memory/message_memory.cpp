#include "partitioner/memory/message_memory.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/plan/plan_totals.h"

namespace tessera::partitioner {

namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

class MessageBytes {
 public:
  MessageBytes(const Network& network, const Plan& plan, const MemoryOptions& options)
      : network_(network), plan_(plan), options_(options), bytes_(at(plan.ranks)) {}

  std::vector<Index> of_ranks() {
    for (const Exchange& exchange : plan_.exchanges) {
      const bool read_in_place = exchange.map == kImage && plan_.reader == kEveryRank;
      if (!read_in_place || options_.image_gradient) {
        add_cells(exchange.messages);
      }
    }
    for (const Exchange& collapse : plan_.collapses) {
      add_cells(collapse.messages);
    }
    if (options_.training) {
      add_parameters();
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        bytes_[at(rank)] += channel_sum_bytes(network_, plan_, layer, rank);
      }
    }
    return std::move(bytes_);
  }

 private:
  // One between two of a rank's own buffers is packed once.
  void add_cells(const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      const Index packed = message.region.volume() * options_.scalar_bytes;
      bytes_[at(message.from)] += packed;
      bytes_[at(message.to)] += message.to != message.from ? packed : 0;
    }
  }

  void add_parameters() {
    for (const SumBucket& bucket : sum_buckets(network_, plan_.sums)) {
      add_bucket(bucket);
    }
    for (const ParameterPlan& parameter : plan_.parameters) {
      if (!is_learnt(parameter.kind)) {
        add_cells(parameter.messages);
      }
    }
  }

  // Each rank keeps what it sends to another, and room for what comes back.
  void add_bucket(const SumBucket& bucket) {
    std::vector<Index> elements(at(plan_.ranks) * at(plan_.ranks));  // [owner][holder]
    std::vector<TravellingElements> travelling(at(plan_.ranks));
    for (const ParameterPlan& parameter : plan_.parameters) {
      if (is_learnt(parameter.kind) && parameter.layer >= bucket.first &&
          parameter.layer <= bucket.last) {
        for (const Message& message : parameter.messages) {
          elements[at(message.from) * at(plan_.ranks) + at(message.to)] +=
              message.region.cols.size();
        }
        if (plan_.sums.precision != SumPrecision::Exact) {  // else nothing remains of what travels
          add_shared(parameter, travelling);
        }
      }
    }
    for (int owner = 0; owner < plan_.ranks; ++owner) {
      for (int holder = 0; holder < plan_.ranks; ++holder) {
        const Index of_pair = elements[at(owner) * at(plan_.ranks) + at(holder)];
        const Index packed =
            sum_message_bytes(plan_.sums.precision, of_pair, options_.scalar_bytes);
        bytes_[at(owner)] += packed;
        bytes_[at(holder)] += packed;
        travelling[at(holder)].borrowed += of_pair;
      }
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      bytes_[at(rank)] +=
          sum_remainder_bytes(plan_.sums.precision, travelling[at(rank)], options_.scalar_bytes);
    }
  }

  // An owned run that several others hold travels to each of them, and counts once.
  void add_shared(const ParameterPlan& parameter, std::vector<TravellingElements>& travelling) {
    std::vector<std::vector<bool>> travels(at(plan_.ranks));  // [owner][run]
    for (const Message& message : parameter.messages) {
      const std::vector<Range>& runs = parameter.owned[at(message.from)];
      const auto run = std::find(runs.begin(), runs.end(), message.region.cols);
      expects(run != runs.end(), "all of an owned run travels together");
      const auto number = static_cast<std::size_t>(run - runs.begin());
      travels[at(message.from)].resize(runs.size(), false);
      if (!travels[at(message.from)][number]) {
        travels[at(message.from)][number] = true;
        travelling[at(message.from)].shared += run->size();
      }
    }
  }

  const Network& network_;
  const Plan& plan_;
  const MemoryOptions& options_;
  std::vector<Index> bytes_;
};

}  // namespace

std::vector<Index> message_bytes_of_ranks(const Network& network,
                                          const Plan& plan,
                                          const MemoryOptions& options) {
  return MessageBytes(network, plan, options).of_ranks();
}

}  // namespace tessera::partitioner
