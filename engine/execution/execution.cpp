#include "engine/execution/execution.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/execution/whole_maps.h"
#include "engine/layers/workspace.h"
#include "partitioner/base/errors.h"
#include "partitioner/plan/forward_parts.h"

namespace tessera::engine {

using partitioner::kImage;
using partitioner::kNoBuffer;
using partitioner::Message;
using partitioner::PassSeconds;

namespace {

constexpr int kAllExchanges = std::numeric_limits<int>::max();

// Tags: layers first, then exchanges and collapses, two each.
int layer_tag(int layer) {
  return kFirstExchangeTag + 2 * layer;
}

int edge_tag(const partitioner::Network& network, std::size_t edge) {
  return layer_tag(network.size()) + 2 * static_cast<int>(edge);
}

// Ranks that own cells of a normalised map, or start backward from them, have a share of its
// statistics or of their gradients; all who compute with a channel need it.
ChannelRoles channel_roles(const partitioner::Plan& plan,
                           int layer,
                           Region partitioner::Tile::*contributes) {
  ChannelRoles roles;
  const auto channels = [](const Region& region) {
    return region.empty() ? Range{} : region.channels;
  };
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const partitioner::Tile& tile = plan.tile(layer, rank);
    roles.contributes.push_back(channels(tile.*contributes));
    roles.needs.push_back(channels(tile.computed));
  }
  return roles;
}

// Whether the forward pass normalises with statistics of its own batch.
bool takes_statistics(const Pass& pass) {
  return pass.training && pass.batch_norm != BatchNormMode::Frozen;
}

}  // namespace

template <class T>
Execution<T>::Execution(const partitioner::Network& network,
                        const partitioner::Plan& plan,
                        const Communicator& communicator,
                        const ExecutionOptions& options)
    : network_(&network),
      plan_(&plan),
      communicator_(&communicator),
      options_(options),
      parameters_(network, plan, communicator, options.training),
      clock_(communicator, network.size()) {
  partitioner::expects(plan.ranks == communicator.size(),
                       "a plan is made for as many ranks as there are");
  arena_ =
      activation_arena(network,
                       plan,
                       rank(),
                       {sizeof(T), options.training, options.image_gradient, options.keep_maps});
  activations_ = Array<std::byte>(arena_.bytes);
  for (int layer = 0; layer < network.size(); ++layer) {
    layers_.push_back(make_layer<T>(site(layer)));
  }
  groups_ = groups_of(plan);
  make_norms();
  make_edges();
  workspace_ = Array<T>(
      workspace_elements(network, plan, rank(), {options.training, options.image_gradient}));
  for (const Stage stage : kStages) {
    for (int layer = 0; layer < network.size(); ++layer) {
      views_[static_cast<std::size_t>(stage)].push_back(make_views(layer, stage));
    }
  }
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
          arena_.joined_pool[at],
          layer > 0 && arena_.joined_pool[at - 1] == layer,
          arena_.winning_pool[at]};
}

template <class T>
void Execution<T>::make_norms() {
  for (int layer = 0; layer < network_->size(); ++layer) {
    const auto shares = [&](Region partitioner::Tile::*contributes, Index fields, int tag) {
      return ChannelShares(*communicator_,
                           channel_roles(*plan_, layer, contributes),
                           fields,
                           layer_tag(layer) + tag);
    };
    if (partitioner::layer_parameters(*network_, layer).scale.channels == 0) {
      norms_.push_back(nullptr);
      continue;
    }
    norms_.push_back(
        std::make_unique<Norm>(Norm{{},
                                    shares(&partitioner::Tile::owned, kMomentFields, 0),
                                    shares(&partitioner::Tile::backward, kGradientFields, 1)}));
  }
}

template <class T>
void Execution<T>::make_edges() {
  const auto own = static_cast<std::size_t>(rank());
  for (std::size_t i = 0; i < plan_->exchanges.size(); ++i) {
    const partitioner::Exchange& exchange = plan_->exchanges[i];
    const int first_reader =
        partitioner::first_reader(*network_, *plan_, exchange.map, exchange.group);
    const auto& inputs = network_->layer(first_reader).inputs;
    const auto input = std::find(inputs.begin(), inputs.end(), exchange.map) - inputs.begin();
    const int required_buffer = plan_->read_from[own][static_cast<std::size_t>(first_reader)]
                                                [static_cast<std::size_t>(input)];
    const bool by_message = exchange.map != kImage || plan_->reader != partitioner::kEveryRank;
    const bool used = by_message || options_.image_gradient;
    edges_.push_back({&exchange,
                      plan_->producer(rank(), exchange.map),
                      required_buffer,
                      first_reader,
                      Exchange<T>(*communicator_,
                                  used ? exchange.messages : std::vector<Message>{},
                                  edge_tag(*network_, i),
                                  &parameters_.transfers()),
                      by_message});
  }
  for (std::size_t i = 0; i < plan_->collapses.size(); ++i) {
    collapses_.emplace_back(plan_->collapses[i].map,
                            Exchange<T>(*communicator_,
                                        plan_->collapses[i].messages,
                                        edge_tag(*network_, plan_->exchanges.size() + i),
                                        &parameters_.transfers()));
  }
}

