#include "tests/fuzz/harness.h"

#include <fstream>
#include <stdexcept>

#include "tests/support/temporary_folder.h"

namespace tessera::tests {

namespace {

const TemporaryFolder& all_files() {
  static const TemporaryFolder folder;
  return folder;
}

}  // namespace

const std::vector<Harness>& harnesses() {
  static const std::vector<Harness> all = {{"cfg", fuzz_cfg},
                                           {"partition", fuzz_partition},
                                           {"safetensors", fuzz_safetensors},
                                           {"weights", fuzz_weights},
                                           {"idx", fuzz_idx},
                                           {"cifar", fuzz_cifar},
                                           {"darknet_data", fuzz_darknet_data},
                                           {"label_text", fuzz_label_text},
                                           {"voc", fuzz_voc},
                                           {"coco", fuzz_coco},
#ifdef TESSERA_HAS_YAML
                                           {"data_yaml", fuzz_data_yaml},
#endif
#ifdef TESSERA_HAS_ONNX
                                           {"export", fuzz_export},
                                           {"onnx", fuzz_onnx},
#endif
                                           {"picture", fuzz_picture}};
  return all;
}

void law(bool holds, const char* what_must_hold) {
  if (!holds) {
    throw std::logic_error(what_must_hold);
  }
}

std::string fuzz_file(const std::string& name, Bytes bytes) {
  std::string path = all_files() / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const std::uint8_t byte : bytes) {
    file.put(static_cast<char>(byte));
  }
  return path;
}

std::filesystem::path fuzz_folder(const std::string& name) {
  const std::filesystem::path path = all_files() / name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  return path;
}

}  // namespace tessera::tests
