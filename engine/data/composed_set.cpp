#include "engine/data/composed_set.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <system_error>

#include "engine/base/in_threads.h"
#include "engine/base/random.h"
#include "engine/files/atomic_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

using Rgb = std::array<Index, 3>;

constexpr Index kMostItemsOfPicture = 6;
constexpr Index kFullByte = 255;

// Numbers drawn for one picture, one after the other.
class PictureDraws {
 public:
  PictureDraws(std::uint64_t seed, Index picture)
      : seed_(seed), picture_(static_cast<std::uint64_t>(picture)) {}

  // From `least` to `most`, both possible.
  Index whole(Index least, Index most) {
    const auto choices = static_cast<std::uint64_t>(most - least) + 1;
    return least + static_cast<Index>(random_bits(seed_, picture_, next_++) % choices);
  }
  Rgb colour(Index least, Index most) {
    Rgb rgb{};
    for (Index& value : rgb) {
      value = whole(least, most);
    }
    return rgb;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t picture_;
  std::uint64_t next_ = 0;
};

// Lays a colour over a pixel, `cover` of 255.
void lay_over(const Rgb& colour, Index cover, std::uint8_t* pixel) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const Index below = pixel[channel];
    pixel[channel] = static_cast<std::uint8_t>(
        (below * (kFullByte - cover) + colour[channel] * cover + kFullByte / 2) / kFullByte);
  }
}

// From one colour at the top to another at the bottom, with bars and discs, and noise.
void draw_ground(PictureDraws& draws, std::uint64_t noise_seed, RgbPicture& picture) {
  const Rgb above = draws.colour(20, 150);
  const Rgb below = draws.colour(20, 150);
  for (Index row = 0; row < picture.rows(); ++row) {
    for (Index col = 0; col < picture.cols(); ++col) {
      std::uint8_t* pixel = picture.pixel(row, col);
      lay_over(above, kFullByte, pixel);
      lay_over(below, row * kFullByte / picture.rows(), pixel);
    }
  }
  const Index shapes = draws.whole(4, 12);
  for (Index i = 0; i < shapes; ++i) {
    const bool disc = draws.whole(0, 1) == 1;
    const Rgb colour = draws.colour(0, 170);
    const Index cover = draws.whole(60, 200);
    const Index centre_row = draws.whole(0, picture.rows() - 1);
    const Index centre_col = draws.whole(0, picture.cols() - 1);
    const Index high = draws.whole(2, std::max<Index>(2, picture.rows() / 4));
    const Index wide = draws.whole(2, std::max<Index>(2, picture.cols() / 4));
    for (Index row = std::max<Index>(0, centre_row - high);
         row < std::min(picture.rows(), centre_row + high);
         ++row) {
      for (Index col = std::max<Index>(0, centre_col - wide);
           col < std::min(picture.cols(), centre_col + wide);
           ++col) {
        const Index down = (row - centre_row) * wide;
        const Index across = (col - centre_col) * high;
        if (!disc || down * down + across * across <= high * high * wide * wide) {
          lay_over(colour, cover, picture.pixel(row, col));
        }
      }
    }
  }
  for (std::size_t i = 0; i < picture.values().size(); ++i) {
    const auto noise = static_cast<Index>(random_bits(noise_seed, i) % 21) - 10;
    picture.values()[i] =
        static_cast<std::uint8_t>(std::clamp<Index>(picture.values()[i] + noise, 0, kFullByte));
  }
}

// An item scaled to a square of `side`: what is there, 0 to 255, in 1/256 between its pixels.
class ScaledItem {
 public:
  ScaledItem(const Picture& item, Index side, bool mirrored)
      : side_(side), values_(static_cast<std::size_t>(side * side)) {
    for (Index row = 0; row < side; ++row) {
      for (Index col = 0; col < side; ++col) {
        values_[static_cast<std::size_t>(row * side + (mirrored ? side - 1 - col : col))] =
            between(item, row, col);
      }
    }
  }

