#include "engine/supervisor/pmi_server.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace tessera::engine {

namespace {

// What a client may ask for of names and values; MPICH cuts its own into parts that fit.
constexpr int kLongestName = 256;
constexpr int kLongestKey = 64;
constexpr int kLongestValue = 1024;
constexpr std::size_t kMostValues = 100'000;

using Fields = std::map<std::string, std::string>;

// A value runs to the next blank, but for that of "value", which runs to the end.
Fields fields_of(const std::string& line) {
  Fields fields;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t equals = line.find('=', at);
    if (equals == std::string::npos) {
      break;
    }
    const std::string name = line.substr(at, equals - at);
    const std::size_t end =
        name == "value" ? line.size() : std::min(line.find(' ', equals), line.size());
    fields[name] = line.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return fields;
}

}  // namespace

std::string process_mapping(const std::vector<int>& ranks_of_machines) {
  std::string text = "(vector";
  for (std::size_t i = 0; i < ranks_of_machines.size();) {
    std::size_t end = i;
    while (end < ranks_of_machines.size() && ranks_of_machines[end] == ranks_of_machines[i]) {
      ++end;
    }
    text += fmt::format(",({},{},{})", i, end - i, ranks_of_machines[i]);
    i = end;
  }
  return text + ")";
}

std::optional<int> abort_code_in(const std::string& line) {
  constexpr int kMostExitCode = 255;
  constexpr int kOfMpi = 15;  // MPI_ERR_OTHER
  Fields fields = fields_of(line);
  if (fields["cmd"] != "abort") {
    return std::nullopt;
  }
  const int code = std::atoi(fields["exitcode"].c_str());
  return code >= 0 && code <= kMostExitCode ? code : kOfMpi;
}

PmiServer::PmiServer(int ranks, std::string mapping)
    : ranks_(ranks), waiting_(static_cast<std::size_t>(ranks)) {
  values_["PMI_process_mapping"] = std::move(mapping);
}

std::string PmiServer::value_of(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                                : "cmd=get_result rc=0 msg=success value=" + found->second;
}

std::vector<PmiServer::Answer> PmiServer::enter_barrier(int rank) {
  const auto place = static_cast<std::size_t>(rank);
  if (!waiting_[place]) {
    waiting_[place] = true;
    ++waiting_count_;
  }
  if (waiting_count_ < ranks_) {
    return {};
  }
  std::fill(waiting_.begin(), waiting_.end(), false);
  waiting_count_ = 0;
  std::vector<Answer> answers;
  for (int other = 0; other < ranks_; ++other) {
    answers.push_back({other, "cmd=barrier_out"});
  }
  return answers;
}

std::vector<PmiServer::Answer> PmiServer::take(int rank, const std::string& line) {
  if (rank < 0 || rank >= ranks_) {
    return {};
  }
  Fields fields = fields_of(line);
  const std::string command = fields["cmd"];
  const auto answer = [rank](std::string text) {
    return std::vector<Answer>{{rank, std::move(text)}};
  };
  if (command == "init") {
    const bool known = fields["pmi_version"] == "1";
    return answer(
        fmt::format("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={}", known ? 0 : -1));
  }
  if (command == "get_maxes") {
    return answer(fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}",
                              kLongestName,
                              kLongestKey,
                              kLongestValue));
  }
  if (command == "get_appnum") {
    return answer("cmd=appnum appnum=0");
  }
  if (command == "get_my_kvsname") {
    return answer("cmd=my_kvsname kvsname=tessera");
  }
  if (command == "get_universe_size") {
    return answer(fmt::format("cmd=universe_size size={} rc=0", ranks_));
  }
  if (command == "put") {
    const bool fits = fields["key"].size() <= kLongestKey &&
                      fields["value"].size() <= kLongestValue && values_.size() < kMostValues;
    if (fits) {
      values_[fields["key"]] = fields["value"];
    }
    return answer(fits ? "cmd=put_result rc=0 msg=success" : "cmd=put_result rc=-1 msg=too_long");
  }
  if (command == "get") {
    return answer(value_of(fields["key"]));
  }
  if (command == "barrier_in") {
    return enter_barrier(rank);
  }
  if (command == "finalize") {
    return answer("cmd=finalize_ack");
  }
  if (command == "abort") {
    return {};
  }
  return answer("cmd=error rc=-1 msg=unknown_command");
}

}  // namespace tessera::engine
