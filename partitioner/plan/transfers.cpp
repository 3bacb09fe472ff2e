#include "partitioner/plan/transfers.h"

#include <algorithm>
#include <utility>

#include "partitioner/network/layer_traits.h"
#include "partitioner/network/losses.h"
#include "partitioner/plan/assigned_images.h"

namespace tessera::partitioner {

namespace {

constexpr Index kLossBytes = 8;        // of a round
constexpr Index kAssignmentBytes = 4;  // the number of an object

// The most that a message has.
Index candidate_cells(const Transfer& transfer, const Payload& payload) {
  const Region& cells = payload.cells();
  return cells.images.size() * std::min(cells.rows.size() * cells.cols.size(), transfer.most_cells);
}

// Elements of parameters from one rank to another, and their bytes where these do not follow.
class Elements {
 public:
  Elements(int ranks, const Compression& compression)
      : ranks_(ranks),
        compression_(compression),
        counts_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  void add(const ParameterPlan& parameter) {
    for (const Message& message : parameter.messages) {
      Payload::ElementCount& sent = count(message.from, message.to);
      const Index elements = message.payload.element_run().size();
      sent.elements += elements;
      sent.packed_bytes +=
          packed_bytes(compression_, {elements, parameter.shape.row}, kSingleBytes);
    }
  }

  // A message for each pair, by receiver, then sender.
  [[nodiscard]] std::vector<Message> messages() {
    std::vector<Message> result;
    for (int to = 0; to < ranks_; ++to) {
      for (int from = 0; from < ranks_; ++from) {
        if (const auto& [elements, bytes] = count(from, to); elements > 0) {
          const Index packed = compression_.by_runs() ? bytes : 0;
          result.push_back({from, to, Payload::element_count({elements, packed})});
        }
      }
    }
    return result;
  }

 private:
  [[nodiscard]] Payload::ElementCount& count(int from, int to) {
    return counts_[static_cast<std::size_t>(to) * static_cast<std::size_t>(ranks_) +
                   static_cast<std::size_t>(from)];
  }

  int ranks_;
  Compression compression_;
  std::vector<Payload::ElementCount> counts_;
};

std::vector<Message> statistics_messages(const Plan& plan, int layer, Region Tile::*contributes) {
  std::vector<Message> messages;
  for (int copy = 0; copy < plan.copies(); ++copy) {
    for_each_statistics_message(tiles_of_copy(plan, layer, copy),
                                contributes,
                                [&](int from, int to, const Range& channels) {
                                  messages.push_back({from, to, Payload::channels(channels)});
                                });
  }
  return messages;
}

class TransferLists {
 public:
  TransferLists(const Network& network, Plan& plan) : network_(network), plan_(plan) {}

  void add_all() {
    map_gradients();
    for (int layer = 0; layer < network_.size(); ++layer) {
      if (takes_batch_statistics(network_.layer(layer))) {
        statistics(layer);
      }
    }
    assignments();
    loss();
    for (const GradientBucket& layers : gradient_buckets(network_, plan_.gradient_reduction)) {
      bucket(layers);
    }
    running_statistics();
  }

 private:
  TransferIndex add_transfer(Transfer transfer) {
    return plan_.transfers.push_back(std::move(transfer));
  }

  // The same list run backward, and added.
  static Transfer gradient_of(const Transfer& forward, TransferIndex list_of) {
    Transfer gradient = forward;
    gradient.messages.clear();
    gradient.list_of = list_of;
    gradient.is_sent = true;
    gradient.reversed = true;
    gradient.adds = true;
    return gradient;
  }

  // Feature maps have their transfers already. Adds those of gradients: back along the same lists,
  // and to owners within a group.
  void map_gradients() {
    for (const TransferIndex copied : plan_.transfers.indices()) {
      if (!network_.takes_gradient(plan_.transfers[copied].subject)) {
        continue;
      }
      Transfer gradient = gradient_of(plan_.transfers[copied], copied);
      gradient.kind = TransferKind::MapGradient;
      add_transfer(std::move(gradient));
    }
    for (std::size_t group = 0; group < plan_.groups.size(); ++group) {
      for (const OwnerReduction& reduction : plan_.groups[group].reductions) {
        add_transfer({.kind = TransferKind::MapGradient,
                      .subject = reduction.map,
                      .group = static_cast<int>(group),
                      .messages = reduction.messages,
                      .reversed = true,
                      .adds = true,
                      .waits_for_sends = false});
      }
    }
  }

