#include "engine/execution/execution.h"

#include <algorithm>

#include "engine/comm/tags.h"
#include "engine/execution/whole_maps.h"
#include "engine/layers/workspace.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/forward_parts.h"
#include "partitioner/plan/image_shares.h"
#include "partitioner/plan/transfers.h"

namespace tessera::engine {

using partitioner::kImage;
using partitioner::kNoBuffer;
using partitioner::Message;
using partitioner::Transfer;
using partitioner::TransferKind;

namespace {

// Each transfer has two tags, one for either way.
int tag_of(std::size_t transfer) {
  return kFirstExchangeTag + 2 * static_cast<int>(transfer);
}

}  // namespace

template <class T>
Execution<T>::Execution(const partitioner::Network& network,
                        const partitioner::Plan& plan,
                        const Communicator& communicator,
                        const ExecutionOptions& options)
    : network_(&network),
      made_for_(&plan),
      plan_(&plan),
      communicator_(&communicator),
      options_(options),
      parameters_(network, plan, communicator, options.training),
      losses_(partitioner::losses(network)),
      loss_(communicator),
      clock_(communicator, network.size()) {
  expects(plan.ranks == communicator.size(), "a plan is made for as many ranks as there are");
  if (plan.replicas.run_ahead()) {
    replica_loss_.emplace(
        communicator, plan.copy_of(rank()) * plan.ranks_of_copy(), plan.ranks_of_copy());
  }
  arena_ =
      activation_arena(network,
                       plan,
                       rank(),
                       {sizeof(T), options.training, options.image_gradient, options.keep_maps});
  activations_ = Array<std::byte>(arena_.bytes);
  for (int layer = 0; layer < network.size(); ++layer) {
    layers_.push_back(make_layer<T>(site(layer)));
  }
  make_norms();
  make_statistics();
  make_edges();
  make_zeroing();
  workspace_ = Array<T>(
      workspace_elements(network, plan, rank(), {options.training, options.image_gradient}));
  make_views();
}

template <class T>
void Execution<T>::make_views() {
  for (const Stage stage : kStages) {
    std::vector<LayerViews<T>>& of_stage = views_[static_cast<std::size_t>(stage)];
    of_stage.clear();
    for (int layer = 0; layer < network_->size(); ++layer) {
      of_stage.push_back(make_views(layer, stage));
    }
  }
}

template <class T>
void Execution<T>::set_images(const std::vector<Index>& images) {
  if (images == images_) {
    return;
  }
  if (with_images_ == nullptr) {
    expects(cuts_images_alone(*network_, *made_for_), "images alone are cut");
    with_images_ = std::make_unique<partitioner::Plan>(*made_for_);
    plan_ = with_images_.get();
    for (int layer = 0; layer < network_->size(); ++layer) {
      layers_[static_cast<std::size_t>(layer)] = make_layer<T>(site(layer));
    }
  }
  for (int rank = 0; rank < made_for_->ranks; ++rank) {
    expects(
        images[static_cast<std::size_t>(rank)] <= made_for_->tile(kImage, rank).owned.images.size(),
        "no more images than the plan has room for");
  }
  partitioner::set_images(*network_, images, *with_images_);
  const bool same_contribute = std::equal(
      images.begin(), images.end(), images_.begin(), images_.end(), [](Index a, Index b) {
        return (a > 0) == (b > 0);
      });
  images_ = images;
  const Index scratch =
      workspace_elements(*network_, *plan_, rank(), {options_.training, options_.image_gradient});
  if (scratch > workspace_.size()) {
    workspace_ = Array<T>(scratch);
  }
  if (!same_contribute) {
    make_statistics();
  }
  make_views();
}

template <class T>
Site Execution<T>::site(int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  return {network_,
          plan_,
          rank(),
          layer,
          options_.batch_norm_rate,
          options_.batch_norm_epsilon,
          arena_.fused_pool[at],
          layer > 0 && arena_.fused_pool[at - 1] == layer,
          arena_.argmax_pool[at]};
}

template <class T>
void Execution<T>::make_norms() {
  for (const partitioner::LayerSpec& spec : network_->layers) {
    norms_.push_back(normalizes(spec.operation) ? std::make_unique<NormState<T>>() : nullptr);
  }
}

template <class T>
void Execution<T>::make_statistics() {
  statistics_.clear();
  statistics_.resize(norms_.size());
  for (std::size_t i = 0; i < plan_->transfers.size(); ++i) {
    const Transfer& transfer = plan_->transfers[i];
    const bool gradients = transfer.kind == TransferKind::StatisticsGradient;
    if (transfer.kind != TransferKind::BatchStatistics && !gradients) {
      continue;
    }
    const partitioner::Tile& tile = plan_->tile(transfer.subject, rank());
    auto& statistics = statistics_[static_cast<std::size_t>(transfer.subject)];
    if (statistics == nullptr) {
      statistics = std::make_unique<BatchStatistics>();
    }
    (gradients ? statistics->gradients : statistics->moments)
        .emplace(*communicator_,
                 OwnChannels{partitioner::channels_of(gradients ? tile.backward : tile.owned),
                             partitioner::channels_of(tile.computed)},
                 messages_of(*plan_, transfer),
                 gradients ? kGradientFields : kMomentFields,
                 tag_of(i));
  }
}

template <class T>
void Execution<T>::make_edges() {
  const auto own = static_cast<std::size_t>(rank());
  edge_of_.resize(plan_->transfers.size());
  for (std::size_t i = 0; i < plan_->transfers.size(); ++i) {
    const Transfer& transfer = plan_->transfers[i];
    const auto exchange = [&](bool used) {
      return Exchange<T>(*communicator_,
                         used ? transfer.messages : std::vector<Message>{},
                         tag_of(i),
                         &parameters_.transfers());
    };
    if (transfer.kind == TransferKind::FeatureMap) {
      const int reader = first_reader(*network_, *plan_, transfer.subject, transfer.group);
      const auto& inputs = network_->layer(reader).inputs;
      const auto input = std::find(inputs.begin(), inputs.end(), transfer.subject) - inputs.begin();
      const int owned = plan_->producer(rank(), transfer.subject);
      const int required =
          plan_->read_from[own][static_cast<std::size_t>(reader)][static_cast<std::size_t>(input)];
      edge_of_[i] = &edges_.emplace_back(Edge{exchange(transfer.is_sent || options_.image_gradient),
                                              value_view(owned),
                                              value_view(required),
                                              gradient_view(owned),
                                              gradient_view(required)});
    } else if (transfer.kind == TransferKind::MapGradient) {
      const View<T> gradient = map_gradient(transfer.subject);
      edge_of_[i] = transfer.list_of >= 0
                        ? edge_of_[static_cast<std::size_t>(transfer.list_of)]
                        : &edges_.emplace_back(Edge{exchange(true), {}, {}, gradient, gradient});
    }
  }
}

// Cells outside of the map are always 0, and gradients start with 0 where nobody assigns them: when
// a buffer is needed from some time on, something else has left its own there.
template <class T>
void Execution<T>::make_zeroing() {
  zeroing_.resize(static_cast<std::size_t>(last_time(*network_) + 2));
  const auto& buffers = plan_->buffers[static_cast<std::size_t>(rank())];
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Region map = whole_map(*network_, buffers[i].map, plan_->batch);
    const bool has_frame = intersect(buffers[i].region, map) != buffers[i].region;
    for (const partitioner::MemorySlot* slot :
         {&arena_.values[i], &arena_.recomputed[i], &arena_.restored[i]}) {
      if (slot->bytes > 0 && has_frame) {
        zeroing(slot->from).frames.push_back({view_at<T>(*slot, buffers[i].region), map});
      }
    }
  }
  for (const partitioner::MemorySlot& slot : arena_.gradients) {
    if (slot.bytes > 0) {
      zeroing(slot.from).gradients.push_back(activations_.span().subspan(
          static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.bytes)));
    }
  }
  for (int layer = 0; layer < network_->size(); ++layer) {
    if (at(layer).assigns_input_gradients()) {
      zeroing(gradient_time(*network_, layer) + 1).gradients.clear();
    }
  }
}

