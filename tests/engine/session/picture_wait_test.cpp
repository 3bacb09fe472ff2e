// What is said where steps wait for pictures.

#include "engine/session/picture_wait.h"

#include <limits>
#include <optional>
#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using engine::PictureCacheRequest;
using engine::PictureCaching;
using engine::PictureWait;
using Place = PictureCacheRequest::Place;

// The number of times that it is said in 100 steps of a second, of which so much is waiting.
int times_said(Place place, double waiting_s, double epochs, Index pictures = 10) {
  const Communicator alone = Communicator::self();
  const engine::SessionObserver nobody;
  engine::DataNeeds needs;
  needs.own_pictures = pictures;
  needs.own_cached_bytes = 5 << 20;
  const PictureCaching caching(
      {.request = {place, place == Place::Folder ? "kept" : ""},
       .run = "runs/a",
       .left = {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::max()}},
      needs,
      alone,
      nobody);
  PictureWait wait;
  int said = 0;
  for (int step = 0; step < 100; ++step) {
    engine::StepTimes times;
    times.step_s = 1;
    times.load_s = waiting_s;
    if (const auto sentence = wait.add(times, epochs, caching)) {
      CHECK(tests::has(*sentence, "96 % of the time"));
      CHECK(tests::has(*sentence, "--cache memory decodes them once and takes 5.0 MiB"));
      CHECK(tests::has(*sentence, "--cache FOLDER"));
      ++said;
    }
  }
  return said;
}

TEST_CASE("where steps wait for pictures that are not kept, what to do is said once") {
  CHECK(times_said(Place::Off, 0.96, 20) == 1);
}

TEST_CASE("nothing is said of waiting where a cache would not help") {
  CHECK(times_said(Place::Off, 0.1, 20) == 0);      // little of it
  CHECK(times_said(Place::Off, 0.96, 1) == 0);      // each is seen once
  CHECK(times_said(Place::Off, 0.96, 20, 0) == 0);  // none has to be decoded
  CHECK(times_said(Place::Memory, 0.96, 20) == 0);
  CHECK(times_said(Place::Folder, 0.96, 20) == 0);
  CHECK(times_said(Place::Automatic, 0.96, 20) == 0);
}

}  // namespace
