// What turns the outputs of a network and the targets of their images into numbers.

#pragma once

#include <string>
#include <vector>

#include "engine/base/targets.h"

namespace tessera::engine {

struct MetricValue {
  std::string name;  // as files have it, such as "accuracy"
  double value = 0;
  bool larger_is_better = true;
  bool is_share = true;  // of 1: shown in per cent
  friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

// For people: "accuracy 84.57 %"; "no map50" where it is NaN.
[[nodiscard]] std::string described(const MetricValue& value);

// Of the judged layers of a network, see output_layers(): values of the images of a batch in (N, C,
// H, W) order.
using Outputs = std::vector<std::vector<float>>;

class Metric {
 public:
  virtual ~Metric() = default;

  // Forgets all that it has seen.
  virtual void clear() = 0;

  // A batch: its outputs, and what is to be said of them. Places without a picture do not count.
  virtual void accumulate(const Outputs& outputs, const Targets& targets) = 0;

  // Adds what another metric of the same kind has seen, of other images.
  virtual void merge(const Metric& other) = 0;

  // The values for all images so far; NaN if there were none. The first says which of two networks
  // is better; there are as many, by the same names, whatever was seen.
  [[nodiscard]] virtual std::vector<MetricValue> result() const = 0;
};

}  // namespace tessera::engine
