// What a supervisor notes of a run for the ranks that follow, of which rank 0 has the events of the
// run: see session/faults_since.h.

#pragma once

#include <filesystem>
#include <string>

namespace tessera::engine {

class RunNotes {
 public:
  // In the state folder, as nothing else outlives ranks on this device.
  explicit RunNotes(const std::filesystem::path& state_folder);

  // Of a device, `ago_s` before now. What cannot be written is lost.
  void add(const std::string& kind,
           const std::string& text,
           const std::string& device,
           double ago_s = 0) const;

 private:
  std::filesystem::path file_;
};

}  // namespace tessera::engine
