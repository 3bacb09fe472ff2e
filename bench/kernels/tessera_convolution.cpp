#include "bench/kernels/tessera_convolution.h"

#include <algorithm>

namespace tessera::bench {

namespace {

Region whole_map(const partitioner::MapShape& shape, Index batch) {
  return {{0, batch}, {0, shape.channels}, {0, shape.rows}, {0, shape.cols}};
}

// The border is part of a convolution's input, and of its gradient, which is laid out alike.
Region with_border(Region map, const engine::ConvolutionShape& shape) {
  map.rows = {map.rows.begin - shape.padding.rows, map.rows.end + shape.padding.rows};
  map.cols = {map.cols.begin - shape.padding.cols, map.cols.end + shape.padding.cols};
  return map;
}

template <class T>
void copy_plain(const std::vector<float>& values, const Region& map, engine::View<T> to) {
  const std::vector<T> wide(values.begin(), values.end());
  engine::copy_in(wide.data(), map, to);
}

}  // namespace

template <class T>
TesseraConvolution<T>::TesseraConvolution(const ConvolutionCase& convolution,
                                          Pass pass,
                                          engine::ConvolutionKernel kernel,
                                          const CaseValues& values)
    : method_{convolution.shape, partitioner::all_passes(kernel)},
      pass_(pass),
      input_map_(whole_map(convolution.input, convolution.batch)),
      output_map_(whole_map(convolution.output, convolution.batch)),
      input_(with_border(input_map_, convolution.shape)),
      output_(output_map_),
      weight_(convolution.weights()),
      workspace_(convolution_workspace(method_, output_map_, output_map_)) {
  if (pass != Pass::Forward) {
    copy_plain(values.output_gradient, output_map_, output_.view());
  }
  if (pass != Pass::BackwardData) {
    copy_plain(values.input, input_map_, input_.view());
  }
  if (pass != Pass::BackwardWeights) {
    std::copy(values.weight.begin(), values.weight.end(), weight_.data());
  }
}

template <class T>
void TesseraConvolution<T>::run() {
  const engine::View<const T> input = input_.view();
  const engine::View<const T> output = output_.view();
  const T* weight = weight_.data();
  switch (pass_) {
    case Pass::Forward:
      return engine::convolution_forward<T>(
          method_, input, {weight}, {output_.view(), output_map_}, workspace_.data());
    case Pass::BackwardData:
      return engine::convolution_backward_data<T>(method_,
                                                  output,
                                                  {.weight = weight, .first = 0},
                                                  output_map_,
                                                  {input_.view(), input_map_, true},
                                                  workspace_.data());
    case Pass::BackwardWeights:
      return engine::convolution_backward_weights<T>(
          method_, input, output, output_map_, {weight_.data()}, workspace_.data());
  }
}

template <class T>
std::vector<T> TesseraConvolution<T>::result() const {
  if (pass_ == Pass::BackwardWeights) {
    return {weight_.span().begin(), weight_.span().end()};
  }
  const bool forward = pass_ == Pass::Forward;
  const Region& map = forward ? output_map_ : input_map_;
  std::vector<T> values(static_cast<std::size_t>(map.volume()));
  engine::copy_out(forward ? output_.view() : input_.view(), map, values.data());
  return values;
}

template class TesseraConvolution<float>;
template class TesseraConvolution<double>;

}  // namespace tessera::bench
