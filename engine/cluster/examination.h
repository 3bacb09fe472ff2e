// What is found out about the devices of a cluster before anything is judged.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/protocol.h"
#include "engine/processes/host_list.h"

namespace tessera::engine {

// Why a remote shell did not get to a device.
enum class ShellTrouble {
  None,
  UnknownName,  // it does not resolve
  Unreachable,  // nothing answers at its address
  Refused,      // something does, but no ssh server
  UnknownKey,   // the host's key is not known yet
  ChangedKey,   // another one than before
  Denied,       // no key of this user is accepted there
  NotStarted,   // the remote shell itself is missing here
  Silent,       // no answer within the time
  Other
};

// By what ssh said, and the exit code of it.
[[nodiscard]] ShellTrouble shell_trouble(const std::vector<std::string>& errors, int exit_code);

// What a shell on the device says without the program.
struct ShellFacts {
  std::string architecture;  // "aarch64"
  std::string word_bits;     // "64"; "?" where it does not say
  std::string packages;      // Debian's name of the architecture, "arm64"; "?" where there is none
  std::string program = {};  // "there", "unusable", "missing"
  bool has_rsync = false;
  bool has_folder = false;
};

// The command line for a shell that says so in a line, and then becomes the program's examiner.
[[nodiscard]] std::string examining_command(const std::string& program, const std::string& folder);
[[nodiscard]] std::optional<ShellFacts> shell_facts_in(const std::string& line);

struct ExaminedDevice {
  Host host = {};
  bool is_here = false;
  ShellTrouble trouble = ShellTrouble::None;
  std::string shell_said = {};  // the last line of the remote shell's or the program's errors
  bool is_noisy = false;        // its shell prints something before a command starts
  std::optional<ShellFacts> shell = {};
  std::optional<DeviceFacts> facts = {};
  std::optional<double> clock_offset_s = {};  // of its clock before that of here
  double clock_error_s = 0;                   // half of the round trip in which that was measured
  std::map<std::string, std::vector<std::string>> names = {};  // what they resolve to there
  std::vector<of_device::Address> addresses = {};
  std::string address = {};  // by which others reach it; empty: not known
};

// Between two devices, by their places in the list.
struct ExaminedLink {
  int a = 0;
  int b = 0;
  double round_trip_s = 0;
  double forward_bytes_per_s = 0;  // from a to b
  double back_bytes_per_s = 0;
  std::string problem = {};  // why there are no numbers; empty: there are
};

struct Examination {
  std::string program = {};  // absolute path, the same on all devices
  std::string folder = {};   // the working folder
  std::string remote_shell = {};
  std::vector<ExaminedDevice> devices = {};  // in the order of the host file
  ExaminedDevice origin = {};                // this machine, which may be one of them
  std::vector<ExaminedLink> links = {};
};

struct ExaminationRequest {
  std::string program = {};
  std::string version = {};  // of the program
  std::string folder = {};
  std::string remote_shell = {};
  std::vector<Host> hosts = {};
  bool measures_links = true;
};

// Asks all devices at the same time; a device that does not answer costs some seconds. Prints
// nothing. Throws InputError where this machine cannot examine even itself.
[[nodiscard]] Examination examine(const ExaminationRequest& request);

}  // namespace tessera::engine
