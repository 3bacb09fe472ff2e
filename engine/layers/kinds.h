// The layers, one file each; make_layer picks. Only files of this folder include this.

#pragma once

#include "engine/layers/layer.h"

namespace tessera::engine {

using partitioner::TilePart;

template <class T>
std::unique_ptr<Layer<T>> make_convolutional(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_deconvolutional(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_max_pool(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_channel_pool(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_average_pool(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_connected(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_local(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_dropout(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_softmax(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_cost(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_shortcut(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_product(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_route(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_upsample(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_reorg(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_space_to_depth(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_channel_shuffle(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_crop(const Site& site);
template <class T>
std::unique_ptr<Layer<T>> make_detector_head(const Site& site);

// Adds factor * pass.loss_scale * (output - target) on the owned cells: the gradient of half the
// squared error, and of cross-entropy through the softmax whose values are `output`.
template <class T>
void add_loss_gradient(
    const Site& site, const Pass& pass, double factor, View<const T> output, View<T> gradient);

// Subtracts pass.loss_scale (object_scale, where objects are assigned) times the deltas of a head,
// on the owned cells of images with targets.
template <class T>
void add_head_gradient(const Site& site,
                       const Pass& pass,
                       const HeadAssignment* assigned,
                       View<const T> output,
                       View<T> gradient);

}  // namespace tessera::engine
