#include "partitioner/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/joined.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::kImage;
using partitioner::kNoBuffer;
using partitioner::Message;
using partitioner::Network;
using partitioner::ParameterPlan;
using partitioner::Plan;
using partitioner::Transfer;
using partitioner::TransferKind;

// Calls visit(case, plan) for random networks and partitions on 1 to 7 ranks.
void for_each_plan(int count,
                   const std::function<void(const tests::RandomCase&, const Plan&)>& visit) {
  for (int i = 0; i < count; ++i) {
    const tests::RandomCase random =
        tests::random_case(static_cast<std::uint64_t>(i), 1 + i % 7, {});
    visit(random, make_plan(random.network, random.partition, random.batch));
  }
}

TEST_CASE("plans of random partitions break no invariant") {
  for_each_plan(700, [](const tests::RandomCase& random, const Plan& plan) {
    const std::string wrong = tests::joined(check(random.network, plan));
    CHECK_MESSAGE(wrong.empty(), wrong, tests::describe(random));
  });
}

TEST_CASE("random partitions are ones that validate accepts") {
  for_each_plan(200, [](const tests::RandomCase& random, const Plan&) {
    CHECK_NOTHROW(validate(random.partition, random.network, random.batch, "test"));
  });
}

TEST_CASE("one tile has no messages and computes what it owns: all of every map") {
  for_each_plan(50, [](const tests::RandomCase& random, const Plan&) {
    const Plan plan = make_plan(random.network, single_tile(random.network), random.batch);
    CHECK(check(random.network, plan).empty());
    for (int map = kImage; map < random.network.size(); ++map) {
      CHECK(plan.tile(map, 0).owned == whole_map(random.network, map, random.batch));
      CHECK(plan.tile(map, 0).computed == plan.tile(map, 0).owned);
    }
    for (const Transfer& transfer : plan.transfers) {
      CHECK(transfer.messages.empty());
    }
    for (const ParameterPlan& parameter : plan.parameters) {
      CHECK(parameter.messages.empty());
    }
  });
}

// What the layers of a group read of a map on a rank, counted apart from the plan's own lists.
Region required_by_group(const tests::RandomCase& random,
                         const Plan& plan,
                         const Transfer& of,
                         int rank) {
  Region required;
  for (int layer = 0; layer < random.network.size(); ++layer) {
    const auto& inputs = random.network.layer(layer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (inputs[input] == of.subject && plan.group(layer) == of.group) {
        required =
            hull(required,
                 required_input(random.network, layer, input, plan.tile(layer, rank).computed));
      }
    }
  }
  return intersect(required, whole_map(random.network, of.subject, random.batch));
}

// In all parts of a transfer, of which `first` is one.
void check_cells_sent(const tests::RandomCase& random,
                      const Plan& plan,
                      const Transfer& first,
                      int to) {
  const Region required = required_by_group(random, plan, first, to);
  Index sent = 0;
  bool from_itself = false;
  for (const Transfer& transfer : plan.transfers) {
    for (const Message& message : transfer.messages) {
      if (transfer.kind == first.kind && transfer.subject == first.subject &&
          transfer.group == first.group && message.to == to) {
        sent += message.payload.cells().volume();
        from_itself = from_itself || message.from == to;
        CHECK(contains(required, message.payload.cells()));
      }
    }
  }
  // Cells that a rank has where it reads them do not travel.
  const Region own = intersect(plan.tile(first.subject, to).owned, required);
  CHECK(sent == required.volume() - (from_itself ? 0 : own.volume()));
}

TEST_CASE("cells travel to a group once each, and none that nobody there reads") {
  for_each_plan(200, [](const tests::RandomCase& random, const Plan& plan) {
    for (const Transfer& transfer : plan.transfers) {
      for (int to = 0; transfer.kind == TransferKind::FeatureMap && to < plan.ranks; ++to) {
        check_cells_sent(random, plan, transfer, to);
      }
    }
  });
}

TEST_CASE("messages are sorted by receiver, then sender") {
  const auto sorted = [](const std::vector<Message>& messages) {
    return std::is_sorted(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
      return a.to != b.to ? a.to < b.to : a.from < b.from;
    });
  };
  for_each_plan(200, [&](const tests::RandomCase&, const Plan& plan) {
    for (const Transfer& transfer : plan.transfers) {
      CHECK(sorted(transfer.messages));
    }
    for (const ParameterPlan& parameter : plan.parameters) {
      CHECK(sorted(parameter.messages));
    }
  });
}

TEST_CASE(
    "a reduction to owners sends every cell that is computed but not owned, and backward goes on "
    "with owned "
    "cells") {
  for_each_plan(200, [](const tests::RandomCase& random, const Plan& plan) {
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.kind != TransferKind::MapGradient ||
          transfer.group != plan.group(transfer.subject)) {
        continue;
      }
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const partitioner::Tile& tile = plan.tile(transfer.subject, rank);
        CHECK((tile.backward == tile.owned || (tile.backward.empty() && tile.owned.empty())));
        for (const Message& message : transfer.messages) {
          CHECK(message.from != message.to);
          CHECK(
              contains(plan.tile(transfer.subject, message.to).computed, message.payload.cells()));
        }
      }
    }
    (void)random;
  });
}

TEST_CASE("each parameter arrives whole at every rank that computes with it, once") {
  for_each_plan(200, [](const tests::RandomCase&, const Plan& plan) {
    for (const ParameterPlan& parameter : plan.parameters) {
      for (int to = 0; to < plan.ranks; ++to) {
        const auto rank = static_cast<std::size_t>(to);
        Index elements = 0;
        for (const Range& run : parameter.owned[rank]) {
          elements += run.size();
        }
        for (const Message& message : parameter.messages) {
          elements += message.to == to ? message.payload.element_run().size() : 0;
        }
        CHECK(elements == parameter.required[rank].size() * parameter.shape.row);
      }
    }
  });
}

TEST_CASE("the redundant work of a fused group is that on its halos") {
  // Two 3x3 convolutions on two tiles of 4 rows: the first computes one row more on each tile.
  const Network network =
      tests::chain({1, 8, 5}, {tests::convolution(2, 3), tests::convolution(3, 3)});
  const Plan plan = make_plan(network, tests::fused(network, 2, tests::rows_cut(2)), 1);
  for (const int rank : {0, 1}) {
    CHECK(forward_work(network, plan, 0, rank).multiply_adds == 2 * 9 * 5 * 5);
    CHECK(forward_work(network, plan, 0, rank).redundant == 2 * 9 * 5);
    CHECK(forward_work(network, plan, 1, rank).redundant == 0);
  }
}

TEST_CASE("tiles meet where windows begin") {
  // A stride of 2 maps the boundary at row 2 of 4 to row 4 of 8; the tiles share only what windows
  // overlap.
  const Network network =
      tests::chain({1, 8, 8}, {tests::convolution(1, 1), partitioner::MaxPool{2, 2, 0}});
  const Plan plan = make_plan(network, tests::fused(network, 4, tests::grid(4)), 1);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(plan.tile(0, rank).owned.volume() == 16);
    CHECK(plan.tile(0, rank).computed == plan.tile(0, rank).owned);
  }
}

}  // namespace
