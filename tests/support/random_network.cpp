#include "tests/support/random_network.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "engine/base/random.h"

namespace tessera::tests {

using partitioner::Activation;
using partitioner::Convolution;
using partitioner::Cut;
using partitioner::Group;
using partitioner::kImage;
using partitioner::MapShape;
using partitioner::Network;
using partitioner::Operation;
using partitioner::Partition;

namespace {

constexpr Index kLargestSide = 20;
constexpr Index kLargestMap = 6000;  // values of an image
constexpr Index kCellsForStatistics =
    32;  // fewer make the inverse deviation, and rounding with it, large

Activation random_activation(Draw& draw, bool of_detectors = false) {
  if (of_detectors && draw.chance(0.2)) {
    return draw.among(
        {Activation::HardMish, Activation::Gelu, Activation::HardSigmoid, Activation::HardSwish});
  }
  return draw.among({Activation::Linear,
                     Activation::Relu,
                     Activation::Leaky,
                     Activation::Relu6,
                     Activation::Elu,
                     Activation::Logistic,
                     Activation::Tanh,
                     Activation::Swish,
                     Activation::Mish,
                     Activation::Ramp});
}

Convolution random_convolution(Draw& draw, const MapShape& in, const NetworkWishes& wishes) {
  Convolution convolution;
  convolution.size = draw.between(1, 7);
  convolution.stride = draw.among<Index>({1, 1, 1, 1, 2, 3});
  convolution.padding =
      draw.chance(0.6) ? convolution.size.rows / 2 : draw.between(0, convolution.size.rows - 1);
  if (draw.chance(0.25)) {  // columns of their own
    convolution.size.cols = draw.between(1, 7);
    convolution.stride.cols = draw.among<Index>({1, 1, 2, 3});
    convolution.padding.cols = draw.between(0, convolution.size.cols - 1);
  }
  convolution.filters = draw.among<Index>({1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 20});
  if (draw.chance(0.2)) {  // depthwise
    convolution.groups = in.channels;
    convolution.filters = in.channels * draw.between(1, 2);
  } else if (draw.chance(0.2)) {
    convolution.groups = draw.between(2, 4);
    convolution.filters = convolution.groups * draw.between(1, 5);
  }
  if (wishes.of_graphs && draw.chance(0.3)) {
    convolution.more_padding = {draw.between(0, convolution.size.rows) - convolution.padding.rows,
                                draw.between(0, 2) - std::min<Index>(convolution.padding.cols, 1)};
  }
  if (wishes.of_detectors && draw.chance(0.15)) {
    convolution.dilation = draw.between(2, 3);
    convolution.padding = {convolution.padding.rows * draw.between(1, convolution.dilation),
                           convolution.padding.cols * convolution.dilation};
  }
  convolution.batch_normalize = wishes.batch_normalize && draw.chance(0.8);
  convolution.activation = random_activation(draw, wishes.of_detectors);
  return convolution;
}

partitioner::Deconvolution random_deconvolution(Draw& draw, const NetworkWishes& wishes) {
  partitioner::Deconvolution layer;
  layer.filters = draw.among<Index>({1, 2, 3, 5, 8, 12, 17});
  layer.size = draw.between(1, 4);
  layer.stride = draw.between(1, 3);
  if (draw.chance(0.3)) {
    layer.size.cols = draw.between(1, 3);
    layer.stride.cols = draw.between(1, 2);
  }
  layer.padding = {draw.between(0, layer.size.rows / 2), draw.between(0, layer.size.cols / 2)};
  if (draw.chance(0.3)) {
    layer.more_padding = {draw.between(-1, 1), draw.between(-1, 1)};
  }
  layer.batch_normalize = wishes.batch_normalize && draw.chance(0.8);
  layer.activation = random_activation(draw);
  return layer;
}

partitioner::MaxPool random_max_pool(Draw& draw, const NetworkWishes& wishes) {
  const Index size = draw.between(1, 5);
  partitioner::PerAxis stride = draw.chance(0.5) ? size : draw.between(1, 3);
  if (wishes.of_detectors && draw.chance(0.3)) {
    stride.cols = draw.between(1, 3);
  }
  partitioner::PerAxis padding = draw.chance(0.5) ? size - 1 : draw.between(0, 2 * size);
  if (wishes.of_graphs && draw.chance(0.3)) {
    padding.cols = draw.between(0, size);
  }
  return {size, stride, padding};
}

partitioner::Softmax random_softmax(Draw& draw) {
  const bool spatial = draw.chance(0.5);
  const double temperature = draw.chance(0.5) ? 1.0 : 2.5;
  return {spatial ? 1 : draw.between(1, 4), spatial, temperature};
}

class NetworkMaker {
 public:
  NetworkMaker(Draw& draw, const NetworkWishes& wishes) : draw_(draw), wishes_(wishes) {}

