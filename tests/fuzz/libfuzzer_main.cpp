// The entry point of libFuzzer. One program holds all harnesses; its name says which one runs, as
// in a link called fuzz_cfg.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/harness.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

const tests::Harness& harness_of_this_program() {
  const std::string name = program_invocation_short_name;
  for (const tests::Harness& harness : tests::harnesses()) {
    if (name == "fuzz_" + harness.name) {
      return harness;
    }
  }
  std::fprintf(
      stderr, "%s is no harness: call this program through a link, see run.sh\n", name.c_str());
  std::exit(2);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const tests::Harness& harness = harness_of_this_program();
  (void)harness.run({bytes, size});
  return 0;
}
