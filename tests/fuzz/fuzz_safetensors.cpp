#include "tests/fuzz/harness.h"

#include "engine/files/safetensors.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

namespace {

using engine::ElementType;
using engine::SafetensorsReader;
using engine::SafetensorsWriter;
using engine::StoredTensor;

template <class T>
void copy(const SafetensorsReader& from, const StoredTensor& tensor, SafetensorsWriter& to) {
  const std::vector<T> values = from.read_all<T>(tensor.name);
  law(static_cast<Index>(values.size()) == element_count(tensor),
      "a tensor has as many elements as its shape says");
  to.write<T>(values);
}

}  // namespace

bool fuzz_safetensors(Bytes bytes) {
  const std::string path = fuzz_file("fuzz.safetensors", bytes);
  const std::string copy_path = path + ".copy";
  try {
    const SafetensorsReader reader(path);
    SafetensorsWriter writer(copy_path, reader.tensors(), reader.metadata());
    for (const StoredTensor& tensor : reader.tensors()) {
      switch (tensor.type) {
        case ElementType::F32:
          (void)reader.read_all<double>(tensor.name);
          copy<float>(reader, tensor, writer);
          break;
        case ElementType::F64:
          copy<double>(reader, tensor, writer);
          break;
        case ElementType::I64:
          copy<std::int64_t>(reader, tensor, writer);
          break;
        case ElementType::U8:
          copy<std::uint8_t>(reader, tensor, writer);
          break;
      }
    }
    writer.commit();
    const SafetensorsReader again(copy_path);
    law(again.metadata() == reader.metadata(), "metadata is the same after writing and reading");
    for (const StoredTensor& tensor : reader.tensors()) {
      law(again.find(tensor.name) == tensor, "tensors are the same after writing and reading");
    }
  } catch (const InputError&) {
    return false;
  }
  try {
    (void)SafetensorsReader(path).find("layers.0.weight");
  } catch (const InputError&) {
  }
  return true;
}

}  // namespace tessera::tests