  Network make() {
    network_.image = {draw_.among<Index>({1, 2, 3, 3, 4, 6, 18}),
                      draw_.between(5, kLargestSide),
                      draw_.between(5, kLargestSide)};
    while (network_.layers.empty()) {
      try_layer(random_convolution(draw_, network_.image, wishes_), {kImage});
    }
    const Index layers = draw_.between(3, wishes_.most_layers);
    for (Index tries = 0; tries < 200 && network_.size() < layers; ++tries) {
      add_random_layer();
    }
    if (draw_.chance(0.3)) {
      add_tail();
    }
    return network_;
  }

 private:
  // Mostly the last map, sometimes one that others have read already. Only layer 0 reads the image.
  int random_map() {
    return static_cast<int>(draw_.chance(0.7) ? network_.size() - 1
                                              : draw_.between(0, network_.size() - 1));
  }

  void add_random_layer() {
    const int map = random_map();
    if (wishes_.of_detectors && draw_.chance(0.4)) {
      return add_detector_layer(map);
    }
    if (wishes_.of_graphs && draw_.chance(0.4)) {
      return add_graph_layer(map);
    }
    const MapShape& in = network_.shape(map);
    switch (draw_.between(0, 15)) {
      case 0:
      case 1:
        return try_layer(random_max_pool(draw_, wishes_), {map});
      case 2:
      case 3:
        return try_layer_of({map, random_map()}, [this] { return random_shortcut(); });
      case 4:
        return try_layer_of(random_maps(), [this] { return random_route(); });
      case 5:
        return try_layer(
            partitioner::Upsample{draw_.between(2, 3), draw_.chance(0.5) ? 1.0 : -0.75}, {map});
      case 6:
        return try_layer(partitioner::Reorg{draw_.between(2, 3), draw_.chance(0.5)}, {map});
      case 7:
        return try_layer(partitioner::SpaceToDepth{draw_.between(2, 3)}, {map});
      case 8:
        return try_layer(partitioner::Dropout{0.5}, {map});
      case 9:
        return try_layer(random_softmax(draw_), {map});
      default:
        return try_layer(random_convolution(draw_, in, wishes_), {map});
    }
  }

  void add_graph_layer(int map) {
    switch (draw_.between(0, 3)) {
      case 0:
        return try_layer(partitioner::ChannelShuffle{draw_.between(2, 4)}, {map});
      case 1:
        return try_layer(partitioner::Upsample{.stride = draw_.between(2, 3), .bilinear = true},
                         {map});
      default:
        return try_layer(random_deconvolution(draw_, wishes_), {map});
    }
  }

  void add_detector_layer(int map) {
    switch (draw_.between(0, 4)) {
      case 0:
        return try_layer_of(maps_like(map, draw_.between(3, 4)),
                            [this] { return random_shortcut(); });
      case 1:
        return try_layer_of(maps_like(map, 2),
                            [this] { return partitioner::Sam{random_activation(draw_, true)}; });
      case 2:
        return add_scaled(map);
      case 3:
        return try_layer(partitioner::ChannelPool{draw_.between(1, network_.shape(map).channels)},
                         {map});
      default:
        return try_layer(random_local(), {map});
    }
  }

