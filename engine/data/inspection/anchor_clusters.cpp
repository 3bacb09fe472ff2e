#include "engine/data/inspection/anchor_clusters.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <tuple>

#include "engine/base/random.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Anchor;

namespace {

bool comes_first(const BoxSides& a, const BoxSides& b) {
  return std::tuple(a.width * a.height, a.width, a.height) <
         std::tuple(b.width * b.height, b.width, b.height);
}

// A size and how many boxes have it.
struct WeightedSize {
  BoxSides size;
  double count = 0;
};

std::vector<WeightedSize> counted_sizes(std::vector<BoxSides> sizes) {
  std::sort(sizes.begin(), sizes.end(), comes_first);
  std::vector<WeightedSize> counted;
  for (const BoxSides& size : sizes) {
    if (counted.empty() || !(counted.back().size == size)) {
      counted.push_back({size, 0});
    }
    ++counted.back().count;
  }
  return counted;
}

std::size_t nearest(const BoxSides& size, std::span<const Anchor> anchors) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < anchors.size(); ++i) {
    if (size_iou(size, anchors[i]) > size_iou(size, anchors[best])) {
      best = i;
    }
  }
  return best;
}

double mean_iou(const std::vector<WeightedSize>& sizes, std::span<const Anchor> anchors) {
  double sum = 0;
  double count = 0;
  for (const WeightedSize& each : sizes) {
    sum += each.count * size_iou(each.size, anchors[nearest(each.size, anchors)]);
    count += each.count;
  }
  return count > 0 ? sum / count : 0;
}

// The first start takes sizes evenly from the smallest to the largest, others draw them.
std::vector<Anchor> first_anchors(const std::vector<WeightedSize>& sizes,
                                  Index count,
                                  Index start) {
  std::vector<std::size_t> chosen;
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t drawn =
        random_bits(static_cast<std::uint64_t>(start), static_cast<std::uint64_t>(i));
    auto at = static_cast<std::size_t>(start == 0 ? (2 * i + 1) * std::ssize(sizes) / (2 * count)
                                                  : static_cast<Index>(drawn % sizes.size()));
    while (std::find(chosen.begin(), chosen.end(), at) != chosen.end()) {
      at = (at + 1) % sizes.size();
    }
    chosen.push_back(at);
  }
  std::vector<Anchor> anchors;
  for (const std::size_t at : chosen) {
    anchors.push_back({sizes[at].size.width, sizes[at].size.height});
  }
  return anchors;
}

// Each anchor becomes the mean of the sizes nearest to it; one that has none stays.
std::vector<Anchor> means_of_nearest(const std::vector<WeightedSize>& sizes,
                                     const std::vector<Anchor>& anchors) {
  std::vector<Anchor> sums(anchors.size());
  std::vector<double> counts(anchors.size());
  for (const WeightedSize& each : sizes) {
    const std::size_t at = nearest(each.size, anchors);
    sums[at].width += each.count * each.size.width;
    sums[at].height += each.count * each.size.height;
    counts[at] += each.count;
  }
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    sums[i] =
        counts[i] > 0 ? Anchor{sums[i].width / counts[i], sums[i].height / counts[i]} : anchors[i];
  }
  return sums;
}

}  // namespace

std::vector<BoxSides> box_sizes(const Dataset& dataset, Index rows, Index cols) {
  std::vector<BoxSides> sizes;
  for (Index item = 0; item < dataset.size(); ++item) {
    for (const Box& box : dataset.boxes(item)) {
      sizes.push_back({static_cast<double>(box.width) * static_cast<double>(cols),
                       static_cast<double>(box.height) * static_cast<double>(rows)});
    }
  }
  return sizes;
}

double size_iou(const BoxSides& a, const Anchor& b) {
  const double both = std::min(a.width, b.width) * std::min(a.height, b.height);
  const double either = a.width * a.height + b.width * b.height - both;
  return either > 0 ? both / either : 0;
}

double mean_best_iou(std::span<const BoxSides> sizes, std::span<const Anchor> anchors) {
  return mean_iou(counted_sizes({sizes.begin(), sizes.end()}), anchors);
}

std::vector<Anchor> cluster_anchors(std::vector<BoxSides> sizes, Index count) {
  constexpr Index kStarts = 10;
  constexpr int kMostRounds = 300;
  const std::vector<WeightedSize> all = counted_sizes(std::move(sizes));
  expects(count > 0 && count <= std::ssize(all), "as many different sizes as anchors");
  std::vector<Anchor> best;
  double most = -1;
  for (Index start = 0; start < kStarts; ++start) {
    std::vector<Anchor> anchors = first_anchors(all, count, start);
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<Anchor> next = means_of_nearest(all, anchors);
      if (next == anchors) {
        break;
      }
      anchors = std::move(next);
    }
    const double iou = mean_iou(all, anchors);
    if (iou > most) {
      most = iou;
      best = std::move(anchors);
    }
  }
  std::sort(best.begin(), best.end(), [](const Anchor& a, const Anchor& b) {
    return comes_first({a.width, a.height}, {b.width, b.height});
  });
  return best;
}

Index different_sizes(const std::vector<BoxSides>& sizes) {
  return std::ssize(counted_sizes(sizes));
}

std::vector<Anchor> anchors_as_written(std::vector<Anchor> anchors, Index stride) {
  const double steps = stride == 1 ? 1 : 100;  // of a unit
  const auto written = [&](double pixels) {
    return std::max(1.0, std::round(steps * pixels / static_cast<double>(stride))) / steps;
  };
  for (Anchor& anchor : anchors) {
    anchor = {written(anchor.width), written(anchor.height)};
  }
  return anchors;
}

std::string anchors_text(const std::vector<Anchor>& as_written, Index stride) {
  std::string text;
  for (const Anchor& anchor : as_written) {
    text += fmt::format("{}{:.{}f},{:.{}f}",
                        text.empty() ? "" : ",  ",
                        anchor.width,
                        stride == 1 ? 0 : 2,
                        anchor.height,
                        stride == 1 ? 0 : 2);
  }
  return text;
}

}  // namespace tessera::engine
