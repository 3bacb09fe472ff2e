// What is wrong with a data set, one thing each, so that all of it can be listed at once.

#pragma once

#include <string>
#include <string_view>

namespace tessera::engine {

enum class DataFault {
  // Errors: nothing is trained with such a picture or class.
  Missing,       // a picture that is not there
  Unreadable,    // a file or folder that may not be read, or is something other than a file
  Broken,        // a file that cannot be decoded
  Unlabelled,    // a picture without a class, or with more than one; without a file of boxes
  BadLabel,      // a box that no object can have, or a file of boxes that cannot be read
  OutOfRange,    // a box of a class that there is not
  EmptyClass,    // a class for training without pictures
  UnknownClass,  // a class for testing that training does not know
  Unusable,      // half of the data set, or how it fits the model
  // Warnings: worth knowing.
  Duplicate,     // the same picture again
  SameBox,       // the same box again, which counts once
  InBothHalves,  // the same picture for training and for testing
  LeftOut,       // files and folders that are not looked at
  DeeperFolder,  // pictures that lie deeper than in the folder of their class
  Unbalanced,    // classes of very unlike sizes, or without pictures to test with
  SpareOutputs,  // the model has more outputs than there are classes
  SameName,      // classes that are called alike
  SpareName,     // more names than there are classes
  NoObjects,     // a class without an object to train on, or none to test with
  DoubtfulBox,   // boxes as a fault of a converter makes them, or that the model cannot learn
  TurnedBox,     // boxes that were given for a picture as it is stored
  SharedLabels,  // a file of boxes for two pictures, or two for one
  Assumed,       // how it is read where it does not say so itself
};
inline constexpr int kDataFaults = 23;

[[nodiscard]] constexpr bool is_error(DataFault fault) {
  return fault < DataFault::Duplicate;
}

// Whether going on without one picture mends it.
[[nodiscard]] constexpr bool is_of_picture(DataFault fault) {
  return fault < DataFault::EmptyClass;
}

// Whether there is at most one of a data set, with a count.
[[nodiscard]] constexpr bool is_of_set(DataFault fault) {
  return fault >= DataFault::SpareName;
}

// "missing", "in both halves".
[[nodiscard]] constexpr std::string_view fault_name(DataFault fault) {
  constexpr std::string_view kNames[kDataFaults] = {
      "missing",     "unreadable",    "broken",     "unlabelled",    "bad label", "out of range",
      "empty class", "unknown class", "unusable",   "duplicate",     "same box",  "in both halves",
      "left out",    "deeper folder", "unbalanced", "spare outputs", "same name", "spare name",
      "no objects",  "doubtful box",  "turned box", "shared labels", "assumed"};
  return kNames[static_cast<int>(fault)];
}

// The end of a message about pictures that cannot be used, where a run may go on without them.
inline constexpr const char* kSkipHint = "; --skip-broken leaves such pictures out";

struct DataProblem {
  DataFault fault = DataFault::Missing;
  std::string where;  // a path, or "d.list:401"
  std::string what;
  friend bool operator==(const DataProblem&, const DataProblem&) = default;
};

}  // namespace tessera::engine