template <class T>
template <class Cell>
View<Cell> Execution<T>::view_at(const partitioner::MemorySlot& slot, const Region& region) {
  if (slot.bytes == 0) {
    return {};
  }
  auto* cells = reinterpret_cast<Cell*>(activations_.data() + slot.offset);
  return {cells, region, channel_block(region.channels.size())};
}

template <class T>
const Region& Execution<T>::region_of(int buffer) const {
  return plan_->buffer(rank(), buffer).region;
}

// Where `layer` finds the values of a buffer, or puts them. What a recomputed group makes again is
// for its own layers alone.
template <class T>
const partitioner::MemorySlot& Execution<T>::value_slot(int buffer, int layer, Stage stage) const {
  const auto at = static_cast<std::size_t>(buffer);
  const int group = plan_->group(plan_->buffer(rank(), buffer).map);
  const bool comes_back = group == plan_->group(layer) || !plan_->recomputes(group);
  if (stage == Stage::Forward || !comes_back) {
    return arena_.values[at];
  }
  const partitioner::MemorySlot& recomputed = arena_.recomputed[at];
  const partitioner::MemorySlot& restored = arena_.restored[at];
  if (recomputed.bytes > 0 && (stage == Stage::Again || restored.bytes == 0)) {
    return recomputed;
  }
  return restored.bytes > 0 ? restored : arena_.values[at];
}

