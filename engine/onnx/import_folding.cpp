#include "engine/onnx/import_folding.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/onnx/import_shapes.h"

namespace tessera::engine {

namespace {

constexpr Index kMostFolded = 65'536;  // elements of one constant that is computed

struct Folding {
  const OnnxFile& file;
  const onnx::NodeProto& node;
  const std::vector<const Constant*>& inputs;

  [[nodiscard]] bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  [[nodiscard]] const Constant& in(std::size_t i) const {
    if (!has(i)) {
      file.refuse(node, fmt::format("has no input {}", i));
    }
    return *inputs[i];
  }
};

Index broadcast_side(const Folding& folding, Index a, Index b) {
  if (a != b && a != 1 && b != 1) {
    folding.file.refuse(folding.node, fmt::format("constants of {} and {} do not fit", a, b));
  }
  return a == 1 ? b : a;
}

// Where an element of a result of `shape` lies in a constant that is repeated to it.
std::size_t broadcast_place(const std::vector<Index>& of,
                            const std::vector<Index>& shape,
                            Index i) {
  Index place = 0;
  Index stride = 1;
  for (std::size_t back = 1; back <= of.size(); ++back) {
    const Index side = shape[shape.size() - back];
    place += of[of.size() - back] == 1 ? 0 : (i % side) * stride;
    stride *= of[of.size() - back];
    i /= side;
  }
  return static_cast<std::size_t>(place);
}

std::vector<Index> broadcast_shape(const Folding& folding,
                                   const std::vector<Index>& a,
                                   const std::vector<Index>& b) {
  std::vector<Index> shape(std::max(a.size(), b.size()));
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    shape[shape.size() - back] = broadcast_side(folding,
                                                back <= a.size() ? a[a.size() - back] : 1,
                                                back <= b.size() ? b[b.size() - back] : 1);
  }
  const Index count = volume_of(shape);
  if (count < 0 || count > kMostFolded) {
    folding.file.refuse(folding.node, "computes a constant that is larger than any network needs");
  }
  return shape;
}

template <class Operation>
Constant of_pairs(const Folding& folding, Operation operation) {
  const Constant& a = folding.in(0);
  const Constant& b = folding.in(1);
  Constant out{.shape = broadcast_shape(folding, a.shape, b.shape), .is_integer = a.is_integer};
  const std::vector<double> from_a = numbers_of<double>(a);
  const std::vector<double> from_b = numbers_of<double>(b);
  for (Index i = 0; i < volume_of(out.shape); ++i) {
    out.numbers.push_back(operation(from_a[broadcast_place(a.shape, out.shape, i)],
                                    from_b[broadcast_place(b.shape, out.shape, i)]));
  }
  return out;
}

template <class Operation>
Constant of_each(const Folding& folding, Operation operation) {
  Constant out{.shape = folding.in(0).shape,
               .is_integer = folding.in(0).is_integer,
               .numbers = numbers_of<double>(folding.in(0))};
  for (double& number : out.numbers) {
    number = operation(number);
  }
  return out;
}

Constant quotient(const Folding& folding) {
  const bool whole = folding.in(0).is_integer;
  return of_pairs(folding, [whole](double a, double b) {
    return whole ? (b == 0 ? 0 : std::trunc(a / b)) : a / b;
  });
}

Constant gathered(const Folding& folding) {
  const Constant& data = folding.in(0);
  const std::vector<Index> places = integers_of(folding.in(1));
  if (data.shape.size() != 1 || integer(folding.node, "axis", 0) != 0) {
    folding.file.refuse(folding.node, "takes part of a constant of more than one dimension");
  }
  const std::vector<double> numbers = numbers_of<double>(data);
  Constant out{.shape = folding.in(1).shape, .is_integer = data.is_integer};
  for (const Index place : places) {
    const Index at = place < 0 ? place + data.shape[0] : place;
    if (at < 0 || at >= data.shape[0]) {
      folding.file.refuse(folding.node, fmt::format("takes number {} of {}", place, data.shape[0]));
    }
    out.numbers.push_back(numbers[static_cast<std::size_t>(at)]);
  }
  return out;
}

// Of vectors and scalars: all that sizes are made of.
Constant joined(const Folding& folding) {
  Constant out{.shape = {0}, .is_integer = folding.in(0).is_integer};
  for (std::size_t i = 0; i < folding.inputs.size(); ++i) {
    if (folding.in(i).shape.size() != 1) {
      folding.file.refuse(folding.node, "joins constants of more than one dimension");
    }
    const std::vector<double> numbers = numbers_of<double>(folding.in(i));
    out.numbers.insert(out.numbers.end(), numbers.begin(), numbers.end());
  }
  out.shape[0] = static_cast<Index>(out.numbers.size());
  return out;
}

Constant sliced(const Folding& folding) {
  const Constant& data = folding.in(0);
  if (data.shape.size() != 1) {
    folding.file.refuse(folding.node, "takes part of a constant of more than one dimension");
  }
  const SliceRange range =
      slice_ranges(folding.file, folding.node, folding.inputs, data.shape).front();
  const std::vector<double> numbers = numbers_of<double>(data);
  Constant out{.shape = {range.count()}, .is_integer = data.is_integer};
  for (Index i = range.begin; i < range.end; i += range.step) {
    out.numbers.push_back(numbers[static_cast<std::size_t>(i)]);
  }
  return out;
}

Constant filled(const Folding& folding) {
  Constant out{.shape = integers_of(folding.in(0))};
  const Index count = volume_of(out.shape);
  if (count < 0 || count > kMostFolded) {
    folding.file.refuse(folding.node, "computes a constant that is larger than any network needs");
  }
  const onnx::AttributeProto* value = attribute(folding.node, "value");
  double number = 0;
  if (value != nullptr) {
    const Constant one = stored_constant(folding.file, "its value", value->t());
    const std::vector<double> numbers = numbers_of<double>(one);
    number = numbers.empty() ? 0 : numbers.front();
    out.is_integer = one.is_integer;
  }
  out.numbers.assign(static_cast<std::size_t>(count), number);
  return out;
}

Constant expanded(const Folding& folding) {
  const Constant& data = folding.in(0);
  Constant out{.shape = broadcast_shape(folding, data.shape, integers_of(folding.in(1))),
               .is_integer = data.is_integer};
  const std::vector<double> numbers = numbers_of<double>(data);
  for (Index i = 0; i < volume_of(out.shape); ++i) {
    out.numbers.push_back(numbers[broadcast_place(data.shape, out.shape, i)]);
  }
  return out;
}

Constant chosen(const Folding& folding) {
  const Constant& condition = folding.in(0);
  if (condition.shape != folding.in(1).shape || condition.shape != folding.in(2).shape) {
    folding.file.refuse(folding.node, "chooses among constants of several shapes");
  }
  Constant out{.shape = condition.shape, .is_integer = folding.in(1).is_integer};
  const std::vector<double> is_true = numbers_of<double>(condition);
  const std::vector<double> yes = numbers_of<double>(folding.in(1));
  const std::vector<double> no = numbers_of<double>(folding.in(2));
  for (std::size_t i = 0; i < is_true.size(); ++i) {
    out.numbers.push_back(is_true[i] != 0 ? yes[i] : no[i]);
  }
  return out;
}

Constant cast(const Folding& folding) {
  const Index to = integer(folding.node, "to", onnx::TensorProto::FLOAT);
  const bool whole = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32 ||
                     to == onnx::TensorProto::BOOL;
  if (!whole) {
    Constant out = folding.in(0);
    out.is_integer = false;
    return out;
  }
  Constant out = of_each(folding, [](double number) { return std::trunc(number); });
  out.is_integer = true;
  return out;
}

Constant rearranged(const Folding& folding) {
  Constant out = folding.in(0);
  out.shape = reshaped(folding.file, folding.node, folding.inputs, out.shape);
  if (out.transposed) {
    folding.file.refuse(folding.node, "rearranges weights that are transposed");
  }
  return out;
}

Constant turned(const Folding& folding) {
  Constant out = folding.in(0);
  if (out.shape.size() != 2 || integers(folding.node, "perm", {1, 0}) != std::vector<Index>{1, 0}) {
    folding.file.refuse(folding.node, "transposes a constant that is no matrix");
  }
  if (out.stored == nullptr) {
    folding.file.refuse(folding.node, "transposes a constant that is computed");
  }
  turn(out);
  return out;
}

struct FoldingRow {
  std::string_view name;
  Constant (*fold)(const Folding&);
  bool computes = true;  // rather than to look at the same numbers in another way
};

constexpr FoldingRow kFoldings[] = {
    {"Identity", [](const Folding& f) { return f.in(0); }, false},
    {"Transpose", turned, false},
    {"Reshape", rearranged, false},
    {"Flatten", rearranged, false},
    {"Squeeze", rearranged, false},
    {"Unsqueeze", rearranged, false},
    {"Shape",
     [](const Folding& f) {
       const std::vector<Index>& shape = f.in(0).shape;
       return Constant{.shape = {static_cast<Index>(shape.size())},
                       .is_integer = true,
                       .numbers = {shape.begin(), shape.end()}};
     },
     false},
    {"Cast", cast},
    {"Gather", gathered},
    {"Concat", joined},
    {"Slice", sliced},
    {"ConstantOfShape", filled},
    {"Expand", expanded},
    {"Where", chosen},
    {"Div", quotient},
    {"Add", [](const Folding& f) { return of_pairs(f, [](double a, double b) { return a + b; }); }},
    {"Sub", [](const Folding& f) { return of_pairs(f, [](double a, double b) { return a - b; }); }},
    {"Mul", [](const Folding& f) { return of_pairs(f, [](double a, double b) { return a * b; }); }},
    {"Equal",
     [](const Folding& f) {
       return of_pairs(f, [](double a, double b) { return a == b ? 1.0 : 0.0; });
     }},
    {"Floor", [](const Folding& f) { return of_each(f, [](double a) { return std::floor(a); }); }},
    {"Ceil", [](const Folding& f) { return of_each(f, [](double a) { return std::ceil(a); }); }},
    {"Neg", [](const Folding& f) { return of_each(f, [](double a) { return -a; }); }}};

}  // namespace

