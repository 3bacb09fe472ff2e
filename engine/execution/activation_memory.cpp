#include "engine/execution/activation_memory.h"

#include <algorithm>

namespace tessera::engine {

using partitioner::BufferIndex;
using partitioner::kImage;
using partitioner::kNoBuffer;
using partitioner::kNoLayer;
using partitioner::MemorySlot;

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

template <class T>
ActivationMemory<T>::ActivationMemory(const partitioner::Network& network,
                                      const partitioner::Plan& plan,
                                      int rank,
                                      const partitioner::ArenaOptions& options)
    : network_(&network),
      plan_(&plan),
      rank_(rank),
      arena_(activation_arena(network, plan, rank, options)),
      cells_(arena_.bytes) {
  plan_zeroing();
}

template <class T>
void ActivationMemory<T>::plan_zeroing() {
  zeroing_.resize(static_cast<std::size_t>(last_time(*network_) + 2));
  const auto& buffers = plan_->buffers[static_cast<std::size_t>(rank_)];
  for (const BufferIndex i : buffers.indices()) {
    const Region map = whole_map(*network_, buffers[i].map, plan_->batch);
    const bool has_frame = intersect(buffers[i].region, map) != buffers[i].region;
    for (const MemorySlot* slot : {&arena_.values[i], &arena_.recomputed[i], &arena_.restored[i]}) {
      if (slot->bytes > 0 && has_frame) {
        zeroing(slot->from).frames.push_back({view_at<T>(*slot, buffers[i].region), map});
      }
    }
  }
  for (const MemorySlot& slot : arena_.gradients) {
    if (slot.bytes > 0) {
      zeroing(slot.from).gradients.push_back(cells_.span().subspan(
          static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.bytes)));
    }
  }
}

template <class T>
void ActivationMemory<T>::leave_gradients_to(int layer) {
  zeroing(gradient_time(*network_, layer) + 1).gradients.clear();
}

template <class T>
template <class Cell>
View<Cell> ActivationMemory<T>::view_at(const MemorySlot& slot, const Region& region) {
  if (slot.bytes == 0) {
    return {};
  }
  auto* cells = reinterpret_cast<Cell*>(cells_.data() + slot.offset);
  return {cells, region, channel_block(region.channels.size())};
}

// Where `layer` finds the values of a buffer, or puts them. What a recomputed group makes again is
// for its own layers alone.
template <class T>
const MemorySlot& ActivationMemory<T>::value_slot(BufferIndex buffer,
                                                  int layer,
                                                  Stage stage) const {
  const int group = plan_->group(plan_->buffer(rank_, buffer).map);
  const bool comes_back = group == plan_->group(layer) || !plan_->recomputes(group);
  if (stage == Stage::Forward || !comes_back) {
    return arena_.values[buffer];
  }
  const MemorySlot& recomputed = arena_.recomputed[buffer];
  const MemorySlot& restored = arena_.restored[buffer];
  if (recomputed.bytes > 0 && (stage == Stage::Again || restored.bytes == 0)) {
    return recomputed;
  }
  return restored.bytes > 0 ? restored : arena_.values[buffer];
}

template <class T>
View<T> ActivationMemory<T>::values(BufferIndex buffer, int layer, Stage stage) {
  return buffer == kNoBuffer ? View<T>{}
                             : view_at<T>(value_slot(buffer, layer, stage), region_of(buffer));
}

template <class T>
View<T> ActivationMemory<T>::values(BufferIndex buffer) {
  return buffer == kNoBuffer ? View<T>{} : view_at<T>(arena_.values[buffer], region_of(buffer));
}

template <class T>
View<T> ActivationMemory<T>::gradient(BufferIndex buffer) {
  return buffer == kNoBuffer ? View<T>{} : view_at<T>(arena_.gradients[buffer], region_of(buffer));
}

template <class T>
View<T> ActivationMemory<T>::image() {
  return values(image_buffer(*plan_, rank_));
}

