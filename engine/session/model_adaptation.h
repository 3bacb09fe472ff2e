// A model file changed to fit a data set: its classes, its boxes and how much there is to learn
// from.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

struct AdaptationRequest {
  std::string model = {};     // model file
  std::string data = {};      // data set
  std::string size = {};      // of the input, "HxW"; empty: as the model file says
  bool keep_anchors = false;  // else k-means finds new ones for a detector
  bool allow_unlabelled = false;
};

struct AdaptedModel {
  std::string text;                  // of the model file
  std::vector<std::string> changes;  // a line each: where, and from what to what
  std::vector<std::string> notices;  // sentences about what was left as it is
};

// A detector gets the classes of its heads, the outputs before them, anchors for the input's size
// (k-means over the boxes for training), `max_batches` by Bochkovskiy's rule and steps of the
// learning rate at 80 and 90 % of that. A classifier gets the outputs of its last layer. All else,
// comments too, stays. Throws InputError where model or data set cannot be used, or no layer alone
// gives a head its channels.
[[nodiscard]] AdaptedModel adapt_model(const AdaptationRequest& request);

}  // namespace tessera::engine
