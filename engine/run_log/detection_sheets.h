// Pictures of a detector's run to look at, with their boxes: some that it has learnt from, as the
// step saw them, and some that it was tested on, with what it found. Rank 0's, where it reads
// pictures.
//
// A sheet has up to four pictures, two in a row, each at most 320 pixels a side, so that its file
// has at most 1.3 MB; while it is drawn it takes as much again, and one image of the network's
// input. Names are in ASCII: fonts would take more memory than all of this.

#pragma once

#include <string>
#include <vector>

#include "engine/data/batch/batch.h"
#include "engine/drawing/rgb_picture.h"
#include "engine/train/metrics/detection_metrics.h"

namespace tessera::engine {

// The first pictures of a step, counted from 1, after all augmentation, with their objects in
// dashed frames. A step takes so many passes, each a batch of the source. Throws InputError where a
// picture cannot be read.
[[nodiscard]] RgbPicture training_sheet(const BatchSource& training, Index step, Index passes);

// Some of the pictures that `metrics` has kept of a test after `step` steps, which began with the
// source's first: objects in dashed frames, what was found in orange ones. Throws likewise.
[[nodiscard]] RgbPicture test_sheet(const BatchSource& testing,
                                    Index step,
                                    const DetectionMetrics& metrics);

}  // namespace tessera::engine
