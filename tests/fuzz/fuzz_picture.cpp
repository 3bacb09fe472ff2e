#include <algorithm>

#include "tests/fuzz/harness.h"

#include "engine/data/pictures/picture.h"
#include "partitioner/base/errors.h"

namespace tessera::tests {

namespace {

void check(const engine::Picture& picture, Index channels, const engine::Detail& detail) {
  law(picture.shape.channels == channels, "a picture has the channels asked for");
  law(static_cast<Index>(picture.bytes.size()) ==
          picture.held_rows * picture.held_cols * picture.held_channels,
      "a picture has as many bytes as it says");
  law(picture.held_rows >= std::min(detail.rows, picture.shape.rows) &&
          picture.held_cols >= std::min(detail.cols, picture.shape.cols),
      "a picture is not reduced further than asked for");
  for (Index row = 0; row < picture.held_rows; ++row) {
    const float value = picture.value(channels - 1, row, picture.held_cols - 1);
    law(value >= 0 && value <= 1, "values are 0..1");
  }
}

}  // namespace

bool fuzz_picture(Bytes bytes) {
  try {
    for (const Index channels : {1, 3}) {
      for (const Index least : {1, 5, 10000}) {
        const engine::Detail detail{least, least};
        check(engine::decode_picture(bytes, "fuzz.jpg", channels, detail), channels, detail);
      }
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
