// What a list of messages must do, whatever the partition that it comes from: copy forward, and its
// exact adjoint backward.

#include "engine/comm/exchange.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "partitioner/plan/plan.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BulkTransfers;
using engine::Communicator;
using engine::Exchange;
using engine::Tensor;
using engine::View;
using partitioner::Message;
using partitioner::Payload;
using partitioner::Plan;

constexpr int kTag = 100;

// Sums of at most some ten thousand products, in two orders.
constexpr double kRounding = 1e-12;

void fill(Tensor<double>& tensor, std::uint64_t seed, int rank) {
  std::vector<double> plain(static_cast<std::size_t>(tensor.region().volume()));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    plain[i] = engine::random_normal(seed, static_cast<std::uint64_t>(rank), i);
  }
  copy_in(plain.data(), tensor.region(), tensor.view());
}

std::vector<double> values_of(const Tensor<double>& tensor) {
  std::vector<double> plain(static_cast<std::size_t>(tensor.region().volume()));
  copy_out(tensor.view(), tensor.region(), plain.data());
  return plain;
}

double sum_over_ranks(const Communicator& world, double mine) {
  double sum = 0;
  for (const auto& bytes : world.gather_all(engine::bytes_of(&mine, 1))) {
    double share = 0;
    std::memcpy(&share, bytes.data(), sizeof(share));
    sum += share;
  }
  return sum;
}

struct Product {
  double value = 0;
  double magnitude = 0;  // sum of absolute contributions: what rounding is relative to
};

Product dot(const Communicator& world, const Tensor<double>& a, const Tensor<double>& b) {
  Product product;
  const std::vector<double> x = values_of(a);
  const std::vector<double> y = values_of(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    product.value += x[i] * y[i];
    product.magnitude += std::abs(x[i] * y[i]);
  }
  return {sum_over_ranks(world, product.value), sum_over_ranks(world, product.magnitude)};
}

// <copy_forward(x), y> = <x, add_backward(y)>, with x on `owned` and y on `required` of this rank.
void check_adjoint(const Communicator& world,
                   const std::vector<Message>& messages,
                   const Region& owned,
                   const Region& required,
                   std::uint64_t seed) {
  BulkTransfers transfers(world, seed % 2 == 0);
  Exchange<double> exchange(world, messages, kTag, &transfers);
  Tensor<double> x(owned);
  Tensor<double> copied(required);
  fill(x, seed, world.rank());
  exchange.start_copy(View<const double>(x.view()));
  exchange.finish_copy(copied.view());
  Tensor<double> y(required);
  Tensor<double> sent(required);
  Tensor<double> added(owned);
  fill(y, seed + 1, world.rank());
  fill(sent, seed + 1, world.rank());
  exchange.start_add(sent.view());
  exchange.finish_add(added.view());
  const Product forward = dot(world, copied, y);
  const Product backward = dot(world, x, added);
  CHECK(std::abs(forward.value - backward.value) <= kRounding * forward.magnitude);
}

Region region_of(const Plan& plan, int rank, partitioner::BufferIndex buffer) {
  return buffer == partitioner::kNoBuffer ? Region{} : plan.buffer(rank, buffer).region;
}

// The buffer from which `group` reads `map` on a rank.
Region read_region(const partitioner::Network& network,
                   const Plan& plan,
                   const partitioner::Transfer& of,
                   int rank) {
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto& inputs = network.layer(layer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      if (inputs[input] == of.subject && plan.group(layer) == of.group) {
        const auto& layers = plan.read_from[static_cast<std::size_t>(rank)];
        return region_of(plan, rank, layers[static_cast<std::size_t>(layer)][input]);
      }
    }
  }
  return {};
}

Region home_region(const Plan& plan, int map, int rank) {
  return region_of(plan, rank, plan.producer(rank, map));
}

// Calls visit(case, plan, seed) for random plans on as many ranks as there are.
void for_each_plan(
    int ranks,
    const std::function<void(const tests::RandomCase&, const Plan&, std::uint64_t)>& visit) {
  constexpr std::uint64_t kPlans = 40;
  for (std::uint64_t i = 0; i < kPlans; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(ranks) * 1000 + i;
    const tests::RandomCase random = tests::random_case(seed, ranks, {});
    visit(random, make_plan(random.network, random.partition, random.batch), seed);
  }
}

