// Samples on their way between ranks: all of them arrive, once, also where a move was cut short.

#include "engine/moving/sample_move.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/moving/move_lists.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

namespace fs = std::filesystem;
using engine::Communicator;
using engine::Dataset;
using engine::MoveProgress;
using engine::SampleMove;
using partitioner::DataMap;

constexpr partitioner::MapShape kShape{1, 20, 30};
const std::vector<std::string> kClasses = {"cat", "dog", "owl"};

// Each rank has some samples; of some ranks parts move to others.
DataMap random_map(std::uint64_t seed, int ranks) {
  tests::Draw draw(seed);
  DataMap map;
  for (int rank = 0; rank < ranks; ++rank) {
    map.before.push_back(draw.among<Index>({0, 1, 40, 900}));
  }
  for (int from = 0; from < ranks; ++from) {
    Index begin = draw.between(0, map.before[static_cast<std::size_t>(from)]);
    for (int to = 0; to < ranks; ++to) {
      const Index end = draw.between(begin, map.before[static_cast<std::size_t>(from)]);
      if (to != from && draw.chance(0.6)) {
        map.moves.push_back({from, to, begin, end});
        begin = end;
      }
    }
  }
  return map;
}

// Rank 0 has all samples, of which those from `begin` on move to rank 1.
DataMap from_first(Index samples, Index begin) {
  DataMap map;
  map.before.assign(static_cast<std::size_t>(Communicator::world().size()), 0);
  map.before[0] = samples;
  map.moves = {{0, 1, begin, samples}};
  return map;
}

// A text that no other sample of any rank has.
std::string content(int rank, Index item) {
  const std::string one = fmt::format("sample {} of rank {}.", item, rank);
  std::string all;
  while (all.size() < 500 + static_cast<std::size_t>(item % 7) * 1000) {
    all += one;
  }
  return all;
}

class Machine {
 public:
  Machine() : rank_(Communicator::world().rank()) {}

  [[nodiscard]] Dataset files(Index count) const {
    engine::PictureFiles files;
    files.base = folder_.path() / "own";
    fs::create_directories(files.base);
    files.class_names = kClasses;
    engine::PictureRecords records;
    for (Index item = 0; item < count; ++item) {
      const std::string name = fmt::format("picture-{}.jpg", item);
      tests::put_bytes(files.base / name, content(rank_, item));
      files.paths.add(name);
      files.labels.push_back(static_cast<int>(item % 3));
      records.pictures.push_back(engine::record_of(files.base / name));
    }
    Dataset dataset(std::move(files), folder_.path(), 3);
    dataset.expect_files(std::move(records));
    return dataset;
  }

  [[nodiscard]] Dataset bytes(Index count, const partitioner::MapShape& shape = kShape) const {
    engine::BytePictures pictures;
    pictures.shape = shape;
    pictures.class_names = kClasses;
    for (Index item = 0; item < count; ++item) {
      std::string text = content(rank_, item);
      text.resize(static_cast<std::size_t>(shape.volume()), ' ');
      pictures.pixels.insert(pictures.pixels.end(), text.begin(), text.end());
      pictures.labels.push_back(static_cast<std::uint8_t>(item % 3));
    }
    return {std::move(pictures), folder_.path(), 1};
  }

  [[nodiscard]] fs::path arrivals() const { return folder_.path() / "samples"; }

 private:
  tests::TemporaryFolder folder_;
  int rank_;
};

// Each item as text, with its class.
std::vector<std::string> texts(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (Index item = 0; item < dataset.size(); ++item) {
    std::string text;
    if (const engine::BytePictures* held = dataset.byte_pictures()) {
      const std::uint8_t* const begin = held->pixels.data() + item * held->shape.volume();
      text.assign(begin, begin + held->shape.volume());
    } else {
      text = tests::bytes_of(picture_path(*dataset.files(), item));
    }
    texts.push_back(fmt::format("{} {}", dataset.label(item), text));
  }
  return texts;
}

