// Which format a file of weights is in, and which ones are none of ours.

#include "engine/files/weights_format.h"

#include <string>

#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

// What is said of a file of that name that begins so.
std::string refusal(const std::string& name, const std::string& begin) {
  const tests::TemporaryFolder folder;
  tests::put_bytes(folder / name, begin + std::string(64, '\0'));
  return tests::input_error_of([&] { (void)engine::is_safetensors(folder / name); });
}

}  // namespace

TEST_CASE("files of other frameworks are named") {
  CHECK(tests::has(refusal("m.pt", "PK\x03\x04"), "this is a file of PyTorch"));
  CHECK(tests::has(refusal("m.pth", "\x80\x02"), "this is a file of PyTorch"));
  CHECK(tests::has(refusal("m.onnx", "\x08\x07"), "this is an ONNX file"));
  CHECK(tests::has(refusal("m.h5", "\x89HDF\r\n"), "this is an HDF5 file"));
  CHECK(tests::has(refusal("m.npz", "PK\x03\x04"), "NumPy"));
}

TEST_CASE("Darknet's files may have any name, a .safetensors file is to be one") {
  CHECK(refusal("yolov2.conv.18", std::string("\0\0\0\0\2\0\0\0", 8)).empty());
  CHECK(refusal("m.safetensors", "anything").empty());
}
