#include "engine/train/verifying/picture_equality.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <optional>

#include "engine/comm/agreement.h"
#include "engine/comm/list_equality.h"
#include "engine/comm/rank_equality.h"

namespace tessera::engine {

namespace {

constexpr const char* kRemedy =
    "copy the same data set to all machines, or let one rank read for all with --reader 0";

constexpr const char* kBoxes = "boxes ";  // begins the label of a picture that has some

// What ranks compare of a picture, in the order in which differences are reported.
struct Entry {
  std::string name;
  std::string bytes;  // empty: not a file of its own
  std::string label;
  std::string content;
};

std::string packed(const Entry& entry) {
  return entry.name + '\0' + entry.bytes + '\0' + entry.label + '\0' + entry.content;
}

Entry unpacked(const std::string& text) {
  std::array<std::string, 4> parts;
  std::size_t begin = 0;
  for (std::string& part : parts) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    part = text.substr(std::min(begin, end), end - std::min(begin, end));
    begin = end + 1;
  }
  return {parts[0], parts[1], parts[2], parts[3]};
}

bool lists(const std::vector<std::string>& entries, const std::string& name) {
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& each) {
    return unpacked(each).name == name;
  });
}

std::string unlike_pictures(const Entry& its, const Entry& first) {
  if (its.bytes == "-1" || first.bytes == "-1") {
    return its.bytes == "-1" ? "it is not there" : "it is not there on rank 0";
  }
  if (its.bytes != first.bytes) {
    return fmt::format("it has {} bytes instead of {}", its.bytes, first.bytes);
  }
  if (its.label != first.label) {
    return its.label.rfind(kBoxes, 0) == 0
               ? "its boxes differ"
               : fmt::format("it is of class {} instead of {}", its.label, first.label);
  }
  return "its content differs";
}

// What differs, seen from rank 0; `kind` is "pictures for training" or "classes".
std::string describe(const ListDifference& difference, const std::string& kind) {
  const std::string rank = rank_on(difference.rank, difference.host);
  const std::string zero = rank_on(0, difference.first_host);
  const auto& its = difference.entries;
  const auto& first = difference.first_entries;
  const Entry its_next = its.empty() ? Entry() : unpacked(its[0]);
  const Entry first_next = first.empty() ? Entry() : unpacked(first[0]);
  if (!its.empty() && !first.empty() && its_next.name == first_next.name) {
    return fmt::format("{} has a different {} among its {} than {}: {}",
                       rank,
                       first_next.name,
                       kind,
                       zero,
                       unlike_pictures(its_next, first_next));
  }
  if (!first.empty() && !lists(its, first_next.name)) {
    return fmt::format("{} lacks {} among its {}, which {} has", rank, first_next.name, kind, zero);
  }
  if (!its.empty() && !lists(first, its_next.name)) {
    return fmt::format("{} has {} among its {}, which {} lacks", rank, its_next.name, kind, zero);
  }
  return fmt::format(
      "{} has its {} in a different order than {}, from number {} on: {} instead of {}",
      rank,
      kind,
      zero,
      difference.place + 1,
      its_next.name,
      first_next.name);
}

void expect_same_list(Index count,
                      const std::function<std::string(Index)>& entry,
                      const std::string& kind,
                      const Communicator& communicator) {
  if (const auto difference = list_difference(count, entry, communicator)) {
    throw AgreedError(describe(*difference, kind) + "; " + kRemedy);
  }
}

Entry entry_of_bytes(const BytePictures& pictures, Index item) {
  return {
      fmt::format("picture {}", item), {}, {}, fmt::format("{:x}", content_digest(pictures, item))};
}

}  // namespace

void expect_same_pictures(const Dataset& dataset,
                          const PictureRecords& records,
                          const std::string& pictures,
                          const Communicator& communicator) {
  const std::vector<std::string>& classes = dataset.class_names();
  expect_same_list(
      dataset.classes(),
      [&](Index i) {
        return packed({classes[static_cast<std::size_t>(i)], {}, {}, {}});
      },
      "classes",
      communicator);
  const PictureFiles* files = dataset.files();
  std::optional<CommonNames> names;
  if (files != nullptr) {
    names.emplace(*files);
  }
  const auto entry = [&](Index item) {
    Entry mine;
    if (files == nullptr) {
      mine = entry_of_bytes(*dataset.byte_pictures(), item);
    } else {
      const PictureRecord& record = records.pictures[static_cast<std::size_t>(item)];
      mine = {std::string((*names)[item]),
              fmt::format("{}", record.bytes),
              {},
              fmt::format("{:x}", record.content)};
    }
    const int label = dataset.label(item);
    mine.label = label < 0 ? "" : classes[static_cast<std::size_t>(label)];
    if (dataset.has_boxes()) {
      mine.label = fmt::format("{}{:x}", kBoxes, digest_of(dataset.boxes_to_test(item)));
    }
    return packed(mine);
  };
  expect_same_list(dataset.size(), entry, pictures, communicator);
}

}  // namespace tessera::engine
