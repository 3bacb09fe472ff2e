#include "bench/kernels/onednn_convolution.h"

#include <dnnl.hpp>
#include <fmt/format.h>
#include <optional>
#include <unordered_map>

namespace tessera::bench {

namespace {

const dnnl::engine& processor() {
  static const dnnl::engine first(dnnl::engine::kind::cpu, 0);
  return first;
}

dnnl::algorithm algorithm_of(OnednnAlgorithm algorithm) {
  return algorithm == OnednnAlgorithm::Direct ? dnnl::algorithm::convolution_direct
                                              : dnnl::algorithm::convolution_winograd;
}

// Shapes of the three tensors; weights of grouped convolutions are (groups, K/groups, C/groups, F,
// F).
struct Shapes {
  dnnl::memory::dims input;
  dnnl::memory::dims weight;
  dnnl::memory::dims output;
  dnnl::memory::dims strides;
  dnnl::memory::dims padding;
};

Shapes shapes_of(const ConvolutionCase& convolution) {
  const engine::ConvolutionShape& shape = convolution.shape;
  Shapes shapes{
      {convolution.batch, shape.channels, convolution.input.rows, convolution.input.cols},
      {shape.group_filters(), shape.group_channels(), shape.size.rows, shape.size.cols},
      {convolution.batch, shape.filters, convolution.output.rows, convolution.output.cols},
      {shape.stride.rows, shape.stride.cols},
      {shape.padding.rows, shape.padding.cols}};
  if (shape.groups > 1) {
    shapes.weight.insert(shapes.weight.begin(), shape.groups);
  }
  return shapes;
}

dnnl::memory::desc any_layout(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

dnnl::memory::desc plain_layout(const dnnl::memory::dims& dims) {
  using Tag = dnnl::memory::format_tag;
  return {dims, dnnl::memory::data_type::f32, dims.size() == 5 ? Tag::abcde : Tag::abcd};
}

dnnl::convolution_forward::primitive_desc forward_description(const Shapes& shapes,
                                                              dnnl::algorithm algorithm) {
  return {{dnnl::prop_kind::forward_training,
           algorithm,
           any_layout(shapes.input),
           any_layout(shapes.weight),
           any_layout(shapes.output),
           shapes.strides,
           shapes.padding,
           shapes.padding},
          processor()};
}

dnnl::convolution_backward_data::primitive_desc data_description(const Shapes& shapes,
                                                                 dnnl::algorithm algorithm) {
  return {{algorithm,
           any_layout(shapes.input),
           any_layout(shapes.weight),
           any_layout(shapes.output),
           shapes.strides,
           shapes.padding,
           shapes.padding},
          processor(),
          forward_description(shapes, algorithm)};
}

dnnl::convolution_backward_weights::primitive_desc weights_description(const Shapes& shapes,
                                                                       dnnl::algorithm algorithm) {
  return {{algorithm,
           any_layout(shapes.input),
           any_layout(shapes.weight),
           any_layout(shapes.output),
           shapes.strides,
           shapes.padding,
           shapes.padding},
          processor(),
          forward_description(shapes, algorithm)};
}

// A pass ready to run, whichever it is.
struct Program {
  dnnl::primitive primitive;
  dnnl::memory input;
  dnnl::memory weight;
  dnnl::memory output;
  std::unordered_map<int, dnnl::memory> arguments;
};

Program make_program(const Shapes& shapes, Pass pass, dnnl::algorithm algorithm) {
  const auto in = [](const dnnl::memory::desc& layout) {
    return dnnl::memory(layout, processor());
  };
  if (pass == Pass::Forward) {
    const auto made = forward_description(shapes, algorithm);
    Program program{dnnl::convolution_forward(made),
                    in(made.src_desc()),
                    in(made.weights_desc()),
                    in(made.dst_desc()),
                    {}};
    program.arguments = {{DNNL_ARG_SRC, program.input},
                         {DNNL_ARG_WEIGHTS, program.weight},
                         {DNNL_ARG_DST, program.output}};
    return program;
  }
  if (pass == Pass::BackwardData) {
    const auto made = data_description(shapes, algorithm);
    Program program{dnnl::convolution_backward_data(made),
                    in(made.diff_src_desc()),
                    in(made.weights_desc()),
                    in(made.diff_dst_desc()),
                    {}};
    program.arguments = {{DNNL_ARG_DIFF_SRC, program.input},
                         {DNNL_ARG_WEIGHTS, program.weight},
                         {DNNL_ARG_DIFF_DST, program.output}};
    return program;
  }
  const auto made = weights_description(shapes, algorithm);
  Program program{dnnl::convolution_backward_weights(made),
                  in(made.src_desc()),
                  in(made.diff_weights_desc()),
                  in(made.diff_dst_desc()),
                  {}};
  program.arguments = {{DNNL_ARG_SRC, program.input},
                       {DNNL_ARG_DIFF_WEIGHTS, program.weight},
                       {DNNL_ARG_DIFF_DST, program.output}};
  return program;
}

void reorder(dnnl::memory from, dnnl::memory to, dnnl::stream& stream) {
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

void fill(const std::vector<float>& values,
          const dnnl::memory::dims& dims,
          dnnl::memory& to,
          dnnl::stream& stream) {
  dnnl::memory plain(plain_layout(dims), processor());
  std::copy(values.begin(), values.end(), static_cast<float*>(plain.get_data_handle()));
  reorder(plain, to, stream);
}

}  // namespace

std::string_view name_of(OnednnAlgorithm algorithm) {
  return algorithm == OnednnAlgorithm::Direct ? "direct" : "winograd";
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

bool applies(OnednnAlgorithm algorithm, const ConvolutionCase& convolution, Pass pass) {
  const Shapes shapes = shapes_of(convolution);
  try {
    switch (pass) {
      case Pass::Forward:
        (void)forward_description(shapes, algorithm_of(algorithm));
        break;
      case Pass::BackwardData:
        (void)data_description(shapes, algorithm_of(algorithm));
        break;
      case Pass::BackwardWeights:
        (void)weights_description(shapes, algorithm_of(algorithm));
        break;
    }
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) {
      return false;
    }
    throw;
  }
  return true;
}

struct OnednnConvolution::Parts {
  Pass pass;
  Shapes shapes;
  mutable dnnl::stream stream;
  Program program;
};

OnednnConvolution::OnednnConvolution(const ConvolutionCase& convolution,
                                     Pass pass,
                                     OnednnAlgorithm algorithm,
                                     const CaseValues& values) {
  const Shapes shapes = shapes_of(convolution);
  parts_ = std::make_unique<Parts>(Parts{pass,
                                         shapes,
                                         dnnl::stream(processor()),
                                         make_program(shapes, pass, algorithm_of(algorithm))});
  Program& program = parts_->program;
  if (pass != Pass::Forward) {
    fill(values.output_gradient, shapes.output, program.output, parts_->stream);
  }
  if (pass != Pass::BackwardData) {
    fill(values.input, shapes.input, program.input, parts_->stream);
  }
  if (pass != Pass::BackwardWeights) {
    fill(values.weight, shapes.weight, program.weight, parts_->stream);
  }
}

OnednnConvolution::~OnednnConvolution() = default;

void OnednnConvolution::run() {
  parts_->program.primitive.execute(parts_->stream, parts_->program.arguments);
  parts_->stream.wait();
}

std::vector<float> OnednnConvolution::result() const {
  const auto& [pass, shapes, stream, program] = *parts_;
  const bool forward = pass == Pass::Forward;
  const bool data = pass == Pass::BackwardData;
  const dnnl::memory::dims& dims = forward ? shapes.output : data ? shapes.input : shapes.weight;
  const dnnl::memory& computed = forward ? program.output : data ? program.input : program.weight;
  dnnl::memory plain(plain_layout(dims), processor());
  reorder(computed, plain, stream);
  const auto* values = static_cast<const float*>(plain.get_data_handle());
  return {values, values + plain.get_desc().get_size() / sizeof(float)};
}

}  // namespace tessera::bench
