#include "engine/comm/heartbeat_socket.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fmt/ranges.h>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>

#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/comm/rank_keys.h"
#include "engine/comm/watchdog.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Heartbeat;
using engine::HeartbeatSocket;
using engine::SealedHeartbeats;
using std::chrono::milliseconds;

// UDP sockets of this process.
std::set<int> udp_sockets() {
  std::set<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename());
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM &&
        ::getsockname(file, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
        address.ss_family == AF_INET) {
      sockets.insert(file);
    }
  }
  return sockets;
}

// What makes one socket on each rank, that socket, and where those of all ranks listen.
template <class Made>
struct Listening {
  std::unique_ptr<Made> made;
  int file = -1;
  std::vector<sockaddr_in> addresses;
};

template <class Made, class... Arguments>
Listening<Made> made_with_addresses(const Communicator& world, Arguments&&... arguments) {
  const std::set<int> before = udp_sockets();
  Listening<Made> listening;
  listening.made = std::make_unique<Made>(world, std::forward<Arguments>(arguments)...);
  for (const int socket : udp_sockets()) {
    if (before.count(socket) == 0) {
      listening.file = socket;
    }
  }
  sockaddr_in address{};
  socklen_t length = sizeof address;
  CHECK(::getsockname(listening.file, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  listening.addresses = world.of_ranks(address);
  return listening;
}

// Sends garbage to all addresses as fast as it can, until it ends: of all sizes, and such that look
// like heartbeats of each rank but for their last bytes.
class Flood {
 public:
  explicit Flood(std::vector<sockaddr_in> addresses)
      : addresses_(std::move(addresses)), thread_([this] { run(); }) {
    while (sent_ < 10000) {
      std::this_thread::yield();
    }
  }
  ~Flood() {
    ending_ = true;
    thread_.join();
    ::close(socket_);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  void run() {
    std::mt19937 random(5);
    std::vector<char> bytes(2000);
    while (!ending_) {
      for (char& byte : std::span(bytes).first(SealedHeartbeats::kBytes)) {
        byte = static_cast<char>(random());
      }
      std::size_t size = random() % bytes.size();
      if (random() % 2 == 0) {
        std::memcpy(bytes.data(), "TSD1", 4);
        const auto sender = static_cast<std::uint32_t>(random() % addresses_.size());
        std::memcpy(bytes.data() + 4, &sender, 4);
        size = SealedHeartbeats::kBytes;
      }
      for (const sockaddr_in& address : addresses_) {
        (void)::sendto(socket_,
                       bytes.data(),
                       size,
                       MSG_DONTWAIT,
                       reinterpret_cast<const sockaddr*>(&address),
                       sizeof address);
      }
      ++sent_;
    }
  }

  std::vector<sockaddr_in> addresses_;
  int socket_ = ::socket(AF_INET, SOCK_DGRAM, 0);
  std::atomic<bool> ending_{false};
  std::atomic<int> sent_{0};
  std::thread thread_;
};

std::unique_ptr<Flood> flood_of_first(const Communicator& world,
                                      const std::vector<sockaddr_in>& addresses) {
  auto flood = world.rank() == 0 ? std::make_unique<Flood>(addresses) : nullptr;
  world.barrier();  // it is under way
  return flood;
}

// Those heard once all others have been, or so many looks were in vain.
std::set<int> heard_until_all(const Communicator& world, HeartbeatSocket& socket) {
  std::set<int> heard;
  for (int looks = 0; looks < 2000 && static_cast<int>(heard.size()) + 1 < world.size(); ++looks) {
    for (const Heartbeat& beat : socket.receive(milliseconds(10))) {
      heard.insert(beat.rank);
    }
  }
  return heard;
}

std::set<int> all_but(const Communicator& world, int one) {
  std::set<int> ranks;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank != one) {
      ranks.insert(rank);
    }
  }
  return ranks;
}

}  // namespace

TEST_CASE("each rank hears each other one once for each heartbeat, and what they say") {
  const Communicator world = Communicator::world();
  HeartbeatSocket socket(world);
  socket.send(10.0 + world.rank());
  std::set<int> heard;
  for (int looks = 0; looks < 2000 && static_cast<int>(heard.size()) + 1 < world.size(); ++looks) {
    for (const Heartbeat& beat : socket.receive(milliseconds(10))) {
      CHECK(heard.insert(beat.rank).second);
      CHECK(beat.stuck_s == doctest::Approx(10.0 + beat.rank));
    }
  }
  CHECK(heard == all_but(world, world.rank()));
  CHECK(socket.receive(milliseconds(0)).empty());
  world.barrier();
}

TEST_CASE("a flood of garbage neither counts as heartbeats nor displaces them") {
  const Communicator world = Communicator::world();
  const auto [socket, file, addresses] = made_with_addresses<HeartbeatSocket>(world);
  const auto flood = flood_of_first(world, addresses);
  for (int round = 0; round < 20; ++round) {
    CHECK(socket->receive(milliseconds(0)).empty());
    world.barrier();
    socket->send(0);  // once
    CHECK(heard_until_all(world, *socket) == all_but(world, world.rank()));
    world.barrier();
  }
}

TEST_CASE("garbage that nobody has read yet leaves room for heartbeats") {
  const Communicator world = Communicator::world();
  const auto [socket, file, addresses] = made_with_addresses<HeartbeatSocket>(world);
  if (world.rank() == 0) {
    const int stranger = ::socket(AF_INET, SOCK_DGRAM, 0);
    for (const std::size_t size : {SealedHeartbeats::kBytes, std::size_t{1400}}) {
      const std::vector<char> garbage(size);
      for (int i = 0; i < 10000; ++i) {  // several times what a socket keeps
        for (const sockaddr_in& address : addresses) {
          (void)::sendto(stranger,
                         garbage.data(),
                         garbage.size(),
                         0,
                         reinterpret_cast<const sockaddr*>(&address),
                         sizeof address);
        }
      }
    }
    ::close(stranger);
  }
  world.barrier();
  socket->send(0);
  CHECK(heard_until_all(world, *socket) == all_but(world, world.rank()));
  world.barrier();
}

