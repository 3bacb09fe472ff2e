#include <fmt/format.h>
#include <memory>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/session/data_setup.h"
#include "engine/session/model_setup.h"
#include "engine/session/planning.h"
#include "engine/train/checkpoints/inference.h"
#include "engine/train/classification_report.h"
#include "engine/train/detection_report.h"
#include "engine/train/evaluation.h"
#include "engine/train/metrics/make_metric.h"

namespace tessera::engine {

namespace {

constexpr Index kEvaluationBatch = 32;  // images looked at together, where the user does not say

void print_evaluation(const EvaluationResult& result, const std::vector<std::string>& names) {
  fmt::print(
      "{}, loss {:.4f}, {} pictures\n", described(result.score()), result.loss, result.pictures);
  if (const auto* objects = dynamic_cast<const DetectionMetrics*>(result.metric)) {
    fmt::print("\n{}", detection_table(*objects, names));
    return;
  }
  const auto& classes = dynamic_cast<const ClassificationMetrics&>(*result.metric);
  if (classes.classes() > 5) {
    fmt::print("top-5 accuracy {:.2f} %\n", 100 * classes.top5());
  }
  fmt::print("\n{}", classification_table(classes, names));
}

ListedData listed_data(const EvalCommand& command,
                       const partitioner::Network& network,
                       bool reads,
                       const Communicator& communicator) {
  return ListedData({.path = command.data,
                     .model = command.model,
                     .testing = true,
                     .skip_broken = command.skip_broken,
                     .allow_unlabelled = command.allow_unlabelled},
                    network,
                    reads,
                    communicator,
                    printed_messages());
}

}  // namespace

void run_eval(const EvalCommand& asked, const Communicator& communicator) {
  EvalCommand command = asked;
  command.weights = weights_file(asked.weights, communicator);
  command.model = model_or_that_of(command.weights, asked.model);
  const SessionObserver& messages = printed_messages();
  const partitioner::ModelFile model = load_model(command.model, communicator, messages);
  if (losses(model.network).empty()) {
    throw AgreedError(command.model +
                      ": the network has no [softmax], [cost] or head of a detector to evaluate");
  }
  std::optional<ListedData> pictures;
  DataNeeds needs;
  if (const auto reads = reads_before_search(command.partition, communicator)) {
    pictures.emplace(listed_data(command, model.network, *reads, communicator));
    needs = pictures->needs(rendering_rules(model));
    expect_data_fits(needs, command.partition.memory_limit_bytes.value_or(0));
  }
  const Index batch = command.batch > 0 ? command.batch : kEvaluationBatch;
  const partitioner::Partition partition = agreed_partition(
      model.network,
      command.partition,
      {.model = command.model,
       .batch = batch,
       .training = false,
       .decoding_bytes = needs.decoding_bytes,
       .data_bytes = needs.data_bytes,
       .judging_bytes = judging_bytes(model.network, batch, needs.tested_pictures)},
      communicator,
      messages);
  warn_of_idle_ranks(partition, communicator, messages);
  Inference inference(model, command.model, command.weights, partition, batch, communicator);
  warn_of_other_network(command.weights, model, communicator, messages);
  if (!pictures) {
    pictures.emplace(listed_data(command, model.network, inference.reads(), communicator));
  }
  BatchOptions options;
  options.rules = rules_for_weights(command.weights,
                                    inference.stored(),
                                    model,
                                    {command.mean, command.stddev},
                                    communicator,
                                    messages);
  // Under a limit one picture at a time is what a partition is chosen by.
  const Index memory_bytes =
      command.partition.memory_limit_bytes ? 0 : memory_to_look(communicator.size());
  OpenedData data = std::move(*pictures).open(memory_bytes);
  DataLoader loader = inference.loader(options, [&] { return std::move(*data.testing); });
  inference.expect_its_classes(loader, command.data);
  const std::unique_ptr<Metric> metric = make_metric(model.network);
  const EvaluationResult result = evaluate(inference.execution(), loader, *metric);
  const std::vector<std::string> names = loader.class_names();
  if (communicator.rank() != 0) {
    return;
  }
  if (command.json) {
    fmt::print("{}\n", json_text(evaluation_json(result, names)));
  } else {
    print_evaluation(result, names);
  }
}

}  // namespace tessera::engine
