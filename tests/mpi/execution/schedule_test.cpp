// What an execution does is what the plan's schedule says: action by action, and, below the loop
// that performs them, message by message as MPI is asked to send and receive.

#include "partitioner/plan/schedule.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/loss_gradients.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>
#include <mpi.h>

#include "engine/comm/bulk_transfers.h"
#include "engine/execution/execution.h"
#include "engine/system/clock.h"
#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::Communicator;
using engine::Execution;
using engine::Pass;
using engine::PerformedAction;
using partitioner::Action;
using partitioner::ActionIndex;
using partitioner::Compression;
using partitioner::Plan;
using partitioner::Schedule;
using partitioner::Transfer;
using partitioner::TransferKind;

constexpr int kScheduleCases = 24;
constexpr Index kHeadBytes = 32;  // of what a rank tells the others with its loss

struct Posted {
  double at_s = 0;
  bool sends = false;
  bool yields = false;  // of parameters: goes when others leave room for it, if need be later
  int peer = 0;
  Index bytes = 0;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): MPI's functions have no other
std::vector<Posted>* posted_to = nullptr;

void note(bool sends, int peer, int tag, int bytes) {
  if (posted_to != nullptr && bytes > 0) {
    posted_to->push_back({engine::now_s(), sends, tag == engine::kBulkTag, peer, bytes});
  }
}

// Of one rank in one action: whether it sends, to or from whom, and how many bytes.
using Messages = std::vector<std::tuple<bool, int, Index>>;

Messages planned_messages(const Plan& plan, const Action& action, int rank) {
  Messages messages;
  if (action.kind != Action::Kind::Start) {
    return messages;
  }
  const Transfer& transfer = plan.transfers[action.transfer];
  for_each_message(plan, transfer, [&](int from, int to, const partitioner::Payload& payload) {
    const bool last_of_loss = transfer.kind == TransferKind::Loss && transfer.subject == 1;
    const Index bytes =
        last_of_loss ? kHeadBytes : message_bytes(plan, transfer, payload, sizeof(float));
    if (from != to && (from == rank || to == rank) && bytes > 0) {
      messages.emplace_back(from == rank, from == rank ? to : from, bytes);
    }
  });
  std::sort(messages.begin(), messages.end());
  return messages;
}

Messages messages_during(const PerformedAction& action, const std::vector<Posted>& posted) {
  Messages messages;
  for (const Posted& of : posted) {
    if (action.begin_s <= of.at_s && of.at_s <= action.end_s && !of.yields) {
      messages.emplace_back(of.sends, of.peer, of.bytes);
    }
  }
  std::sort(messages.begin(), messages.end());
  return messages;
}

std::string listed(const Messages& messages) {
  std::string text;
  for (const auto& [sends, peer, bytes] : messages) {
    text += fmt::format(
        " {} {} B {} {}", sends ? "send" : "receive", bytes, sends ? "to" : "from", peer);
  }
  return text;
}

