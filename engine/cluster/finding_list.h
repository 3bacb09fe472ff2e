// What is wrong with devices and links, as those who judge them find it.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/cluster/findings.h"

namespace tessera::engine {

struct FindingList {
  int device = -1;  // which one is judged, as Finding has it
  std::vector<Finding> all;

  void problem(std::string subject, std::string what, std::string remedy) {
    all.push_back({device, true, std::move(subject), std::move(what), std::move(remedy)});
  }
  void warning(std::string subject, std::string what, std::string remedy) {
    all.push_back({device, false, std::move(subject), std::move(what), std::move(remedy)});
  }
};

// Of what a device says of its memory, its disk with the folder in which ranks are started, and its
// processor. `is_first`: its rank writes the run's folder.
void add_findings_of_facts(const ExaminedDevice& device,
                           const std::string& folder,
                           bool is_first,
                           FindingList& findings);

// Of the interfaces of all devices and of what was measured between them.
void add_findings_of_links(const Examination& examination, FindingList& findings);

}  // namespace tessera::engine
