// Looks at pictures with trained weights: what the network says of each, and what a detector finds
// on it.

#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/batch/augment.h"
#include "engine/data/pictures/captioned_picture.h"
#include "engine/detection/detections.h"
#include "engine/session/session_observer.h"
#include "engine/train/checkpoints/inference.h"
#include "partitioner/search/partition_request.h"

namespace tessera::engine {

struct PredictionRequest {
  std::string model = {};                  // model file; empty: that which the weights have in them
  std::string weights = {};                // weights, a checkpoint, or a run folder: its best ones
  std::vector<std::string> pictures = {};  // each a picture, an IDX file, a list or a folder
  std::string names = {};                  // a file that names classes; empty: as the weights say
  Index batch = 0;                         // 0: some at once, where there are as many
  partitioner::PartitionRequest partition = {};
  // Mean and deviation of pixels; empty: those of the weights, else 0, 1.
  std::vector<float> mean = {};
  std::vector<float> stddev = {};
};

// The network that looks at pictures, before the first of them.
struct Predictor {
  const partitioner::ModelFile& model;
  const std::string& weights;             // the file
  const std::vector<std::string>& names;  // of classes; may be fewer than these
  const std::vector<HeadSite>& heads;     // of a detector, else none
  bool root_reads;                        // whether rank 0 reads pictures
};

struct PredictedPicture {
  std::string name;
  std::vector<std::span<const float>> outputs;  // of each output layer, (C, H, W)
  const Dataset* set;                           // where rank 0 reads pictures, else null
  Index item;                                   // of `set`

  // The picture in at least this detail, where rank 0 reads. Throws InputError.
  [[nodiscard]] Picture read(Detail detail) const { return set->read(item, detail); }
};

struct PredictionObserver {
  SessionObserver messages = {};
  // On every rank, which may throw AgreedError.
  std::function<void(const Predictor& predictor)> begin = {};
  // On rank 0, which may throw InputError. Pictures come in the order in which they were named.
  std::function<void(const PredictedPicture& picture)> picture = {};
  // On rank 0, after the last of them.
  std::function<void()> end = {};
};

// All ranks call it together, with the same request. Pictures that cannot be read are warned of and
// left out; where there were any it ends with an AgreedError that counts them, as it does for
// whatever else is wrong.
void predict(const PredictionRequest& request,
             const Communicator& communicator,
             const PredictionObserver& observer);

// With the name of its class.
struct FoundObject : Detection {
  FoundObject(std::string class_name, const Detection& found)
      : Detection(found), name(std::move(class_name)) {}
  std::string name;
};

// From the outputs of all heads for one picture; the best first. Boxes are in fractions of the
// network's input.
[[nodiscard]] std::vector<FoundObject> found_objects(
    const std::vector<HeadSite>& heads,
    const std::vector<std::span<const float>>& outputs,
    double least_score,
    const std::vector<std::string>& names);

// The object with the highest score, whatever a user asks for; nothing where no score is as high as
// any that tests look at.
[[nodiscard]] std::optional<FoundObject> best_object(
    const std::vector<HeadSite>& heads,
    const std::vector<std::span<const float>>& outputs,
    const std::vector<std::string>& names);

// Changes boxes from fractions of the input to those of the picture, which need not fill the input.
void place_on_picture(std::vector<FoundObject>& objects,
                      const partitioner::MapShape& picture,
                      const RenderingRules& rules);

// To be drawn in this order, the best on top.
[[nodiscard]] std::vector<LabelledBox> labelled_boxes(const std::vector<FoundObject>& objects);

}  // namespace tessera::engine
