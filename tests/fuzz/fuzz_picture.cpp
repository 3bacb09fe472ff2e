#include "tests/fuzz/harness.h"

#include "engine/data/picture.h"
#include "partitioner/errors.h"

namespace tests {

bool fuzz_picture(Bytes bytes) {
  try {
    for (const engine::Index channels : {1, 3}) {
      const engine::Picture picture = engine::decode_picture(bytes, "fuzz.jpg", channels);
      law(picture.shape.channels == channels, "a picture has the channels asked for");
      law(static_cast<engine::Index>(picture.values.size()) == picture.shape.volume(),
          "a picture has as many values as its shape says");
      for (const float value : picture.values) {
        law(value >= 0 && value <= 1, "values are 0..1");
      }
    }
    return true;
  } catch (const partitioner::InputError&) {
    return false;
  }
}

}  // namespace tests