  [[nodiscard]] bool contributes_alike(int layer) const {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Tile& tile = plan_.tile(layer, rank);
      if (channels_of(tile.owned) != channels_of(tile.backward)) {
        return false;
      }
    }
    return true;
  }

  void statistics(int layer) {
    const TransferIndex forward =
        add_transfer({.kind = TransferKind::BatchStatistics,
                      .subject = layer,
                      .messages = statistics_messages(plan_, layer, &Tile::owned),
                      .adds = true});
    Transfer backward{.kind = TransferKind::StatisticsGradient, .subject = layer, .adds = true};
    if (contributes_alike(layer)) {
      backward.list_of = forward;
    } else {
      backward.messages = statistics_messages(plan_, layer, &Tile::backward);
    }
    add_transfer(std::move(backward));
  }

  // A list for each head; all ranks send before any waits.
  void assignments() {
    const std::vector<int> heads = assigned_heads(network_);
    const std::vector<AssignedImages> assigned = assigned_images(network_, plan_);
    for (const int layer : heads) {
      const auto& head = std::get<YoloxHead>(network_.layer(layer).operation);
      Transfer candidates{.kind = TransferKind::Candidates,
                          .subject = layer,
                          .most_cells = kCandidatesOfObject * head.most_boxes};
      for (const AssignedImages& images : assigned) {
        for (int from = 0; from < plan_.ranks; ++from) {
          Region cells = plan_.tile(layer, from).owned;
          cells.images = intersect(cells.images, images.images);
          if (from != images.rank && !cells.empty()) {
            candidates.messages.push_back({from, images.rank, Payload::cells(cells)});
          }
        }
      }
      Transfer answers = candidates;
      answers.kind = TransferKind::Assignments;
      answers.messages.clear();
      answers.reversed = true;
      answers.list_of = add_transfer(std::move(candidates));
      add_transfer(std::move(answers));
    }
  }

  // Each rank tells each other: how much it has to say, then what. Replicas that need not be at
  // the same step do not wait for each other here. The norm of gradients that are clipped takes
  // the same way.
  void loss() {
    Transfer first{.kind = TransferKind::Loss, .subject = 0, .adds = true};
    for (int to = 0; to < plan_.ranks; ++to) {
      for (int from = 0; from < plan_.ranks; ++from) {
        const bool waits = !plan_.replicas.run_ahead() || plan_.copy_of(from) == plan_.copy_of(to);
        if (from != to && waits) {
          first.messages.push_back({from, to, Payload::loss_share()});
        }
      }
    }
    const TransferIndex list = add_transfer(std::move(first));
    add_transfer({.kind = TransferKind::Loss, .subject = 1, .list_of = list, .adds = true});
    for (int round = 0; round < 2 && network_.max_gradient_norm > 0; ++round) {
      add_transfer(
          {.kind = TransferKind::GradientNorm, .subject = round, .list_of = list, .adds = true});
    }
  }

  void bucket(const GradientBucket& layers) {
    BucketPlan bucket;
    bucket.layers = layers;
    const Compression& compression = plan_.gradient_reduction.compression;
    Elements values(plan_.ranks, compression);
    Elements gradients(plan_.ranks,
                       compression);  // without those that normalising has summed already
    bool all_alike = true;
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      const ParameterPlan& parameter = plan_.parameters[i];
      if (!is_learnt(parameter) || parameter.layer < layers.first ||
          parameter.layer > layers.last) {
        continue;
      }
      bucket.parameters.push_back(static_cast<int>(i));
      values.add(parameter);
      if (is_normalized(network_, parameter)) {
        all_alike = false;
      } else {
        gradients.add(parameter);
      }
    }
    const int number = static_cast<int>(plan_.buckets.size());
    const Transfer sent{.kind = TransferKind::ParameterValue,
                        .subject = number,
                        .messages = values.messages(),
                        .yields = true};
    bucket.values = add_transfer(sent);
    Transfer reduced = gradient_of(sent, bucket.values);
    reduced.kind = TransferKind::ParameterGradient;
    bucket.all_gradients = add_transfer(reduced);
    reduced.normalized = false;
    if (!all_alike) {
      reduced.list_of = kNoTransfer;
      reduced.messages = gradients.messages();
    }
    bucket.gradients = add_transfer(std::move(reduced));
    plan_.buckets.push_back(std::move(bucket));
  }

