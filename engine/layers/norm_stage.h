// What follows the sums of a convolutional or connected layer: normalisation, if it has one,
// activation, and the max-pool that is joined with them.

#pragma once

#include <optional>

#include "engine/comm/channel_sums.h"
#include "engine/layers/layer.h"
#include "engine/ops/norm/joined_pool.h"

namespace tessera::engine {

template <class T>
class NormStage {
 public:
  NormStage(const Site& site, bool normalize, Activation activation);

  // The view that the layer's sums go to: the output itself where nothing is between them.
  [[nodiscard]] View<T> sums(const LayerMaps<T>& maps) const {
    return maps.sums.data != nullptr ? maps.sums : maps.output;
  }

  // What takes in the lines of the sums for their statistics as they come to be; nothing where
  // these are not needed.
  [[nodiscard]] std::optional<LineMoments<T>> line_moments(const Pass& pass,
                                                           const LayerMaps<T>& maps) const;

  // Turns sums into the output, on tile().computed. Without line_moments(), takes the statistics
  // itself.
  void forward(const Pass& pass,
               const LayerMaps<T>& maps,
               const std::optional<LineMoments<T>>& moments = {});

  // Does so again, with the statistics of the last forward pass.
  void restore(const LayerMaps<T>& maps);
  // The same where there is an output to turn them into.
  void recompute(const LayerMaps<T>& maps) {
    if (maps.output.data != nullptr && !site_.tile().computed.empty()) {
      restore(maps);
    }
  }

  // Turns the gradient of the output into that of the sums, on tile().backward; of a joined pool
  // behind an activation into that of its winners, and of the sums where these have a place. Adds
  // to the gradients of bias (shift) and scale.
  void backward(const Pass& pass, const LayerMaps<T>& maps);

  // The first half of backward(), where the stage normalises: all but the gradient of the sums.
  void backward_statistics(const Pass& pass, const LayerMaps<T>& maps);
  // The second half: calls visit(gradient), which makes that gradient out of the sums.
  template <class Visit>
  void with_sum_gradients(const LayerMaps<T>& maps, Visit visit) const {
    const GradientLines<T> lines = output_gradients(maps);
    visit(NormalizedGradient<T>(
        maps.sums, site_.tile().backward, normalization(maps), through_statistics(), lines));
  }

  // Where the gradient of the sums is then.
  [[nodiscard]] View<const T> sum_gradients(const LayerMaps<T>& maps) const {
    return maps.sum_gradients.data != nullptr ? maps.sum_gradients : maps.output_gradient;
  }

  // The same by the winners of the winning pool, without normalisation.
  [[nodiscard]] WonGradient<T> won_gradient(const LayerMaps<T>& maps) const {
    return {pool_site(&partitioner::Tile::backward),
            has_pool() ? maps.output_gradient : sum_gradients(maps),
            maps.winners,
            has_pool() ? GradientOf::Windows : GradientOf::Cells};
  }

  [[nodiscard]] Index message_bytes() const;

 private:
  void update_statistics(const Pass& pass,
                         const LayerMaps<T>& maps,
                         const std::optional<LineMoments<T>>& moments);
  [[nodiscard]] bool takes_statistics(const Pass& pass) const;
  void backward_activation(const LayerMaps<T>& maps);
  [[nodiscard]] GradientLines<T> output_gradients(const LayerMaps<T>& maps) const;
  [[nodiscard]] std::vector<NormGradient> sum_over_ranks(const Pass& pass,
                                                         const std::vector<NormGradient>& mine,
                                                         const std::function<void()>& meanwhile);
  [[nodiscard]] PoolSite pool_site(Region partitioner::Tile::*region) const;
  [[nodiscard]] bool has_pool() const { return site_.joined_pool != partitioner::kNoLayer; }
  std::vector<Moments> over_ranks(const Pass& pass, const std::vector<Moments>& owned);
  [[nodiscard]] double statistics_cells(const Pass& pass) const;
  [[nodiscard]] Normalization<T> normalization(const LayerMaps<T>& maps) const;
  [[nodiscard]] StatisticsGradient through_statistics() const {
    return {totals_, backward_cells_, site_.tile().owned};
  }

  Site site_;
  bool normalize_;
  Activation activation_;
  std::vector<ChannelNorm<T>> norms_;  // of the channels of tile().computed
  // Of the last backward_statistics().
  std::vector<NormGradient> totals_;
  double backward_cells_ = 0;
  std::optional<ChannelSums> moment_sums_;
  std::optional<ChannelSums> gradient_sums_;
};

}  // namespace tessera::engine
