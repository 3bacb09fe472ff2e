#include "engine/system/command_words.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("values of options are found in both forms") {
  const std::vector<std::string> words{"train", "--run", "a", "--data=b c"};
  CHECK(value_of(words, "--run") == "a");
  CHECK(value_of(words, "--data") == "b c");
  CHECK(value_of(words, "--weights").empty());
  CHECK(without(words, {{"--data"}, {"train"}}) == std::vector<std::string>{"--run", "a"});
}

}  // namespace tessera::engine