  // `count` maps of the shape of this one, which is among them.
  std::vector<int> maps_like(int map, Index count) {
    std::vector<int> like;
    for (int other = 0; other < network_.size(); ++other) {
      if (network_.shape(other) == network_.shape(map)) {
        like.push_back(other);
      }
    }
    std::vector<int> maps = {map};
    while (static_cast<Index>(maps.size()) < count) {
      const Index last = static_cast<Index>(like.size()) - 1;
      maps.push_back(like[static_cast<std::size_t>(draw_.between(0, last))]);
    }
    return maps;
  }

  // A map times what is made of it, by channel (squeeze and excitation) or by place.
  void add_scaled(int map) {
    const bool by_place = draw_.chance(0.3);
    if (!by_place) {
      try_layer(partitioner::AvgPool{}, {map});
    }
    Convolution factors;
    factors.filters = by_place ? 1 : network_.shape(map).channels;
    factors.activation = draw_.among({Activation::Logistic, Activation::Linear});
    try_layer(factors, {by_place ? map : network_.size() - 1});
    try_layer(partitioner::ScaleChannels{random_activation(draw_), by_place},
              {network_.size() - 1, map});
  }

  // The end of a classifier, or part of it.
  void add_tail() {
    if (draw_.chance(0.5)) {
      try_layer(partitioner::AvgPool{}, {network_.size() - 1});
    }
    if (wishes_.connected && draw_.chance(0.7)) {
      try_layer(partitioner::Connected{draw_.between(1, 20), false, random_activation(draw_)},
                {network_.size() - 1});
    }
    if (draw_.chance(0.5)) {
      try_layer(partitioner::Softmax{}, {network_.size() - 1});
      try_layer(partitioner::Cost{}, {network_.size() - 1});
    }
  }

  partitioner::Shortcut random_shortcut() {
    const bool weighted = draw_.chance(0.3);
    return {random_activation(draw_), weighted ? 0.5 : 1.0, weighted ? -1.25 : 1.0};
  }

  partitioner::Local random_local() {
    const Index size = draw_.between(1, 3);
    return {draw_.between(1, 9),
            size,
            draw_.between(1, 2),
            draw_.between(0, size - 1),
            random_activation(draw_)};
  }

  partitioner::Route random_route() {
    const Index groups = draw_.between(1, 2);
    return {groups, draw_.between(0, groups - 1)};
  }

  std::vector<int> random_maps() {
    std::vector<int> maps(static_cast<std::size_t>(draw_.between(1, 3)));
    const int first = random_map();
    const MapShape& shape = network_.shape(first);
    for (int& map : maps) {
      map = random_map();
      if (network_.shape(map).rows != shape.rows || network_.shape(map).cols != shape.cols) {
        map = first;
      }
    }
    return maps;
  }

  // Where both are drawn: first the inputs. Compilers for other processors evaluate arguments of a
  // call in another order.
  template <class MakeOperation>
  void try_layer_of(const std::vector<int>& inputs, const MakeOperation& operation) {
    try_layer(operation(), inputs);
  }

  // Leaves the network as it is where the layer does not fit or its map would be large.
  void try_layer(const Operation& operation, const std::vector<int>& inputs) {
    try {
      add_layer(network_, operation, inputs);
    } catch (const std::invalid_argument&) {
      return;
    }
    const MapShape& out = network_.layers.back().output;
    if (out.volume() > kLargestMap || std::max(out.rows, out.cols) > kLargestSide) {
      network_.layers.pop_back();
      return;
    }
    if (wishes_.batch * out.rows * out.cols >= kCellsForStatistics) {
      return;
    }
    std::visit(
        [](auto& layer) {
          if constexpr (requires { layer.batch_normalize; }) {
            layer.batch_normalize = false;
          }
        },
        network_.layers.back().operation);
  }

