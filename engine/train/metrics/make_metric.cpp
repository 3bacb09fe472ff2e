#include "engine/train/metrics/make_metric.h"

#include "engine/train/metrics/classification_metrics.h"
#include "engine/train/metrics/detection_metrics.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

std::unique_ptr<Metric> make_metric(const partitioner::Network& network) {
  if (is_detector(network)) {
    return std::make_unique<DetectionMetrics>(network);
  }
  return std::make_unique<ClassificationMetrics>(class_metric(network));
}

MetricValue score_of(const partitioner::Network& network) {
  return make_metric(network)->result().front();
}

std::string score_name(const partitioner::Network& network) {
  return score_of(network).name;
}

Index judging_bytes(const partitioner::Network& network, Index images, Index pictures) {
  Index values = 0;
  for (const int layer : output_layers(network)) {
    values += network.shape(layer).volume();
  }
  // Gathered, and as they came.
  const Index outputs = 2 * images * values * static_cast<Index>(sizeof(float));
  return outputs + (is_detector(network) ? DetectionMetrics::most_bytes(network, pictures) : 0);
}

}  // namespace tessera::engine