  void running_statistics() {
    Elements values(plan_.ranks, Compression::Exact);
    for (const ParameterPlan& parameter : plan_.parameters) {
      if (is_running_statistic(parameter)) {
        values.add(parameter);
      }
    }
    add_transfer(
        {.kind = TransferKind::RunningStatistics, .messages = values.messages(), .yields = true});
  }

  const Network& network_;
  Plan& plan_;
};

}  // namespace

std::vector<Tile> tiles_of_copy(const Plan& plan, int layer, int copy) {
  std::vector<Tile> tiles = plan.tiles_of(layer);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (plan.copy_of(rank) != copy) {
      tiles[static_cast<std::size_t>(rank)] = {};
    }
  }
  return tiles;
}

const char* name_of(TransferKind kind) {
  switch (kind) {
    case TransferKind::FeatureMap:
      return "feature map";
    case TransferKind::MapGradient:
      return "map gradient";
    case TransferKind::BatchStatistics:
      return "batch statistics";
    case TransferKind::StatisticsGradient:
      return "statistics gradient";
    case TransferKind::Candidates:
      return "candidates";
    case TransferKind::Assignments:
      return "assignments";
    case TransferKind::Loss:
      return "loss";
    case TransferKind::ParameterGradient:
      return "parameter gradient";
    case TransferKind::ParameterValue:
      return "parameter value";
    case TransferKind::RunningStatistics:
      return "running statistics";
    case TransferKind::GradientNorm:
      return "gradient norm";
  }
  return "";
}

const char* subject_of(TransferKind kind) {
  switch (kind) {
    case TransferKind::FeatureMap:
    case TransferKind::MapGradient:
      return "map";
    case TransferKind::BatchStatistics:
    case TransferKind::StatisticsGradient:
    case TransferKind::Candidates:
    case TransferKind::Assignments:
      return "layer";
    case TransferKind::Loss:
    case TransferKind::GradientNorm:
      return "round";
    case TransferKind::ParameterGradient:
    case TransferKind::ParameterValue:
      return "bucket";
    case TransferKind::RunningStatistics:
      break;
  }
  return nullptr;
}

Index message_bytes(const Plan& plan,
                    const Transfer& transfer,
                    const Payload& payload,
                    Index scalar_bytes) {
  switch (transfer.kind) {
    case TransferKind::FeatureMap:
    case TransferKind::MapGradient:
      return cell_bytes(payload.cells(), scalar_bytes);
    case TransferKind::RunningStatistics:
      return payload.element_count().elements * scalar_bytes;
    case TransferKind::BatchStatistics:
      return payload.channels().size() * kStatisticsNumbers * kStatisticsNumberBytes;
    case TransferKind::StatisticsGradient:
      return payload.channels().size() * kStatisticsGradientNumbers * kStatisticsNumberBytes;
    case TransferKind::Candidates:
      return candidate_cells(transfer, payload) * payload.cells().channels.size() * scalar_bytes;
    case TransferKind::Assignments:
      return candidate_cells(transfer, payload) * kAssignmentBytes;
    case TransferKind::Loss:
    case TransferKind::GradientNorm:
      return kLossBytes;
    case TransferKind::ParameterGradient:
    case TransferKind::ParameterValue: {
      const auto& [elements, packed_bytes] = payload.element_count();
      const Compression& compression = plan.gradient_reduction.compression;
      return compression.by_runs() ? packed_bytes
                                   : reduction_message_bytes(compression, {elements}, scalar_bytes);
    }
  }
  return 0;
}

void renew_statistics_messages(Plan& plan) {
  for (Transfer& transfer : plan.transfers) {
    const bool gradients = transfer.kind == TransferKind::StatisticsGradient;
    if (gradients || transfer.kind == TransferKind::BatchStatistics) {
      transfer.list_of = kNoTransfer;
      transfer.messages =
          statistics_messages(plan, transfer.subject, gradients ? &Tile::backward : &Tile::owned);
    }
  }
}

void add_transfers(const Network& network, Plan& plan) {
  TransferLists(network, plan).add_all();
}

}  // namespace tessera::partitioner
