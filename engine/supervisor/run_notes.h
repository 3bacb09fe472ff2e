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

  // Adds that the supervisor before this one, on that device, was gone, since the run's records
  // were written last: where they say that the run goes on, and no fault is noted already, after
  // which that one may have ended.
  void add_lost_supervisor(const std::filesystem::path& run_folder,
                           const std::string& device) const;

 private:
  std::filesystem::path file_;
};

}  // namespace tessera::engine
