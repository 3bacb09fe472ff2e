// Darknet's keys that this program does not act on, its forks' among them: a table of what each
// would do, and so of what to do where a file has it. Keys that this program acts on are not in it;
// these are read by name in cfg_layers and model_file.

#pragma once

#include <string_view>
#include <vector>

namespace tessera::partitioner {

enum class KeyEffect {
  Computed,  // what layers compute, or their loss: refused
  Training,  // how it is trained (augmentation, regularisation, what is loaded): refused
  None       // nothing here: memory, display, speed, other kinds of files; silent
};

struct KeyRule {
  std::string_view section;  // "net", a layer's first name, or "*": of any layer
  std::string_view key;
  KeyEffect effect;
  // With this value it has no effect: a number, a word, or "@key" for what that key says. Empty:
  // it always has.
  std::string_view neutral = "0";
};

// The rule of a key in a section; nullptr where there is none.
[[nodiscard]] const KeyRule* key_rule(std::string_view section, std::string_view key);

// All keys of the table for a section.
[[nodiscard]] std::vector<std::string_view> ruled_keys(std::string_view section);

// Whether `value` is the neutral one, as a number or as a word.
[[nodiscard]] bool same_value(std::string_view value, std::string_view neutral);

}  // namespace tessera::partitioner
