#include "partitioner/plan/schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/joined.h"
#include "tests/support/random_network.h"
#include "tests/support/scheduled_plans.h"
#include <doctest/doctest.h>

#include "partitioner/plan/plan_totals.h"
#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using Kind = Action::Kind;
using Passes = Action::Passes;

std::string described(const Plan& plan, const Action& action) {
  std::string text = name_of(action.kind);
  if (action.kind != Kind::Compute) {
    const Transfer& transfer = plan.transfers[action.transfer];
    text += fmt::format(" {} {}", name_of(transfer.kind), transfer.subject);
  } else if (action.bucket >= 0) {
    text += fmt::format(" {} {}", name_of(action.phase), action.bucket);
  } else if (action.layer == kNoLayer) {
    text += fmt::format(" {}", name_of(action.phase));
  } else {
    text += fmt::format(" {} {}.{}", name_of(action.phase), action.layer, action.part);
  }
  return action.passes == Passes::Every ? text
                                        : fmt::format("{} ({})", text, name_of(action.passes));
}

std::vector<std::string> described(const Plan& plan, const Section& section) {
  std::vector<std::string> lines;
  for (ActionIndex i = section.begin; i < section.end; ++i) {
    lines.push_back(described(plan, plan.schedule.actions[i]));
  }
  return lines;
}

// Two convolutions on halves of an image that one rank reads, the first of which is normalised.
Network small_network() {
  return tests::chain({3, 40, 40},
                      {tests::normalized(tests::convolution(8, 3)), tests::convolution(4, 3)});
}

Partition apart(const Network& network) {
  Partition partition = tests::partition_of(network, 2, {{0, 0}, {1, 1}}, {tests::rows_cut(2)});
  partition.reader = Reader::rank(0);
  return partition;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("schedules of random partitions break no law, whatever they are made for") {
  tests::for_each_scheduled_plan(300, [](const tests::RandomCase& random, const Plan& plan) {
    CHECK(plan.schedule == make_schedule(random.network, plan, {}));
    CHECK(check(random.network, plan).empty());
    for (const ScheduleOptions& options : tests::all_schedule_options()) {
      const Schedule schedule = make_schedule(random.network, plan, options);
      const std::string wrong = tests::joined(check_schedule(random.network, plan, schedule));
      CHECK_MESSAGE(wrong.empty(), wrong, tests::describe(random));
    }
  });
}

TEST_CASE("schedules that clip gradients break no law, and clip where parameters change") {
  tests::for_each_scheduled_plan(100, [](tests::RandomCase random, const Plan& plan) {
    random.network.max_gradient_norm = 1;
    const Plan clipping = make_plan(random.network, random.partition, random.batch);
    CHECK(check(random.network, clipping).empty());
    for (const ScheduleOptions& options : tests::all_schedule_options()) {
      const Schedule schedule = make_schedule(random.network, clipping, options);
      CHECK(check_schedule(random.network, clipping, schedule).empty());
      const bool changes = options.training && options.update && !plan.buckets.empty();
      const auto clips =
          std::count_if(schedule.actions.begin(), schedule.actions.end(), [](const Action& action) {
            return action.kind == Kind::Compute && action.phase == Phase::ClipGradients;
          });
      CHECK(clips == (changes ? 1 : 0));
    }
  });
}

TEST_CASE("an action is performed in every pass of a step, in the first or in the last") {
  using Passes = partitioner::Action::Passes;
  for (const bool first : {false, true}) {
    for (const bool last : {false, true}) {
      CHECK(is_performed({.passes = Passes::Every}, {first, last}));
      CHECK(is_performed({.passes = Passes::First}, {first, last}) == first);
      CHECK(is_performed({.passes = Passes::Last}, {first, last}) == last);
    }
  }
}

namespace {

bool is_empty(const Payload& payload) {
  switch (payload.kind()) {
    case Payload::Kind::Cells:
      return payload.cells().empty();
    case Payload::Kind::Channels:
      return payload.channels().empty();
    case Payload::Kind::ElementRun:
      return payload.element_run().empty();
    case Payload::Kind::ElementCount:
      return payload.element_count().elements == 0;
    case Payload::Kind::Images:
      return payload.images().empty();
    case Payload::Kind::LossShare:
      break;
  }
  return false;
}

}  // namespace

TEST_CASE("messages are sorted by receiver, then sender, and a transfer brings cells once") {
  tests::for_each_scheduled_plan(100, [](const tests::RandomCase&, const Plan& plan) {
    for (const Transfer& transfer : plan.transfers) {
      const std::vector<Message>& messages = messages_of(plan, transfer);
      CHECK(
          std::is_sorted(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
            return a.to != b.to ? a.to < b.to : a.from < b.from;
          }));
      CHECK((transfer.list_of == kNoTransfer || transfer.messages.empty()));
      const bool of_map =
          transfer.kind == TransferKind::FeatureMap || transfer.kind == TransferKind::MapGradient;
      for (const Message& message : messages) {
        CHECK((message.from != message.to || of_map));
        CHECK(!is_empty(message.payload));
      }
    }
  });
}

