// The decision: how consecutive layers are grouped, how each group is cut, which tile goes to which
// rank, what is computed again in the backward pass instead of kept. A few dozen integers, and a
// text file that a person can read and edit. What follows from it is a Plan, see
// partitioner/plan/plan.h.
//
// A cut lies on the output map of the group's last layer. Tiles are numbered images outermost, then
// channels, rows, columns; a rank has at most one tile of a group, ranks without one are idle
// there.
//
// Images may be cut differently in each part of the rows, called a band: four images on six ranks
// are shared out evenly by an image on each of four ranks down to two thirds of the rows, and two
// images on each of the other two ranks from there on.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/network/network.h"
#include "partitioner/partition/gradient_reduction.h"
#include "partitioner/partition/kernels.h"
#include "partitioner/partition/reader.h"
#include "partitioner/partition/replicas.h"

namespace tessera::partitioner {

// How one dimension is cut: into `parts` pieces as equal as can be, or, where there are any, at
// `boundaries`, which then are parts + 1 numbers that never fall, from 0 to the whole extent. Two
// equal numbers are an empty tile.
struct Cut {
  Index parts = 1;
  std::vector<Index> boundaries;
  friend bool operator==(const Cut&, const Cut&) = default;
};

// parts + 1 boundaries of a dimension with `extent` cells.
[[nodiscard]] std::vector<Index> cut_boundaries(const Cut& cut, Index extent);

struct Group {
  int first = 0;  // layers [first, last], both included
  int last = 0;
  Cut images;
  Cut channels;
  Cut rows;
  Cut cols;
  std::vector<int> ranks;            // of each tile
  std::vector<int> reduce_to_owner;  // layers of the group whose gradient is added up at its owners
                                     // before it goes on
  bool recompute = false;            // see partitioner/plan/recomputation.h
  // How images are cut in each part of the rows, instead of `images`, which is one part then. Tiles
  // are numbered by bands first. Empty: alike in all.
  std::vector<Cut> bands = {};

  // How often images are cut, all parts of the rows counted.
  [[nodiscard]] Index image_parts() const {
    Index parts = 0;
    for (const Cut& band : bands) {
      parts += band.parts;
    }
    return bands.empty() ? images.parts * rows.parts : parts;
  }
  [[nodiscard]] Index tiles() const { return image_parts() * channels.parts * cols.parts; }
  friend bool operator==(const Group&, const Group&) = default;
};

struct Partition {
  std::string network;  // fingerprint of the network that it was made for
  int ranks = 1;
  Reader reader;
  std::vector<Group> groups;
  std::vector<ConvolutionKernels> kernels = {};  // by layer; direct ones where the list ends
  GradientReduction gradient_reduction = {};
  Replicas replicas = {};
  friend bool operator==(const Partition&, const Partition&) = default;
};

// A short text that differs between networks of different layers or shapes.
[[nodiscard]] std::string fingerprint(const Network& network);

// Every layer on rank 0.
[[nodiscard]] Partition single_tile(const Network& network);

// The same partition, of which rank i is now rank devices[i] of `ranks`; the others have no tile.
[[nodiscard]] Partition on_ranks(Partition partition, const std::vector<int>& devices, int ranks);

// The other way: of the ranks that are listed alone, devices[i] being rank i of the result. All
// that have a tile are listed, and the reader.
[[nodiscard]] Partition of_ranks(Partition partition, const std::vector<int>& devices);

// The ranks that have a tile of some group, in rising order.
[[nodiscard]] std::vector<int> busy_ranks(const Partition& partition);

// What the command line says for the common case.
struct Shorthand {
  Index grid_rows = 1;
  Index grid_cols = 1;
  std::vector<std::pair<int, int>> groups = {};  // empty: a group for each layer
  int data_parallel_from =
      -1;  // from this layer on images are cut; -1: from the first that cannot be tiled
  int filter_parallel_from = -1;  // from this layer on output channels are cut; -1: nowhere
  int ranks = 0;                  // 0: as many as the grid has tiles
  KernelRule kernels = KernelRule::Direct;
  Reader reader = {};
  std::vector<std::pair<int, int>> recompute = {};  // groups; each has to be one of the partition's
  bool recompute_all = false;
};

// That a command line may ask for: the plan of more would take minutes and many GiB.
inline constexpr Index kMostRanks = 10'000;

// What rows times columns of a text like "2x3" are, and how many of them there may be.
struct GridUnit {
  const char* name;
  const char* example;
  Index most;
};
inline constexpr GridUnit kTiles{"tiles", "2x3", kMostRanks};
inline constexpr GridUnit kPixels{"pixels", "224x224", 1'000'000'000};

// Rows and columns of the squarest grid of so many tiles, no more rows than columns.
[[nodiscard]] std::pair<Index, Index> squarest_grid(int tiles);

// "2x3" -> rows, columns. Throws InputError that names `option`.
[[nodiscard]] std::pair<Index, Index> parse_grid(const std::string& text,
                                                 const std::string& option,
                                                 const GridUnit& unit = kTiles);

// "0-3,4-7,8" -> first and last layer of each group.
[[nodiscard]] std::vector<std::pair<int, int>> parse_groups(const std::string& text,
                                                            const std::string& option);

// Tiles up to the hand-over, a data-parallel tail after it. Layers behind the last given group take
// a group each. Throws InputError where the shorthand does not fit the network.
[[nodiscard]] Partition make_partition(const Network& network, const Shorthand& shorthand);

// Throws InputError, naming `where`, if the partition is not one of this network, or not of `batch`
// images per pass.
void validate(const Partition& partition,
              const Network& network,
              Index batch,
              const std::string& where);

// The text form, TOML. parse_partition(to_text(p), ...) == p.
[[nodiscard]] std::string to_text(const Partition& partition);
[[nodiscard]] Partition parse_partition(const std::string& text, const std::string& name);
[[nodiscard]] Partition read_partition(const std::filesystem::path& path);

}  // namespace tessera::partitioner
