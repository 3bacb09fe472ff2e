// Which classes a detector takes for which, and what it takes for background.
//
// A box that was found with a score of `least_score` or more stands for one object at most. Boxes
// that are right by Darknet's rule stand for their objects, so the diagonal has the right boxes of
// each class. Of the wrong ones, the best first, each stands for the object of another class that
// the highest IoU, above kPlainIou, of those that nothing stands for yet. A box that
// is left was found on background, an object that is left was taken for it. Crowds, and what was
// found in them, do not count.

#pragma once

#include <vector>

#include "engine/detection/judged_boxes.h"

namespace tessera::engine {

// [class of the object][class of the box]; the last of either is background. A row of a class adds
// up to its objects, a column to the boxes that are right or wrong.
using BoxConfusion = std::vector<std::vector<Index>>;

[[nodiscard]] BoxConfusion empty_confusion(Index classes);

// Adds the boxes of some images. `judged` is what judge_boxes() says of these.
void add_boxes(BoxConfusion& counts,
               const std::vector<TrueBox>& truth,
               const std::vector<FoundBox>& found,
               const std::vector<JudgedClass>& judged,
               double least_score);

// Adds counts of other images of the same classes.
void add(BoxConfusion& counts, const BoxConfusion& more);

}  // namespace tessera::engine