// Of all ranks, sorted.
std::vector<std::string> all_texts(const Dataset& dataset, const Communicator& world) {
  std::string mine;
  for (const std::string& text : texts(dataset)) {
    mine += text + '\0';
  }
  std::vector<std::string> all;
  for (const std::string& theirs : engine::texts_of_ranks(world, mine)) {
    for (std::size_t begin = 0; begin < theirs.size();) {
      const std::size_t end = theirs.find('\0', begin);
      all.push_back(theirs.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Makes the data set what it is after the move.
void settle(const DataMap& map, const SampleMove& move, Dataset& dataset) {
  dataset.drop(items_that_leave(map, dataset, Communicator::world().rank(), "map"));
  move.add_arrivals(dataset);
}

// Moves; what was said at first.
MoveProgress move(const DataMap& map,
                  const Machine& machine,
                  Dataset& dataset,
                  bool in_background = false) {
  const Communicator world = Communicator::world();
  SampleMove move(map, {"map", machine.arrivals(), in_background}, world, dataset);
  const MoveProgress first = move.progress();
  if (in_background) {
    while (!move.look()) {
      world.barrier();  // messages of other things
    }
  } else {
    move.finish();
  }
  CHECK(move.progress().bytes_moved == first.bytes);
  settle(map, move, dataset);
  return first;
}

Index moved_by(const DataMap& map) {
  return std::accumulate(
      map.moves.begin(), map.moves.end(), Index{0}, [](Index sum, const auto& each) {
        return sum + each.end - each.begin;
      });
}

Index own_size(const DataMap& map) {
  return map.before[static_cast<std::size_t>(Communicator::world().rank())];
}

Index own_size_after(const DataMap& map) {
  return samples_after(map)[static_cast<std::size_t>(Communicator::world().rank())];
}

TEST_CASE("after a move all samples are on one rank each, as many as the map says") {
  const Communicator world = Communicator::world();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (const bool of_files : {true, false}) {
      const bool in_background = seed % 2 == 1;
      CAPTURE(seed);
      CAPTURE(of_files);
      const DataMap map = random_map(seed, world.size());
      const Machine machine;
      Dataset dataset = of_files ? machine.files(own_size(map)) : machine.bytes(own_size(map));
      const std::vector<std::string> before = all_texts(dataset, world);
      const MoveProgress progress = move(map, machine, dataset, in_background);
      CHECK(progress.samples == moved_by(map));
      CHECK(progress.there_before == 0);
      CHECK(dataset.size() == own_size_after(map));
      CHECK(all_texts(dataset, world) == before);
    }
  }
}

TEST_CASE("a sender keeps its files, and has its last samples in its data set no more") {
  const Communicator world = Communicator::world();
  DataMap map;
  map.before.assign(static_cast<std::size_t>(world.size()), 5);
  for (int rank = 0; rank + 1 < world.size(); ++rank) {
    map.moves.push_back({rank, rank + 1, 3, 5});
  }
  const Machine machine;
  Dataset dataset = machine.files(5);
  const std::vector<std::string> before = texts(dataset);
  (void)move(map, machine, dataset);
  const bool sends = world.rank() + 1 < world.size();
  const std::vector<std::string> after = texts(dataset);
  for (std::size_t i = 0; i < (sends ? 3U : 5U); ++i) {
    CHECK(after[i] == before[i]);
  }
  CHECK(texts(machine.files(5)) == before);
}

TEST_CASE("what has arrived does not travel again, and what was damaged since does") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  for (const bool of_files : {true, false}) {
    CAPTURE(of_files);
    const DataMap map = from_first(1000, 100);
    const Machine machine;
    const auto open = [&] {
      return of_files ? machine.files(own_size(map)) : machine.bytes(own_size(map));
    };
    Dataset dataset = open();
    const std::vector<std::string> before = all_texts(dataset, world);
    (void)move(map, machine, dataset);
    dataset = open();
    CHECK(move(map, machine, dataset).there_before == 900);
    CHECK(all_texts(dataset, world) == before);
    // One file cut short, one changed, one gone: as many as make up so many files.
    Index damaged = 0;
    if (world.rank() == 1) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::recursive_directory_iterator(machine.arrivals())) {
        if (entry.is_regular_file()) {
          files.push_back(entry.path());
        }
      }
      std::sort(files.begin(), files.end());
      damaged = std::min<Index>(3, std::ssize(files));
      fs::resize_file(files[0], 10);
      if (damaged > 1) {
        std::string text = tests::bytes_of(files[1]);
        text[20] = static_cast<char>(text[20] + 1);
        tests::put_bytes(files[1], text);
        fs::remove(files[files.size() - 1]);
      }
    }
    dataset = open();
    const MoveProgress again = move(map, machine, dataset);
    if (of_files) {
      CHECK(again.there_before == 900 - world.of_ranks(damaged)[1]);
    }
    CHECK(again.bytes > 0);
    CHECK(all_texts(dataset, world) == before);
  }
}

