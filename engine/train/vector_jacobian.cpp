#include "engine/train/vector_jacobian.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "engine/comm/agreement.h"
#include "engine/execution/execution.h"
#include "partitioner/base/errors.h"

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
                 (void)find(options.source,
                            in,
                            "output_gradient",
                            map_shape(options.network, options.network.size() - 1, plan.batch));
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

  Execution<T> execution(options.network,
                         plan,
                         communicator,
                         {.image_gradient = true,
                          .batch_norm_rate = options.rate,
                          .batch_norm_epsilon = options.epsilon});
  ParameterSet<T>& parameters = execution.parameters();
  for (Parameter<T>& parameter : parameters.all()) {
    parameters.scatter(parameter, whole(parameter_name(*parameter.plan)), parameter.values.data());
  }
  execution.scatter_image(whole("input"));
  Pass pass;
  pass.batch_norm = options.batch_norm;
  pass.dropout = false;
  pass.ends_step = true;
  execution.forward(pass);
  execution.clear_output_gradient();
  execution.scatter_output_gradient(whole("output_gradient"));
  execution.backward(pass);
  execution.finish_gradients(pass);

  NamedTensors out;
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
