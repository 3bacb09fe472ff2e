#include "partitioner/network/layer_traits.h"

#include <array>
#include <utility>

namespace tessera::partitioner {

namespace {

template <class Kind>
constexpr LayerTraits kRow = Kind::there_is_no_row_for_this_kind;

template <>
constexpr LayerTraits kRow<Convolution> = {.name = "convolutional",
                                           .has_weights = true,
                                           .rated_as = RatedAs::Convolution,
                                           .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<Deconvolution> = {.name = "deconvolutional",
                                             .has_weights = true,
                                             .rated_as = RatedAs::Convolution,
                                             .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<MaxPool> = {.name = "maxpool",
                                       .rated_as = RatedAs::Pool,
                                       .channel_slice = ChannelSlice::SameChannels,
                                       .keeps_argmax = true};
template <>
constexpr LayerTraits kRow<ChannelPool> = {
    .name = "maxpool_depth", .rated_as = RatedAs::Pool, .keeps_argmax = true};
template <>
constexpr LayerTraits kRow<AvgPool> = {
    .name = "avgpool", .channel_slice = ChannelSlice::SameChannels, .reads_whole_map = true};
template <>
constexpr LayerTraits kRow<Connected> = {.name = "connected",
                                         .has_weights = true,
                                         .rated_as = RatedAs::Product,
                                         .reads_whole_map = true,
                                         .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<Local> = {.name = "local",
                                     .has_weights = true,
                                     .rated_as = RatedAs::Product,
                                     .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<Dropout> = {
    .name = "dropout", .channel_slice = ChannelSlice::SameChannels, .passes_input_on = true};
template <>
constexpr LayerTraits kRow<Softmax> = {.name = "softmax",
                                       .channel_slice = ChannelSlice::AllChannels,
                                       .reads_whole_map = true,  // unless it is spatial
                                       .backward_reads_inputs = true,
                                       .backward_reads_output = true,
                                       .loss = LossForm::CrossEntropy};
template <>
constexpr LayerTraits kRow<Cost> = {.name = "cost",
                                    .channel_slice = ChannelSlice::AllChannels,
                                    .passes_input_on = true,
                                    .backward_reads_output = true,
                                    .loss = LossForm::SquaredError};
template <>
constexpr LayerTraits kRow<Shortcut> = {.name = "shortcut", .inputs = 2, .more_inputs = true};
template <>
constexpr LayerTraits kRow<Sam> = {.name = "sam",
                                   .inputs = 2,
                                   .channel_slice = ChannelSlice::SameChannels,
                                   .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<ScaleChannels> = {
    .name = "scale_channels", .inputs = 2, .backward_reads_inputs = true};
template <>
constexpr LayerTraits kRow<Route> = {.name = "route", .more_inputs = true};
template <>
constexpr LayerTraits kRow<Upsample> = {.name = "upsample",
                                        .channel_slice = ChannelSlice::SameChannels};
template <>
constexpr LayerTraits kRow<Reorg> = {
    .name = "reorg", .channel_slice = ChannelSlice::AllChannels, .reads_whole_map = true};
template <>
constexpr LayerTraits kRow<SpaceToDepth> = {.name = "space_to_depth"};
template <>
constexpr LayerTraits kRow<ChannelShuffle> = {.name = "channel_shuffle"};
template <>
constexpr LayerTraits kRow<Crop> = {
    .name = "crop", .channel_slice = ChannelSlice::SameChannels, .passes_input_on = true};

template <>
constexpr LayerTraits kRow<YoloHead> = {.name = "yolo",
                                        .channel_slice = ChannelSlice::AllChannels,
                                        .backward_reads_output = true,
                                        .loss = LossForm::Boxes};
template <>
constexpr LayerTraits kRow<RegionHead> = {.name = "region",
                                          .channel_slice = ChannelSlice::AllChannels,
                                          .backward_reads_output = true,
                                          .loss = LossForm::Boxes};
template <>
constexpr LayerTraits kRow<GridHead> = {.name = "detection",
                                        .channel_slice = ChannelSlice::AllChannels,
                                        .backward_reads_output = true,
                                        .loss = LossForm::Boxes};
template <>
constexpr LayerTraits kRow<YoloxHead> = {.name = "yolox",
                                         .channel_slice = ChannelSlice::AllChannels,
                                         .backward_reads_output = true,
                                         .loss = LossForm::Boxes};

template <std::size_t... i>
constexpr auto rows(std::index_sequence<i...> /*kinds*/) {
  return std::array{kRow<std::variant_alternative_t<i, Operation>>...};
}

constexpr auto kRows = rows(std::make_index_sequence<std::variant_size_v<Operation>>());

}  // namespace

const LayerTraits& layer_traits(const Operation& operation) {
  return kRows[operation.index()];
}

Activation activation_of(const Operation& operation) {
  return std::visit(
      []<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.activation; }) {
          return kind.activation;
        } else {
          return Activation::Linear;
        }
      },
      operation);
}

bool normalizes(const Operation& operation) {
  return std::visit(
      []<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.batch_normalize; }) {
          return kind.batch_normalize;
        } else {
          return false;
        }
      },
      operation);
}

bool keeps_pre_activations(const Operation& operation) {
  return normalizes(operation) || slope_needs_input(activation_of(operation));
}

bool backward_reads_inputs(const LayerSpec& layer) {
  return layer.has_backward && layer_traits(layer.operation).backward_reads_inputs;
}

bool backward_reads_output(const LayerSpec& layer) {
  const Operation& operation = layer.operation;
  return layer.has_backward &&
         (layer_traits(operation).backward_reads_output ||
          (!normalizes(operation) && activation_of(operation) != Activation::Linear));
}

}  // namespace tessera::partitioner
