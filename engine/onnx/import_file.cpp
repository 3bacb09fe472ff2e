#include "engine/onnx/import_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <limits>
#include <new>

#include "engine/files/file_error.h"
#include "engine/files/input_file.h"
#include "engine/processes/descriptor.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

namespace pb = google::protobuf;

constexpr Index kMostFileBytes = std::numeric_limits<std::int32_t>::max();  // of one message
constexpr Index kMostNodes = 100'000;
constexpr Index kMostParts = 1'000'000;  // nodes, tensors and names of a graph
constexpr Index kMostElements = Index{1} << 40U;
constexpr double kLargestWhole = 9007199254740992;  // 2^53: whole numbers are exact up to it

constexpr std::uint32_t kLengthDelimited = 2;

// The next field of a message, of which a length-delimited one has `length` bytes to follow.
struct WireField {
  std::uint32_t number = 0;
  std::uint32_t length = 0;
};

// False at the end, and where the bytes are no message: whoever parses them finds out.
bool next_field(pb::io::CodedInputStream& in, WireField& field) {
  const std::uint32_t tag = in.ReadTag();
  field = {.number = tag >> 3U};
  switch (tag & 7U) {
    case 0: {
      std::uint64_t any = 0;
      return tag != 0 && in.ReadVarint64(&any);
    }
    case 1:
      return in.Skip(8);
    case kLengthDelimited:
      return in.ReadVarint32(&field.length);
    case 5:
      return in.Skip(4);
    default:
      return false;
  }
}

// What the graph consists of, counted before a message is made of each: a byte of a file can ask
// for a hundred of memory.
Index parts_of_graph(pb::io::CodedInputStream& in) {
  Index parts = 0;
  WireField of_model;
  while (next_field(in, of_model)) {
    if (of_model.number != onnx::ModelProto::kGraphFieldNumber) {
      in.Skip(static_cast<int>(std::min<std::uint32_t>(of_model.length, kMostFileBytes)));
      continue;
    }
    const auto outer = in.PushLimit(static_cast<int>(of_model.length));
    WireField of_graph;
    while (parts <= kMostParts && next_field(in, of_graph)) {
      ++parts;
      in.Skip(static_cast<int>(std::min<std::uint32_t>(of_graph.length, kMostFileBytes)));
    }
    in.PopLimit(outer);
    if (parts > kMostParts) {
      break;
    }
  }
  return parts;
}

Descriptor opened(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT(*-vararg)
  if (!file.is_open()) {
    throw_file_error(path, "cannot open", errno);
  }
  return file;
}

struct ElementKind {
  onnx::TensorProto::DataType type;
  Index bytes;
  bool is_integer;
};

constexpr ElementKind kKinds[] = {{onnx::TensorProto::FLOAT, 4, false},
                                  {onnx::TensorProto::DOUBLE, 8, false},
                                  {onnx::TensorProto::FLOAT16, 2, false},
                                  {onnx::TensorProto::INT64, 8, true},
                                  {onnx::TensorProto::INT32, 4, true},
                                  {onnx::TensorProto::BOOL, 1, true}};

const ElementKind* kind_of(const onnx::TensorProto& tensor) {
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& kind) {
    return kind.type == tensor.data_type();
  });
  return found == std::end(kKinds) ? nullptr : found;
}

// Elements in the field of messages for their type.
Index typed_elements(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return tensor.float_data_size();
    case onnx::TensorProto::DOUBLE:
      return tensor.double_data_size();
    case onnx::TensorProto::INT64:
      return tensor.int64_data_size();
    default:
      return tensor.int32_data_size();
  }
}

float from_half(std::uint16_t bits) {
  const bool negative = (bits & 0x8000U) != 0;
  const int exponent = (bits >> 10U) & 31U;
  const int fraction = bits & 1023U;
  const float size = exponent == 31 ? (fraction == 0 ? HUGE_VALF : NAN)
                     : exponent == 0
                         ? std::ldexp(static_cast<float>(fraction), -24)
                         : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return negative ? -size : size;
}

