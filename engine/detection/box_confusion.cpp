#include "engine/detection/box_confusion.h"

#include <algorithm>
#include <map>
#include <optional>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

bool comes_before(const FoundBox& a, const FoundBox& b) {
  return a.image != b.image ? a.image < b.image : a.score > b.score;
}

// The object of another class with the highest IoU, of those of the image that are left.
std::optional<std::size_t> mistaken_object(const FoundBox& box,
                                           const std::vector<TrueBox>& truth,
                                           const std::vector<std::size_t>& of_image,
                                           const std::vector<bool>& taken) {
  double best = kPlainIou;
  std::optional<std::size_t> match;
  for (const std::size_t i : of_image) {
    if (taken[i] || truth[i].label == box.label) {
      continue;
    }
    const double iou = plain_iou(box.box, truth[i].box);
    if (iou > best) {
      best = iou;
      match = i;
    }
  }
  return match;
}

}  // namespace

BoxConfusion empty_confusion(Index classes) {
  const std::size_t size = static_cast<std::size_t>(classes) + 1;
  return BoxConfusion(size, std::vector<Index>(size));
}

void add_boxes(BoxConfusion& counts,
               const std::vector<TrueBox>& truth,
               const std::vector<FoundBox>& found,
               const std::vector<JudgedClass>& judged,
               double least_score) {
  const std::size_t background = judged.size();
  expects(counts.size() == background + 1, "there is a row for each class and the background");
  std::vector<bool> taken(truth.size());
  std::vector<const FoundBox*> wrong;
  for (std::size_t label = 0; label < judged.size(); ++label) {
    for (const JudgedBox& box : judged[label].boxes) {
      if (box.score < least_score) {
        continue;
      }
      if (box.darknet == JudgedBox::Match::TruePositive) {
        taken[static_cast<std::size_t>(box.object)] = true;
        ++counts[label][label];
      } else if (box.darknet == JudgedBox::Match::FalsePositive) {
        wrong.push_back(&found[static_cast<std::size_t>(box.found)]);
      }
    }
  }
  std::map<Index, std::vector<std::size_t>> objects;  // by image
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!truth[i].crowd && truth[i].label >= 0 &&
        static_cast<std::size_t>(truth[i].label) < background) {
      objects[truth[i].image].push_back(i);
    }
  }
  std::stable_sort(wrong.begin(), wrong.end(), [](const FoundBox* a, const FoundBox* b) {
    return comes_before(*a, *b);
  });
  for (const FoundBox* box : wrong) {
    const auto object = mistaken_object(*box, truth, objects[box->image], taken);
    if (object) {
      taken[*object] = true;
    }
    const std::size_t row = object ? static_cast<std::size_t>(truth[*object].label) : background;
    ++counts[row][static_cast<std::size_t>(box->label)];
  }
  for (const auto& [image, of_image] : objects) {
    for (const std::size_t i : of_image) {
      if (!taken[i]) {
        ++counts[static_cast<std::size_t>(truth[i].label)][background];
      }
    }
  }
}

void add(BoxConfusion& counts, const BoxConfusion& more) {
  expects(counts.size() == more.size(), "both are of the same classes");
  for (std::size_t row = 0; row < counts.size(); ++row) {
    for (std::size_t col = 0; col < counts[row].size(); ++col) {
      counts[row][col] += more[row][col];
    }
  }
}

}  // namespace tessera::engine
