// The text of a .cfg file as sections and keys, with the line of each, before anything is
// understood.
//
//   [section]      starts a section
//   key = value    belongs to the section before it
//   # or ;         starts a comment
//
// Spaces around names, keys and values do not count. Line ends may be those of any system.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::partitioner {

struct CfgEntry {
  std::string key;
  std::string value;
  int line = 0;
};

struct CfgSection {
  std::string name;  // without the brackets
  int line = 0;
  std::vector<CfgEntry> entries;
};

[[nodiscard]] bool is_net(std::string_view section);  // [net], that a model file starts with

// At least one section. Where the first is not [net] it is the only one: what follows is not looked
// at, since it may be anybody's file. Throws InputError (with `name` as the file) for what is no
// such text: a line without '=', a key before the first section, bytes that are not UTF-8.
[[nodiscard]] std::vector<CfgSection> read_cfg_sections(const std::string& text,
                                                        const std::string& name);

}  // namespace tessera::partitioner
