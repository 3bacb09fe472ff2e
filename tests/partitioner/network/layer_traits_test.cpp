#include "partitioner/network/layer_traits.h"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tessera::partitioner {

namespace {

Network of_one_cell(const Operation& operation) {
  Network network;
  network.image = {8, 1, 1};
  add_layer(network, operation, std::vector<int>(layer_traits(operation).inputs, kImage));
  return network;
}

// One layer of each kind, of the same map where that can be.
std::vector<Network> one_of_each() {
  std::vector<Network> networks;
  const auto add = [&networks](const Operation& operation) {
    Network& network = networks.emplace_back();
    network.image = {8, 6, 6};
    const std::vector<int> inputs(layer_traits(operation).inputs, kImage);
    add_layer(network, operation, inputs);
  };
  add(Convolution{.filters = 4, .size = 3, .padding = 1});
  add(Deconvolution{.filters = 4, .size = 2, .stride = 2});
  add(MaxPool{2, 2, 0});
  add(ChannelPool{3});
  add(AvgPool{});
  add(Connected{.outputs = 8});
  add(Local{.filters = 4, .size = 3, .padding = 1});
  add(Dropout{});
  add(Softmax{});
  add(Cost{});
  add(Shortcut{});
  add(Sam{});
  networks.push_back(of_one_cell(ScaleChannels{}));
  add(Route{});
  add(Upsample{});
  add(Reorg{2, false});
  add(SpaceToDepth{2});
  add(ChannelShuffle{2});
  add(Crop{});
  add(YoloHead{.classes = 3, .anchors = {{2, 2}}, .mask = {0}});
  add(RegionHead{.classes = 3, .anchors = {{2, 2}}});
  networks.push_back(of_one_cell(GridHead{.side = 1, .classes = 3}));
  add(YoloxHead{.classes = 3});
  return networks;
}

const LayerTraits& traits_of(const Network& network) {
  return layer_traits(network.layer(0).operation);
}

}  // namespace

TEST_CASE("each kind of layer has a row of its own") {
  std::set<std::string> names;
  std::set<std::size_t> kinds;
  for (const Network& network : one_of_each()) {
    names.insert(traits_of(network).name);
    kinds.insert(network.layer(0).operation.index());
  }
  CHECK(kinds.size() == std::variant_size_v<Operation>);
  CHECK(names.size() == kinds.size());
}

TEST_CASE("a layer that reads whole maps requires all cells for any one of its own") {
  for (const Network& network : one_of_each()) {
    const Region one{{0, 1}, {0, 1}, {0, 1}, {0, 1}};
    const Region required = required_input(network, 0, 0, one);
    const bool all = required.rows == Range{0, 6} && required.cols == Range{0, 6};
    CHECK_MESSAGE(all == traits_of(network).reads_whole_map, traits_of(network).name);
  }
}

TEST_CASE("a layer whose channel slice takes the same channels requires no others") {
  for (const Network& network : one_of_each()) {
    if (traits_of(network).channel_slice == ChannelSlice::SameChannels) {
      Region slice = whole_map(network, 0, 1);
      slice.channels = {2, 5};
      CHECK(required_input(network, 0, 0, slice).channels == Range{2, 5});
    }
  }
}

TEST_CASE("layers with weights are those that have parameters") {
  for (const Network& network : one_of_each()) {
    CHECK((layer_parameters(network, 0).weight.channels > 0) == traits_of(network).has_weights);
  }
}

TEST_CASE("a layer that passes its input on has a map of the same shape") {
  for (const Network& network : one_of_each()) {
    if (traits_of(network).passes_input_on) {
      CHECK(network.shape(0) == network.image);
    }
  }
}

TEST_CASE("activation and normalisation are those of the layer's own numbers") {
  const Operation plain = Convolution{.activation = Activation::Leaky};
  CHECK(activation_of(plain) == Activation::Leaky);
  CHECK(!normalizes(plain));
  CHECK(!keeps_pre_activations(plain));
  CHECK(backward_reads_output(LayerSpec{plain, {}, {}}));
  const Operation normalized = Connected{.batch_normalize = true, .activation = Activation::Linear};
  CHECK(normalizes(normalized));
  CHECK(keeps_pre_activations(normalized));
  CHECK(!backward_reads_output(LayerSpec{normalized, {}, {}}));
  CHECK(keeps_pre_activations(Shortcut{.activation = Activation::Mish}));
  CHECK(activation_of(MaxPool{}) == Activation::Linear);
}

}  // namespace tessera::partitioner