template <class T>
template <class Cell>
View<Cell> Execution<T>::view_at(const partitioner::MemorySlot& slot, const Region& region) {
  if (slot.bytes == 0) {
    return {};
  }
  auto* cells = reinterpret_cast<Cell*>(activations_.data() + slot.offset);
  return {cells, region, partitioner::channel_block(region.channels.size())};
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
  const auto own = static_cast<std::size_t>(rank());
  const bool everyone = plan_->reader == partitioner::kEveryRank;
  return value_view(everyone ? plan_->read_from[own][0][0] : plan_->producer(rank(), kImage));
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
View<const Winner> Execution<T>::winners(int layer) {
  return view_at<Winner>(arena_.winners[static_cast<std::size_t>(layer)],
                         plan_->tile(layer, rank()).computed);
}

template <class T>
LayerViews<T> Execution<T>::make_views(int layer, Stage stage) {
  const auto at = static_cast<std::size_t>(layer);
  const int pool = arena_.joined_pool[at];
  const int result = pool == partitioner::kNoLayer ? layer : pool;
  const int winning =
      arena_.winning_pool[at] == partitioner::kNoLayer ? result : arena_.winning_pool[at];
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
  views.sums = view_at<T>(now(arena_.sums, arena_.recomputed_sums, layer), computed);
  views.sum_gradients = view_at<T>(arena_.sum_gradients[at], computed);
  views.winners = view_at<Winner>(now(arena_.winners, arena_.recomputed_winners, winning),
                                  plan_->tile(winning, rank()).computed);
  views.parameters = parameters_.views(layer);
  views.workspace = workspace_.data();
  views.first_gradients = this->at(layer).assigns_input_gradients() &&
                          begins_gradient(layer, gradient_time(*network_, layer) + 1);
  views.norm = norms_[at] == nullptr ? nullptr : &norms_[at]->state;
  return views;
}

namespace {

// Sets the cells of a buffer that lie outside the map, or beside it, to 0.
template <class T>
void clear_frame(const View<T>& view, const Region& map) {
  const Region& all = view.region;
  const auto clear = [&](const Range& rows, const Range& cols) {
    set_zero(view, Region{all.images, all.channels, rows, cols});
  };
  const Range rows = intersect(all.rows, map.rows);
  const Range cols = intersect(all.cols, map.cols);
  if (rows.empty() || cols.empty()) {
    clear(all.rows, all.cols);
    return;
  }
  clear({all.rows.begin, rows.begin}, all.cols);
  clear({rows.end, all.rows.end}, all.cols);
  clear(rows, {all.cols.begin, cols.begin});
  clear(rows, {cols.end, all.cols.end});
}

}  // namespace

// Memory changes hands: what is needed from this time on finds what something else has left.
template <class T>
void Execution<T>::clear_frames(int time) {
  const auto& buffers = plan_->buffers[static_cast<std::size_t>(rank())];
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (const partitioner::MemorySlot* slot :
         {&arena_.values[i], &arena_.recomputed[i], &arena_.restored[i]}) {
      if (slot->bytes > 0 && slot->from == time) {
        clear_frame(view_at<T>(*slot, buffers[i].region),
                    whole_map(*network_, buffers[i].map, plan_->batch));
      }
    }
  }
}

template <class T>
void Execution<T>::restore_values(int time) {
  const auto own = static_cast<std::size_t>(rank());
  for (std::size_t i = 0; i < arena_.restored.size(); ++i) {
    if (arena_.restored[i].bytes > 0 && arena_.restored[i].from == time) {
      const int layer = plan_->buffers[own][i].map;
      at(layer).restore(views(layer, Stage::Backward));
    }
  }
}

// Computes the group's maps and sums again as far as its backward pass wants them.
template <class T>
void Execution<T>::recompute(const partitioner::LayerRun& group, const Pass& pass) {
  for (int layer = group.first; layer <= group.last; ++layer) {
    if (arena_.again[static_cast<std::size_t>(layer)].runs) {
      clock_.start(layer, &PassSeconds::backward_s);
      const int time = recompute_time(*network_, group.last, layer);
      clear_frames(time);
      restore_values(time);
      const LayerViews<T>& again = views(layer, Stage::Again);
      at(layer).forward(pass, again, {plan_->tile(layer, rank()).computed});
      if (again.output.data != nullptr) {
        at(layer).restore(again);
      }
    }
  }
}