template <class T>
View<T> Execution<T>::value_view(int buffer, int layer, Stage stage) {
  return buffer == kNoBuffer ? View<T>{}
                             : view_at<T>(value_slot(buffer, layer, stage), region_of(buffer));
}

template <class T>
View<T> Execution<T>::value_view(int buffer) {
  return buffer == kNoBuffer
             ? View<T>{}
             : view_at<T>(arena_.values[static_cast<std::size_t>(buffer)], region_of(buffer));
}

template <class T>
View<T> Execution<T>::gradient_view(int buffer) {
  return buffer == kNoBuffer
             ? View<T>{}
             : view_at<T>(arena_.gradients[static_cast<std::size_t>(buffer)], region_of(buffer));
}

template <class T>
Region Execution<T>::image_region(int rank) const {
  return partitioner::image_region(*network_, *plan_, rank);
}

template <class T>
View<T> Execution<T>::image() {
  return value_view(partitioner::image_buffer(*plan_, rank()));
}

template <class T>
View<T> Execution<T>::map(int map) {
  return value_view(plan_->producer(rank(), map));
}

template <class T>
View<T> Execution<T>::map_gradient(int map) {
  return gradient_view(plan_->producer(rank(), map));
}

template <class T>
View<const ArgmaxOffset> Execution<T>::argmax(int layer) {
  return view_at<ArgmaxOffset>(arena_.argmax[static_cast<std::size_t>(layer)],
                               plan_->tile(layer, rank()).computed);
}