  [[nodiscard]] Index side() const { return side_; }
  [[nodiscard]] Index value(Index row, Index col) const {
    return values_[static_cast<std::size_t>(row * side_ + col)];
  }
  // Opaque where the item is light enough, which leaves its rim.
  [[nodiscard]] Index cover(Index row, Index col) const {
    return std::clamp<Index>((value(row, col) - 16) * 6, 0, kFullByte);
  }
  // The rows and columns in which it covers more than half; empty where it does nowhere.
  [[nodiscard]] Region extent() const {
    Region found{{0, 1}, {0, 1}, {side_, 0}, {side_, 0}};
    for (Index row = 0; row < side_; ++row) {
      for (Index col = 0; col < side_; ++col) {
        if (cover(row, col) > kFullByte / 2) {
          found.rows = {std::min(found.rows.begin, row), std::max(found.rows.end, row + 1)};
          found.cols = {std::min(found.cols.begin, col), std::max(found.cols.end, col + 1)};
        }
      }
    }
    return found;
  }

 private:
  // Bilinear.
  [[nodiscard]] Index between(const Picture& item, Index row, Index col) const {
    constexpr Index kOne = 256;
    const auto place = [&](Index at, Index size) {
      const Index centre = (2 * at + 1) * size * kOne / (2 * side_) - kOne / 2;
      return std::clamp<Index>(centre, 0, (size - 1) * kOne);
    };
    const Index y = place(row, item.held_rows);
    const Index x = place(col, item.held_cols);
    const auto pixel = [&](Index r, Index c) {
      return Index{item.bytes[static_cast<std::size_t>(
          std::min(r, item.held_rows - 1) * item.held_cols + std::min(c, item.held_cols - 1))]};
    };
    const Index upper =
        pixel(y / kOne, x / kOne) * (kOne - x % kOne) + pixel(y / kOne, x / kOne + 1) * (x % kOne);
    const Index lower = pixel(y / kOne + 1, x / kOne) * (kOne - x % kOne) +
                        pixel(y / kOne + 1, x / kOne + 1) * (x % kOne);
    return (upper * (kOne - y % kOne) + lower * (y % kOne)) / (kOne * kOne);
  }

  Index side_;
  std::vector<Index> values_;
};

void draw_item(
    const ScaledItem& item, const Rgb& tint, Index top, Index left, RgbPicture& picture) {
  for (Index row = 0; row < item.side(); ++row) {
    for (Index col = 0; col < item.side(); ++col) {
      const Index cover = item.cover(row, col);
      if (cover == 0) {
        continue;
      }
      Rgb colour{};
      for (std::size_t channel = 0; channel < 3; ++channel) {
        colour[channel] = tint[channel] * (64 + item.value(row, col) * 191 / kFullByte) / kFullByte;
      }
      lay_over(colour, cover, picture.pixel(top + row, left + col));
    }
  }
}

// Whether the smaller of two boxes is covered by the other by more than a quarter.
bool covers_much(const Region& one, const Region& other) {
  const Index common = intersect(one, other).volume();
  return common * 4 > std::min(one.volume(), other.volume());
}

Region shifted_by(const Region& extent, Index rows, Index cols) {
  Region there = extent;
  there.rows = {extent.rows.begin + rows, extent.rows.end + rows};
  there.cols = {extent.cols.begin + cols, extent.cols.end + cols};
  return there;
}

Box box_of(const Region& place, int label, const RgbPicture& picture) {
  const auto fraction = [](Index twice, Index size) {
    return static_cast<float>(static_cast<double>(twice) / static_cast<double>(2 * size));
  };
  return {label,
          fraction(place.cols.begin + place.cols.end, picture.cols()),
          fraction(place.rows.begin + place.rows.end, picture.rows()),
          fraction(2 * place.cols.size(), picture.cols()),
          fraction(2 * place.rows.size(), picture.rows())};
}

std::string label_text(const std::vector<Box>& boxes) {
  std::string text;
  for (const Box& box : boxes) {
    text += fmt::format("{} {:.6f} {:.6f} {:.6f} {:.6f}\n",
                        box.label,
                        box.centre_x,
                        box.centre_y,
                        box.width,
                        box.height);
  }
  return text;
}

void make_empty_folder(const fs::path& folder) {
  std::error_code error;
  if (is_there(folder) && !fs::is_empty(folder, error)) {
    throw InputError(
        folder.string(), 0, "there is something here already: give a folder that does not exist");
  }
  fs::create_directories(folder, error);
  if (error) {
    throw InputError(folder.string(), 0, "cannot be made: " + error.message());
  }
}