template <class T>
View<T> ActivationMemory<T>::map(int map) {
  return values(plan_->producer(rank_, map));
}

template <class T>
View<T> ActivationMemory<T>::map_gradient(int map) {
  return gradient(plan_->producer(rank_, map));
}

template <class T>
View<const ArgmaxOffset> ActivationMemory<T>::argmax(int layer) {
  return view_at<ArgmaxOffset>(arena_.argmax[static_cast<std::size_t>(layer)],
                               plan_->tile(layer, rank_).computed);
}

template <class T>
LayerViews<T> ActivationMemory<T>::views(int layer, Stage stage) {
  const auto at = static_cast<std::size_t>(layer);
  const int pool = arena_.fused_pool[at];
  const int result = pool == kNoLayer ? layer : pool;
  const int argmax_pool = arena_.argmax_pool[at] == kNoLayer ? result : arena_.argmax_pool[at];
  const Region& computed = plan_->tile(layer, rank_).computed;
  const auto now = [&](const auto& first, const auto& recomputed, int number) {
    const auto& again = recomputed[static_cast<std::size_t>(number)];
    return stage != Stage::Forward && again.bytes > 0 ? again
                                                      : first[static_cast<std::size_t>(number)];
  };
  LayerViews<T> views;
  for (const BufferIndex buffer : plan_->read_from[static_cast<std::size_t>(rank_)][at]) {
    views.inputs.push_back(values(buffer, layer, stage));
    views.input_gradients.push_back(gradient(buffer));
  }
  if (stage != Stage::Again || arena_.again[at].output) {
    views.output = values(plan_->producer(rank_, result), layer, stage);
  }
  views.output_gradient = map_gradient(result);
  views.pre_activations =
      view_at<T>(now(arena_.pre_activations, arena_.recomputed_pre_activations, layer), computed);
  views.pre_activation_gradients = view_at<T>(arena_.pre_activation_gradients[at], computed);
  views.argmax = view_at<ArgmaxOffset>(now(arena_.argmax, arena_.recomputed_argmax, argmax_pool),
                                       plan_->tile(argmax_pool, rank_).computed);
  return views;
}

template <class T>
std::vector<bool> ActivationMemory<T>::begun_gradients(int layer) const {
  std::vector<bool> begun;
  for (const BufferIndex buffer :
       plan_->read_from[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(layer)]) {
    begun.push_back(buffer != kNoBuffer &&
                    arena_.gradients[buffer].from == gradient_time(*network_, layer) + 1);
  }
  return begun;
}

template <class T>
bool ActivationMemory<T>::restores(int map, int time) const {
  const auto& buffers = plan_->buffers[static_cast<std::size_t>(rank_)];
  for (const BufferIndex i : buffers.indices()) {
    const MemorySlot& slot = arena_.restored[i];
    if (buffers[i].map == map && slot.bytes > 0 && slot.from == time) {
      return true;
    }
  }
  return false;
}

template <class T>
Index ActivationMemory<T>::count_restored() const {
  return std::count_if(arena_.restored.begin(), arena_.restored.end(), [](const MemorySlot& slot) {
    return slot.bytes > 0;
  });
}

template <class T>
void ActivationMemory<T>::advance(int time) {
  while (time_ < time) {
    const Zeroing& now = zeroing(++time_);
    for (const Frame& frame : now.frames) {
      clear_frame(frame.cells, frame.map);
    }
    for (const std::span<std::byte> gradient : now.gradients) {
      std::fill(gradient.begin(), gradient.end(), std::byte{});
    }
  }
}

template <class T>
void ActivationMemory<T>::clear_output_gradient() {
  for (const std::span<std::byte> gradient : zeroing(network_->size()).gradients) {
    std::fill(gradient.begin(), gradient.end(), std::byte{});
  }
}

template class ActivationMemory<float>;
template class ActivationMemory<double>;

}  // namespace tessera::engine
