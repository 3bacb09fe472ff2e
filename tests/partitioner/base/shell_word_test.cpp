#include "partitioner/base/shell_word.h"

#include <doctest/doctest.h>

namespace tessera {

TEST_CASE("words of a shell are quoted where they have to be") {
  CHECK(shell_word("/opt/tessera-1.0") == "/opt/tessera-1.0");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("$(reboot)") == "'$(reboot)'");
  CHECK(shell_word("").size() == 2);
}

}  // namespace tessera
