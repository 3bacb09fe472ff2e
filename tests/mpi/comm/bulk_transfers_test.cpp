#include "engine/comm/bulk_transfers.h"

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BulkTransfers;
using engine::Communicator;

// Less than a chunk, several chunks, one more or less than whole chunks, nothing.
constexpr std::array kSizes{std::size_t{1},
                            std::size_t{100000},
                            std::size_t{0},
                            std::size_t{32768},
                            std::size_t{16385},
                            std::size_t{65535}};

std::byte value_of(int from, int to, std::size_t message, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::size_t>(from * 31 + to * 7) + message * 13 +
                                at * 5 + at / 256);
}

// Messages between this rank and each other one, there and back.
struct Mail {
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> received;
};

Mail post_all(const Communicator& world, BulkTransfers& transfers, BulkTransfers::Batch& batch) {
  Mail mail;
  const int rank = world.rank();
  for (int peer = 0; peer < world.size(); ++peer) {
    for (std::size_t message = 0; message < kSizes.size() && peer != rank; ++message) {
      mail.received.emplace_back(kSizes[message]);
      auto& bytes = mail.sent.emplace_back(kSizes[message]);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = value_of(rank, peer, message, i);
      }
      transfers.post_receive(batch, peer, mail.received.back());
      transfers.post_send(batch, peer, bytes);
    }
  }
  return mail;
}

bool arrived(const Communicator& world, const Mail& mail) {
  std::size_t at = 0;
  bool right = true;
  for (int peer = 0; peer < world.size(); ++peer) {
    for (std::size_t message = 0; message < kSizes.size() && peer != world.rank(); ++message) {
      const auto& bytes = mail.received[at++];
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        right = right && bytes[i] == value_of(peer, world.rank(), message, i);
      }
    }
  }
  return right;
}

TEST_CASE("bulk messages of any size arrive in the order in which they were posted") {
  const Communicator world = Communicator::world();
  for (const bool by_wire : {true, false}) {
    BulkTransfers transfers(world, by_wire);
    for (int round = 0; round < 20; ++round) {
      BulkTransfers::Batch batch;
      const Mail mail = post_all(world, transfers, batch);
      transfers.wait(batch);
      CHECK(arrived(world, mail));
    }
  }
}

TEST_CASE("batches of bulk messages can be waited for in any order") {
  const Communicator world = Communicator::world();
  for (const bool by_wire : {true, false}) {
    BulkTransfers transfers(world, by_wire);
    BulkTransfers::Batch first;
    BulkTransfers::Batch second;
    const Mail of_first = post_all(world, transfers, first);
    const Mail of_second = post_all(world, transfers, second);
    const bool backwards = world.rank() % 2 == 0;
    transfers.wait(backwards ? second : first);
    transfers.wait(backwards ? first : second);
    CHECK(arrived(world, of_first));
    CHECK(arrived(world, of_second));
  }
}

TEST_CASE("other messages arrive while bulk messages are under way") {
  const Communicator world = Communicator::world();
  for (const bool by_wire : {true, false}) {
    BulkTransfers transfers(world, by_wire);
    BulkTransfers::Batch batch;
    const Mail mail = post_all(world, transfers, batch);
    for (int round = 0; round < 5; ++round) {
      const std::vector<int> ranks = world.of_ranks(world.rank() + round);
      for (int rank = 0; rank < world.size(); ++rank) {
        CHECK(ranks[static_cast<std::size_t>(rank)] == rank + round);
      }
    }
    transfers.wait(batch);
    CHECK(arrived(world, mail));
  }
}

TEST_CASE("messages of others move while nobody calls MPI") {
  using Clock = std::chrono::steady_clock;
  constexpr int kTag = 8;
  constexpr std::size_t kLarge = std::size_t{8} << 20U;  // more than is sent without consent
  const Communicator world = Communicator::world();
  const int next = (world.rank() + 1) % world.size();
  const int before = (world.rank() + world.size() - 1) % world.size();
  BulkTransfers transfers(world, true);
  CHECK(transfers.progresses() == (world.size() > 1));
  std::vector<unsigned char> sent(kLarge, 7);
  std::vector<unsigned char> received(kLarge);
  engine::Requests requests;
  world.post_receive(requests, before, kTag, std::as_writable_bytes(std::span(received)));
  world.barrier();
  {
    const engine::ProgressGuard guard(transfers);
    world.post_send(requests, next, kTag, std::as_bytes(std::span<const unsigned char>(sent)));
    const std::atomic_ref<unsigned char> last(received.back());
    const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
    while (world.size() > 1 && last.load() == 0 && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (world.size() > 1) {
      CHECK(static_cast<int>(last.load()) == 7);
    }
    world.barrier();
  }
  requests.wait_all();
  CHECK(received == sent);
}

TEST_CASE("an empty batch is not waited for") {
  const Communicator self = Communicator::self();
  BulkTransfers transfers(self);
  BulkTransfers::Batch batch;
  transfers.post_send(batch, 0, {});
  transfers.wait(batch);
}

}  // namespace
