#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/random_network.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/partition.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;
using tests::has;
using tests::input_error_of;

Cut random_cut(Draw& draw) {
  Cut cut{.parts = draw.between(1, 5), .boundaries = {}};
  if (draw.between(0, 1) == 1) {
    cut.boundaries = {0};
    for (Index i = 0; i < cut.parts; ++i) {
      cut.boundaries.push_back(cut.boundaries.back() + draw.between(0, 9));
    }
  }
  return cut;
}

// Two groups of tiles and one of images, on five ranks.
Partition small_partition() {
  Partition partition{
      .network = "00ff00ff00ff00ff", .ranks = 5, .reader = Reader::rank(0), .groups = {}};
  Cut two{.parts = 2, .boundaries = {}};
  Cut uneven{.parts = 2, .boundaries = {0, 3, 16}};
  partition.groups.push_back({0, 3, {}, {}, uneven, two, {0, 1, 2, 3}, {1, 2}});
  partition.groups.push_back({4, 4, {}, {}, two, two, {0, 1, 2, 3}, {}, true});
  partition.groups.push_back({5, 9, two, {}, {}, {}, {4, 0}, {}});
  return partition;
}

}  // namespace

TEST_CASE("the text of a partition reads back as the same partition") {
  Draw draw(3);
  for (int trial = 0; trial < 300; ++trial) {
    Partition partition;
    partition.network = trial == 0 ? "a \"text\"\n\\ \t\x7f of any kind" : "00ff00ff00ff00ff";
    partition.ranks = static_cast<int>(draw.between(1, 1000));
    const auto reader = static_cast<int>(draw.between(-1, 5));
    partition.reader = reader < 0 ? Reader::every_rank() : Reader::rank(reader);
    partition.gradient_reduction.bucket_bytes = draw.among<Index>({1, 262144, Index{1} << 40U});
    partition.gradient_reduction.compression =
        draw.among<Compression>({Compression::Exact,
                                 Compression::Half,
                                 {.kind = Compression::Kind::TopK, .fraction = 0.1},
                                 {.kind = Compression::Kind::Sign},
                                 {.kind = Compression::Kind::LowRank, .rank = 3}});
    partition.replicas.count = static_cast<int>(draw.between(1, 9));
    partition.replicas.sync = draw.among<Synchronisation>({{},
                                                           {SyncMode::Local, 8},
                                                           {SyncMode::PostLocal, 1},
                                                           {SyncMode::ParameterRank, 0},
                                                           {SyncMode::Gossip, 0}});
    const Index groups = draw.between(0, 5);
    for (Index i = 0; i < groups; ++i) {
      Group group;
      group.first = static_cast<int>(draw.between(0, 20));
      group.last = static_cast<int>(draw.between(0, 20));
      for (Cut* cut : {&group.images, &group.channels, &group.rows, &group.cols}) {
        *cut = random_cut(draw);
      }
      for (std::vector<int>* list : {&group.ranks, &group.reduce_to_owner}) {
        for (Index n = draw.between(0, 4); n > 0; --n) {
          list->push_back(static_cast<int>(draw.between(0, 99)));
        }
      }
      for (Index band = draw.among<Index>({0, 0, 1, 2, 3}); band > 0; --band) {
        group.bands.push_back(random_cut(draw));
      }
      group.recompute = draw.chance(0.5);
      partition.groups.push_back(group);
    }
    for (Index layer = draw.between(0, 5); layer > 0; --layer) {
      const auto kernel = [&] {
        return draw.among<ConvolutionKernel>({ConvolutionKernel::Direct,
                                              ConvolutionKernel::Winograd2,
                                              ConvolutionKernel::Winograd4,
                                              ConvolutionKernel::Reference});
      };
      partition.kernels.push_back({kernel(), kernel(), kernel()});
    }
    while (!partition.kernels.empty() && partition.kernels.back() == ConvolutionKernels{}) {
      partition.kernels.pop_back();  // goes without saying
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
      {"network = \"0\"\nranks = 0\n", "p.toml:2: `ranks` is 0"},
      {"network = \"0\"\nranks = 4.5\n", "p.toml:2: `ranks`"},
      {"network = \"0\"\nranks = 99999999999\n", "p.toml:2: `ranks` is 99999999999"},
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
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nbands = 2\n", "p.toml:6: `bands`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nbands = []\n", "p.toml:6: `bands`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nbands = [2, 0]\n", "p.toml:6: `bands`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nbands = [[0]]\n", "p.toml:6: `bands`"},
      {head + "[[group]]\nlayers = [0, 1]\nranks = [0]\nrecompute = 1\n", "p.toml:6: `recompute`"},
      {head + "kernels = \"direct\"\n", "p.toml:3: `kernels`"},
      {head + "[[kernels]]\nforward = \"direct\"\n", "p.toml:3: `layers` is missing"},
      {head + "[[kernels]]\nlayers = 3\n", "p.toml:4: `layers`"},
      {head + "[[kernels]]\nlayers = [3]\nforward = 4\n", "p.toml:5: `forward` is not a kernel"},
      {head + "[[kernels]]\nlayers = [3]\nbackward_data = \"winograd\"\n",
       "expected one of: direct, winograd2, winograd4, reference"},
      {head + "[[kernels]]\nlayers = [3]\nbackward = \"direct\"\n", "unknown key `backward`"},
      {head + "[sums]\noptimizer = true\n", "p.toml:4: `optimizer`"},
      {head + "[sums]\noptimizer = \"whole\"\n", "neither \"sharded\" nor \"replicated\""},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    const std::string message =
        input_error_of([&] { (void)parse_partition(fault.text, "p.toml"); });
    CHECK(has(message, "p.toml:"));
    CHECK(has(message, fault.expected));
  }
}

TEST_CASE("only groups that are recomputed say so") {
  Partition partition = small_partition();
  CHECK(has(to_text(partition), "\nrecompute = true\n"));
  partition.groups[1].recompute = false;
  CHECK(!has(to_text(partition), "\nrecompute ="));
}

TEST_CASE("damaged partition files raise no other error than one for the user") {
  Draw draw(4);
  const std::string text = to_text(small_partition());
  const std::string pieces = "[]={},.\"'\n#0019-e_x\\\xff";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = text;
    for (Index n = draw.between(1, 6); n > 0; --n) {
      const auto at =
          static_cast<std::size_t>(draw.between(0, static_cast<Index>(text.size()) - 1));
      const auto piece =
          static_cast<std::size_t>(draw.between(0, static_cast<Index>(pieces.size()) - 1));
      damaged[std::min(at, damaged.size() - 1)] = pieces[piece];
      if (draw.between(0, 9) == 0) {
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
  CHECK(input_error_of([&] { validate(partition, network, 128, "README.md"); }) == "");
}

TEST_CASE("what nests too deep is refused before it is parsed") {
  const std::string head = "network = \"0\"\nranks = 4\n";
  const auto repeated = [](const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) {
      text += part;
    }
    return text;
  };
  for (const std::string& deep : {repeated("a.", 50000) + "a = 1",
                                  repeated("\"a\" . ", 50000) + "a = 1",
                                  "[" + repeated("a.", 50000) + "a]",
                                  "[[" + repeated("group.", 50000) + "a]]",
                                  "a = " + repeated("[", 50000),
                                  "a = [{" + repeated("a = [{", 50000),
                                  "a = {" + repeated("a.", 50000) + "a = 1}",
                                  "a = [\n" + repeated("[ # ]\n", 50000),
                                  "a = \"\"\"]\"\"\"\nb = '''x'''\nc = " + repeated("[", 100),
                                  "a = \"\"\"\"\"\"\nc = " + repeated("[", 100),
                                  "a = '''\\'''\nc = " + repeated("[", 100),
                                  "a = \"\\\"\"\nc = " + repeated("[", 100)}) {
    CAPTURE(deep.substr(0, 40));
    CHECK(has(input_error_of([&] { (void)parse_partition(head + deep + '\n', "p.toml"); }),
              "nests more than 16 deep"));
  }
  const std::string strings = "network = \"" + repeated("[", 100) + repeated("a.", 100) + "\"  # " +
                              repeated("[", 100) + "\nranks = 4\n";
  CHECK(parse_partition(strings, "p.toml").ranks == 4);
}

TEST_CASE("of a file that does not begin as a partition does nothing is quoted") {
  for (const char* text : {"root:secret:19000:0\n",
                           "password = 'secret'\n",
                           "[secret]\nuser = 1\n",
                           "machine secret\n",
                           "secret = secret\n"}) {
    CAPTURE(text);
    const std::string message = input_error_of([&] { (void)parse_partition(text, "p.toml"); });
    CHECK(has(message, "expected a partition"));
    CHECK(!has(message, "secret"));
  }
  CHECK(has(input_error_of([] { (void)parse_partition("netwrok = '0'\nranks = 1\n", "p.toml"); }),
            "did you mean `network`?"));
}

TEST_CASE("a partition file is read from the disk, a missing one and a folder are refused") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "tessera-partition-test";
  fs::create_directories(folder);
  const Partition partition = small_partition();
  std::ofstream(folder / "p.toml") << to_text(partition);
  CHECK(read_partition(folder / "p.toml") == partition);
  CHECK(has(input_error_of([&] { (void)read_partition(folder / "none.toml"); }), "cannot be read"));
  CHECK(has(input_error_of([&] { (void)read_partition(folder); }), "cannot be read"));
  fs::remove_all(folder);
}