namespace {

struct Bytes {
  std::vector<Index> in;
  std::vector<Index> out;
};

Bytes bytes_of(const Plan& plan, const std::function<bool(const Transfer&)>& counts) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  Bytes bytes{std::vector<Index>(ranks), std::vector<Index>(ranks)};
  for (const Transfer& transfer : plan.transfers) {
    if (!counts(transfer)) {
      continue;
    }
    for_each_message(plan, transfer, [&](int from, int to, const Payload& payload) {
      if (from != to) {
        const Index size = message_bytes(plan, transfer, payload, 4);
        bytes.out[static_cast<std::size_t>(from)] += size;
        bytes.in[static_cast<std::size_t>(to)] += size;
      }
    });
  }
  return bytes;
}

// What each rank gets of others of the learnt parameters it computes with, bucket by bucket.
std::vector<Index> parameter_bytes(const Network& network, const Plan& plan) {
  std::vector<Index> bytes(static_cast<std::size_t>(plan.ranks));
  for (const ParameterPlan& parameter : plan.parameters) {
    const bool summed_already = parameter.kind != ParameterKind::Weight &&
                                layer_parameters(network, parameter.layer).scale.channels > 0;
    for (const Message& message : parameter.messages) {
      if (is_learnt(parameter)) {
        bytes[static_cast<std::size_t>(message.to)] += message.payload.element_run().size() * 4;
        bytes[static_cast<std::size_t>(message.from)] +=
            summed_already ? 0 : message.payload.element_run().size() * 4;
      }
    }
  }
  return bytes;
}

