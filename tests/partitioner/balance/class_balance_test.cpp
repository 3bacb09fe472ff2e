#include "partitioner/balance/class_balance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/random_network.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::BalanceProblem;
using partitioner::ClassBalance;
using partitioner::ClassMove;
using partitioner::ClassSamples;
using partitioner::SampleMove;

struct Case {
  BalanceProblem problem;
  ClassSamples classes;
};

// Devices of unlike speeds on like links, each with many samples of some classes and few of others.
Case random_case(tests::Draw& draw, int devices, int classes) {
  Case result;
  result.problem.sample_bytes = 3000;
  result.problem.epochs = static_cast<double>(draw.between(1, 30));
  result.problem.links.resize(static_cast<std::size_t>(devices * devices),
                              {.latency_s = 1e-3, .bytes_per_s = 1.2e7});
  for (int c = 0; c < classes; ++c) {
    result.classes.names.push_back(std::to_string(c));
  }
  for (int i = 0; i < devices; ++i) {
    std::vector<Index>& counts = result.classes.counts.emplace_back();
    for (int c = 0; c < classes; ++c) {
      counts.push_back(draw.chance(0.4) ? draw.between(0, 2000) : draw.between(0, 100));
    }
    result.problem.devices.push_back(
        {.samples = std::accumulate(counts.begin(), counts.end(), Index{0}),
         .seconds_per_sample = 1e-3 * static_cast<double>(draw.between(1, 9)),
         .send_bytes_per_s = 1.2e7,
         .receive_bytes_per_s = 1.2e7});
  }
  return result;
}

bool is_possible_by_class(const ClassSamples& classes, const std::vector<ClassMove>& moves) {
  for (const std::vector<Index>& of_device : samples_after(classes, moves)) {
    if (std::any_of(of_device.begin(), of_device.end(), [](Index count) { return count < 0; })) {
      return false;
    }
  }
  return std::all_of(moves.begin(), moves.end(), [](const ClassMove& move) {
    return move.count > 0 && move.from != move.to;
  });
}

