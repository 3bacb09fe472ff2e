// What a data set holds, and what is wrong with it, in words.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/inspection/inspection.h"

namespace tessera::engine {

// One half of a data set with what was found out about it.
struct InspectedHalf {
  Dataset dataset;
  PictureRecords records;                     // of picture files; none: pictures are held as bytes
  std::vector<DecodingBytes> headers;         // of each picture file, as far as they were read
  std::vector<std::uint64_t> known_contents;  // for inspect(); 0: to be read; empty: all are
  std::vector<BadPicture> bad;                // pictures that cannot be used
  std::vector<std::uint64_t> contents;        // 0: not known

  explicit InspectedHalf(Dataset opened);
  // Takes pictures out of everything, given in rising order.
  void drop(const std::vector<Index>& items);
};

// Both, as far as they were opened.
struct InspectedData {
  std::string path;
  std::optional<InspectedHalf> training;
  std::optional<InspectedHalf> testing;

  [[nodiscard]] std::vector<const InspectedHalf*> halves() const;
  [[nodiscard]] std::vector<InspectedHalf*> halves();
};

// What to read of pictures of these sizes.
[[nodiscard]] ReadingRules reading_rules_for(const PictureRecords& records);
[[nodiscard]] ReadingRules reading_rules_for(const InspectedData& data);

// Reads the files of both as the rules say, and looks at what was read.
void inspect(InspectedData& data, const ReadingRules& rules, const Look& look);

// Whether what is wrong with the list of this half is its own: one that both were taken from is
// that of the first.
[[nodiscard]] bool lists_files(const InspectedData& data, const InspectedHalf& half);

// Pictures of each class.
[[nodiscard]] std::vector<Index> class_sizes(const Dataset& dataset);

// That there are very few pictures to test with, if it is so.
[[nodiscard]] std::optional<std::string> few_tested(const InspectedData& data);

// Everything that is wrong, errors first. Pictures that were dropped are not, but those that a list
// has no class for are.
[[nodiscard]] std::vector<DataProblem> problems_of(const InspectedData& data);

// Leaves one of each that are the same.
void drop_repeats(std::vector<DataProblem>& problems);

// The names of its classes, of many the first ones: "cat, dog".
[[nodiscard]] std::string listed_classes(const Dataset& dataset);

// "3 classes (ball, cup, tent)"
[[nodiscard]] std::string described_classes(const Dataset& dataset);

// "180 pictures, 3 classes (ball, cup, tent), 45 for testing; 2 .heic files left out".
[[nodiscard]] std::string summary_of(const InspectedData& data);

// "3 problems: 2 missing, 1 broken"; `problems` are some.
[[nodiscard]] std::string count_of(const std::vector<DataProblem>& problems);

}  // namespace tessera::engine
