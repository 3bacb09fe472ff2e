#include "engine/train/verifying/vector_jacobian.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "engine/comm/agreement.h"
#include "engine/detection/head.h"
#include "engine/execution/execution.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

std::vector<Index> map_shape(const partitioner::Network& network, int map, Index batch) {
  const partitioner::MapShape& shape = network.shape(map);
  return {batch, shape.channels, shape.rows, shape.cols};
}

const NamedTensor& find(const std::string& source,
                        const NamedTensors& in,
                        const std::string& name,
                        const std::vector<Index>& shape) {
  const auto found = in.find(name);
  if (found == in.end()) {
    throw InputError(
        source,
        0,
        fmt::format("tensor '{}' is missing: add it, of shape ({})", name, fmt::join(shape, ", ")));
  }
  if (found->second.shape != shape) {
    throw InputError(source,
                     0,
                     fmt::format("tensor '{}' has shape ({}), for this model it must have ({})",
                                 name,
                                 fmt::join(found->second.shape, ", "),
                                 fmt::join(shape, ", ")));
  }
  return found->second;
}

// Images in the input tensor of rank 0, on all ranks.
Index share_batch(const std::string& source,
                  const NamedTensors& in,
                  const Communicator& communicator) {
  Index batch = 0;
  std::optional<std::string> problem;
  if (communicator.rank() == 0) {
    const auto input = in.find("input");
    if (input == in.end() || input->second.shape.size() != 4 || input->second.shape[0] < 1) {
      problem =
          source + ": there must be a tensor 'input' of shape (N, C, H, W), with N at least 1";
    } else {
      batch = input->second.shape[0];
    }
  }
  throw_agreed(communicator, problem);
  return communicator.share(batch);
}

template <class T>
std::vector<T> converted(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T>
void put(NamedTensors& out,
         const std::string& name,
         std::vector<Index> shape,
         const std::vector<T>& values) {
  out[name] = {std::move(shape), std::vector<double>(values.begin(), values.end())};
}

constexpr const char* kBoxTensor = "boxes";
constexpr Index kBoxNumbers = 5;

bool has_boxes(const NamedTensors& in) {
  return in.find(kBoxTensor) != in.end();
}

void check_boxes(const VectorJacobianOptions& options, const NamedTensor& boxes, Index batch) {
  const std::vector<partitioner::Loss> all = losses(options.network);
  if (all.empty() || std::any_of(all.begin(), all.end(), [](const partitioner::Loss& loss) {
        return loss.form != partitioner::LossForm::Boxes;
      })) {
    throw InputError(options.source,
                     0,
                     "tensor 'boxes' is for networks whose losses are all those of heads "
                     "([yolo], [yolox], [region], [detection]): give 'output_gradient' instead");
  }
  if (boxes.shape.size() != 3 || boxes.shape[0] != batch || boxes.shape[2] != kBoxNumbers) {
    throw InputError(options.source,
                     0,
                     fmt::format("tensor 'boxes' has shape ({}), expected ({}, M, 5): class, x, y, "
                                 "width, height of M boxes of each image",
                                 fmt::join(boxes.shape, ", "),
                                 batch));
  }
}

// The boxes of each image on rank 0, on all ranks.
Targets share_boxes(const NamedTensors& in, Index batch, const Communicator& communicator) {
  const std::vector<double> numbers =
      communicator
          .of_ranks(communicator.rank() == 0 ? in.at(kBoxTensor).values : std::vector<double>())
          .front();
  const auto count = static_cast<Index>(numbers.size());
  Targets targets(static_cast<std::size_t>(batch), ImageTargets{});
  const Index of_image = count / batch;
  for (Index n = 0; n < batch; ++n) {
    for (Index i = 0; i < of_image; i += kBoxNumbers) {
      const double* box = numbers.data() + n * of_image + i;
      if (box[0] < 0) {
        continue;
      }
      targets[static_cast<std::size_t>(n)]->boxes.push_back(
          {static_cast<int>(box[0]), box[1], box[2], box[3], box[4]});
    }
  }
  return targets;
}

// Outputs, deltas and the loss of all heads.
template <class T>
void put_heads(const partitioner::Network& network,
               const Pass& pass,
               Execution<T>& execution,
               NamedTensors& out) {
  const Index batch = execution.plan().batch;
  put(out, "loss", {1}, std::vector<double>{execution.exchange_loss(pass).loss.mean(1)});
  for (const partitioner::Loss& loss : losses(network)) {
    const std::string layer = std::to_string(loss.layer);
    const Region& owned = execution.plan().tile(loss.layer, execution.communicator().rank()).owned;
    Tensor<T> deltas(owned);
    const HeadSite site = head_site(network, loss.layer);
    const double scale = is_assigned(site) ? execution.object_scale() : 1;
    for_each_judged_image(site,
                          {*pass.targets, pass.images_seen, execution.assigned(loss.layer)},
                          owned,
                          View<const T>(execution.map(loss.layer)),
                          [&](const Region& cells, std::vector<double> values) {
                            for (double& value : values) {
                              value *= scale;
                            }
                            const std::vector<T> plain = converted<T>(values);
                            copy_in(plain.data(), cells, deltas.view());
                          });
    put(out,
        "output." + layer,
        map_shape(network, loss.layer, batch),
        execution.gather_map(loss.layer));
    put(out,
        "delta." + layer,
        map_shape(network, loss.layer, batch),
        execution.gather_cells(loss.layer, View<const T>(deltas.view())));
  }
}

// Whether `in` asks for the outputs alone of a network that has several.
bool asks_for_outputs(const partitioner::Network& network, const NamedTensors& in) {
  return !has_boxes(in) && in.find("output_gradient") == in.end() && ends(network).size() > 1;
}

// Checks all tensors on rank 0; what is wrong with them is thrown on all ranks.
void check_tensors(const VectorJacobianOptions& options,
                   const partitioner::Plan& plan,
                   const NamedTensors& in,
                   const Communicator& communicator) {
  throw_agreed(communicator, problem_of([&] {
                 if (communicator.rank() != 0) {
                   return;
                 }
                 (void)find(options.source,
                            in,
                            "input",
                            map_shape(options.network, partitioner::kImage, plan.batch));
                 if (has_boxes(in)) {
                   check_boxes(options, in.at(kBoxTensor), plan.batch);
                 } else if (!asks_for_outputs(options.network, in)) {
                   (void)find(options.source,
                              in,
                              "output_gradient",
                              map_shape(options.network, options.network.size() - 1, plan.batch));
                 }
                 for (const partitioner::ParameterPlan& parameter : plan.parameters) {
                   (void)find(options.source,
                              in,
                              parameter_name(parameter),
                              parameter_shape(options.network, parameter));
                 }
               }));
}

}  // namespace

