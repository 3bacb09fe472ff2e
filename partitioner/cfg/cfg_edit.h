// Changes in the text of a model file that leave the rest of it as it is, comments and line ends
// too.

#pragma once

#include <string>
#include <vector>

namespace tessera::partitioner {

struct CfgChange {
  int section_line = 0;  // the line of its section's header, see CfgSection
  std::string key;
  std::string value;  // empty: the key is made a comment
};

// Each key gets its value where its section has it first, which is what counts, else in a line of
// its own below the header. The text is one that read_cfg_sections() takes.
[[nodiscard]] std::string with_changes(const std::string& text,
                                       const std::vector<CfgChange>& changes);

}  // namespace tessera::partitioner
