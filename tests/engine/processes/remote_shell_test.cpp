#include "engine/processes/remote_shell.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("ssh asks no questions, and another remote shell is called as it is") {
  const auto words = remote_command("/usr/bin/ssh", "pi2", "true");
  CHECK(std::count(words.begin(), words.end(), "BatchMode=yes") == 1);
  CHECK(words[words.size() - 2] == "pi2");
  CHECK(words.back() == "true");
  CHECK(remote_command("rsh", "pi2", "a b") == std::vector<std::string>{"rsh", "pi2", "a b"});
}

}  // namespace tessera::engine