// One execution, watched.
class Watched {
 public:
  Watched(const tests::RandomCase& random, const Communicator& world)
      : world_(world),
        plan_(make_plan(random.network, random.partition, random.batch)),
        execution_(random.network, plan_, world, {}),
        has_loss_(!losses(random.network).empty()),
        targets_(tests::some_targets(random.batch, 1)) {
    execution_.parameters().initialize(3);
    execution_.parameters().update_by([](std::size_t, const Range&, const float*) {});
    posted_to = &posted_;
  }
  ~Watched() { posted_to = nullptr; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void step(Index passes, BatchNormMode mode) {
    start();
    Pass pass;
    for (Index i = 0; i < passes; ++i) {
      pass = of_step(i, passes, mode);
      execution_.forward(pass);
      (void)execution_.exchange_loss(pass);
      execution_.clear_output_gradient();
      execution_.backward(pass);
    }
    execution_.update(pass, [&](int bucket) { updated_.push_back(bucket); });
    const Schedule& schedule = execution_.schedule(pass);
    std::vector<std::pair<ActionIndex, Index>> expected;
    for_each_action(
        schedule, passes, [&](ActionIndex action, Index of) { expected.emplace_back(action, of); });
    compare(schedule, expected);
    const auto buckets = static_cast<int>(plan_.buckets.size());
    REQUIRE(static_cast<int>(updated_.size()) == buckets);
    for (int i = 0; i < buckets; ++i) {
      CHECK(updated_[static_cast<std::size_t>(i)] == buckets - 1 - i);
    }
  }

  void evaluate() {
    start();
    Pass pass = of_step(0, 1, BatchNormMode::Sync);
    pass.training = false;
    execution_.forward(pass);
    (void)execution_.exchange_loss(pass);
    const Schedule& schedule = execution_.schedule(pass);
    std::vector<std::pair<ActionIndex, Index>> expected;
    for (const partitioner::Section& section : {schedule.forward, schedule.loss}) {
      for_each_action(schedule, section, 0, 1, [&](ActionIndex action, Index of) {
        expected.emplace_back(action, of);
      });
    }
    compare(schedule, expected);
  }

  [[nodiscard]] bool has_plans_schedule() {
    return execution_.schedule(of_step(0, 1, BatchNormMode::Sync)) == plan_.schedule;
  }

  // Waits for the last values, and compares what has been sent and received of parameters since the
  // beginning.
  void end() {
    execution_.parameters_under_way().finish_values();
    Messages found;
    for (const Posted& of : posted_) {
      if (of.yields) {
        found.emplace_back(of.sends, of.peer, of.bytes);
      }
    }
    std::sort(found.begin(), found.end());
    std::sort(yielding_.begin(), yielding_.end());
    CHECK_MESSAGE(found == yielding_, listed(found), "; planned:", listed(yielding_));
  }

 private:
  void start() {
    updated_.clear();
    execution_.record(true);
  }

  [[nodiscard]] Pass of_step(Index i, Index passes, BatchNormMode mode) const {
    Pass pass;
    pass.batch_norm = mode;
    pass.number = i;
    pass.first_image = i * plan_.batch;
    pass.targets = has_loss_ ? &targets_ : nullptr;
    pass.ends_step = i + 1 == passes;
    return pass;
  }

  void compare(const Schedule& schedule,
               const std::vector<std::pair<ActionIndex, Index>>& expected) {
    const std::vector<PerformedAction> performed = execution_.performed();
    execution_.record(false);
    REQUIRE(performed.size() == expected.size());
    std::size_t counted = 0;
    for (std::size_t i = 0; i < performed.size(); ++i) {
      const auto [number, pass] = expected[i];
      CHECK(performed[i].action == number);
      CHECK(performed[i].pass == pass);
      CHECK(performed[i].begin_s <= performed[i].end_s);
      CHECK((i == 0 || performed[i - 1].end_s <= performed[i].begin_s));
      const Action& action = schedule.actions[number];
      const Messages wanted = urgent_messages(action);
      const Messages found = messages_during(performed[i], posted_);
      counted += found.size();
      CHECK_MESSAGE(found == wanted, described(action, pass, found, wanted));
    }
    // None beside those of actions.
    CHECK(static_cast<std::ptrdiff_t>(counted) ==
          std::count_if(posted_.begin(), posted_.end(), [&](const Posted& of) {
            return of.at_s >= performed.front().begin_s && !of.yields;
          }));
  }

  // What is posted while the action is performed.
  [[nodiscard]] Messages urgent_messages(const Action& action) {
    Messages messages = planned_messages(plan_, action, world_.rank());
    if (action.transfer != partitioner::kNoTransfer && plan_.transfers[action.transfer].yields) {
      yielding_.insert(yielding_.end(), messages.begin(), messages.end());
      return {};
    }
    return messages;
  }

  [[nodiscard]] std::string described(const Action& action,
                                      Index pass,
                                      const Messages& found,
                                      const Messages& wanted) const {
    const Transfer none;
    const Transfer& of =
        action.transfer == partitioner::kNoTransfer ? none : plan_.transfers[action.transfer];
    return fmt::format(
        "{} {} {} in pass {}:{}; planned:{}",
        name_of(action.kind),
        action.transfer == partitioner::kNoTransfer ? name_of(action.phase) : name_of(of.kind),
        action.transfer == partitioner::kNoTransfer ? action.layer : of.subject,
        pass,
        listed(found),
        listed(wanted));
  }

  Communicator world_;
  Plan plan_;
  Execution<float> execution_;
  bool has_loss_;
  engine::Targets targets_;
  std::vector<Posted> posted_;  // since the beginning
  Messages yielding_;           // planned since then
  std::vector<int> updated_;
};

}  // namespace