  Draw& draw_;
  NetworkWishes wishes_;
  Network network_;
};

Cut random_cut(Draw& draw, Index parts, Index extent) {
  Cut cut{parts, {}};
  if (draw.chance(0.4)) {
    return cut;
  }
  cut.boundaries = {0, extent};
  for (Index i = 1; i < parts; ++i) {
    cut.boundaries.push_back(draw.between(0, extent));
  }
  std::sort(cut.boundaries.begin(), cut.boundaries.end());
  return cut;
}

Group random_group(Draw& draw, const Network& network, Index batch, int ranks, int first) {
  Group group;
  group.first = first;
  group.last = static_cast<int>(
      std::min<Index>(network.size() - 1, first + draw.among<Index>({1, 1, 2, 3, 5, 8, 20}) - 1));
  const MapShape& out = network.shape(group.last);
  const auto parts = [&] { return draw.among<Index>({1, 1, 1, 2, 2, 3, 4}); };
  std::vector<Index> counts;
  do {
    counts = {parts(), parts(), parts(), parts()};
  } while (counts[0] * counts[1] * counts[2] * counts[3] > ranks);
  if (draw.chance(0.3)) {
    for (Index band = 0; band < counts[2]; ++band) {
      group.bands.push_back(random_cut(draw, draw.between(1, counts[0]), batch));
    }
  } else {
    group.images = random_cut(draw, counts[0], batch);
  }
  group.channels = random_cut(draw, counts[1], out.channels);
  group.rows = random_cut(draw, counts[2], out.rows);
  group.cols = random_cut(draw, counts[3], out.cols);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  for (Index tile = 0; tile < group.tiles(); ++tile) {
    std::swap(all[static_cast<std::size_t>(tile)],
              all[static_cast<std::size_t>(draw.between(tile, ranks - 1))]);
  }
  group.ranks.assign(all.data(), all.data() + group.tiles());
  const double reduction = draw.among({0.0, 0.5, 1.0});
  for (int layer = group.first; layer <= group.last; ++layer) {
    if (draw.chance(reduction)) {
      group.reduce_to_owner.push_back(layer);
    }
  }
  return group;
}

}  // namespace

Index Draw::between(Index least, Index most) {
  const auto count = static_cast<std::uint64_t>(most - least + 1);
  return least + static_cast<Index>(engine::random_bits(seed_, drawn_++) % count);
}

bool Draw::chance(double probability) {
  return engine::random_uniform(seed_, drawn_++) < probability;
}

Network random_network(Draw& draw, const NetworkWishes& wishes) {
  return NetworkMaker(draw, wishes).make();
}

void add_losses(Draw& draw, Network& network) {
  const auto trunk = Index{network.size()};
  const Index branches = draw.between(2, 3);
  for (Index branch = 0; branch < branches; ++branch) {
    int map = static_cast<int>(draw.between(0, trunk - 1));
    const auto add = [&](const Operation& operation) {
      add_layer(network, operation, {map});
      map = network.size() - 1;
    };
    if (draw.chance(0.5)) {
      add(Convolution{.filters = draw.between(1, 6), .activation = random_activation(draw)});
    }
    if (draw.chance(0.5)) {
      add(partitioner::AvgPool{});
    }
    const double weight = draw.among({1.0, 0.25, 3.0});
    if (draw.chance(0.5)) {
      add(partitioner::Softmax{.temperature = draw.among({1.0, 2.5}), .scale = weight});
    } else {
      add(partitioner::Cost{.scale = weight});
    }
  }
}

namespace {

partitioner::YoloHead random_yolo(Draw& draw, Index classes) {
  partitioner::YoloHead head{
      .classes = classes, .anchors = {{3, 5}, {8, 6}, {15, 12}}, .mask = {draw.among({0, 1}), 2}};
  head.ignore_threshold = draw.among({0.2, 0.7});
  head.truth_threshold = draw.among({0.6, 1.0});
  head.iou_threshold = draw.among({0.3, 1.0});
  head.box_loss = draw.among({partitioner::BoxLoss::SquaredError,
                              partitioner::BoxLoss::Iou,
                              partitioner::BoxLoss::Giou,
                              partitioner::BoxLoss::Diou,
                              partitioner::BoxLoss::Ciou});
  head.scale_xy = draw.among({1.0, 1.1});
  head.new_coords = draw.chance(0.2);
  head.objectness_smooth = draw.chance(0.3);
  head.focal_loss = draw.chance(0.2);
  return head;
}

partitioner::RegionHead random_region(Draw& draw, Index classes) {
  return {.classes = classes,
          .anchors = {{1, 1.5}, {3, 2}},
          .softmax = draw.chance(0.5),
          .match_anchors = draw.chance(0.5),
          .rescore = draw.chance(0.5),
          .threshold = 0.3,
          .object_scale = 5};
}

// Objects are assigned to the cells of all of them together.
void add_assigned_heads(Draw& draw, Network& network) {
  const auto trunk = Index{network.size()};
  const Index scales = draw.between(1, 3);
  const partitioner::YoloxHead head{.classes = draw.between(1, 4),
                                    .l1 = draw.chance(0.5),
                                    .most_boxes = draw.among<Index>({2, 90})};
  for (Index scale = 0; scale < scales; ++scale) {
    const auto map = static_cast<int>(draw.between(0, trunk - 1));
    add_layer(network,
              Convolution{.filters = head_channels(head), .activation = Activation::Linear},
              {map});
    add_layer(network, head, {network.size() - 1});
  }
}

}  // namespace

void add_heads(Draw& draw, Network& network) {
  if (draw.chance(0.25)) {
    add_assigned_heads(draw, network);
    return;
  }
  const auto trunk = Index{network.size()};
  const Index branches = draw.between(1, 3);
  for (Index branch = 0; branch < branches; ++branch) {
    const auto map = static_cast<int>(draw.between(0, trunk - 1));
    const Index classes = draw.between(1, 4);
    const auto convolution = [&](Index filters, Activation activation = Activation::Linear) {
      add_layer(network, Convolution{.filters = filters, .activation = activation}, {map});
    };
    const auto end = [&](const Operation& operation) {
      add_layer(network, operation, {network.size() - 1});
    };
    switch (draw.between(0, 3)) {
      case 0: {
        const partitioner::RegionHead head = random_region(draw, classes);
        convolution(head_channels(head));
        end(head);
        break;
      }
      case 1: {
        const partitioner::GridHead head{.side = draw.between(1, 3),
                                         .boxes = draw.between(1, 2),
                                         .classes = classes,
                                         .softmax = draw.chance(0.5),
                                         .square_roots = draw.chance(0.5),
                                         .rescore = draw.chance(0.5)};
        add_layer(
            network, partitioner::Connected{head_values(head), false, Activation::Linear}, {map});
        end(head);
        break;
      }
      default: {
        const partitioner::YoloHead head = random_yolo(draw, classes);
        convolution(head_channels(head),
                    head.new_coords ? Activation::Logistic : Activation::Linear);
        end(head);
      }
    }
  }
}

Partition random_partition(Draw& draw, const Network& network, Index batch, int ranks) {
  Partition partition;
  partition.network = fingerprint(network);
  partition.ranks = ranks;
  partition.reader = draw.chance(0.5)
                         ? partitioner::Reader::every_rank()
                         : partitioner::Reader::rank(static_cast<int>(draw.between(0, ranks - 1)));
  for (int first = 0; first < network.size(); first = partition.groups.back().last + 1) {
    partition.groups.push_back(random_group(draw, network, batch, ranks, first));
  }
  partition.gradient_reduction.bucket_bytes = draw.among<Index>({1, 3000, 262144});
  if (draw.chance(0.3)) {
    partition.gradient_reduction.optimizer = partitioner::OptimizerStates::Replicated;
  }
  return partition;
}

RandomCase random_case(std::uint64_t seed, int ranks, NetworkWishes wishes) {
  Draw draw(seed);
  RandomCase result;
  result.batch = draw.between(1, 4);
  wishes.batch = result.batch;
  result.network = random_network(draw, wishes);
  result.partition = random_partition(draw, result.network, result.batch, ranks);
  draw_recomputation(draw, result.partition);
  if (draw.chance(wishes.frozen)) {
    freeze_some(draw, result.network);
  }
  return result;
}

bool freeze_some(Draw& draw, Network& network) {
  int learning = network.size() - 1;
  while (learning > 0 && partitioner::layer_parameters(network, learning).weight.channels == 0) {
    --learning;
  }
  if (learning <= 0) {
    return false;
  }
  freeze(network, static_cast<int>(draw.between(0, learning - 1)));
  return true;
}

void draw_kernels(Draw& draw, RandomCase& random) {
  using partitioner::ConvolutionKernel;
  const auto kernel = [&](int layer) {
    const auto drawn = draw.among<ConvolutionKernel>(
        {ConvolutionKernel::Winograd2, ConvolutionKernel::Winograd4, ConvolutionKernel::Reference});
    return applies(drawn, random.network, layer) ? drawn : ConvolutionKernel::Direct;
  };
  for (int layer = 0; layer < random.network.size(); ++layer) {
    random.partition.kernels.push_back({kernel(layer), kernel(layer), kernel(layer)});
  }
}

void draw_recomputation(Draw& draw, Partition& partition) {
  const double share = draw.among({0.0, 0.5, 1.0});
  for (Group& group : partition.groups) {
    group.recompute = draw.chance(share);
  }
}

Partition without_recomputation(Partition partition) {
  for (Group& group : partition.groups) {
    group.recompute = false;
  }
  return partition;
}

bool has_connected(const Network& network) {
  return std::any_of(
      network.layers.begin(), network.layers.end(), [](const partitioner::LayerSpec& layer) {
        return std::holds_alternative<partitioner::Connected>(layer.operation);
      });
}

std::string both(const partitioner::PerAxis& numbers) {
  return std::to_string(numbers.rows) + 'x' + std::to_string(numbers.cols);
}

std::string describe(const RandomCase& random) {
  std::ostringstream text;
  const MapShape& image = random.network.image;
  text << random.batch << " images of " << image.channels << 'x' << image.rows << 'x' << image.cols
       << '\n';
  for (int layer = 0; layer < random.network.size(); ++layer) {
    const partitioner::LayerSpec& spec = random.network.layer(layer);
    text << layer << (spec.frozen ? " frozen " : " ") << kind_name(spec.operation);
    if (const auto* convolution = std::get_if<Convolution>(&spec.operation)) {
      text << " size " << both(convolution->size) << " stride " << both(convolution->stride)
           << " padding " << both(convolution->padding) << " to "
           << both(convolution->padding_end()) << " groups " << convolution->groups << " dilation "
           << convolution->dilation << (convolution->batch_normalize ? " bn " : " ")
           << activation_name(convolution->activation);
    } else if (const auto* deconvolution =
                   std::get_if<partitioner::Deconvolution>(&spec.operation)) {
      text << " size " << both(deconvolution->size) << " stride " << both(deconvolution->stride)
           << " padding " << both(deconvolution->padding) << " to "
           << both(deconvolution->padding_end()) << (deconvolution->batch_normalize ? " bn " : " ")
           << activation_name(deconvolution->activation);
    } else if (const auto* pool = std::get_if<partitioner::MaxPool>(&spec.operation)) {
      text << " size " << pool->size << " stride " << both(pool->stride) << " padding "
           << both(pool->padding);
    }
    text << " of";
    for (const int map : spec.inputs) {
      text << ' ' << map;
    }
    text << " -> " << spec.output.channels << 'x' << spec.output.rows << 'x' << spec.output.cols
         << '\n';
  }
  return text.str() + to_text(random.partition);
}

}  // namespace tessera::tests