// Returns the list of the pictures.
std::string write_half(const fs::path& folder,
                       const std::string& half,
                       const Dataset& items,
                       const CompositionRules& rules,
                       Index count) {
  make_empty_folder(folder / "images" / half);
  make_empty_folder(folder / "labels" / half);
  constexpr Index kAtOnce = 1;
  for_each_in_threads(
      count,
      [&](Index number) {
        const ComposedPicture composed = compose_picture(items, rules, number);
        const std::string name = fmt::format("{:06}", number);
        AtomicFile file(folder / "images" / half / (name + ".png"));
        file.write(composed.picture.png());
        file.commit();
        write_atomically(folder / "labels" / half / (name + ".txt"), label_text(composed.boxes));
      },
      kAtOnce);
  std::string list;
  for (Index number = 0; number < count; ++number) {
    list += fmt::format("images/{}/{:06}.png\n", half, number);
  }
  return list;
}

// Fashion-MNIST's files do not name its classes.
std::vector<std::string> item_names(const Dataset& items) {
  static constexpr std::array kFashion{"t-shirt",
                                       "trouser",
                                       "pullover",
                                       "dress",
                                       "coat",
                                       "sandal",
                                       "shirt",
                                       "sneaker",
                                       "bag",
                                       "ankle-boot"};
  const bool unnamed = items.class_names() == numbered_names(static_cast<int>(kFashion.size()));
  return unnamed ? std::vector<std::string>(kFashion.begin(), kFashion.end()) : items.class_names();
}

}  // namespace

ComposedPicture compose_picture(const Dataset& items, const CompositionRules& rules, Index number) {
  constexpr std::uint64_t kComposition = 0x636f6d706f736564U;  // other draws have other seeds
  const std::uint64_t seed = mix_bits(rules.seed ^ kComposition);
  PictureDraws draws(seed, number);
  ComposedPicture composed{RgbPicture(rules.rows, rules.cols, kBlack), {}};
  RgbPicture& picture = composed.picture;
  draw_ground(draws, random_bits(seed, static_cast<std::uint64_t>(number), 1, 1), picture);
  const Index shorter = std::min(rules.rows, rules.cols);
  const Index wanted = draws.whole(1, kMostItemsOfPicture);
  std::vector<Region> places;
  for (Index i = 0; i < wanted; ++i) {
    const Index item = draws.whole(0, items.size() - 1);
    const Index side =
        draws.whole(std::max<Index>(8, shorter / 8), std::max<Index>(8, shorter / 2));
    const bool mirrored = draws.whole(0, 1) == 1;
    const Rgb tint = draws.colour(120, kFullByte);
    const ScaledItem scaled(items.read(item), side, mirrored);
    const Region extent = scaled.extent();
    constexpr int kTrials = 20;
    for (int trial = 0; trial < kTrials && !extent.empty(); ++trial) {
      const Index top = draws.whole(0, rules.rows - side);
      const Index left = draws.whole(0, rules.cols - side);
      const Region place = shifted_by(extent, top, left);
      if (std::none_of(places.begin(), places.end(), [&](const Region& other) {
            return covers_much(place, other);
          })) {
        draw_item(scaled, tint, top, left, picture);
        places.push_back(place);
        composed.boxes.push_back(box_of(place, items.label(item), picture));
        break;
      }
    }
  }
  return composed;
}

void write_composed_set(const fs::path& folder,
                        const fs::path& source,
                        const CompositionRules& rules,
                        Index training,
                        Index testing) {
  const Dataset train_items = list_dataset(source, Split::Train, 1);
  const Dataset test_items = list_dataset(source, Split::Test, 1);
  for (const Dataset* items : {&train_items, &test_items}) {
    if (items->byte_pictures() == nullptr || items->byte_pictures()->shape.channels != 1) {
      throw InputError(source.string(),
                       0,
                       "expected grey pictures in IDX files, as Fashion-MNIST's, to take items of");
    }
  }
  make_empty_folder(folder);
  CompositionRules for_testing = rules;
  for_testing.seed = mix_bits(rules.seed);
  write_atomically(folder / "train.txt", write_half(folder, "train", train_items, rules, training));
  write_atomically(folder / "test.txt",
                   write_half(folder, "test", test_items, for_testing, testing));
  std::string names;
  for (const std::string& name : item_names(train_items)) {
    names += name + "\n";
  }
  write_atomically(folder / "detection.names", names);
  write_atomically(folder / "detection.data",
                   fmt::format("classes={}\ntrain=train.txt\nvalid=test.txt\n"
                               "names=detection.names\nbackup=backup/\n",
                               train_items.classes()));
}

}  // namespace tessera::engine