// MPI has each of its functions under a second name, for those who want to look on.
extern "C" int MPI_Isend(const void* bytes,
                         int count,
                         MPI_Datatype type,
                         int to,
                         int tag,
                         MPI_Comm communicator,
                         MPI_Request* request) {
  note(true, to, tag, count);
  return PMPI_Isend(bytes, count, type, to, tag, communicator, request);
}

extern "C" int MPI_Issend(const void* bytes,
                          int count,
                          MPI_Datatype type,
                          int to,
                          int tag,
                          MPI_Comm communicator,
                          MPI_Request* request) {
  note(true, to, tag, count);
  return PMPI_Issend(bytes, count, type, to, tag, communicator, request);
}

extern "C" int MPI_Irecv(void* bytes,
                         int count,
                         MPI_Datatype type,
                         int from,
                         int tag,
                         MPI_Comm communicator,
                         MPI_Request* request) {
  note(false, from, tag, count);
  return PMPI_Irecv(bytes, count, type, from, tag, communicator, request);
}

namespace {

constexpr Compression kCompressions[] = {Compression::Exact,
                                         Compression::Half,
                                         {.kind = Compression::Kind::TopK, .fraction = 0.1},
                                         {.kind = Compression::Kind::Sign},
                                         {.kind = Compression::Kind::LowRank, .rank = 1}};

TEST_CASE("each rank performs the schedule, action by action, and sends what it lists") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kScheduleCases; ++i) {
    const std::uint64_t seed = 9000 + static_cast<std::uint64_t>(world.size() * 100 + i);
    tests::RandomCase random = tests::random_case(seed, world.size(), {});
    tests::Draw draw(seed);
    tests::draw_kernels(draw, random);
    tests::draw_recomputation(draw, random.partition);
    auto& reduction = random.partition.gradient_reduction;
    reduction.compression = kCompressions[i % std::ssize(kCompressions)];
    if (reduction.compression != Compression::Exact) {
      reduction.optimizer = partitioner::OptimizerStates::Sharded;
    }
    INFO("seed ", seed, '\n', tests::describe(random));
    Watched watched(random, world);
    CHECK(watched.has_plans_schedule());
    watched.step(1, BatchNormMode::Sync);
    watched.step(3, BatchNormMode::Sync);
    watched.evaluate();
    watched.step(2, BatchNormMode::PerTile);
    watched.step(1, BatchNormMode::Frozen);
    watched.evaluate();
    watched.end();
  }
}

TEST_CASE(
    "replicas that are apart perform the same schedule, and send to each other what it lists") {
  const Communicator world = Communicator::world();
  for (int i = 0; i < kScheduleCases; ++i) {
    const std::uint64_t seed = 19000 + static_cast<std::uint64_t>(world.size() * 100 + i);
    tests::RandomCase random = tests::random_case(seed, 1, {});
    random.partition.reader = partitioner::Reader::every_rank();
    const partitioner::SyncMode mode =
        i % 2 == 0 ? partitioner::SyncMode::Local : partitioner::SyncMode::ParameterRank;
    random.partition = replicated(random.partition, {world.size(), {mode, 2}}, random.batch);
    random.batch *= world.size();
    INFO("seed ", seed, '\n', tests::describe(random));
    Watched watched(random, world);
    watched.step(2, BatchNormMode::Sync);
    if (mode == partitioner::SyncMode::Local) {  // else all tell each other, not as in a step
      watched.evaluate();
    }
    watched.step(1, BatchNormMode::PerTile);
    watched.end();
  }
}

}  // namespace