// How many samples some class of some device has beyond what the tolerance allows.
double excess(const ClassSamples& classes, const std::vector<ClassMove>& moves, double tolerance) {
  double most = 0;
  const auto all = static_cast<double>(classes.all());
  for (const std::vector<Index>& of_device : samples_after(classes, moves)) {
    const auto samples =
        static_cast<double>(std::accumulate(of_device.begin(), of_device.end(), Index{0}));
    for (std::size_t c = 0; c < of_device.size(); ++c) {
      const double fair = samples * static_cast<double>(classes.of_class(c)) / all;
      most = std::max(most, std::abs(static_cast<double>(of_device[c]) - fair) - tolerance * fair);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("devices have of each class what it is of all, and nothing could be much faster") {
  if (!partitioner::can_balance_classes()) {
    return;
  }
  tests::Draw draw(5);
  for (int i = 0; i < 25; ++i) {
    CAPTURE(i);
    const Case random = random_case(
        draw, static_cast<int>(draw.between(2, 12)), static_cast<int>(draw.between(1, 10)));
    const double tolerance = draw.among({0.0, 0.1, 0.5});
    const ClassBalance found = balance_classes(random.problem, random.classes, tolerance);
    CHECK(is_possible_by_class(random.classes, found.moves));
    CHECK(excess(random.classes, found.moves, tolerance) < 2.5);  // by rounding
    CHECK(found.balance.lower_bound_s <= found.balance.total_s);
    CHECK(found.balance.gap() < 0.02);
    // Without classes it takes no longer.
    CHECK(balance_exactly(random.problem).total_s <= found.balance.total_s * (1 + 1e-9));
  }
}

TEST_CASE("with a tolerance that allows everything, classes cost nothing") {
  if (!partitioner::can_balance_classes()) {
    return;
  }
  tests::Draw draw(6);
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    const Case random = random_case(draw, 6, 4);
    const ClassBalance found = balance_classes(random.problem, random.classes, 1e6);
    const double any_s = balance_exactly(random.problem).total_s;
    CHECK(found.balance.lower_bound_s <= any_s);
    CHECK(found.balance.total_s == doctest::Approx(any_s).epsilon(0.01));
  }
}

TEST_CASE("two devices with a class each exchange half of them") {
  if (!partitioner::can_balance_classes()) {
    return;
  }
  BalanceProblem problem;
  problem.devices = {{.samples = 100}, {.samples = 100}};
  problem.links.resize(4);
  problem.sample_bytes = 1;
  const ClassSamples classes{{"cat", "dog"}, {{100, 0}, {0, 100}}};
  const ClassBalance found = balance_classes(problem, classes, 0);
  CHECK(found.moves == std::vector<ClassMove>{{0, 1, 0, 50}, {1, 0, 1, 50}});
  CHECK(found.balance.moves == std::vector<SampleMove>{{0, 1, 50}, {1, 0, 50}});
  CHECK(largest_deviation(classes, classes.counts) == 1);
  CHECK(largest_deviation(classes, samples_after(classes, found.moves)) == 0);
}

TEST_CASE("classes take the fast links where devices have no rates") {
  if (!partitioner::can_balance_classes()) {
    return;
  }
  for (const std::size_t partner : {2U, 3U}) {  // of device 0
    CAPTURE(partner);
    BalanceProblem problem;
    problem.sample_bytes = 1000;
    problem.epochs = 10;
    problem.devices.resize(4, {.samples = 100, .seconds_per_sample = 1});
    for (std::size_t from = 0; from < 4; ++from) {
      for (std::size_t to = 0; to < 4; ++to) {
        const bool fast = (from ^ to) == partner;
        problem.links.push_back({.latency_s = 1e-4, .bytes_per_s = fast ? 1e3 : 1.0});
      }
    }
    const ClassSamples classes{{"a", "b"}, {{100, 0}, {100, 0}, {0, 100}, {0, 100}}};
    const ClassBalance found = balance_classes(problem, classes, 0.01);
    CHECK(found.balance.move_s < 60);
  }
}

TEST_CASE("a table of classes is read by names or numbers of devices, in any order") {
  const std::vector<std::string> devices = {"pi1", "pi2"};
  const ClassSamples classes = partitioner::parse_class_samples(
      "# samples\n\ndevice, cat,dog\r\n1,3,4\npi1,10,0\n", "c.csv", devices);
  CHECK(classes.names == std::vector<std::string>{"cat", "dog"});
  CHECK(classes.counts == std::vector<std::vector<Index>>{{10, 0}, {3, 4}});
  CHECK(classes.of_class(0) == 13);
  CHECK(classes.of_device(1) == 7);
  CHECK(classes.all() == 17);
  CHECK(
      partitioner::parse_class_samples("device,\"cat, striped\"\npi1,1\npi2,2\n", "c.csv", devices)
          .names == std::vector<std::string>{"cat, striped"});
}

TEST_CASE("a table of classes that is no such table is refused, with its line") {
  const auto error_of = [](const std::string& text) {
    return tests::input_error_of([&] {
      (void)partitioner::parse_class_samples(text, "c.csv", {"pi1", "pi2"});
    });
  };
  CHECK(error_of("") == "c.csv: expected a first line \"device,CLASS,CLASS,...\"");
  CHECK(error_of("name,cat\n") == "c.csv:1: expected a first line \"device,CLASS,CLASS,...\"");
  CHECK(error_of("device,cat,cat\n") == "c.csv:1: class cat is there twice");
  CHECK(error_of("device,cat,\n") == "c.csv:1: a class has no name");
  CHECK(error_of("device,cat\npi1,1\n") == "c.csv: there is no line of device 1 (pi2)");
  CHECK(error_of("device,cat\npi1,1\n0,2\n") == "c.csv:3: device 0 has a line already");
  CHECK(error_of("device,cat\npi3,1\n") ==
        "c.csv:2: there is no device pi3: give its name, or its number from 0 to 1");
  CHECK(error_of("device,cat\npi1,1,2\n") == "c.csv:2: 2 numbers, and there are 1 classes");
  CHECK(error_of("device,cat\npi1,-1\n") ==
        "c.csv:2: \"-1\" is not an integer from 0 to 1099511627776");
}