TEST_CASE("adding backward is the adjoint of copying forward in every exchange between groups") {
  const Communicator world = Communicator::world();
  for_each_plan(world.size(),
                [&](const tests::RandomCase& random, const Plan& plan, std::uint64_t seed) {
                  for (const partitioner::Transfer& transfer : plan.transfers) {
                    if (transfer.kind != partitioner::TransferKind::FeatureMap) {
                      continue;
                    }
                    INFO("seed ", seed, " map ", transfer.subject, " group ", transfer.group);
                    check_adjoint(world,
                                  transfer.messages,
                                  home_region(plan, transfer.subject, world.rank()),
                                  read_region(random.network, plan, transfer, world.rank()),
                                  seed);
                  }
                });
}

TEST_CASE("adding backward is the adjoint of copying forward in every reduction to owners") {
  const Communicator world = Communicator::world();
  for_each_plan(world.size(), [&](const tests::RandomCase&, const Plan& plan, std::uint64_t seed) {
    for (const partitioner::Transfer& transfer : plan.transfers) {
      if (transfer.kind == partitioner::TransferKind::MapGradient &&
          transfer.list_of == partitioner::kNoTransfer) {
        INFO("seed ", seed, " map ", transfer.subject);
        const Region home = home_region(plan, transfer.subject, world.rank());
        check_adjoint(world, transfer.messages, home, home, seed);
      }
    }
  });
}

// Elements of a tensor as the cells of one row.
Region row_of(const Range& elements) {
  return {{0, 1}, {0, 1}, {0, 1}, elements};
}

std::vector<Message> in_a_row(std::vector<Message> messages) {
  for (Message& message : messages) {
    message.payload = Payload::cells(row_of(message.payload.element_run()));
  }
  return messages;
}

TEST_CASE("adding backward is the adjoint of copying forward for every parameter") {
  const Communicator world = Communicator::world();
  for_each_plan(world.size(), [&](const tests::RandomCase&, const Plan& plan, std::uint64_t seed) {
    for (const partitioner::ParameterPlan& parameter : plan.parameters) {
      INFO("seed ", seed, " layer ", parameter.layer);
      const Range channels = parameter.required[static_cast<std::size_t>(world.rank())];
      const Range elements{channels.begin * parameter.shape.row,
                           channels.end * parameter.shape.row};
      const Region held = row_of(elements);
      check_adjoint(world, in_a_row(parameter.messages), held, held, seed);
    }
  });
}

// The tiles of a random cut of a map, by rank.
std::vector<Region> random_ownership(tests::Draw& draw,
                                     const partitioner::Network& network,
                                     Index batch,
                                     int ranks) {
  const Plan plan = make_plan(network, random_partition(draw, network, batch, ranks), batch);
  std::vector<Region> owned;
  owned.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    owned.push_back(plan.tile(network.size() - 1, rank).owned);
  }
  return owned;
}

// A map of one value for each place, and two cuts of it.
struct Regridding {
  partitioner::Network network;
  Index batch = 3;
  std::vector<Region> before;
  std::vector<Region> after;
};

Regridding random_regridding(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  Regridding result;
  result.network.image = {draw.between(1, 20), draw.between(1, 9), draw.between(1, 9)};
  add_layer(result.network, partitioner::Dropout{}, {partitioner::kImage});
  result.before = random_ownership(draw, result.network, result.batch, ranks);
  result.after = random_ownership(draw, result.network, result.batch, ranks);
  return result;
}

TEST_CASE("re-gridding sends each cell exactly once, and there and back leaves the same bits") {
  const Communicator world = Communicator::world();
  const auto own = static_cast<std::size_t>(world.rank());
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    const Regridding regridding = random_regridding(seed, world.size());
    const auto there = partitioner::messages_between(regridding.before, regridding.after);
    Index cells = 0;
    for (const Message& message : there) {
      cells += message.payload.cells().volume();
    }
    CHECK(cells == whole_map(regridding.network, 0, regridding.batch).volume());
    Tensor<double> first(regridding.before[own]);
    Tensor<double> second(regridding.after[own]);
    Tensor<double> third(regridding.before[own]);
    fill(first, seed, world.rank());
    regrid(world, there, View<const double>(first.view()), second.view());
    regrid(world,
           partitioner::messages_between(regridding.after, regridding.before),
           View<const double>(second.view()),
           third.view());
    CHECK(values_of(third) == values_of(first));
    // The other direction of the same list, on ones: each owner gets its cells back once.
    Exchange<double> exchange(world, there, kTag);
    const std::vector<double> ones(static_cast<std::size_t>(second.region().volume()), 1.0);
    copy_in(ones.data(), second.region(), second.view());
    Tensor<double> counts(regridding.before[own]);
    exchange.start_add(second.view());
    exchange.finish_add(counts.view());
    CHECK(values_of(counts) ==
          std::vector<double>(static_cast<std::size_t>(counts.region().volume()), 1.0));
  }
}

