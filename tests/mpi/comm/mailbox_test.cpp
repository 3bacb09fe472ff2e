#include "engine/comm/mailbox.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "engine/comm/communicator.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::Mailbox;

std::string letter_text(const Mailbox::Letter& letter) {
  return {reinterpret_cast<const char*>(letter.bytes.data()), letter.bytes.size()};
}

// Posted by another thread, as a monitor does.
void post(Mailbox& mailbox, const std::string& text) {
  std::thread([&] {
    while (!mailbox.post(engine::bytes_of(text.data(), std::ssize(text)))) {
      std::this_thread::yield();
    }
  }).join();
}

TEST_CASE("what ranks post is what rank 0 takes, that of one rank in the order of posting") {
  const Communicator world = Communicator::world();
  Mailbox mailbox(world);
  constexpr int kLetters = 20;
  for (int number = 0; number < kLetters; ++number) {
    post(mailbox, std::to_string(world.rank()) + ":" + std::to_string(number));
  }
  std::vector<int> next(static_cast<std::size_t>(world.size()), 0);
  std::size_t taken = 0;
  while (world.rank() == 0 && taken < next.size() * kLetters) {
    for (const Mailbox::Letter& letter : mailbox.take()) {
      int& number = next[static_cast<std::size_t>(letter.from)];
      CHECK(letter_text(letter) == std::to_string(letter.from) + ":" + std::to_string(number));
      ++number;
      ++taken;
    }
  }
  world.barrier();
  CHECK(mailbox.take().empty());
}

TEST_CASE("letters that nobody takes keep no other message, and reach no later mailbox") {
  const Communicator world = Communicator::world();
  {
    Mailbox mailbox(world);
    post(mailbox, "unread");
    CHECK(world.share(world.rank() + 7) == 7);
  }
  world.barrier();
  Mailbox later(world);
  CHECK(later.take().empty());  // that was another one's
  world.barrier();
}

}  // namespace
