#include "partitioner/cfg/cfg_edit.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::with_changes;

TEST_CASE("a change in a model file leaves the rest of it as it is") {
  const std::string text =
      "# mine\n[net]\nwidth = 8  # pixels\n\n[convolutional]\nfilters=4\nfilters=5\n[yolo]";
  CHECK(with_changes(text, {}) == text);
  CHECK(with_changes(text, {{2, "width", "16"}, {5, "filters", "21"}, {8, "classes", "2"}}) ==
        "# mine\n[net]\nwidth = 16  # pixels\n\n[convolutional]\nfilters=21\nfilters=5\n"
        "[yolo]\nclasses=2\n");
}

TEST_CASE(
    "a key that a section lacks is added below its header, and one without a value is left out") {
  CHECK(with_changes("[net]\r\nwidth=8\r\n[yolo]\r\nmax=9\r\n",
                     {{1, "height", "4"}, {1, "steps", "1,2"}, {3, "max", ""}, {3, "other", ""}}) ==
        "[net]\r\nheight=4\r\nsteps=1,2\r\nwidth=8\r\n[yolo]\r\n# max=9\r\n");
}

TEST_CASE("a key counts in its own section alone, whatever comments say") {
  CHECK(with_changes("\xEF\xBB\xBF[net]\n#width=1\n;[yolo]\nwidth=8;9\n[crop]\nwidth=3",
                     {{1, "width", "2"}}) ==
        "\xEF\xBB\xBF[net]\n#width=1\n;[yolo]\nwidth=2;9\n[crop]\nwidth=3");
}

}  // namespace
