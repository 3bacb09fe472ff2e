// The text form of a partition: TOML, written so that a person can read and change it.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"
#include "partitioner/base/toml_reader.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

namespace {

constexpr Index kMostBytes = Index{16} << 20U;  // of the file

constexpr Index kMost = 1'000'000;           // layers and parts
constexpr Index kMostCells = 1'000'000'000;  // along one dimension of a map

constexpr std::string_view kHeader =
    "# Who computes what. Layers are counted from 0 as the sections of the model file after "
    "[net].\n"
    "# A group is a run of layers, first to last, without messages inside. `images`, `channels`,\n"
    "# `rows` and `cols` cut its last layer's output: a number of equal parts, or the boundaries\n"
    "# [0, ..., extent]; what is not cut is left out. `bands` instead of `images` cuts these for "
    "each\n"
    "# part of the rows: a list of numbers of parts, or of lists of boundaries. `ranks` has one "
    "rank\n"
    "# for each tile, counted by bands, then images, channels, rows and columns. `collapse` lists "
    "layers whose gradient is summed "
    "at\n"
    "# its owners before it goes on. With `recompute = true` the maps of a group are not kept for "
    "the\n"
    "# backward pass but computed again. `reader` is the rank that reads pictures, or \"every\".\n"
    "# [[kernels]] says which layers' convolutions are not computed by the direct kernels.\n";
constexpr std::string_view kReductionHeader =
    "\n# Gradients and new values travel in buckets of at least so many bytes, with `precision` "
    "\"exact\",\n# \"half\", \"topk:F\", \"sign\" or \"low-rank:R\"; `optimizer` state \"sharded\" "
    "or \"replicated\".\n";
constexpr std::string_view kReplicasHeader =
    "\n# Each of `count` replicas has its share of the ranks and of the images. `sync` ties them: "
    "\"every-step\",\n# \"local:H\", \"post-local:H\", \"parameter-rank:S\" or \"gossip\".\n";

std::string cut_line(const char* name, const Cut& cut) {
  if (cut.boundaries.empty()) {
    return cut.parts == 1 ? "" : fmt::format("{} = {}\n", name, cut.parts);
  }
  return fmt::format("{} = [{}]\n", name, fmt::join(cut.boundaries, ", "));
}

std::string bands_line(const std::vector<Cut>& bands) {
  std::vector<std::string> cuts;
  for (const Cut& band : bands) {
    cuts.push_back(band.boundaries.empty() ? std::to_string(band.parts)
                                           : fmt::format("[{}]", fmt::join(band.boundaries, ", ")));
  }
  return bands.empty() ? "" : fmt::format("bands = [{}]\n", fmt::join(cuts, ", "));
}

class PartitionReader {
 public:
  explicit PartitionReader(const std::string& name)
      : toml_(name,
              "a partition",
              {"network", "ranks", "reader", "group", "kernels", "sums", "replicas"}) {}

  [[nodiscard]] Partition partition(const std::string& text) const {
    const toml::table table = toml_.parse(text);
    Partition result;
    result.network = toml_.text(toml_.required(table, "network"), "network");
    result.ranks = static_cast<int>(toml_.integer(table, "ranks", 1, kMostRanks));
    if (const toml::node* reader = table.get("reader")) {
      result.reader = read_reader(*reader);
    }
    for (const toml::table* item : toml_.tables(table, "group")) {
      result.groups.push_back(group(*item));
    }
    for (const toml::table* item : toml_.tables(table, "kernels")) {
      read_kernels(*item, result.kernels);
    }
    if (const toml::node* gradient_reduction = table.get("sums")) {
      if (!gradient_reduction->is_table()) {
        toml_.fail(*gradient_reduction, "`sums` is not a table: write its keys under [sums]");
      }
      result.gradient_reduction = read_gradient_reduction(*gradient_reduction->as_table());
    }
    if (const toml::node* replicas = table.get("replicas")) {
      if (!replicas->is_table()) {
        toml_.fail(*replicas, "`replicas` is not a table: write its keys under [replicas]");
      }
      result.replicas = read_replicas(*replicas->as_table());
    }
    return result;
  }

 private:
  [[nodiscard]] std::vector<Index> integers(const toml::node& node,
                                            const char* key,
                                            Index most) const {
    if (!node.is_array()) {
      toml_.fail(node, fmt::format("`{}` is not a list: expected numbers in brackets", key));
    }
    std::vector<Index> result;
    for (const toml::node& item : *node.as_array()) {
      result.push_back(toml_.integer(item, key, 0, most));
    }
    return result;
  }

  [[nodiscard]] std::vector<int> numbers(const toml::node& node, const char* key) const {
    std::vector<int> result;
    for (const Index value : integers(node, key, kMost)) {
      result.push_back(static_cast<int>(value));
    }
    return result;
  }