TEST_CASE("a sample that the sender has changed meanwhile travels again") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const DataMap map = from_first(10, 5);
  const Machine machine;
  Dataset dataset = machine.files(own_size(map));
  (void)move(map, machine, dataset);
  dataset = machine.files(own_size(map));
  if (world.rank() == 0) {
    std::string text = content(0, 7);
    text[3] = 'X';
    tests::put_bytes(picture_path(*dataset.files(), 7), text);
  }
  CHECK(move(map, machine, dataset).there_before == 4);
}

TEST_CASE("a move in the background that is given up goes on when it is begun again") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  // Of more rounds than one look allows.
  constexpr Index kSamples = 26000;
  const DataMap map = from_first(kSamples, 1000);
  const Machine machine;
  Dataset dataset = machine.bytes(own_size(map), {1, 40, 50});
  const std::vector<std::string> before = all_texts(dataset, world);
  {
    SampleMove given_up(map, {"map", machine.arrivals(), true}, world, dataset);
    CHECK_FALSE(given_up.look());
  }
  CHECK(all_texts(dataset, world) == before);
  const MoveProgress again = move(map, machine, dataset, true);
  CHECK(again.there_before > 0);
  CHECK(again.there_before < again.samples);
  CHECK(all_texts(dataset, world) == before);
  CHECK(dataset.size() == own_size_after(map));
}

TEST_CASE("a move in the background may be waited for") {
  const Communicator world = Communicator::world();
  const DataMap map = random_map(3, world.size());
  const Machine machine;
  Dataset dataset = machine.files(own_size(map));
  const std::vector<std::string> before = all_texts(dataset, world);
  SampleMove move(map, {"map", machine.arrivals(), true}, world, dataset);
  Index told = 0;
  if (!move.look()) {
    move.finish([&](const MoveProgress& progress) { told = progress.bytes_moved; });
    CHECK(told == move.progress().bytes);
  }
  settle(map, move, dataset);
  CHECK(all_texts(dataset, world) == before);
}

TEST_CASE("a sample that cannot be read or stored ends the move on all ranks") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const DataMap map = from_first(10, 5);
  for (const bool in_background : {false, true}) {
    CAPTURE(in_background);
    const Machine machine;
    Dataset dataset = machine.files(own_size(map));
    if (world.rank() == 0) {
      fs::remove(picture_path(*dataset.files(), 8));
    }
    CHECK_THROWS_WITH_AS((void)move(map, machine, dataset, in_background),
                         doctest::Contains("picture-8.jpg"),
                         engine::AgreedError);
    dataset = machine.files(own_size(map));
    if (world.rank() == 1) {
      fs::remove_all(machine.arrivals());
      tests::put_bytes(machine.arrivals(), "a file where the folder should be");
    }
    CHECK_THROWS_AS((void)move(map, machine, dataset, in_background), engine::AgreedError);
  }
}

}  // namespace
