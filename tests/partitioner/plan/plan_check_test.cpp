// A plan that is damaged on purpose must not pass check(): one test for each promise that a plan
// makes.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "partitioner/plan/plan.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::kNoBuffer;
using partitioner::Message;
using partitioner::Network;
using partitioner::ParameterPlan;
using partitioner::Partition;
using partitioner::Plan;
using partitioner::Tile;
using partitioner::Transfer;
using partitioner::TransferKind;

constexpr int kRanks = 4;

Network network() {
  return tests::chain({3, 12, 12},
                      {tests::convolution(4, 3),
                       tests::convolution(5, 3),
                       tests::convolution(4, 3),
                       tests::convolution(6, 1)});
}

// Two fused layers on a grid, one on rows, one with cut channels; a reduction to owners inside the
// first group.
Plan sound_plan() {
  Partition partition =
      tests::partition_of(network(),
                          kRanks,
                          {{0, 1}, {2, 2}, {3, 3}},
                          {tests::grid(kRanks), tests::rows_cut(kRanks), tests::channels_cut(2)});
  partition.groups[0].reduce_to_owner = {0};
  return make_plan(network(), partition, 2);
}

Tile& tile(Plan& plan, int map, int rank) {
  partitioner::GroupGeometry& group = plan.groups[static_cast<std::size_t>(plan.group(map))];
  return group.tiles[static_cast<std::size_t>(map - group.first)][static_cast<std::size_t>(rank)];
}

Transfer& transfer_of(Plan& plan, TransferKind kind, int map) {
  return *std::find_if(plan.transfers.begin(), plan.transfers.end(), [=](const Transfer& of) {
    return of.kind == kind && of.subject == map;
  });
}

Transfer& exchange_of(Plan& plan, int map) {
  return transfer_of(plan, TransferKind::FeatureMap, map);
}

// Gradients of map 0, to their owners in its own group.
std::vector<Message>& reduction_of(Plan& plan) {
  return std::find_if(plan.transfers.begin(),
                      plan.transfers.end(),
                      [](const Transfer& of) {
                        return of.kind == TransferKind::MapGradient && of.subject == 0 &&
                               of.group == 0;
                      })
      ->messages;
}

ParameterPlan& first_parameter_with_messages(Plan& plan) {
  return *std::find_if(plan.parameters.begin(),
                       plan.parameters.end(),
                       [](const ParameterPlan& parameter) { return !parameter.messages.empty(); });
}

bool is_refused(const Plan& plan) {
  return !check(network(), plan).empty();
}

TEST_CASE("the plan that these tests damage is sound") {
  Plan plan = sound_plan();
  CHECK(check(network(), plan).empty());
  CHECK_FALSE(reduction_of(plan).empty());
}

TEST_CASE("a cell that nobody owns is noticed") {
  Plan plan = sound_plan();
  --tile(plan, 2, 0).owned.rows.end;
  CHECK(is_refused(plan));
}

TEST_CASE("a cell with two owners is noticed") {
  Plan plan = sound_plan();
  ++tile(plan, 2, 3).owned.rows.end;
  ++tile(plan, 2, 3).computed.rows.end;
  ++tile(plan, 2, 3).backward.rows.end;
  CHECK(is_refused(plan));
}

TEST_CASE("an owned cell that its owner does not compute is noticed") {
  Plan plan = sound_plan();
  --tile(plan, 3, 3).computed.channels.end;
  CHECK(is_refused(plan));
}

TEST_CASE("a layer that requires more than its tile computes is noticed") {
  Plan plan = sound_plan();
  tile(plan, 0, 3).computed = tile(plan, 0, 3).owned;
  CHECK(is_refused(plan));
}

TEST_CASE("computing outside the map is noticed") {
  Plan plan = sound_plan();
  --tile(plan, 2, 3).computed.cols.begin;
  CHECK(is_refused(plan));
}

