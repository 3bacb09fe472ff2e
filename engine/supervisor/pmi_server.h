// The server's side of PMI-1, the protocol by which the ranks of an MPICH program learn of each
// other when they start: a store of keys and values, and a barrier. Lines of "key=value" words.
//
// It knows no sockets: lines come from who has the connections, and the answers go back by it. One
// server is for one world; the ranks of another one never see its values.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera::engine {

// "(vector,(0,2,1),(2,1,2))": which ranks share a machine, as MPICH reads it; `ranks` are those of
// one machine after the other.
[[nodiscard]] std::string process_mapping(const std::vector<int>& ranks_of_machines);

// The exit code with which a rank asks for the end of all in this line, and waits for it; nothing
// where it does not. Codes of MPI's own errors, which are larger than any exit code, are one.
[[nodiscard]] std::optional<int> abort_code_in(const std::string& line);

class PmiServer {
 public:
  PmiServer(int ranks, std::string mapping);

  struct Answer {
    int rank = 0;
    std::string line;  // without its end
  };
  // What a rank's line, without its end, is answered with: to this rank, to all of them at a
  // barrier, or to nobody. A line that is not of the protocol is answered with an error.
  [[nodiscard]] std::vector<Answer> take(int rank, const std::string& line);

 private:
  [[nodiscard]] std::vector<Answer> enter_barrier(int rank);
  [[nodiscard]] std::string value_of(const std::string& key) const;

  int ranks_;
  std::map<std::string, std::string> values_;
  std::vector<bool> waiting_;
  int waiting_count_ = 0;
};

}  // namespace tessera::engine
