#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/train/trainer.h"
#include "engine/train/weights_file.h"

namespace engine {

using partitioner::InputError;

namespace {

// A network with its weights, ready to look at pictures.
class Inference {
 public:
  Inference(const std::string& model,
            const std::string& weights,
            const PartitionChoice& choice,
            Index batch,
            const Communicator& communicator)
      : communicator_(communicator),
        weights_(weights),
        model_(load_model(model, communicator)),
        partition_(agreed_partition(model_.network,
                                    choice,
                                    {.model = model, .batch = batch, .training = false},
                                    communicator)),
        plan_(make_plan(model_.network, partition_, batch)),
        execution_(model_.network,
                   plan_,
                   communicator,
                   {.training = false,
                    .batch_norm_rate = model_.training.batch_norm_rate,
                    .batch_norm_epsilon = model_.training.batch_norm_epsilon}) {
    warn_of_idle_ranks(partition_, communicator);
    stored_ = stored_preparation(weights, communicator);
    load_weights(weights,
                 model_.network,
                 model_.training.batch_norm_epsilon,
                 execution_.parameters(),
                 communicator);
  }

  template <class Open>
  [[nodiscard]] Feed feed(const std::string& name, const PixelConvention& convention, Open open) {
    const RenderingRules rules =
        rules_for_weights(weights_, stored_, model_, convention, communicator_);
    auto source = agreed(communicator_, [&]() -> std::optional<BatchSource> {
      if (!Feed::reads(plan_, communicator_.rank())) {
        return std::nullopt;
      }
      BatchOptions options{rules, plan_.batch, 0, Split::Test};
      return std::optional<BatchSource>(
          std::in_place, open(model_.network.image.channels), options, name);
    });
    return Feed(std::move(source), plan_, communicator_);
  }

  // Accuracy means nothing where an output is another class here than in training.
  void expect_its_classes(const Feed& feed, const std::string& data) const {
    const Preparation now = preparation_of(rendering_rules(model_), feed.class_names());
    if (const auto difference = stored_ ? class_difference(*stored_, now) : std::nullopt) {
      throw AgreedError(
          fmt::format("{}: {} {}: give the data set that it was trained on, or one "
                      "with the same classes in the same order",
                      data,
                      weights_,
                      *difference));
    }
  }

  // The names of outputs that the weights' file keeps; may be none.
  [[nodiscard]] std::vector<std::string> class_names() const {
    return stored_ ? stored_->class_names : std::vector<std::string>();
  }

  [[nodiscard]] Execution<float>& execution() { return execution_; }
  [[nodiscard]] const partitioner::ModelFile& model() const { return model_; }

 private:
  const Communicator& communicator_;
  std::string weights_;
  partitioner::ModelFile model_;
  partitioner::Partition partition_;
  partitioner::Plan plan_;
  Execution<float> execution_;
  std::optional<Preparation> stored_;  // of training, as the weights' file keeps it
};

constexpr Index kBatch = 32;  // images looked at together, where the user does not say

}  // namespace

void run_eval(const EvalCommand& command, const Communicator& communicator) {
  Inference inference(command.model,
                      command.weights,
                      command.partition,
                      command.batch > 0 ? command.batch : kBatch,
                      communicator);
  if (loss_layer(inference.model().network) < 0) {
    throw AgreedError(command.model + ": the network has no [softmax] or [cost] to judge by");
  }
  Feed feed =
      inference.feed(command.model, {command.mean, command.stddev}, [&](Index /*channels*/) {
        return open_labelled(command.data, Split::Test, inference.model().network, command.model);
      });
  inference.expect_its_classes(feed, command.data);
  const EvaluationResult result = evaluate(inference.execution(), feed);
  if (communicator.rank() != 0) {
    return;
  }
  if (command.json) {
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{
            {"accuracy", result.accuracy}, {"loss", result.loss}, {"pictures", result.pictures}}
            .dump());
  } else {
    fmt::print("accuracy {:.2f} %, loss {:.4f}, {} pictures\n",
               100 * result.accuracy,
               result.loss,
               result.pictures);
  }
}

namespace {

std::vector<std::string> read_names(const std::string& path) {
  std::vector<std::string> names;
  if (path.empty()) {
    return names;
  }
  std::ifstream file(path);
  if (!file) {
    throw InputError(
        path, 0, "cannot be read: --names takes a text file with the name of a class a line");
  }
  for (std::string line; std::getline(file, line);) {
    names.push_back(line);
  }
  return names;
}

void print_predictions(const PredictCommand& command,
                       const std::string& picture,
                       std::span<const float> output,
                       const std::vector<std::string>& names) {
  std::vector<std::size_t> order(output.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return output[a] > output[b];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(command.top)));
  const auto name = [&](std::size_t i) {
    return i < names.size() ? names[i] : fmt::format("class {}", i);
  };
  if (command.json) {
    nlohmann::ordered_json json{{"picture", picture},
                                {"predictions", nlohmann::ordered_json::array()}};
    for (const std::size_t i : order) {
      json["predictions"].push_back({{"class", i}, {"name", name(i)}, {"value", output[i]}});
    }
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{}\n", picture);
  for (const std::size_t i : order) {
    fmt::print("  {:6.2f} %  {}\n", 100 * static_cast<double>(output[i]), name(i));
  }
}

}  // namespace

void run_predict(const PredictCommand& command, const Communicator& communicator) {
  std::vector<std::string> names = agreed(communicator, [&] { return read_names(command.names); });
  Inference inference(command.model, command.weights, command.partition, 1, communicator);
  if (command.names.empty()) {
    names = inference.class_names();
  }
  std::vector<std::string> pictures;
  Feed feed = inference.feed(command.model, {command.mean, command.stddev}, [&](Index channels) {
    Dataset dataset = open_pictures(command.pictures, channels);
    for (Index item = 0; item < dataset.size(); ++item) {
      pictures.push_back(dataset.name(item));
    }
    return dataset;
  });
  Pass pass;
  pass.training = false;
  const Index count = feed.size();
  for (Index picture = 0; picture < count; ++picture) {
    throw_agreed(communicator, feed.load(picture, inference.execution()));
    inference.execution().forward(pass);
    const std::vector<float> output =
        inference.execution().gather_map(inference.model().network.size() - 1);
    if (communicator.rank() == 0) {
      const auto at = static_cast<std::size_t>(picture);
      print_predictions(command,
                        at < pictures.size() ? pictures[at] : fmt::format("picture {}", picture),
                        output,
                        names);
    }
  }
}

}  // namespace engine
