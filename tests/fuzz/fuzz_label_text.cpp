#include <fmt/format.h>
#include <string>

#include "tests/fuzz/box_laws.h"
#include "tests/fuzz/harness.h"

namespace tessera::tests {

bool fuzz_label_text(Bytes bytes) {
  constexpr int kClasses = 20;
  const engine::ReadBoxes read = engine::read_label_text(fuzz_file("label.txt", bytes), kClasses);
  check_read_boxes(read, kClasses);
  std::string text;
  for (const engine::Box& box : read.boxes) {
    text += fmt::format(
        "{} {} {} {} {}\n", box.label, box.centre_x, box.centre_y, box.width, box.height);
  }
  const std::span<const char> letters(text);
  const engine::ReadBoxes again = engine::read_label_text(
      fuzz_file("again.txt",
                {reinterpret_cast<const std::uint8_t*>(letters.data()), letters.size()}),
      kClasses);
  law(again.boxes == read.boxes && again.problems.empty(), "boxes that are written are read again");
  return is_usable(read.problems);
}

}  // namespace tessera::tests