template <class Stored>
Stored raw_element(const onnx::TensorProto& tensor, Index i) {
  Stored value;
  std::memcpy(&value, tensor.raw_data().data() + i * Index{sizeof(Stored)}, sizeof(Stored));
  return value;
}

template <class T>
T stored_element(const onnx::TensorProto& tensor, Index i) {
  const bool raw = tensor.has_raw_data();
  const int place = static_cast<int>(i);
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return static_cast<T>(raw ? raw_element<float>(tensor, i) : tensor.float_data(place));
    case onnx::TensorProto::DOUBLE:
      return static_cast<T>(raw ? raw_element<double>(tensor, i) : tensor.double_data(place));
    case onnx::TensorProto::FLOAT16:
      return static_cast<T>(from_half(raw ? raw_element<std::uint16_t>(tensor, i)
                                          : static_cast<std::uint16_t>(tensor.int32_data(place))));
    case onnx::TensorProto::INT64:
      return static_cast<T>(raw ? raw_element<std::int64_t>(tensor, i) : tensor.int64_data(place));
    case onnx::TensorProto::INT32:
      return static_cast<T>(raw ? raw_element<std::int32_t>(tensor, i) : tensor.int32_data(place));
    default:
      return static_cast<T>(raw ? raw_element<std::uint8_t>(tensor, i) : tensor.int32_data(place));
  }
}

}  // namespace

OnnxFile::OnnxFile(const std::filesystem::path& path)
    : path_(path), bytes_(InputFile(path).size()), model_(std::make_unique<onnx::ModelProto>()) {
  if (bytes_ > kMostFileBytes) {
    refuse("an ONNX file has at most 2 GiB: save it with other weights apart and train from there");
  }
  const Descriptor file = opened(path);
  {
    pb::io::FileInputStream bytes(file.number());
    pb::io::CodedInputStream in(&bytes);
    if (parts_of_graph(in) > kMostParts) {
      refuse(fmt::format("its graph has more than {} nodes and tensors", kMostParts));
    }
  }
  if (::lseek(file.number(), 0, SEEK_SET) != 0) {
    throw_file_error(path, "cannot read", errno);
  }
  try {
    pb::io::FileInputStream bytes(file.number());
    if (!model_->ParsePartialFromZeroCopyStream(&bytes)) {
      refuse("is no ONNX model, or is cut short or damaged: export it again");
    }
  } catch (const std::bad_alloc&) {
    refuse("takes more memory than there is");
  }
  for (const onnx::OperatorSetIdProto& set : model_->opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      opset_ = std::max<Index>(opset_, set.version());
    }
  }
  expect_readable();
}

void OnnxFile::expect_readable() const {
  if (!model_->has_graph() || graph().node_size() == 0) {
    refuse("is no ONNX model: it has no graph, or one without nodes");
  }
  if (opset_ < 1) {
    refuse("does not say which version of ONNX's operators it has (opset_import)");
  }
  if (graph().node_size() > kMostNodes) {
    refuse(fmt::format("its graph has {} nodes, more than {}", graph().node_size(), kMostNodes));
  }
  if (graph().sparse_initializer_size() > 0) {
    refuse("has sparse initializers: save its weights as plain ones");
  }
  for (const onnx::NodeProto& node : graph().node()) {
    for (const onnx::AttributeProto& each : node.attribute()) {
      if (each.has_g() || each.graphs_size() > 0) {
        refuse(node, "has a graph of its own, which no section has: export the model without it");
      }
    }
    if (!node.domain().empty() && node.domain() != "ai.onnx") {
      refuse(node, fmt::format("is an operator of '{}', not one of ONNX's own", node.domain()));
    }
  }
}

std::string OnnxFile::metadata(std::string_view key) const {
  for (const onnx::StringStringEntryProto& entry : model_->metadata_props()) {
    if (entry.key() == key) {
      return entry.value();
    }
  }
  return "";
}

void OnnxFile::refuse(std::string_view reason) const {
  throw InputError(path_.string(), 0, reason);
}

void OnnxFile::refuse(const onnx::NodeProto& node, std::string_view reason) const {
  const std::string& name =
      node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  refuse(fmt::format("node '{}' ({}): {}", name, node.op_type(), reason));
}

