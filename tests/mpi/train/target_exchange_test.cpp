#include "engine/train/target_exchange.h"

#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Box;
using engine::Communicator;
using engine::ImageTargets;
using engine::Targets;
using partitioner::Message;

Message of_images(int from, int to, const Range& images) {
  return {from, to, partitioner::Payload::images(images)};
}

// From one rank to all others.
std::vector<Message> from_one(int reader, int ranks, const Range& images) {
  std::vector<Message> messages;
  for (int to = 0; to < ranks; ++to) {
    if (to != reader) {
      messages.push_back(of_images(reader, to, images));
    }
  }
  return messages;
}

// Image n has n boxes, image 0 none; every third image is of a class, every fourth place is empty.
Targets with_boxes(Index batch) {
  Targets targets;
  for (Index n = 0; n < batch; ++n) {
    std::optional<ImageTargets>& of = targets.emplace_back();
    if (n % 4 == 3) {
      continue;
    }
    of.emplace();
    if (n % 3 == 0) {
      of->label = static_cast<int>(n);
    }
    for (Index box = 0; box < n; ++box) {
      const auto drawn = [&](std::uint64_t number) {
        return static_cast<float>(engine::random_uniform(
            number, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(box)));
      };
      of->boxes.push_back({static_cast<int>(box % 3), drawn(1), drawn(2), drawn(3), drawn(4)});
    }
  }
  return targets;
}

// What this rank has after `sent` has travelled from the reader.
Targets received(const Targets& sent, int reader, const std::vector<Message>& messages) {
  const Communicator world = Communicator::world();
  Targets targets = world.rank() == reader ? sent : Targets(sent.size());
  const engine::TargetExchange exchange(world, messages);
  exchange.run(targets);
  exchange.run(targets);  // whatever was there before is replaced
  return targets;
}

TEST_CASE("boxes arrive as they were sent: different numbers of them, none, and empty places") {
  const int ranks = Communicator::world().size();
  for (const int reader : {0, ranks - 1}) {
    for (const Index batch : {1, 4, 9}) {
      const Targets sent = with_boxes(batch);
      CHECK(received(sent, reader, from_one(reader, ranks, {0, batch})) == sent);
    }
  }
}

TEST_CASE("targets without any box arrive as they were sent") {
  const int ranks = Communicator::world().size();
  const Targets nothing_known{ImageTargets{}, std::nullopt, ImageTargets{}};
  const Targets classes = engine::class_targets({2, 0, 1});
  for (const Targets& sent : {nothing_known, classes, Targets(3)}) {
    CHECK(received(sent, 0, from_one(0, ranks, {0, 3})) == sent);
  }
}

TEST_CASE("only the images of a message travel") {
  const Communicator world = Communicator::world();
  const Targets sent = with_boxes(6);
  const Targets found = received(sent, 0, from_one(0, world.size(), {2, 5}));
  for (std::size_t n = 0; n < sent.size(); ++n) {
    const bool travels = world.rank() == 0 || (n >= 2 && n < 5);
    CHECK(found[n] == (travels ? sent[n] : std::nullopt));
  }
}

TEST_CASE("each rank may send images of its own to each other") {
  const Communicator world = Communicator::world();
  const int ranks = world.size();
  const Targets all = with_boxes(2 * ranks);
  std::vector<Message> messages;
  for (int to = 0; to < ranks; ++to) {
    for (int from = 0; from < ranks; ++from) {
      if (from != to) {
        messages.push_back(of_images(from, to, {2 * from, 2 * from + 2}));
      }
    }
  }
  Targets mine(all.size());
  for (const int n : {2 * world.rank(), 2 * world.rank() + 1}) {
    mine[static_cast<std::size_t>(n)] = all[static_cast<std::size_t>(n)];
  }
  engine::TargetExchange(world, messages).run(mine);
  CHECK(mine == all);
}

}  // namespace
