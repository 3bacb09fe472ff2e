#include "partitioner/memory/message_memory.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

class MessageBytes {
 public:
  MessageBytes(const Plan& plan, const MemoryOptions& options)
      : plan_(plan), options_(options), bytes_(at(plan.ranks)) {}

  std::vector<Index> of_ranks() {
    for (const Transfer& transfer : plan_.transfers) {
      add(transfer);
    }
    for (const BucketPlan& bucket : plan_.buckets) {
      if (options_.training && plan_.gradient_reduction.compression != Compression::Exact) {
        add_error_feedback(bucket);  // else nothing remains of what travels
      }
    }
    return std::move(bytes_);
  }

 private:
  void add(const Transfer& transfer) {
    switch (transfer.kind) {
      case TransferKind::FeatureMap:
        if (transfer.is_sent || options_.image_gradient) {
          add_both_ends(transfer);
        }
        break;
      case TransferKind::MapGradient:
        if (transfer.list_of == kNoTransfer) {  // else in the buffers of the map
          add_both_ends(transfer);
        }
        break;
      case TransferKind::BatchStatistics:
      case TransferKind::StatisticsGradient:
        for_each_message(plan_, transfer, [&](int, int to, const Payload& payload) {
          bytes_[at(to)] += message_bytes(plan_, transfer, payload, options_.scalar_bytes);
        });
        break;
      case TransferKind::ParameterValue:
      case TransferKind::RunningStatistics:
        if (options_.training) {
          add_both_ends(transfer);
        }
        break;
      case TransferKind::Candidates:
      case TransferKind::Assignments:
        add_both_ends(transfer);
        break;
      case TransferKind::ParameterGradient:  // in the buffers of the values
      case TransferKind::Loss:
      case TransferKind::GradientNorm:
        break;
    }
  }

  // Each rank keeps what it sends to another, and room for what comes back. What goes from one of
  // its own buffers to another is packed once.
  void add_both_ends(const Transfer& transfer) {
    for_each_message(plan_, transfer, [&](int from, int to, const Payload& payload) {
      const Index packed = message_bytes(plan_, transfer, payload, options_.scalar_bytes);
      bytes_[at(from)] += packed;
      bytes_[at(to)] += from != to ? packed : 0;
    });
  }

  void add_error_feedback(const BucketPlan& bucket) {
    std::vector<TravellingElements> travelling(at(plan_.ranks));
    for (const int parameter : bucket.parameters) {
      add_shared(plan_.parameters[at(parameter)], travelling);
    }
    for (const Message& message : plan_.transfers[bucket.values].messages) {
      travelling[at(message.to)].borrowed += message.payload.element_count().elements;
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      bytes_[at(rank)] += error_feedback_bytes(
          plan_.gradient_reduction.compression, travelling[at(rank)], options_.scalar_bytes);
    }
  }

  // An owned run that several others hold travels to each of them, and counts once.
  void add_shared(const ParameterPlan& parameter, std::vector<TravellingElements>& travelling) {
    std::vector<std::vector<bool>> travels(at(plan_.ranks));  // [owner][run]
    for (const Message& message : parameter.messages) {
      const std::vector<Range>& runs = parameter.owned[at(message.from)];
      const auto run = std::find(runs.begin(), runs.end(), message.payload.element_run());
      expects(run != runs.end(), "all of an owned run travels together");
      const auto number = static_cast<std::size_t>(run - runs.begin());
      travels[at(message.from)].resize(runs.size(), false);
      if (!travels[at(message.from)][number]) {
        travels[at(message.from)][number] = true;
        travelling[at(message.from)].shared += run->size();
        travelling[at(message.from)].packed_bytes +=
            packed_bytes(plan_.gradient_reduction.compression,
                         {run->size(), parameter.shape.row},
                         options_.scalar_bytes);
      }
    }
  }

  const Plan& plan_;
  const MemoryOptions& options_;
  std::vector<Index> bytes_;
};

}  // namespace

std::vector<Index> message_bytes_of_ranks(const Plan& plan, const MemoryOptions& options) {
  return MessageBytes(plan, options).of_ranks();
}

}  // namespace tessera::partitioner
