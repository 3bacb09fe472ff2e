#include "partitioner/balance/data_map.h"

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

std::string map_of(const std::string& moves) {
  return "samples = [10, 5, 0]\n" + moves;
}

}  // namespace

TEST_CASE("a data map moves the last samples of a device, and reads as it was written") {
  BalanceProblem problem;
  problem.devices = {{.samples = 10}, {.samples = 5}, {.samples = 0}};
  const DataMap map = data_map(problem, {.moves = {{0, 1, 2}, {0, 2, 3}, {1, 2, 1}}});
  CHECK(map.moves == std::vector<MappedSamples>{{0, 1, 5, 7}, {0, 2, 7, 10}, {1, 2, 4, 5}});
  CHECK(parse_data_map(to_text(map), "map") == map);
}

TEST_CASE("a data map of classes moves the last samples of each, and reads as it was written") {
  const ClassSamples classes{{"cat", "\"dog\""}, {{4, 6}, {5, 0}, {0, 0}}};
  const DataMap map = data_map(classes, {{}, {{0, 1, 1, 2}, {0, 2, 0, 1}, {0, 2, 1, 3}}});
  CHECK(map.before == std::vector<Index>{10, 5, 0});
  CHECK(map.moves == std::vector<MappedSamples>{
                         {0, 1, 1, 3, "\"dog\""}, {0, 2, 3, 4, "cat"}, {0, 2, 3, 6, "\"dog\""}});
  CHECK(parse_data_map(to_text(map), "map") == map);
  CHECK(samples_after(map) == std::vector<Index>{4, 7, 4});
}

TEST_CASE("a data map says for how much of the first epoch samples may move meanwhile") {
  BalanceProblem problem;
  problem.devices = {{.samples = 10}, {.samples = 5}};
  const auto share = [&](double move_s, double epoch_s) {
    const DataMap map =
        data_map(problem, {.moves = {{0, 1, 2}}, .move_s = move_s, .epoch_s = epoch_s});
    CHECK(parse_data_map(to_text(map), "map") == map);
    return map.share_while_moving;
  };
  CHECK(share(3, 60) == 0.05);
  CHECK(share(0.0301, 10) == 0.004);  // rounded up
  CHECK(share(100, 60) == kMostWhileMoving);
  CHECK(share(3, 0) == 0);
  CHECK(data_map(problem, {.moves = {}, .move_s = 3, .epoch_s = 60}).share_while_moving == 0);
  CHECK_THROWS_AS((void)parse_data_map("samples = [1]\nshare_while_moving = 0.3\n", "map"),
                  InputError);
}

TEST_CASE("a data map that would lose or double a sample is refused") {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      (void)parse_data_map(text, "map");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of(map_of("[[move]]\nfrom=0\nto=1\nbegin=2\nend=4\n")).empty());
  CHECK(error_of(map_of("[[move]]\nfrom=0\nto=1\nbegin=2\nend=4\n"
                        "[[move]]\nfrom=0\nto=2\nbegin=3\nend=5\n")) ==
        "map:7: sample 3 of device 0 is in an earlier move, or moves are not in the order of "
        "samples");
  CHECK(error_of(map_of("[[move]]\nfrom=1\nto=1\nbegin=2\nend=4\n")) ==
        "map:2: device 1 cannot move samples to itself");
  CHECK(error_of(map_of("[[move]]\nfrom=1\nto=3\nbegin=2\nend=4\n")) != "");
  CHECK(error_of(map_of("[[move]]\nfrom=1\nto=0\nbegin=2\nend=6\n")) != "");
  CHECK(error_of(map_of("[[move]]\nfrom=1\nto=0\nbegin=2\n")) != "");
  const std::string of_cats = "[[move]]\nfrom=0\nto=1\nclass=\"cat\"\nbegin=2\nend=8\n";
  CHECK(error_of(map_of(of_cats)).empty());
  CHECK(error_of(map_of(of_cats + "[[move]]\nfrom=0\nto=2\nclass=\"dog\"\nbegin=2\nend=6\n"))
            .empty());
  CHECK(error_of(map_of(of_cats + "[[move]]\nfrom=0\nto=2\nclass=\"dog\"\nbegin=2\nend=7\n")) ==
        "map:8: 11 samples move from device 0, which has 10");
  CHECK(error_of(map_of(of_cats + "[[move]]\nfrom=0\nto=2\nclass=\"cat\"\nbegin=7\nend=9\n")) !=
        "");
  CHECK(error_of(map_of(of_cats + "[[move]]\nfrom=0\nto=2\nbegin=8\nend=9\n")) ==
        "map:8: moves from device 0 are by class and without: give all of them a `class`, or none");
  CHECK(error_of(map_of("[[move]]\nfrom=0\nto=1\nclass=\"\"\nbegin=2\nend=4\n")) != "");
  CHECK(error_of("samples = 3\n") != "");
  CHECK(error_of("nonsense") != "");
}