// The exchanges of `layer`'s inputs whose parts are numbered from `first` on and below `end`.
template <class T>
void Execution<T>::finish_inputs(int layer, int first, int end) {
  for (Edge& edge : edges_) {
    const int part = edge.plan->part;
    if (edge.first_reader == layer && edge.by_message && part >= first && part < end) {
      edge.exchange.finish_copy(value_view(edge.required_buffer));
    }
  }
}

// The layer's pre-activations, or its map: parts of the tile as soon as what they read is there.
template <class T>
void Execution<T>::compute_parts(int layer, const Pass& pass) {
  const auto& parts = layer_plan(layer).forward_parts;
  const partitioner::Tile& tile = plan_->tile(layer, rank());
  LayerViews<T>& of = views(layer, Stage::Forward);
  of.has_prepared_filters = layer_plan(layer).prepares_filters && at(layer).prepare(of);
  int there = 0;
  for (const partitioner::TilePart& part : parts) {
    finish_inputs(layer, there, part.awaits);
    there = std::max(there, part.awaits);
    at(layer).forward(pass, of, part);
  }
  finish_inputs(layer, there, kAllExchanges);
  if (parts.empty()) {
    at(layer).forward(pass, of, {tile.computed});
  }
}

// What the layer's batch statistics are put together of.
template <class T>
void Execution<T>::take_statistics(int layer, const Pass& pass) {
  LayerViews<T>& of = views(layer, Stage::Forward);
  Norm& norm = *norms_[static_cast<std::size_t>(layer)];
  at(layer).statistics(of);
  if (pass.batch_norm == BatchNormMode::Sync) {
    norm.moments.start(norm.state.moments);
    norm.moments.finish();
  } else {
    norm.moments.keep(norm.state.moments);
  }
  of.shares = norm.moments.all();
}

template <class T>
void Execution<T>::forward(const Pass& pass) {
  const auto start = [&](int produced) {
    for (Edge& edge : edges_) {
      if (edge.plan->map == produced && edge.by_message) {
        edge.exchange.start_copy(value_view(edge.owned_buffer));
      }
    }
  };
  clear_frames(kImage);
  start(kImage);
  for (int layer = 0; layer < network_->size(); ++layer) {
    clock_.start(layer, &PassSeconds::forward_s);
    clear_frames(layer);
    LayerViews<T>& of = views(layer, Stage::Forward);
    of.shares = {};
    const bool has_statistics = of.norm != nullptr && takes_statistics(pass);
    parameters_.finish_sharing(layer);
    if (has_statistics) {
      at(layer).begin_statistics(of);
    }
    compute_parts(layer, pass);
    if (has_statistics) {
      take_statistics(layer, pass);
    }
    at(layer).activate(of);
    start(layer);
    look_after_sends();
  }
  clock_.stop();
  finish_sends();
}

template <class T>
template <class Visit>
void Execution<T>::for_each_exchange(Visit visit) {
  for (Edge& edge : edges_) {
    visit(edge.exchange);
  }
  for (auto& [map, exchange] : collapses_) {
    visit(exchange);
  }
}

template <class T>
void Execution<T>::look_after_sends() {
  for_each_exchange([](Exchange<T>& exchange) { exchange.look_after_sends(); });
}

template <class T>
void Execution<T>::finish_sends() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  for_each_exchange([](Exchange<T>& exchange) { exchange.finish_sends(); });
}

template <class T>
void Execution<T>::clear_gradients(int time) {
  for (const partitioner::MemorySlot& slot : arena_.gradients) {
    if (slot.from == time) {
      std::fill_n(activations_.data() + slot.offset, slot.bytes, std::byte{});
    }
  }
}

// Whether the gradient of the layer's only input is needed from this time on.
template <class T>
bool Execution<T>::begins_gradient(int layer, int time) const {
  const int buffer =
      plan_->read_from[static_cast<std::size_t>(rank())][static_cast<std::size_t>(layer)][0];
  return buffer != kNoBuffer && arena_.gradients[static_cast<std::size_t>(buffer)].from == time;
}

template <class T>
void Execution<T>::clear_output_gradient() {
  clear_gradients(network_->size());
}

template <class T>
void Execution<T>::compute_weights(int layer, const std::vector<Region>& parts) {
  const LayerClock::Aside aside(clock_, layer, &PassSeconds::weights_s);
  for (const Region& cells : parts) {
    at(layer).backward_weights(views(layer, Stage::Backward), cells);
  }
}

