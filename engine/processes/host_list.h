// The devices of a run, as a host file of MPICH's lists them: "HOST" or "HOST:RANKS" a line, "#"
// for comments; "HOST slots=RANKS" is read, too.

#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

inline constexpr int kMostRanksOfHost = 64;
inline constexpr std::size_t kMostHosts = 256;

struct Host {
  std::string name;  // or address
  int ranks = 1;
};

// Names go to a remote shell: letters, digits, ".", "-", "_", ":" and "%" alone, and no "-" first,
// so that none is taken for an option or for a command.
[[nodiscard]] bool is_host_name(std::string_view name);

// Throws InputError: the file, the line and what is wrong with it. A host that is listed twice has
// the ranks of both lines.
[[nodiscard]] std::vector<Host> read_host_file(const std::filesystem::path& path);

// The place of this machine in the list, by its name or by an address of one of its interfaces; -1:
// it is not there.
[[nodiscard]] int place_of_this_machine(const std::vector<Host>& hosts);

}  // namespace tessera::engine