  [[nodiscard]] Reader read_reader(const toml::node& node) const {
    if (node.is_integer()) {
      return Reader::rank(static_cast<int>(toml_.integer(node, "reader", 0, kMost)));
    }
    if (!node.is_string() || node.as_string()->get() != "every") {
      toml_.fail(node, "`reader` is neither \"every\" nor the number of a rank");
    }
    return Reader::every_rank();
  }

  [[nodiscard]] Cut cut(const toml::table& table, const char* key) const {
    const toml::node* node = table.get(key);
    return node == nullptr ? Cut{} : cut(*node, key);
  }

  [[nodiscard]] Cut cut(const toml::node& node, const char* key) const {
    Cut result;
    if (node.is_array()) {
      result.boundaries = integers(node, key, kMostCells);
      if (result.boundaries.size() < 2) {
        toml_.fail(node,
                   fmt::format("`{}` needs at least two boundaries, from 0 to the extent", key));
      }
      result.parts = static_cast<Index>(result.boundaries.size()) - 1;
    } else {
      result.parts = toml_.integer(node, key, 1, kMost);
    }
    return result;
  }

  [[nodiscard]] std::vector<Cut> bands(const toml::table& table) const {
    std::vector<Cut> result;
    const toml::node* node = table.get("bands");
    if (node == nullptr) {
      return result;
    }
    if (!node->is_array() || node->as_array()->empty()) {
      toml_.fail(*node,
                 "`bands` is not a list: expected a cut of the images for each part of the rows");
    }
    for (const toml::node& band : *node->as_array()) {
      result.push_back(cut(band, "bands"));
    }
    return result;
  }

  [[nodiscard]] Group group(const toml::table& table) const {
    toml_.check_keys(table,
                     {"layers",
                      "images",
                      "channels",
                      "rows",
                      "cols",
                      "bands",
                      "ranks",
                      "collapse",
                      "recompute"});
    Group result;
    const toml::node& layers = toml_.required(table, "layers");
    const std::vector<int> ends = numbers(layers, "layers");
    if (ends.size() != 2) {
      toml_.fail(
          layers,
          fmt::format("`layers` holds {} numbers, expected two: [first, last], both included",
                      ends.size()));
    }
    result.first = ends[0];
    result.last = ends[1];
    result.images = cut(table, "images");
    result.channels = cut(table, "channels");
    result.rows = cut(table, "rows");
    result.cols = cut(table, "cols");
    result.bands = bands(table);
    result.ranks = numbers(toml_.required(table, "ranks"), "ranks");
    if (const toml::node* reduction = table.get("collapse")) {
      result.reduce_to_owner = numbers(*reduction, "collapse");
    }
    if (const toml::node* recompute = table.get("recompute")) {
      if (!recompute->is_boolean()) {
        toml_.fail(*recompute, "`recompute` is neither true nor false");
      }
      result.recompute = recompute->as_boolean()->get();
    }
    return result;
  }

  [[nodiscard]] ConvolutionKernel kernel(const toml::table& table, const char* pass) const {
    const toml::node* node = table.get(pass);
    if (node == nullptr) {
      return ConvolutionKernel::Direct;
    }
    const auto known = node->is_string() ? kernel_named(node->as_string()->get()) : std::nullopt;
    if (!known) {
      std::vector<std::string_view> names;
      names.reserve(std::size(kConvolutionKernels));
      for (const ConvolutionKernel kernel : kConvolutionKernels) {
        names.push_back(name_of(kernel));
      }
      toml_.fail(
          *node,
          fmt::format("`{}` is not a kernel, expected one of: {}", pass, fmt::join(names, ", ")));
    }
    return *known;
  }

  void read_kernels(const toml::table& table, std::vector<ConvolutionKernels>& kernels) const {
    toml_.check_keys(table, {"layers", "forward", "backward_data", "backward_weights"});
    const ConvolutionKernels chosen{kernel(table, "forward"),
                                    kernel(table, "backward_data"),
                                    kernel(table, "backward_weights")};
    for (const int layer : numbers(toml_.required(table, "layers"), "layers")) {
      const auto at = static_cast<std::size_t>(layer);
      kernels.resize(std::max(kernels.size(), at + 1));
      kernels[at] = chosen;
    }
  }