template <class T>
NamedTensors vector_jacobian_product(const VectorJacobianOptions& options,
                                     const NamedTensors& in,
                                     const Communicator& communicator) {
  const Index batch = share_batch(options.source, in, communicator);
  partitioner::validate(options.partition, options.network, batch, "partition");
  const partitioner::Plan plan = make_plan(options.network, options.partition, batch);
  check_tensors(options, plan, in, communicator);
  const bool root = communicator.rank() == 0;
  const auto whole = [&](const std::string& name) {
    return root ? converted<T>(in.at(name).values) : std::vector<T>{};
  };

  const bool outputs_alone =
      communicator.share(static_cast<int>(asks_for_outputs(options.network, in))) != 0;
  Execution<T> execution(
      options.network,
      plan,
      communicator,
      {.image_gradient = true, .keep_maps = outputs_alone, .norm = options.norm});
  ParameterSet<T>& parameters = execution.parameters();
  for (Parameter<T>& parameter : parameters.all()) {
    parameters.scatter(parameter, whole(parameter_name(*parameter.plan)), parameter.values.data());
  }
  execution.scatter_image(whole("input"));
  Pass pass;
  pass.batch_norm = options.batch_norm;
  pass.dropout = false;
  pass.ends_step = true;
  Targets boxes;
  if (communicator.share(static_cast<int>(has_boxes(in))) != 0) {
    boxes = share_boxes(in, batch, communicator);
    pass.targets = &boxes;
    pass.images_seen = batch;
  }
  execution.forward(pass);
  NamedTensors out;
  if (outputs_alone) {
    for (const int layer : ends(options.network)) {
      put(out,
          fmt::format("output.{}", layer),
          map_shape(options.network, layer, batch),
          execution.gather_map(layer));
    }
    return root ? out : NamedTensors{};
  }
  if (pass.targets != nullptr) {
    put_heads(options.network, pass, execution, out);
  }
  execution.clear_output_gradient();
  if (pass.targets == nullptr) {
    execution.scatter_output_gradient(whole("output_gradient"));
  }
  execution.backward(pass);
  execution.finish_gradients(pass);

  const int last = options.network.size() - 1;
  put(out, "output", map_shape(options.network, last, batch), execution.gather_map(last));
  if (options.network.takes_gradient(partitioner::kImage)) {
    put(out,
        "input_gradient",
        map_shape(options.network, partitioner::kImage, batch),
        execution.gather_gradient(partitioner::kImage));
  }
  for (const Parameter<T>& parameter : parameters.all()) {
    if (parameter.plan->frozen) {
      continue;
    }
    const bool learnt = is_learnt(*parameter.plan);
    put(out,
        parameter_name(*parameter.plan),
        parameter_shape(options.network, *parameter.plan),
        parameters.gather(parameter, learnt ? parameter.gradient.data() : parameter.values.data()));
  }
  return root ? out : NamedTensors{};
}

template NamedTensors vector_jacobian_product<float>(const VectorJacobianOptions&,
                                                     const NamedTensors&,
                                                     const Communicator&);
template NamedTensors vector_jacobian_product<double>(const VectorJacobianOptions&,
                                                      const NamedTensors&,
                                                      const Communicator&);

}  // namespace tessera::engine