void FoldingBudget::spend(const OnnxFile& file, const onnx::NodeProto& node, Index elements) {
  left_ -= elements;
  if (elements > kMostFolded || left_ < 0) {
    file.refuse(node, "computes with more constants than any network needs");
  }
}

std::optional<Constant> folded(const OnnxFile& file,
                               const onnx::NodeProto& node,
                               const std::vector<const Constant*>& inputs,
                               FoldingBudget& budget) {
  const auto* row = std::find_if(std::begin(kFoldings), std::end(kFoldings), [&](const auto& each) {
    return each.name == node.op_type();
  });
  if (row == std::end(kFoldings)) {
    return std::nullopt;
  }
  const bool is_float_cast = row->fold == cast && !inputs.empty() && inputs[0] != nullptr &&
                             inputs[0]->stored != nullptr && !inputs[0]->is_integer;
  for (const Constant* input : inputs) {
    if (row->computes && !is_float_cast && input != nullptr) {
      budget.spend(file, node, volume_of(input->shape));
    }
  }
  const Constant out = row->fold({file, node, inputs});
  budget.spend(file, node, static_cast<Index>(out.numbers.size()));
  return out;
}

Constant constant_of(const OnnxFile& file, const onnx::NodeProto& node) {
  if (const onnx::AttributeProto* value = attribute(node, "value")) {
    return stored_constant(file, fmt::format("the value of '{}'", node.name()), value->t());
  }
  if (const onnx::AttributeProto* value = attribute(node, "value_float")) {
    return {.numbers = {value->f()}};
  }
  if (const onnx::AttributeProto* value = attribute(node, "value_int")) {
    return {.is_integer = true, .numbers = {static_cast<double>(value->i())}};
  }
  if (const onnx::AttributeProto* value = attribute(node, "value_floats")) {
    return {.shape = {value->floats_size()},
            .numbers = {value->floats().begin(), value->floats().end()}};
  }
  if (const onnx::AttributeProto* value = attribute(node, "value_ints")) {
    return {.shape = {value->ints_size()},
            .is_integer = true,
            .numbers = {value->ints().begin(), value->ints().end()}};
  }
  file.refuse(node, "has no value that a network can have");
}

}  // namespace tessera::engine