  [[nodiscard]] GradientReduction read_gradient_reduction(const toml::table& table) const {
    toml_.check_keys(table, {"bucket_bytes", "precision", "optimizer"});
    GradientReduction result;
    if (const toml::node* bytes = table.get("bucket_bytes")) {
      constexpr Index kMostBucketBytes = Index{1} << 40U;
      result.bucket_bytes = toml_.integer(*bytes, "bucket_bytes", 1, kMostBucketBytes);
    }
    if (const toml::node* precision = table.get("precision")) {
      const auto known =
          precision->is_string() ? compression_named(precision->as_string()->get()) : std::nullopt;
      if (!known) {
        toml_.fail(*precision, fmt::format("`precision` of sums is none of {}", kCompressionForms));
      }
      result.compression = *known;
    }
    if (const toml::node* optimizer = table.get("optimizer")) {
      const auto known = optimizer->is_string()
                             ? optimizer_states_named(optimizer->as_string()->get())
                             : std::nullopt;
      if (!known) {
        toml_.fail(*optimizer, "`optimizer` of sums is neither \"sharded\" nor \"replicated\"");
      }
      result.optimizer = *known;
    }
    return result;
  }

  [[nodiscard]] Replicas read_replicas(const toml::table& table) const {
    toml_.check_keys(table, {"count", "sync"});
    Replicas result;
    result.count = static_cast<int>(toml_.integer(table, "count", 1, kMostRanks));
    if (const toml::node* sync = table.get("sync")) {
      const std::string text = toml_.text(*sync, "sync");
      try {
        result.sync = parse_synchronisation(text);
      } catch (const InputError& error) {
        toml_.fail(*sync, fmt::format("`sync`: {}", error.what()));
      }
    }
    return result;
  }

  TomlReader toml_;
};

// Nothing where it is as usual.
std::string reduction_text(const GradientReduction& gradient_reduction) {
  if (gradient_reduction == GradientReduction{}) {
    return "";
  }
  const std::string optimizer =
      gradient_reduction.optimizer == OptimizerStates::Sharded
          ? ""
          : fmt::format("optimizer = \"{}\"\n", name_of(gradient_reduction.optimizer));
  return fmt::format("{}[sums]\nbucket_bytes = {}\nprecision = \"{}\"\n{}",
                     kReductionHeader,
                     gradient_reduction.bucket_bytes,
                     to_text(gradient_reduction.compression),
                     optimizer);
}

std::string replicas_text(const Replicas& replicas) {
  return replicas == Replicas{} ? ""
                                : fmt::format("{}[replicas]\ncount = {}\nsync = {}\n",
                                              kReplicasHeader,
                                              replicas.count,
                                              toml_quoted(to_text(replicas.sync)));
}

// Layers of the same kernels together; direct ones go without saying.
std::string kernels_text(const std::vector<ConvolutionKernels>& kernels) {
  std::string text;
  std::vector<ConvolutionKernels> written{ConvolutionKernels{}};
  for (const ConvolutionKernels& chosen : kernels) {
    if (std::find(written.begin(), written.end(), chosen) != written.end()) {
      continue;
    }
    written.push_back(chosen);
    std::vector<std::size_t> layers;
    for (std::size_t layer = 0; layer < kernels.size(); ++layer) {
      if (kernels[layer] == chosen) {
        layers.push_back(layer);
      }
    }
    text += fmt::format(
        "\n[[kernels]]\nlayers = [{}]\nforward = \"{}\"\nbackward_data = \"{}\"\n"
        "backward_weights = \"{}\"\n",
        fmt::join(layers, ", "),
        name_of(chosen.forward),
        name_of(chosen.backward_data),
        name_of(chosen.backward_weights));
  }
  return text;
}

}  // namespace

std::string to_text(const Partition& partition) {
  std::string text(kHeader);
  text += fmt::format("\nnetwork = {}  # fingerprint\nranks = {}\n",
                      toml_quoted(partition.network),
                      partition.ranks);
  const auto reader = partition.reader.single_rank();
  text += reader ? fmt::format("reader = {}\n", *reader) : std::string("reader = \"every\"\n");
  for (const Group& group : partition.groups) {
    text += fmt::format("\n[[group]]\nlayers = [{}, {}]\n", group.first, group.last);
    text += cut_line("images", group.images) + cut_line("channels", group.channels) +
            cut_line("rows", group.rows) + cut_line("cols", group.cols) + bands_line(group.bands);
    text += fmt::format("ranks = [{}]\n", fmt::join(group.ranks, ", "));
    if (!group.reduce_to_owner.empty()) {
      text += fmt::format("collapse = [{}]\n", fmt::join(group.reduce_to_owner, ", "));
    }
    text += group.recompute ? "recompute = true\n" : "";
  }
  return text + kernels_text(partition.kernels) + reduction_text(partition.gradient_reduction) +
         replicas_text(partition.replicas);
}

Partition parse_partition(const std::string& text, const std::string& name) {
  return PartitionReader(name).partition(text);
}

Partition read_partition(const std::filesystem::path& path) {
  return parse_partition(
      read_regular_file(path, "a partition file, as `tessera plan --save` writes one", kMostBytes),
      path.string());
}

}  // namespace tessera::partitioner