// The gradients of all weights from layer `complete` to `last` are there now.
template <class T>
void Execution<T>::start_sums(int last, int complete, const Pass& pass) {
  const LayerClock::Aside aside(clock_, last, &PassSeconds::weights_s);
  for (int layer = last; layer >= complete && pass.ends_step; --layer) {
    parameters_.start_sums(layer, pass.batch_norm);
  }
}

// What others have found for the gradient of a map.
template <class T>
void Execution<T>::finish_gradient(int map) {
  for (Edge& edge : edges_) {
    if (edge.plan->map == map && (map != kImage || options_.image_gradient)) {
      edge.exchange.finish_add(gradient_view(edge.owned_buffer));
    }
  }
  for (auto& [collapsed, exchange] : collapses_) {
    if (collapsed == map) {
      exchange.start_add(map_gradient(map));
      exchange.finish_add(map_gradient(map));
    }
  }
}

template <class T>
void Execution<T>::backward(const Pass& pass) {
  int held = partitioner::kNoLayer;
  const auto held_for = [this](int of) {
    return of == partitioner::kNoLayer ? of : plan_->deferred[static_cast<std::size_t>(of)].next;
  };
  for (int layer = network_->size() - 1; layer >= 0; --layer) {
    const auto compute_held = [&] {
      compute_weights(held, layer_plan(held).weight_parts.deferred);
      start_sums(std::exchange(held, partitioner::kNoLayer), layer + 1, pass);
    };
    const int time = gradient_time(*network_, layer);
    const auto& group = groups_[static_cast<std::size_t>(plan_->group(layer))];
    if (layer == group.last) {
      recompute(group, pass);
    }
    clock_.start(layer, &PassSeconds::backward_s);
    clear_gradients(time);
    finish_gradient(layer);
    LayerViews<T>& of = views(layer, Stage::Backward);
    Norm* const norm = norms_[static_cast<std::size_t>(layer)].get();
    const bool sums_over_ranks = norm != nullptr && pass.batch_norm == BatchNormMode::Sync;
    at(layer).backward_activation(of);
    if (sums_over_ranks) {
      norm->gradients.start(norm->state.gradients);
    }
    if (held_for(held) == layer) {
      compute_held();
    }
    if (sums_over_ranks) {
      norm->gradients.finish();
    } else if (norm != nullptr) {
      norm->gradients.keep(norm->state.gradients);
    }
    if (norm != nullptr) {
      of.shares = norm->gradients.all();
      at(layer).backward_normalize(pass, of);
    }
    if (!at(layer).assigns_input_gradients()) {
      clear_gradients(time + 1);
    }
    clear_frames(time + 1);
    restore_values(time + 1);
    at(layer).backward_data(pass, of);
    for (Edge& edge : edges_) {
      if (edge.first_reader == layer && (edge.plan->map != kImage || options_.image_gradient)) {
        edge.exchange.start_add(gradient_view(edge.required_buffer));
      }
    }
    compute_weights(layer, layer_plan(layer).weight_parts.at_once);
    if (held_for(layer) != partitioner::kNoLayer) {
      held = layer;
    } else if (held == partitioner::kNoLayer) {
      start_sums(layer, layer, pass);
    }
    look_after_sends();
  }
  clock_.stop();
  clear_gradients(gradient_time(*network_, kImage));
  finish_gradient(kImage);
  finish_sends();
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
  scatter_whole(*communicator_,
                whole_map(*network_, last, plan_->batch),
                owned_regions(*plan_, last),
                whole,
                output_gradient());
}

template <class T>
double Execution<T>::owned_loss(const std::vector<int>& labels) {
  const int layer = loss_layer(*network_);
  partitioner::expects(layer >= 0, "a network with a loss");
  return engine::owned_loss(site(layer), labels, View<const T>(map(layer)));
}

template <class T>
ExecutionMemory Execution<T>::memory() const {
  ExecutionMemory memory;
  memory.weights = parameters_.value_bytes();
  memory.gradients = parameters_.gradient_bytes();
  memory.messages = parameters_.message_bytes();
  memory.activations = activations_.bytes();
  for (const auto& norm : norms_) {
    memory.messages += norm != nullptr ? norm->moments.bytes() + norm->gradients.bytes() : 0;
  }
  for (const Edge& edge : edges_) {
    memory.messages += edge.exchange.bytes();
  }
  for (const auto& [map, exchange] : collapses_) {
    memory.messages += exchange.bytes();
  }
  memory.workspace = workspace_.bytes();
  return memory;
}

template class Execution<float>;
template class Execution<double>;

}  // namespace tessera::engine