template <class T>
LayerViews<T> Execution<T>::make_views(int layer, Stage stage) {
  const auto at = static_cast<std::size_t>(layer);
  const int pool = arena_.fused_pool[at];
  const int result = pool == partitioner::kNoLayer ? layer : pool;
  const int argmax_pool =
      arena_.argmax_pool[at] == partitioner::kNoLayer ? result : arena_.argmax_pool[at];
  const Region& computed = plan_->tile(layer, rank()).computed;
  const auto now = [&](const auto& first, const auto& recomputed, int of) {
    const auto& again = recomputed[static_cast<std::size_t>(of)];
    return stage != Stage::Forward && again.bytes > 0 ? again : first[static_cast<std::size_t>(of)];
  };
  LayerViews<T> views;
  for (const int buffer : plan_->read_from[static_cast<std::size_t>(rank())][at]) {
    views.inputs.push_back(value_view(buffer, layer, stage));
    views.input_gradients.push_back(gradient_view(buffer));
  }
  if (stage != Stage::Again || arena_.again[at].output) {
    views.output = value_view(plan_->producer(rank(), result), layer, stage);
  }
  views.output_gradient = map_gradient(result);
  views.pre_activations =
      view_at<T>(now(arena_.pre_activations, arena_.recomputed_pre_activations, layer), computed);
  views.pre_activation_gradients = view_at<T>(arena_.pre_activation_gradients[at], computed);
  views.argmax = view_at<ArgmaxOffset>(now(arena_.argmax, arena_.recomputed_argmax, argmax_pool),
                                       plan_->tile(argmax_pool, rank()).computed);
  views.parameters = parameters_.views(layer);
  views.workspace = workspace_.data();
  views.first_gradients = this->at(layer).assigns_input_gradients() &&
                          begins_gradient(layer, gradient_time(*network_, layer) + 1);
  views.norm = norms_[at].get();
  return views;
}

// Whether the gradient of the layer's only input is needed from this time on.
template <class T>
bool Execution<T>::begins_gradient(int layer, int time) const {
  const int buffer =
      plan_->read_from[static_cast<std::size_t>(rank())][static_cast<std::size_t>(layer)][0];
  return buffer != kNoBuffer && arena_.gradients[static_cast<std::size_t>(buffer)].from == time;
}

template <class T>
std::vector<T> Execution<T>::gather_cells(int map, View<const T> cells) const {
  const Region whole = whole_map(*network_, map, plan_->batch);
  return gather_whole(*communicator_, whole, owned_regions(*plan_, map), cells);
}

template <class T>
std::vector<T> Execution<T>::gather_map(int layer) {
  return gather_cells(layer, map(layer));
}

template <class T>
std::vector<T> Execution<T>::gather_gradient(int map) {
  return gather_cells(map, map_gradient(map));
}

template <class T>
void Execution<T>::scatter_image(const std::vector<T>& whole) {
  std::vector<Region> regions;
  regions.reserve(static_cast<std::size_t>(plan_->ranks));
  for (int to = 0; to < plan_->ranks; ++to) {
    regions.push_back(image_region(to));
  }
  scatter_whole(
      *communicator_, whole_map(*network_, kImage, plan_->batch), regions, whole, image());
}

template <class T>
void Execution<T>::scatter_output_gradient(const std::vector<T>& whole) {
  const int last = network_->size() - 1;
  if (!network_->takes_gradient(last)) {
    return;
  }
  scatter_whole(*communicator_,
                whole_map(*network_, last, plan_->batch),
                owned_regions(*plan_, last),
                whole,
                output_gradient());
}

template <class T>
double Execution<T>::owned_loss(const Targets& targets) {
  expects(!losses_.empty(), "a network with a loss");
  double sum = 0;
  for (const partitioner::Loss& loss : losses_) {
    sum += engine::owned_loss(site(loss.layer), loss, targets, View<const T>(map(loss.layer)));
  }
  return sum;
}

template <class T>
ExecutionMemory Execution<T>::memory() const {
  ExecutionMemory memory;
  memory.weights = parameters_.value_bytes();
  memory.gradients = parameters_.gradient_bytes();
  memory.messages = parameters_.message_bytes();
  memory.activations = activations_.bytes();
  for (const auto& of : statistics_) {
    memory.messages += of != nullptr ? of->moments->bytes() + of->gradients->bytes() : 0;
  }
  for (const Edge& edge : edges_) {
    memory.messages += edge.exchange.bytes();
  }
  memory.workspace = workspace_.bytes();
  return memory;
}

template class Execution<float>;
template class Execution<double>;

}  // namespace tessera::engine
