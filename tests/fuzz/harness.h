// What is fuzzed: one function for each reader of files, called with any bytes.
//
// A harness returns whether its reader took the bytes. InputError is the right answer to all others
// and is caught here; any other exception, a broken law among them, is a finding.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::tests {

using Bytes = std::span<const std::uint8_t>;

[[nodiscard]] bool fuzz_cfg(Bytes bytes);  // a model file
[[nodiscard]] bool fuzz_partition(
    Bytes bytes);  // a partition file, for the network of fuzz_networks.h
[[nodiscard]] bool fuzz_safetensors(Bytes bytes);  // a safetensors file
[[nodiscard]] bool fuzz_weights(Bytes bytes);      // one byte of choices, then a .weights file
[[nodiscard]] bool fuzz_idx(
    Bytes bytes);  // one byte of choices, two of a length, then pictures and labels
[[nodiscard]] bool fuzz_cifar(
    Bytes bytes);  // one byte of choices, two of a length, then class names and records
[[nodiscard]] bool fuzz_darknet_data(
    Bytes bytes);  // a .data file and the texts that it may name, 0x1d between them
[[nodiscard]] bool fuzz_label_text(Bytes bytes);  // Darknet's text of the boxes of a picture
[[nodiscard]] bool fuzz_voc(Bytes bytes);         // VOC's XML of the objects on a picture
[[nodiscard]] bool fuzz_coco(Bytes bytes);        // COCO's JSON of a data set
[[nodiscard]] bool fuzz_onnx(Bytes bytes);        // an ONNX file
[[nodiscard]] bool fuzz_data_yaml(
    Bytes bytes);                              // the data.yaml of two pictures in the folder images
[[nodiscard]] bool fuzz_picture(Bytes bytes);  // a JPEG or PNG file
[[nodiscard]] bool fuzz_export(
    Bytes bytes);  // one byte of choices, then a model file; where there is ONNX

struct Harness {
  std::string name;  // of the program, and of the folder in corpus/
  bool (*run)(Bytes bytes);
};

[[nodiscard]] const std::vector<Harness>& harnesses();

// Throws std::logic_error when a law of the reader does not hold.
void law(bool holds, const char* what_must_hold);

// Writes the bytes to a file of this name in a folder that goes away with the program; returns its
// path.
[[nodiscard]] std::string fuzz_file(const std::string& name, Bytes bytes);

// Makes an empty folder of this name there, in place of any other; returns its path.
[[nodiscard]] std::filesystem::path fuzz_folder(const std::string& name);

[[nodiscard]] inline std::string text_of(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace tessera::tests