std::vector<Index> statistics_bytes(const Network& network, const Plan& plan) {
  const auto channels = [](const Region& region) {
    return region.empty() ? Range{} : region.channels;
  };
  std::vector<Index> bytes(static_cast<std::size_t>(plan.ranks));
  for (int layer = 0; layer < network.size(); ++layer) {
    const bool exchanges =
        layer_parameters(network, layer).scale.channels > 0 && !network.layer(layer).frozen;
    for (int to = 0; exchanges && to < plan.ranks; ++to) {
      for (int from = 0; from < plan.ranks; ++from) {
        const Tile& tile = plan.tile(layer, from);
        const Range wanted = channels(plan.tile(layer, to).computed);
        if (from != to) {
          bytes[static_cast<std::size_t>(to)] +=
              8 * (3 * intersect(channels(tile.owned), wanted).size() +
                   2 * intersect(channels(tile.backward), wanted).size());
        }
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("transfers carry what statistics and parameters need, and no more") {
  tests::for_each_scheduled_plan(100, [](const tests::RandomCase& random, const Plan& plan) {
    const Bytes parameters = bytes_of(plan, [](const Transfer& of) {
      return of.kind == TransferKind::ParameterValue ||
             (of.kind == TransferKind::ParameterGradient && !of.normalized);
    });
    const Bytes statistics = bytes_of(plan, [](const Transfer& of) {
      return of.kind == TransferKind::BatchStatistics ||
             of.kind == TransferKind::StatisticsGradient;
    });
    CHECK(parameters.in == parameter_bytes(random.network, plan));
    CHECK(statistics.in == statistics_bytes(random.network, plan));
    const PlanTotals totals = plan_totals(random.network, plan, 4);
    CHECK(statistics.in == totals.batch_statistics_in_bytes);
    for (std::size_t rank = 0; rank < parameters.in.size(); ++rank) {
      CHECK(parameters.in[rank] == totals.gradient_reduction_in[rank].bytes);
      CHECK(parameters.out[rank] == totals.gradient_reduction_out[rank].bytes);
    }
  });
}

TEST_CASE("gradients of a map run back where its cells have come from") {
  tests::for_each_scheduled_plan(100, [](const tests::RandomCase&, const Plan& plan) {
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.kind != TransferKind::MapGradient ||
          transfer.group == plan.group(transfer.subject)) {
        continue;
      }
      const Transfer& forward = plan.transfers[transfer.list_of];
      CHECK(forward.kind == TransferKind::FeatureMap);
      CHECK(forward.subject == transfer.subject);
      CHECK(forward.group == transfer.group);
      CHECK(forward.part == transfer.part);
      CHECK((transfer.reversed && transfer.adds && !forward.reversed && !forward.adds));
    }
  });
}

TEST_CASE("the schedule of two convolutions on two ranks") {
  const Network network = small_network();
  const Plan plan = make_plan(network, apart(network), 1);
  CHECK(described(plan, plan.schedule.forward) == Lines{"start feature map -1",
                                                        "finish parameter value 0 (first)",
                                                        "finish feature map -1",
                                                        "compute forward 0.1",
                                                        "compute statistics 0.0",
                                                        "start batch statistics 0",
                                                        "finish batch statistics 0",
                                                        "compute activate 0.0",
                                                        "start feature map 0",
                                                        "compute forward 1.0",  // the interior
                                                        "finish feature map 0",
                                                        "compute forward 1.1",
                                                        "compute activate 1.0"});
  CHECK(described(plan, plan.schedule.loss) ==
        Lines{"compute loss", "start loss 0", "finish loss 0", "start loss 1", "finish loss 1"});
  CHECK(described(plan, plan.schedule.backward) ==
        Lines{"compute backward activation 1.0",
              "compute backward data 1.0",
              "start map gradient 0",
              "compute backward weights 1.0",  // while gradients of the map travel
              "finish map gradient 0",
              "compute backward activation 0.0",
              "start statistics gradient 0",
              "compute backward weights 1.1",  // while statistics do
              "finish statistics gradient 0",
              "compute backward normalize 0.0",
              "compute backward data 0.0",
              "compute backward weights 0.0",
              "start parameter gradient 0 (last)"});
  CHECK(described(plan, plan.schedule.update) ==
        Lines{"finish parameter gradient 0", "compute update 0", "start parameter value 0"});
}

TEST_CASE("a recomputed group runs again before its backward pass") {
  const Network network = small_network();
  Partition partition = single_tile(network);
  partition.groups[0].recompute = true;
  const Plan plan = make_plan(network, partition, 1);
  CHECK(described(plan, plan.schedule.backward) ==
        Lines{"compute recompute 0.0",  // the output of the last layer is kept

              "compute backward activation 1.0",
              "compute restore 0.0",
              "compute backward data 1.0",
              "compute backward weights 1.0",
              "compute backward activation 0.0",
              "start statistics gradient 0",
              "finish statistics gradient 0",
              "compute backward normalize 0.0",
              "compute backward data 0.0",
              "compute backward weights 0.0",
              "start parameter gradient 0 (last)"});
}

TEST_CASE("parameters travel with the first and the last pass of a step") {
  const Network network = small_network();
  const Plan plan = make_plan(network, apart(network), 1);
  const std::size_t every = static_cast<std::size_t>(
      std::count_if(plan.schedule.actions.begin(),
                    plan.schedule.actions.begin() + plan.schedule.backward.end.number(),
                    [](const Action& of) { return of.passes == Passes::Every; }));
  std::vector<Lines> passes(3);
  for_each_action(plan.schedule, 3, [&](ActionIndex action, Index pass) {
    passes[static_cast<std::size_t>(pass)].push_back(
        described(plan, plan.schedule.actions[action]));
  });
  CHECK(passes[0].size() == every + 1);
  CHECK(passes[0][1] == "finish parameter value 0 (first)");
  CHECK(passes[1].size() == every);
  CHECK(passes[2].size() == every + 4);
  CHECK(passes[2][every] == "start parameter gradient 0 (last)");
  CHECK(passes[2].back() == "start parameter value 0");
}

TEST_CASE("gradients of shift and scale are reduced where ranks normalise by themselves") {
  const Network network = small_network();
  const Plan plan = make_plan(network, apart(network), 1);
  const auto elements = [&](Statistics statistics) {
    Index sum = 0;
    for (const Action& action : make_schedule(network, plan, {.statistics = statistics}).actions) {
      const Transfer* of =
          action.transfer == kNoTransfer ? nullptr : &plan.transfers[action.transfer];
      if (action.kind == Kind::Start && of->kind == TransferKind::ParameterGradient) {
        for_each_message(plan, *of, [&](int, int, const Payload& payload) {
          sum += payload.element_count().elements;
        });
      }
    }
    return sum;
  };
  // Each of two ranks sends the other half of what it has: that of one rank in all.
  CHECK(elements(Statistics::Batch) == 8 * 27 + 4 * 72 + 4);
  CHECK(elements(Statistics::Tile) == 8 * 27 + 8 + 8 + 4 * 72 + 4);
  CHECK(elements(Statistics::Running) == elements(Statistics::Tile));
}

namespace {

// The same, whose gradients are clipped.
Network clipping_network() {
  Network network = small_network();
  network.max_gradient_norm = 1;
  return network;
}

// A schedule that is damaged on purpose must not pass.
struct Damage {
  explicit Damage(Network of = small_network()) : network(std::move(of)) {}

  Network network;
  Plan plan = make_plan(network, apart(network), 1);
  Schedule schedule = plan.schedule;

  ActionIndex place(const std::string& line) const {
    for (const ActionIndex i : plan.schedule.actions.indices()) {
      if (described(plan, plan.schedule.actions[i]) == line) {
        return i;
      }
    }
    FAIL("no such action: ", line);
    return {};
  }
  Action& action(const std::string& line) { return schedule.actions[place(line)]; }
  // Moves an action to where another stands; those between make room.
  void move(const std::string& line, const std::string& to) {
    const auto begin = schedule.actions.begin();
    const int from = place(line).number();
    const int target = place(to).number();
    if (from < target) {
      std::rotate(begin + from, begin + from + 1, begin + target + 1);
    } else {
      std::rotate(begin + target, begin + from, begin + from + 1);
    }
  }
  // Another action that does nothing stands there now.
  void drop(const std::string& line) { action(line) = {.phase = Phase::Restore, .layer = 0}; }

  [[nodiscard]] bool is_found() const { return !check_schedule(network, plan, schedule).empty(); }
};

}  // namespace

TEST_CASE("a schedule that lacks an action is found out") {
  for (const Network& network : {small_network(), clipping_network()}) {
    const Damage sound(network);
    CHECK(!sound.is_found());
    for (const Action& action : sound.plan.schedule.actions) {
      const std::string line = described(sound.plan, action);
      const bool is_local = action.kind == Kind::Compute &&
                            (action.phase == Phase::Statistics || action.phase == Phase::Loss);
      if (!is_local) {
        CAPTURE(line);
        Damage damaged(network);
        damaged.drop(line);
        CHECK(damaged.is_found());
      }
    }
  }
}

TEST_CASE("actions that stand too early or too late are found out") {
  const std::vector<std::pair<std::string, std::string>> moves = {
      {"start feature map 0", "compute activate 0.0"},
      {"start batch statistics 0", "compute statistics 0.0"},
      {"finish batch statistics 0", "compute activate 0.0"},
      {"compute activate 0.0", "compute statistics 0.0"},
      {"compute statistics 0.0", "compute forward 0.1"},
      {"finish feature map 0", "compute forward 1.1"},
      {"compute forward 1.1", "compute activate 1.0"},
      {"finish parameter value 0 (first)", "compute forward 0.1"},
      {"start loss 0", "compute loss"},
      {"finish loss 0", "start loss 0"},
      {"start map gradient 0", "compute backward data 1.0"},
      {"finish map gradient 0", "compute backward activation 0.0"},
      {"start statistics gradient 0", "compute backward activation 0.0"},
      {"finish statistics gradient 0", "compute backward normalize 0.0"},
      {"compute backward normalize 0.0", "compute backward data 0.0"},
      {"compute backward data 1.0", "compute backward activation 1.0"},
      {"start parameter gradient 0 (last)", "compute backward weights 0.0"},
      {"finish parameter gradient 0", "compute update 0"},
      {"start parameter value 0", "compute update 0"}};
  for (const auto& [line, to] : moves) {
    CAPTURE(line);
    Damage damaged;
    damaged.move(line, to);
    CHECK(damaged.is_found());
  }
}

TEST_CASE("gradients that are clipped too early, too late or by another norm are found out") {
  const std::vector<std::pair<std::string, std::string>> moves = {
      {"compute gradient norm", "finish parameter gradient 0"},
      {"start gradient norm 0", "compute gradient norm"},
      {"finish gradient norm 1", "compute clip gradients"},
      {"compute clip gradients", "compute update 0"}};
  for (const auto& [line, to] : moves) {
    CAPTURE(line);
    Damage damaged(clipping_network());
    damaged.move(line, to);
    CHECK(damaged.is_found());
  }
  Damage unasked(clipping_network());
  unasked.network.max_gradient_norm = 0;
  CHECK(unasked.is_found());
}

TEST_CASE("actions of the wrong pass, part or transfer are found out") {
  const std::vector<std::pair<std::string, std::function<void(Action&)>>> changes = {
      {"start parameter gradient 0 (last)", [](Action& of) { of.passes = Passes::Every; }},
      {"finish parameter value 0 (first)", [](Action& of) { of.passes = Passes::Every; }},
      {"start feature map 0", [](Action& of) { of.passes = Passes::Last; }},
      {"compute forward 1.0", [](Action& of) { of.part = 1; }},
      {"compute backward weights 1.1", [](Action& of) { of.part = 0; }},
      {"start feature map 0", [](Action& of) { of.transfer = TransferIndex(1000); }},
      {"finish feature map 0", [](Action& of) { of.transfer = TransferIndex(0); }}};
  for (const auto& [line, change] : changes) {
    CAPTURE(line);
    Damage damaged;
    change(damaged.action(line));
    CHECK(damaged.is_found());
  }
}

TEST_CASE("work between filters that are prepared and their use is found out") {
  Network network = small_network();
  Partition partition = apart(network);
  partition.kernels = choose_kernels(network, KernelRule::Winograd);
  const Plan plan = make_plan(network, partition, 1);
  Schedule schedule = plan.schedule;
  CHECK(check_schedule(network, plan, schedule).empty());
  schedule.actions = {};
  for (const Action& action : plan.schedule.actions) {
    schedule.actions.push_back(action);
    if (action.kind == Kind::Compute && action.phase == Phase::Prepare && action.layer == 1) {
      schedule.actions.push_back({.phase = Phase::Activate, .layer = 0});
    }
  }
  REQUIRE(schedule.actions.size() == plan.schedule.actions.size() + 1);
  for (Section* section : {&schedule.loss, &schedule.backward, &schedule.update}) {
    ++section->begin;
  }
  for (Section* section :
       {&schedule.forward, &schedule.loss, &schedule.backward, &schedule.update}) {
    ++section->end;
  }
  const std::string wrong = tests::joined(check_schedule(network, plan, schedule));
  CHECK(wrong.find("comes between its filters and their use") != std::string::npos);
}

TEST_CASE("sections that leave actions out are found out") {
  Damage damaged;
  damaged.schedule.update.end = damaged.schedule.update.end - 1;
  CHECK(damaged.is_found());
  damaged.schedule = damaged.plan.schedule;
  ++damaged.schedule.loss.begin;
  CHECK(damaged.is_found());
}