const onnx::AttributeProto* attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& each : node.attribute()) {
    if (each.name() == name) {
      return &each;
    }
  }
  return nullptr;
}

Index integer(const onnx::NodeProto& node, std::string_view name, Index otherwise) {
  const onnx::AttributeProto* found = attribute(node, name);
  return found == nullptr ? otherwise : found->i();
}

double real(const onnx::NodeProto& node, std::string_view name, double otherwise) {
  const onnx::AttributeProto* found = attribute(node, name);
  return found == nullptr ? otherwise : found->f();
}

std::string word(const onnx::NodeProto& node, std::string_view name, std::string_view otherwise) {
  const onnx::AttributeProto* found = attribute(node, name);
  return found == nullptr ? std::string(otherwise) : found->s();
}

std::vector<Index> integers(const onnx::NodeProto& node,
                            std::string_view name,
                            std::vector<Index> otherwise) {
  const onnx::AttributeProto* found = attribute(node, name);
  return found == nullptr ? std::move(otherwise)
                          : std::vector<Index>(found->ints().begin(), found->ints().end());
}

Index volume_of(const std::vector<Index>& shape) {
  Index count = 1;
  bool beyond = false;
  for (const Index side : shape) {
    if (side < 0) {
      return -1;
    }
    beyond = beyond || (side > 0 && count > kMostElements / side);
    count = beyond ? count : count * side;
  }
  return std::find(shape.begin(), shape.end(), 0) != shape.end() ? 0 : beyond ? -1 : count;
}

Constant stored_constant(const OnnxFile& file,
                         const std::string& what,
                         const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL || tensor.external_data_size() > 0) {
    file.refuse(what +
                " lies in another file, which is not read: export with external_data=False, or "
                "save the model as one file");
  }
  const ElementKind* const kind = kind_of(tensor);
  if (kind == nullptr) {
    file.refuse(fmt::format(
        "{} is of type {}: expected floating-point numbers or integers", what, tensor.data_type()));
  }
  Constant constant{.shape = {tensor.dims().begin(), tensor.dims().end()},
                    .is_integer = kind->is_integer,
                    .stored = &tensor};
  const Index count = volume_of(constant.shape);
  const auto raw = static_cast<Index>(tensor.raw_data().size());
  const Index found = tensor.has_raw_data() ? raw / kind->bytes : typed_elements(tensor);
  if (count != found || (tensor.has_raw_data() && raw % kind->bytes != 0)) {
    file.refuse(
        fmt::format("{} is to have {} by its shape, but {} are stored: the file is damaged",
                    what,
                    count < 0 ? "more numbers than there can be" : fmt::format("{} numbers", count),
                    found));
  }
  return constant;
}

void turn(Constant& constant) {
  std::swap(constant.shape[0], constant.shape[1]);
  constant.transposed = !constant.transposed;
}

template <class T>
std::vector<T> numbers_of(const Constant& constant) {
  std::vector<T> values(static_cast<std::size_t>(volume_of(constant.shape)));
  const bool is_repeated = constant.numbers.size() == 1;
  const Index rows = constant.transposed ? constant.shape[0] : 1;
  const Index cols = constant.transposed ? constant.shape[1] : 1;
  const Index cells = values.empty() ? 0 : std::ssize(values) / (rows * cols);
  auto value = values.begin();
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < cols; ++col) {
      const Index first = (col * rows + row) * cells;
      for (Index place = first; place < first + cells; ++place) {
        const std::size_t number = is_repeated ? 0 : static_cast<std::size_t>(place);
        *value++ = constant.stored == nullptr ? static_cast<T>(constant.numbers[number])
                                              : stored_element<T>(*constant.stored, place);
      }
    }
  }
  return values;
}

template std::vector<float> numbers_of<float>(const Constant&);
template std::vector<double> numbers_of<double>(const Constant&);

std::vector<Index> integers_of(const Constant& constant) {
  std::vector<Index> whole;
  for (const double number : numbers_of<double>(constant)) {
    whole.push_back(static_cast<Index>(
        std::isnan(number) ? 0 : std::clamp(number, -kLargestWhole, kLargestWhole)));
  }
  return whole;
}

}  // namespace tessera::engine
