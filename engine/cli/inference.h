// A network with its weights on all ranks, ready to look at pictures: what `eval` and `predict`
// have in common. All ranks call everything here together; errors are AgreedErrors.

#pragma once

#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "engine/cli/data_needs.h"
#include "engine/comm/agreement.h"
#include "engine/execution/execution.h"
#include "engine/train/feed.h"
#include "engine/train/preparation.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

class Inference {
 public:
  // `batch` images at a time; `needs` are those of the pictures, where they are known.
  Inference(partitioner::ModelFile model,
            const std::string& model_path,
            const std::string& weights,
            const PartitionChoice& choice,
            Index batch,
            const DataNeeds& needs,
            const Communicator& communicator);

  // How pictures become inputs: as in training, but for what the command line gives.
  [[nodiscard]] RenderingRules rules(const PixelConvention& given) const;

  // `open` makes the data set on ranks that read; it may throw InputError.
  template <class Open>
  [[nodiscard]] Feed feed(BatchOptions options, Open open) {
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!reads()) {
        return std::nullopt;
      }
      options.batch = plan_.batch;
      options.split = Split::Test;
      return std::optional<BatchSource>(std::in_place, open(), options, model_path_);
    });
    return Feed(std::move(source), plan_, communicator_);
  }

  // Accuracy means nothing where an output is another class here than in training: AgreedError.
  void expect_its_classes(const Feed& feed, const std::string& data) const;

  // The names of outputs that the weights' file keeps; may be none.
  [[nodiscard]] std::vector<std::string> class_names() const {
    return stored_ ? stored_->class_names : std::vector<std::string>();
  }

  // Whether this rank reads pictures.
  [[nodiscard]] bool reads() const { return Feed::reads(plan_, communicator_.rank()); }
  [[nodiscard]] Execution<float>& execution() { return execution_; }
  [[nodiscard]] const partitioner::ModelFile& model() const { return model_; }

 private:
  const Communicator& communicator_;
  std::string model_path_;
  std::string weights_;
  partitioner::ModelFile model_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;
  Execution<float> execution_;
  std::optional<Preparation> stored_;  // of training, as the weights' file keeps it
};

}  // namespace tessera::engine
