// A network with its weights on all ranks, ready to look at pictures. All ranks call everything
// here together; errors are AgreedErrors.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/agreement.h"
#include "engine/execution/execution.h"
#include "engine/train/checkpoints/preparation.h"
#include "engine/train/data_loader.h"
#include "engine/train/metrics/metric.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

class Inference {
 public:
  // Looks at `batch` images at a time. The weights are read from a file; `model_path` is for
  // messages.
  Inference(partitioner::ModelFile model,
            const std::string& model_path,
            const std::string& weights,
            const partitioner::Partition& partition,
            Index batch,
            const Communicator& communicator);

  // `open` makes the data set on ranks that read; it may throw InputError.
  template <class Open>
  [[nodiscard]] DataLoader loader(BatchOptions options, Open open) {
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!reads()) {
        return std::nullopt;
      }
      options.batch = plan_.batch;
      options.split = Split::Test;
      return std::optional<BatchSource>(std::in_place, open(), options, model_path_);
    });
    return DataLoader(std::move(source), plan_, communicator_);
  }

  // Accuracy means nothing where an output is another class here than in training: AgreedError.
  void expect_its_classes(const DataLoader& loader, const std::string& data) const;

  // What output_layers() say of pass `step` of the loader, (N, C, H, W) each on rank 0, empty
  // elsewhere.
  [[nodiscard]] Outputs outputs(DataLoader& loader, Index step);

  // How pictures were prepared in training, where the weights' file says it.
  [[nodiscard]] const std::optional<Preparation>& stored() const { return stored_; }

  // The names of outputs that the weights' file keeps; may be none.
  [[nodiscard]] std::vector<std::string> class_names() const {
    return stored_ ? stored_->class_names : std::vector<std::string>();
  }

  // Whether this rank reads pictures.
  [[nodiscard]] bool reads() const { return DataLoader::reads(plan_, communicator_.rank()); }
  [[nodiscard]] Execution<float>& execution() { return execution_; }
  [[nodiscard]] const partitioner::ModelFile& model() const { return model_; }

 private:
  const Communicator& communicator_;
  std::string model_path_;
  std::string weights_;
  partitioner::ModelFile model_;
  partitioner::Plan plan_;
  Execution<float> execution_;
  std::optional<Preparation> stored_;  // of training, as the weights' file keeps it
};

}  // namespace tessera::engine