TEST_CASE(
    "a backward pass that leaves out owned cells, or goes beyond what is computed, is noticed") {
  Plan plan = sound_plan();
  --tile(plan, 1, 3).backward.rows.end;
  CHECK(is_refused(plan));
  plan = sound_plan();
  ++tile(plan, 1, 3).backward.rows.end;
  CHECK(is_refused(plan));
}

TEST_CASE("a backward pass that leaves out cells whose gradient a layer above writes is noticed") {
  Plan plan = sound_plan();
  Partition without_owner_reduction = tests::partition_of(
      network(), kRanks, {{0, 1}, {2, 2}, {3, 3}}, {tests::grid(kRanks), tests::rows_cut(kRanks)});
  plan = make_plan(network(), without_owner_reduction, 2);
  CHECK_FALSE(is_refused(plan));
  tile(plan, 0, 3).backward = tile(plan, 0, 3).owned;
  CHECK(is_refused(plan));
}

TEST_CASE("a missing buffer is noticed, of a producer and of a reader") {
  Plan plan = sound_plan();
  plan.produced_in[3][partitioner::map_slot(0)] = kNoBuffer;
  CHECK(is_refused(plan));
  plan = sound_plan();
  plan.read_from[3][2][0] = kNoBuffer;
  CHECK(is_refused(plan));
}

TEST_CASE("a buffer without room for the border is noticed") {
  Plan plan = sound_plan();
  const partitioner::BufferIndex buffer = plan.read_from[3][2][0];
  ++plan.buffers[3][buffer].region.cols.begin;
  CHECK(is_refused(plan));
}

TEST_CASE("a message too few is noticed") {
  Plan plan = sound_plan();
  exchange_of(plan, 1).messages.pop_back();
  CHECK(is_refused(plan));
}

TEST_CASE("a message sent twice is noticed") {
  Plan plan = sound_plan();
  exchange_of(plan, 1).messages.push_back(exchange_of(plan, 1).messages.back());
  CHECK(is_refused(plan));
}

TEST_CASE("a message of cells that its sender does not own is noticed") {
  Plan plan = sound_plan();
  auto& messages = exchange_of(plan, 1).messages;
  const auto other = std::find_if(
      messages.begin(), messages.end(), [](const Message& m) { return m.from != m.to; });
  other->from = (other->from + 1) % kRanks;
  CHECK(is_refused(plan));
}

TEST_CASE("a message to a rank without room for it is noticed") {
  Plan plan = sound_plan();
  Region cells = tile(plan, 1, 3).owned;
  cells.channels = {0, 1};
  exchange_of(plan, 1).messages.push_back({3, 0, partitioner::Payload::cells(cells)});
  plan.buffers[0] = {};
  std::fill(plan.produced_in[0].begin(), plan.produced_in[0].end(), kNoBuffer);
  CHECK(is_refused(plan));
}

TEST_CASE("a reduction to owners that leaves out a cell, or sends it twice, is noticed") {
  Plan plan = sound_plan();
  reduction_of(plan).pop_back();
  CHECK(is_refused(plan));
  plan = sound_plan();
  reduction_of(plan).push_back(reduction_of(plan).back());
  CHECK(is_refused(plan));
}

TEST_CASE("an element of a parameter that nobody owns, or two ranks do, is noticed") {
  Plan plan = sound_plan();
  --first_parameter_with_messages(plan).owned[3].front().end;
  CHECK(is_refused(plan));
  plan = sound_plan();
  ++first_parameter_with_messages(plan).owned[3].front().end;
  CHECK(is_refused(plan));
}

TEST_CASE("a parameter that does not arrive where it is required is noticed") {
  Plan plan = sound_plan();
  first_parameter_with_messages(plan).messages.pop_back();
  CHECK(is_refused(plan));
}

TEST_CASE("a parameter that is required for fewer channels than are computed is noticed") {
  Plan plan = sound_plan();
  --first_parameter_with_messages(plan).required[3].end;
  CHECK(is_refused(plan));
}

}  // namespace
