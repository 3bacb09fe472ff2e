#include "engine/supervisor/training_words.h"

#include <doctest/doctest.h>

namespace tessera::engine {

using Words = std::vector<std::string>;

TEST_CASE("for other devices what was cut for those of before is searched anew") {
  CHECK(words_for_other_devices({"train", "m.cfg", "--grid", "2x2", "--run=a", "--reader=1"},
                                "",
                                "") == Words{"train", "m.cfg", "--run=a", "--partition", "auto"});
  CHECK(words_for_other_devices(
            {"train", "m.cfg", "--partition", "auto", "--cluster", "c.toml"}, "", "left.toml") ==
        Words{"train", "m.cfg", "--partition", "auto", "--cluster", "left.toml"});
  CHECK(words_for_other_devices(
            {"train", "m.cfg", "--partition=p.toml", "--reader", "0"}, "q.toml", "") ==
        Words{"train", "m.cfg", "--reader", "0", "--partition", "q.toml"});
  CHECK(words_for_other_devices({"choose", "m.cfg", "--objective", "edp", "--try-all"}, "", "c") ==
        Words{"train", "m.cfg", "--partition", "auto", "--cluster", "c"});
}

TEST_CASE(
    "a run that follows the speed of its devices does so on others, from what was found for them") {
  CHECK(words_for_other_devices(
            {"train", "m.cfg", "--partition", "auto", "--cluster", "c", "--rebalance"}, "q", "d") ==
        Words{"train", "m.cfg", "--rebalance", "--partition", "q", "--cluster", "d"});
}

TEST_CASE("values of options are found in both forms") {
  const Words words{"train", "--run", "a", "--data=b c"};
  CHECK(value_of(words, "--run") == "a");
  CHECK(value_of(words, "--data") == "b c");
  CHECK(value_of(words, "--weights").empty());
  CHECK(without(words, {{"--data"}, {"train"}}) == Words{"--run", "a"});
}

}  // namespace tessera::engine
