#include "engine/data/sets/box_sets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/in_threads.h"
#include "engine/data/pictures/picture_builder.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

void add_picture_with_boxes(std::string_view path,
                            int line,
                            const ReadBoxes& read,
                            PictureFiles& files) {
  files.problems.insert(files.problems.end(), read.problems.begin(), read.problems.end());
  const bool usable = std::none_of(read.problems.begin(),
                                   read.problems.end(),
                                   [](const DataProblem& each) { return is_error(each.fault); });
  if (!usable) {
    return;
  }
  if (read.width > 0 && !read.boxes.empty()) {
    files.stated_sizes.push_back({files.paths.size(), read.width, read.height});
  }
  files.paths.add(path);
  std::vector<Box> boxes = read.boxes;
  std::stable_partition(boxes.begin(), boxes.end(), [](const Box& box) { return !box.ignored; });
  files.boxes->add(boxes);
  if (!files.list.empty()) {
    files.line_numbers.push_back(line);
  }
}

namespace {

enum class Fit { AsUsed, AsStored, Neither };

// Whether two sizes have the same proportions, but for what rounding to pixels changes.
bool have_same_proportions(const StatedSize& stated, Index width, Index height) {
  constexpr double kShare = 0.01;
  const double cols = stated.width / stated.height * static_cast<double>(height);
  const double rows = stated.height / stated.width * static_cast<double>(width);
  return std::abs(cols - static_cast<double>(width)) <= 1 + kShare * static_cast<double>(width) ||
         std::abs(rows - static_cast<double>(height)) <= 1 + kShare * static_cast<double>(height);
}

Fit fit_of(const StatedSize& stated, const PictureHeader& header) {
  const bool turns = is_on_its_side(header);
  const Index width = turns ? header.rows : header.cols;
  const Index height = turns ? header.cols : header.rows;
  const auto is_exactly = [&](Index cols, Index rows) {
    return stated.width == static_cast<double>(cols) && stated.height == static_cast<double>(rows);
  };
  if (turns && width != height && is_exactly(header.cols, header.rows)) {  // a nearly square one
    return Fit::AsStored;
  }
  if (have_same_proportions(stated, width, height)) {
    return Fit::AsUsed;
  }
  return turns && have_same_proportions(stated, header.cols, header.rows) ? Fit::AsStored
                                                                          : Fit::Neither;
}

void turn_box(const Turn& turn, Box& box) {
  if (turn.cols_reversed) {
    box.centre_x = 1 - box.centre_x;
  }
  if (turn.rows_reversed) {
    box.centre_y = 1 - box.centre_y;
  }
  if (turn.exchanged) {
    std::swap(box.centre_x, box.centre_y);
    std::swap(box.width, box.height);
  }
}

std::string other_size(const StatedSize& stated, const PictureHeader& header) {
  const bool turns = is_on_its_side(header);
  return fmt::format(
      "its boxes are for a picture of {} x {} pixels, and this one has {} x {}{}: their "
      "proportions "
      "differ, so that boxes would lie elsewhere; correct the size or the boxes",
      stated.width,
      stated.height,
      turns ? header.rows : header.cols,
      turns ? header.cols : header.rows,
      turns ? ", turned as its EXIF orientation says" : "");
}

}  // namespace

void fit_to_pictures(PictureFiles& files) {
  std::vector<std::optional<PictureHeader>> headers(files.stated_sizes.size());
  for_each_in_threads(std::ssize(headers), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      headers[at] = read_picture_header(picture_path(files, files.stated_sizes[at].item));
    } catch (const InputError&) {  // that is said where pictures are looked at
    }
  });
  Index turned = 0;
  std::string first_turned;
  std::vector<Index> others;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const StatedSize& stated = files.stated_sizes[i];
    const Fit fit = headers[i] ? fit_of(stated, *headers[i]) : Fit::AsUsed;
    if (fit == Fit::AsStored) {
      for (Box& box : files.boxes->of(stated.item)) {
        turn_box(turn_of(headers[i]->orientation), box);
      }
      first_turned = turned++ == 0 ? picture_path(files, stated.item).string() : first_turned;
    } else if (fit == Fit::Neither) {
      files.problems.push_back({DataFault::BadLabel,
                                picture_path(files, stated.item).string(),
                                other_size(stated, *headers[i])});
      others.push_back(stated.item);
    }
  }
  if (turned > 0) {
    files.problems.push_back(
        {DataFault::TurnedBox,
         first_turned,
         fmt::format(
             "the boxes of {}, this one first, are for pictures as they are stored: they are "
             "turned as EXIF's orientation turns the pictures",
             counted(turned, "picture"))});
  }
  files.stated_sizes = {};
  if (!others.empty()) {
    files = without_items(files, others);
  }
}

namespace {

constexpr Index kTenth = 10;

// The pictures for which `is_tested` holds, or all others.
template <class IsTested>
PictureFiles half_of(const PictureFiles& all, bool tested, IsTested is_tested) {
  std::vector<Index> dropped;
  for (Index i = 0; i < all.paths.size(); ++i) {
    if (is_tested(i) != tested) {
      dropped.push_back(i);
    }
  }
  PictureFiles part = without_items(all, dropped);
  part.divided = true;
  return part;
}

}  // namespace

PictureFiles tenth_or_others(const PictureFiles& all, bool tenth) {
  const Index size = all.paths.size();
  return half_of(all, tenth, [&](Index i) {
    return size > 1 && size < kTenth ? i == size - 1 : i % kTenth == kTenth - 1;
  });
}

PictureFiles tenth_by_name(const PictureFiles& all, bool tenth) {
  std::vector<std::uint64_t> hashes;
  for (Index i = 0; i < all.paths.size(); ++i) {
    const std::string_view path = all.paths[i];
    Digest digest;
    digest.add(path.substr(path.rfind('/') + 1));
    hashes.push_back(digest.value());
  }
  const auto ends = std::minmax_element(hashes.begin(), hashes.end());
  return half_of(all, tenth, [&](Index i) {
    const std::uint64_t hash = hashes[static_cast<std::size_t>(i)];
    const bool is_least =
        hash <= std::max(*ends.first, std::numeric_limits<std::uint64_t>::max() / kTenth);
    return is_least && hash != *ends.second;
  });
}

void SharedNames::add_problem(const std::filesystem::path& where,
                              const std::string& what,
                              PictureFiles& files) const {
  if (count_ > 0) {
    files.problems.push_back(
        {DataFault::SharedLabels,
         where.string(),
         fmt::format("{} {}: {}", count_, what, printable_start(first_, 300))});
  }
}

void add_missing_pictures(const std::filesystem::path& where, bool training, PictureFiles& files) {
  const bool explained = std::any_of(files.problems.begin(),
                                     files.problems.end(),
                                     [](const DataProblem& each) { return is_error(each.fault); });
  if (files.paths.size() == 0 && !explained) {
    files.problems.push_back({DataFault::Unusable,
                              where.string(),
                              fmt::format("no picture for {} was found here: add some",
                                          training ? "training" : "testing")});
  }
}

}  // namespace tessera::engine