TEST_CASE("a heartbeat is heard once, and only from the address and under the name of its rank") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const auto [socket, file, addresses] = made_with_addresses<HeartbeatSocket>(world);
  const int rank = world.rank();
  std::array<std::uint8_t, SealedHeartbeats::kBytes> sniffed{};
  if (rank == 1) {
    socket->send(7);
  }
  world.barrier();
  if (rank == 0) {  // instead of the socket, which so has not heard it
    CHECK(::recv(file, sniffed.data(), sniffed.size(), MSG_DONTWAIT) ==
          static_cast<ssize_t>(sniffed.size()));
  }
  sniffed = world.share(sniffed);
  // To rank 0, from where it comes; what rank 0 then hears.
  const auto heard_from = [&, file = file, &addresses = addresses, &socket = socket](
                              int from, int by, const auto& datagram) {
    if (rank == from) {
      CHECK(::sendto(by,
                     datagram.data(),
                     datagram.size(),
                     0,
                     reinterpret_cast<const sockaddr*>(addresses.data()),
                     sizeof addresses[0]) == static_cast<ssize_t>(datagram.size()));
    }
    world.barrier();
    auto heard = rank == 0 ? socket->receive(milliseconds(0)) : std::vector<Heartbeat>();
    world.barrier();  // before the next one is sent
    return heard;
  };
  const int stranger = ::socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(heard_from(1, stranger, sniffed).empty());
  ::close(stranger);
  if (world.size() > 2) {
    CHECK(heard_from(2, file, sniffed).empty());
  }
  for (const std::uint8_t name : std::array<std::uint8_t, 3>{0, 2, 200}) {
    auto renamed = sniffed;
    renamed[4] = name;
    CHECK(heard_from(1, file, renamed).empty());
  }
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{8}, std::size_t{16}, sniffed.size() - 1}) {
    auto changed = sniffed;
    changed[at] ^= 1U;
    CHECK(heard_from(1, file, changed).empty());
  }
  const std::vector<Heartbeat> heard = heard_from(1, file, sniffed);
  CHECK(heard.size() == (rank == 0 ? 1 : 0));
  for (const Heartbeat& beat : heard) {
    CHECK(beat.rank == 1);
    CHECK(beat.stuck_s == doctest::Approx(7));
  }
  CHECK(heard_from(1, file, sniffed).empty());
  world.barrier();
}

TEST_CASE("a flood with the address and the name of a rank stops no heartbeats") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const auto [socket, file, addresses] = made_with_addresses<HeartbeatSocket>(world);
  const int rank = world.rank();
  std::atomic<bool> ending{false};
  std::thread flood([&, file = file, &addresses = addresses] {
    std::mt19937 random(5);
    std::array<char, SealedHeartbeats::kBytes> bytes{'T', 'S', 'D', '1', 1};
    while (rank == 1 && !ending) {
      for (char& byte : std::span(bytes).subspan(8)) {
        byte = static_cast<char>(random());
      }
      (void)::sendto(file,
                     bytes.data(),
                     bytes.size(),
                     MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(addresses.data()),
                     sizeof addresses[0]);
    }
  });
  std::set<int> heard;
  bool all = false;
  for (int round = 0; round < 2000 && !all; ++round) {
    socket->send(0);
    for (const Heartbeat& beat : socket->receive(milliseconds(1))) {
      CHECK(beat.stuck_s == 0);
      heard.insert(beat.rank);
    }
    all = world.share(rank == 0 && heard == all_but(world, 0));
  }
  CHECK(all);
  ending = true;
  flood.join();
  world.barrier();
}

TEST_CASE("keys of ranks are not where other processes can read them") {
  const Communicator world = Communicator::world();
  for (const auto& key : engine::keys_with_ranks(world, "heartbeat")) {
    for (const char* path : {"/proc/self/cmdline", "/proc/self/environ"}) {
      const std::string text = tests::bytes_of(path);
      CHECK(!text.empty());
      CHECK((!key ||
             text.find(fmt::format("{:02x}", fmt::join(key->bytes(), ""))) == std::string::npos));
      CHECK((!key || text.find(std::string(key->bytes().begin(), key->bytes().end())) ==
                         std::string::npos));
    }
  }
  world.barrier();
}

TEST_CASE("under a flood a watchdog sees who is there and who has gone") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  constexpr double kLimit_s = 2;
  std::mutex mutex;
  std::condition_variable found;
  std::optional<engine::Stall> stall;
  auto [watchdog, file, addresses] =
      made_with_addresses<engine::Watchdog>(world, kLimit_s, [&](const engine::Stall& seen) {
        const std::lock_guard lock(mutex);
        stall = seen;
        found.notify_all();
      });
  const auto flood = flood_of_first(world, addresses);
  {
    std::unique_lock lock(mutex);
    CHECK_FALSE(found.wait_for(
        lock, std::chrono::duration<double>(2 * kLimit_s), [&] { return stall.has_value(); }));
  }
  world.barrier();
  const int gone = world.size() - 1;
  if (world.rank() == gone) {
    watchdog.reset();
  } else {
    std::unique_lock lock(mutex);
    CHECK(found.wait_for(lock, std::chrono::minutes(1), [&] { return stall.has_value(); }));
    CHECK((stall && stall->silent == std::vector<int>{gone}));
  }
  world.barrier();
}
