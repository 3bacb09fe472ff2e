#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "partitioner/errors.h"
#include "partitioner/model_file.h"
#include "partitioner/partition.h"

namespace {

using namespace partitioner;  // NOLINT(google-build-using-namespace): a test of this namespace

using Random = std::mt19937;

Index draw(Random& random, Index least, Index most) {
  return least + static_cast<Index>(random() % static_cast<std::uint32_t>(most - least + 1));
}

Cut random_cut(Random& random) {
  Cut cut{.parts = draw(random, 1, 5), .boundaries = {}};
  if (draw(random, 0, 1) == 1) {
    cut.boundaries = {0};
    for (Index i = 0; i < cut.parts; ++i) {
      cut.boundaries.push_back(cut.boundaries.back() + draw(random, 0, 9));
    }
  }
  return cut;
}

// Two groups of tiles and one of images, on five ranks.
Partition small_partition() {
  Partition partition{.network = "00ff00ff00ff00ff", .ranks = 5, .reader = 0, .groups = {}};
  Cut two{.parts = 2, .boundaries = {}};
  Cut uneven{.parts = 2, .boundaries = {0, 3, 16}};
  partition.groups.push_back({0, 3, {}, {}, uneven, two, {0, 1, 2, 3}, {1, 2}});
  partition.groups.push_back({4, 4, {}, {}, two, two, {0, 1, 2, 3}, {}});
  partition.groups.push_back({5, 9, two, {}, {}, {}, {4, 0}, {}});
  return partition;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the text of a partition reads back as the same partition") {
  Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    Partition partition;
    partition.network = trial == 0 ? "a \"text\"\n\\ \t\x7f of any kind" : "00ff00ff00ff00ff";
    partition.ranks = static_cast<int>(draw(random, 1, 1000));
    partition.reader = static_cast<int>(draw(random, kEveryRank, 5));
    const Index groups = draw(random, 0, 5);
    for (Index i = 0; i < groups; ++i) {
      Group group;
      group.first = static_cast<int>(draw(random, 0, 20));
      group.last = static_cast<int>(draw(random, 0, 20));
      for (Cut* cut : {&group.images, &group.channels, &group.rows, &group.cols}) {
        *cut = random_cut(random);
      }
      for (std::vector<int>* list : {&group.ranks, &group.collapse}) {
        for (Index n = draw(random, 0, 4); n > 0; --n) {
          list->push_back(static_cast<int>(draw(random, 0, 99)));
        }
      }
      partition.groups.push_back(group);
    }
    CHECK(parse_partition(to_text(partition), "text") == partition);
  }
}

TEST_CASE("a faulty partition file is refused with its name and the line") {
  struct Fault {
    std::string text;
    std::string expected;
  };
  const std::string head = "network = \"0\"\nranks = 4\n";
  const std::vector<Fault> faults = {
      {"ranks = ", "p.toml:1: this is not TOML"},
      {"network = \"0\"\n\nranks = 4\n[[group]\n", "p.toml:4: this is not TOML"},
      {"ranks = 4\n", "`network` is missing"},
      {"network = 7\nranks = 4\n", "p.toml:1: `network`"},
      {"network = \"0\"\n", "`ranks` is missing"},
      {"network = \"0\"\nranks = 0\n", "p.toml:2: `ranks` holds 0"},
      {"network = \"0\"\nranks = 4.5\n", "p.toml:2: `ranks`"},
      {"network = \"0\"\nranks = 99999999999\n", "p.toml:2: `ranks` holds 99999999999"},
      {"network = \"0\"\nranks = 99999999999999999999\n", "p.toml:2: "},
      {head + "reader = \"all\"\n", "p.toml:3: `reader`"},
      {head + "reader = -1\n", "p.toml:3: `reader`"},
      {head + "colour = 1\n", "p.toml:3: unknown key `colour`"},
      {head + "group = 3\n", "p.toml:3: `group`"},
      {head + "[group]\nlayers = [0, 1]\n", "p.toml:3: `group`"},
      {"\xef\xbb\xbf[[[", "p.toml:1: this is not TOML"},
      {head + "[ =\n", "p.toml:3: this is not TOML"},
      {head + "[[group]]\nranks = [0]\n", "p.toml:3: `layers` is missing"},
      {head + "[[group]]\nlayers = 0\nranks = [0]\n", "p.toml:4: `layers`"},
      {head + "[[group]]\nlayers = [0]\nranks = [0]\n", "p.toml:4: `layers`"},
      {head + "[[group]]\nlayers = [-1, 1]\nranks = [0]\n", "p.toml:4: `layers`"},
      {head + "[[group]]\nlayers = [0, 1]\n", "p.toml:3: `ranks` is missing"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nrow = 2\n", "p.toml:6: unknown key `row`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nrows = 0\n", "p.toml:6: `rows`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nrows = [0]\n", "p.toml:6: `rows`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nrows = \"2\"\n", "p.toml:6: `rows`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0, \"1\"]\n", "p.toml:5: `ranks`"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    const std::string message = message_of([&] { (void)parse_partition(fault.text, "p.toml"); });
    CHECK(has(message, "p.toml:"));
    CHECK(has(message, fault.expected));
  }
}

TEST_CASE("damaged partition files raise no other error than one for the user") {
  Random random(4);
  const std::string text = to_text(small_partition());
  const std::string pieces = "[]={},.\"'\n#0019-e_x\\\xff";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = text;
    for (Index n = draw(random, 1, 6); n > 0; --n) {
      const auto at =
          static_cast<std::size_t>(draw(random, 0, static_cast<Index>(text.size()) - 1));
      const auto piece =
          static_cast<std::size_t>(draw(random, 0, static_cast<Index>(pieces.size()) - 1));
      damaged[std::min(at, damaged.size() - 1)] = pieces[piece];
      if (draw(random, 0, 9) == 0) {
        damaged.resize(at + 1);
      }
    }
    try {
      (void)parse_partition(damaged, "damaged");
    } catch (const InputError&) {  // NOLINT(bugprone-empty-catch): either outcome is right
    }
  }
}

TEST_CASE("the partition in the folder's README fits the model that it names") {
  const std::string source = TESSERA_SOURCE_DIR;
  std::ifstream file(source + "/partitioner/README.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string opening = "```toml\n";
  const std::size_t begin = page.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("```", begin + opening.size());
  const std::string text = page.substr(begin + opening.size(), end - begin - opening.size());
  Partition partition = parse_partition(text, "README.md");
  const Network network = read_model(source + "/models/fashion-resnet.cfg").network;
  partition.network =
      fingerprint(network);  // the model may be changed in what does not matter here
  CHECK(message_of([&] { validate(partition, network, 128, "README.md"); }) == "");
}

TEST_CASE("a partition file is read from the disk; a missing one and a folder are refused") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "tessera-partition-test";
  fs::create_directories(folder);
  const Partition partition = small_partition();
  std::ofstream(folder / "p.toml") << to_text(partition);
  CHECK(read_partition(folder / "p.toml") == partition);
  CHECK(has(message_of([&] { (void)read_partition(folder / "none.toml"); }), "cannot be read"));
  CHECK(has(message_of([&] { (void)read_partition(folder); }), "cannot be read"));
  fs::remove_all(folder);
}
