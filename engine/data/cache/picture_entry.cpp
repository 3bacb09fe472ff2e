// The header alone: no other machine needs the library.
#define XXH_INLINE_ALL
#include "engine/data/cache/picture_entry.h"

#include <algorithm>
#include <string_view>
#include <xxhash.h>

#include "engine/base/digest.h"
#include "engine/data/pictures/picture_formats.h"

namespace tessera::engine {

namespace {

constexpr std::string_view kEntryMark = "tespic02";
constexpr std::size_t kSumAt = 8;
constexpr std::size_t kNumbersAt = 16;
constexpr std::size_t kNumbers = 8;
constexpr std::size_t kContentAt = 48;

template <class Number>
void put_number(Number number, std::uint8_t* out) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    out[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
}

template <class Number>
Number number_at(const std::uint8_t* bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<Number>(Number{bytes[i]} << (8 * i));
  }
  return number;
}

std::uint64_t sum_of(std::span<const std::uint8_t> numbers, std::span<const std::uint8_t> pixels) {
  XXH3_state_t sum;
  XXH3_64bits_reset(&sum);
  XXH3_64bits_update(&sum, numbers.data(), numbers.size());
  XXH3_64bits_update(&sum, pixels.data(), pixels.size());
  return XXH3_64bits_digest(&sum);
}

bool is_possible(const Picture& picture) {
  constexpr Index kMostPixels = Index{1} << 26U;  // in a row or column, as elsewhere in all
  const auto held = [&](Index size) {
    return (size + picture.reduction - 1) / std::max<Index>(picture.reduction, 1);
  };
  return picture.shape.rows > 0 && picture.shape.rows <= kMostPixels && picture.shape.cols > 0 &&
         picture.shape.cols <= kMostPixels && picture.reduction > 0 &&
         picture.held_rows == held(picture.shape.rows) &&
         picture.held_cols == held(picture.shape.cols) &&
         (picture.held_channels == 1 || picture.held_channels == 3) &&
         picture.lead_rows < picture.reduction && picture.lead_cols < picture.reduction;
}

}  // namespace

EntryHead entry_head(const Picture& picture, const ContentKey& content) {
  EntryHead head{};
  std::copy(kEntryMark.begin(), kEntryMark.end(), head.begin());
  const std::array<Index, kNumbers> numbers = {picture.shape.rows,
                                               picture.shape.cols,
                                               picture.reduction,
                                               picture.held_rows,
                                               picture.held_cols,
                                               picture.held_channels,
                                               picture.lead_rows,
                                               picture.lead_cols};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    put_number(static_cast<std::uint32_t>(numbers[i]), head.data() + kNumbersAt + 4 * i);
  }
  put_number(content.high, head.data() + kContentAt);
  put_number(content.low, head.data() + kContentAt + sizeof(content.high));
  put_number(sum_of(std::span<const std::uint8_t>(head).subspan(kNumbersAt), picture.pixels()),
             head.data() + kSumAt);
  return head;
}

std::optional<Picture> picture_of_entry(std::span<const std::uint8_t> entry,
                                        const ContentKey& content,
                                        Index channels,
                                        bool checked) {
  if (std::ssize(entry) < kEntryHeadBytes ||
      !std::equal(kEntryMark.begin(), kEntryMark.end(), entry.begin()) ||
      number_at<std::uint64_t>(entry.data() + kContentAt) != content.high ||
      number_at<std::uint64_t>(entry.data() + kContentAt + sizeof(content.high)) != content.low) {
    return std::nullopt;
  }
  std::array<Index, kNumbers> numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    numbers[i] = number_at<std::uint32_t>(entry.data() + kNumbersAt + 4 * i);
  }
  Picture picture;
  picture.shape = {channels, numbers[0], numbers[1]};
  picture.reduction = numbers[2];
  picture.held_rows = numbers[3];
  picture.held_cols = numbers[4];
  picture.held_channels = numbers[5];
  picture.lead_rows = numbers[6];
  picture.lead_cols = numbers[7];
  picture.lent = entry.subspan(static_cast<std::size_t>(kEntryHeadBytes));
  const std::span<const std::uint8_t> head = entry.first(static_cast<std::size_t>(kEntryHeadBytes));
  if (!is_possible(picture) ||
      std::ssize(picture.lent) != picture.held_rows * picture.held_cols * picture.held_channels ||
      (checked && number_at<std::uint64_t>(entry.data() + kSumAt) !=
                      sum_of(head.subspan(kNumbersAt), picture.lent))) {
    return std::nullopt;
  }
  return picture;
}

ContentKey content_key(std::span<const std::uint8_t> file) {
  Digest decoders;
  decoders.add(kEntryMark);
  decoders.add(jpeg_decoder_version());
  decoders.add(webp_decoder_version());
  const XXH128_hash_t hash = XXH3_128bits_withSeed(file.data(), file.size(), decoders.value());
  return {hash.high64, hash.low64};
}

}  // namespace tessera::engine