TEST_CASE("gradients are added in rank order, whichever arrives first") {
  const Communicator world = Communicator::world();
  const Region all{{0, 1}, {0, 1}, {0, 1}, {0, 64}};
  const int owner = world.size() / 2;  // its own share comes between those of others
  std::vector<Message> messages;
  messages.reserve(static_cast<std::size_t>(world.size()));
  for (int to = 0; to < world.size(); ++to) {
    messages.push_back({owner, to, Payload::cells(all)});
  }
  // Numbers of very different size: another order of adding gives other bits.
  const auto share = [](int rank, std::size_t i) {
    const auto place = static_cast<std::uint64_t>(rank);
    return engine::random_normal(7, place, i) *
           std::pow(10.0, static_cast<double>(engine::random_bits(8, place, i) % 30));
  };
  for (int round = 0; round < 10; ++round) {
    Exchange<double> exchange(world, messages, kTag);
    Tensor<double> mine(all);
    Tensor<double> total(all);
    std::vector<double> plain(64);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      plain[i] = share(world.rank(), i);
    }
    copy_in(plain.data(), all, mine.view());
    exchange.start_add(mine.view());
    exchange.finish_add(total.view());
    if (world.rank() == owner) {
      std::vector<double> expected(64);
      for (int rank = 0; rank < world.size(); ++rank) {
        // All of them first: a processor may multiply and add without rounding in between.
        std::vector<double> shares(expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          shares[i] = share(rank, i);
        }
        std::transform(
            expected.begin(), expected.end(), shares.begin(), expected.begin(), std::plus<>{});
      }
      CHECK(values_of(total) == expected);
    }
  }
}

TEST_CASE("who sends and receives nothing goes on before its messages have left") {
  const Communicator world = Communicator::world();
  const int rank = world.rank();
  const Region whole{{0, 1}, {0, 16}, {0, 512}, {0, 512}};  // 32 MiB: too much to be sent unasked
  BulkTransfers transfers(world, true);
  std::vector<Message> messages;
  for (int to = 1; to < world.size(); ++to) {
    messages.push_back({0, to, Payload::cells(whole)});
  }
  Exchange<double> exchange(world, messages, kTag, &transfers);
  Tensor<double> from(rank == 0 ? whole : Region{});
  Tensor<double> to(rank == 0 ? Region{} : whole);
  if (rank == 0) {
    fill(from, 1, 0);
    exchange.start_copy(View<const double>(from.view()));
    exchange.finish_copy(to.view());
    from.view().data[0] = -1;  // it has been packed
  }
  world.barrier();  // nobody has looked for a message yet
  if (rank != 0) {
    exchange.start_copy(View<const double>(from.view()));
    exchange.finish_copy(to.view());
    Tensor<double> expected(whole);
    fill(expected, 1, 0);
    CHECK(values_of(to) == values_of(expected));
  }
  exchange.finish_sends();
}

TEST_CASE("exchanges under way at once may be started and finished in any order on each rank") {
  const Communicator world = Communicator::world();
  const auto own = static_cast<std::size_t>(world.rank());
  constexpr int kAtOnce = 6;
  std::vector<Regridding> regriddings;
  std::vector<Exchange<double>> exchanges;
  std::vector<Tensor<double>> from;
  std::vector<Tensor<double>> to;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    const Regridding& one = regriddings.emplace_back(random_regridding(500 + i, world.size()));
    exchanges.emplace_back(world,
                           partitioner::messages_between(one.before, one.after),
                           kTag + 2 * static_cast<int>(i));
    fill(from.emplace_back(one.before[own]), 500 + i, world.rank());
    to.emplace_back(one.after[own]);
    order.push_back(i);
  }
  tests::Draw draw(900 + own);  // differs between ranks
  const auto shuffle = [&] {
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[static_cast<std::size_t>(draw.between(0, static_cast<Index>(i)))]);
    }
  };
  shuffle();
  for (const std::size_t i : order) {
    exchanges[i].start_copy(View<const double>(from[i].view()));
  }
  shuffle();
  for (const std::size_t i : order) {
    exchanges[i].finish_copy(to[i].view());
  }
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    Tensor<double> expected(regriddings[i].after[own]);
    regrid(world,
           partitioner::messages_between(regriddings[i].before, regriddings[i].after),
           View<const double>(from[i].view()),
           expected.view());
    CHECK(values_of(to[i]) == values_of(expected));
  }
}

}  // namespace
