#include "engine/cluster/examination.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <sstream>

#include "engine/cluster/device_dialog.h"
#include "engine/cluster/link_trial.h"
#include "engine/probe/round_robin.h"
#include "engine/processes/addresses.h"
#include "engine/processes/remote_shell.h"
#include "engine/system/clock.h"
#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

constexpr const char* kShellMark = "tessera-device";
constexpr int kShellFailed = 255;  // ssh's exit code for its own errors
constexpr int kNotFound = 127;
constexpr double kReaching_s = 15;  // ssh gives up after 5
constexpr double kAnswering_s = 8;
constexpr double kTrial_s = 12;

// The devices' processes, and how to ask some of them.
class Conversation {
 public:
  explicit Conversation(std::size_t devices) : dialogs_(devices), is_silent_(devices) {}

  void start(std::size_t device, const std::vector<std::string>& words) {
    dialogs_[device].emplace(words);
  }
  void stop(std::size_t device) { dialogs_[device].reset(); }
  [[nodiscard]] std::optional<DeviceDialog>& of(std::size_t device) { return dialogs_[device]; }

  // The same question to all, or one to some; nobody else is asked. Who does not answer in time is
  // asked nothing more: a late answer would be taken for one to the next question.
  using Questions = std::vector<std::optional<to_device::Question>>;
  using Answers = std::vector<std::optional<DeviceDialog::Answer>>;
  [[nodiscard]] Answers ask(const Questions& questions, double timeout_s) {
    std::vector<AskedDevice> all(dialogs_.size());
    for (std::size_t i = 0; i < dialogs_.size(); ++i) {
      if (dialogs_[i] && questions[i] && !is_silent_[i]) {
        all[i] = {&*dialogs_[i], *questions[i]};
      }
    }
    Answers answers = ask_all(all, timeout_s);
    for (std::size_t i = 0; i < all.size(); ++i) {
      is_silent_[i] = is_silent_[i] || (all[i].device != nullptr && !answers[i]);
    }
    return answers;
  }
  [[nodiscard]] Answers ask(const to_device::Question& question, double timeout_s) {
    return ask(Questions(dialogs_.size(), question), timeout_s);
  }

 private:
  std::vector<std::optional<DeviceDialog>> dialogs_;
  std::vector<bool> is_silent_;
};

// Of the kind that the question has asked for; nothing where it has not come, or damaged.
template <class One>
std::optional<One> in(const std::optional<DeviceDialog::Answer>& answer) {
  return answer ? answer_in<One>(answer->line) : std::nullopt;
}

void take_names(const std::optional<DeviceDialog::Answer>& answer, ExaminedDevice& device) {
  if (const auto resolved = in<of_device::Resolved>(answer)) {
    for (const auto& [name, addresses] : resolved->names) {
      device.names[name] = addresses;
    }
    device.addresses = resolved->interfaces;
  }
}

bool has_address(const ExaminedDevice& device, const std::string& address) {
  return std::any_of(device.addresses.begin(),
                     device.addresses.end(),
                     [&](const of_device::Address& own) { return own.address == address; });
}

// What its name resolves to here, if that is one of its own; else what another device calls it by;
// else the first that it has.
std::string address_of_device(const Examination& examination, const ExaminedDevice& device) {
  std::vector<const ExaminedDevice*> asked{&examination.origin};
  for (const ExaminedDevice& other : examination.devices) {
    asked.push_back(&other);
  }
  for (const ExaminedDevice* other : asked) {
    if (const auto found = other->names.find(device.host.name); found != other->names.end()) {
      for (const std::string& address : found->second) {
        if (has_address(device, address)) {
          return address;
        }
      }
    }
  }
  return device.addresses.empty() ? "" : device.addresses.front().address;
}

class Examiner {
 public:
  explicit Examiner(const ExaminationRequest& request)
      : request_(request),
        devices_(request.hosts.size()),
        // This machine comes after the devices, whether or not it is one of them.
        conversation_(devices_ + 1) {
    result_.program = request.program;
    result_.folder = request.folder;
    result_.remote_shell = request.remote_shell;
    result_.devices.resize(devices_);
    for (std::size_t i = 0; i < devices_; ++i) {
      result_.devices[i].host = request.hosts[i];
    }
    result_.origin.host.name = host_name();
    result_.origin.is_here = true;
  }

  Examination run() {
    start();
    take_facts();
    find_here();
    take_names_of_all();
    compare_clocks();
    for (ExaminedDevice& device : result_.devices) {
      device.address = device.facts ? address_of_device(result_, device) : "";
    }
    if (request_.measures_links) {
      measure_links();
    }
    return std::move(result_);
  }

 private:
  void start();
  void take_facts();
  void find_here();
  void take_names_of_all();
  void compare_clocks();
  void measure_links();
  void measure_pairs(const std::vector<std::pair<int, int>>& pairs);
  void note_trouble(std::size_t device);
  [[nodiscard]] ExaminedDevice& at(std::size_t device) {
    return device == devices_ ? result_.origin : result_.devices[device];
  }
  // Devices that this machine is are asked through the process for this machine.
  [[nodiscard]] std::size_t asked_for(int device) const {
    return result_.devices[static_cast<std::size_t>(device)].is_here
               ? devices_
               : static_cast<std::size_t>(device);
  }

  const ExaminationRequest& request_;
  std::size_t devices_;
  Conversation conversation_;
  Examination result_;
};

void Examiner::start() {
  const std::string command = examining_command(request_.program, request_.folder);
  conversation_.start(devices_, {"/bin/sh", "-c", command});
  for (std::size_t i = 0; i < devices_; ++i) {
    const std::string& name = request_.hosts[i].name;
    const bool here = name == host_name() || name == "localhost" || is_own_address(name);
    if (here) {
      at(i).is_here = true;
    } else {
      conversation_.start(i, remote_command(request_.remote_shell, name, command));
    }
  }
}

void Examiner::take_facts() {
  const auto answers = conversation_.ask(to_device::Facts{request_.folder}, kReaching_s);
  for (std::size_t i = 0; i <= devices_; ++i) {
    auto& dialog = conversation_.of(i);
    if (!dialog) {
      continue;
    }
    (void)dialog->look();
    for (const std::string& line : dialog->greeting()) {
      const auto shell = shell_facts_in(line);
      if (shell) {
        at(i).shell = shell;
      }
      at(i).is_noisy = at(i).is_noisy || !shell;
    }
    at(i).facts = in<DeviceFacts>(answers[i]);
    if (!at(i).facts) {
      note_trouble(i);
      conversation_.stop(i);
    }
  }
  if (!result_.origin.facts) {
    throw InputError(fmt::format(
        "{} does not answer on this machine: {}", request_.program, result_.origin.shell_said));
  }
}

void Examiner::note_trouble(std::size_t device) {
  ExaminedDevice& examined = at(device);
  DeviceDialog& dialog = *conversation_.of(device);
  const auto end = dialog.end();
  (void)dialog.look();
  for (const std::string& line : dialog.errors()) {
    if (line.find_first_not_of(" \t@") != std::string::npos) {
      examined.shell_said = line;
    }
  }
  if (!examined.shell) {
    examined.trouble =
        end ? shell_trouble(dialog.errors(), end->signal != 0 ? kShellFailed : end->code)
            : ShellTrouble::Silent;
  }
}

void Examiner::find_here() {
  std::vector<std::string> names;
  for (const Host& host : request_.hosts) {
    names.push_back(host.name);
  }
  names.push_back(host_name());
  Conversation::Questions question(devices_ + 1);
  question[devices_] = to_device::Resolve{names};
  take_names(conversation_.ask(question, kAnswering_s)[devices_], result_.origin);
  for (std::size_t i = 0; i < devices_; ++i) {
    const auto& addresses = result_.origin.names[request_.hosts[i].name];
    const bool here = std::any_of(addresses.begin(), addresses.end(), [&](const auto& address) {
      return is_loopback_address(address) || has_address(result_.origin, address);
    });
    // A name that means this machine here may be another machine's whose name is wrong here: then
    // its own name, which came by the remote shell, says so.
    const bool is_known = at(i).facts.has_value();
    const bool is_same = is_known && is_same_machine(*at(i).facts, *result_.origin.facts);
    if (at(i).is_here || is_same || (here && !is_known)) {
      const Host host = at(i).host;
      at(i) = result_.origin;
      at(i).host = host;
      conversation_.stop(i);
    }
  }
}

void Examiner::take_names_of_all() {
  std::vector<std::string> names{host_name()};
  for (const Host& host : request_.hosts) {
    names.push_back(host.name);
  }
  Conversation::Questions questions(devices_ + 1, to_device::Resolve{names});
  questions[devices_].reset();
  const auto answers = conversation_.ask(questions, kAnswering_s);
  for (std::size_t i = 0; i < devices_; ++i) {
    take_names(answers[i], at(i));
  }
}

void Examiner::compare_clocks() {
  constexpr int kTrials = 5;
  std::vector<double> least_s(devices_, 0);
  for (int trial = 0; trial < kTrials; ++trial) {
    const double asked_s = time_of_day_s();
    const auto answers = conversation_.ask(to_device::Time{}, kAnswering_s);
    for (std::size_t i = 0; i < devices_; ++i) {
      const auto there = in<of_device::Time>(answers[i]);
      if (!there) {
        continue;
      }
      const double took_s = answers[i]->came_s - asked_s;
      if (!at(i).clock_offset_s || took_s < least_s[i]) {
        least_s[i] = took_s;
        at(i).clock_offset_s = there->time_s - asked_s - took_s / 2;
        at(i).clock_error_s = took_s / 2;
      }
    }
  }
}

void Examiner::measure_links() {
  constexpr std::size_t kFew = 16;
  std::vector<int> measured;
  for (int i = 0; i < static_cast<int>(devices_); ++i) {
    const ExaminedDevice& device = at(static_cast<std::size_t>(i));
    if (!device.facts) {
      continue;
    }
    // A machine may be in the list by several names.
    const bool is_again = std::any_of(measured.begin(), measured.end(), [&](int other) {
      return is_same_machine(*device.facts, *at(static_cast<std::size_t>(other)).facts);
    });
    if (!device.address.empty() && !is_again) {
      measured.push_back(i);
    }
  }
  if (measured.size() > kFew) {  // all pairs would take minutes
    for (std::size_t i = 1; i < measured.size(); ++i) {
      measure_pairs({{measured[0], measured[i]}});
    }
    return;
  }
  for (const auto& round : round_robin(static_cast<int>(measured.size()))) {
    std::vector<std::pair<int, int>> pairs;
    for (const auto& [a, b] : round) {
      pairs.emplace_back(measured[static_cast<std::size_t>(a)],
                         measured[static_cast<std::size_t>(b)]);
    }
    measure_pairs(pairs);
  }
}

// All at the same time; nobody is in two of them.
void Examiner::measure_pairs(const std::vector<std::pair<int, int>>& pairs) {
  Conversation::Questions listening(devices_ + 1);
  std::vector<to_device::Listen> listens;
  for (const auto& [a, b] : pairs) {
    listens.push_back({result_.devices[static_cast<std::size_t>(b)].address, new_token()});
    listening[asked_for(b)] = listens.back();
  }
  const auto ports = conversation_.ask(listening, kAnswering_s);
  Conversation::Questions connecting(devices_ + 1);
  std::vector<ExaminedLink> links;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [a, b] = pairs[i];
    links.push_back({.a = a, .b = b, .problem = "no answer"});
    const auto there = in<of_device::Listening>(ports[asked_for(b)]);
    if (there && there->port > 0) {
      connecting[asked_for(a)] =
          to_device::Connect{listens[i].address, there->port, listens[i].token};
    } else if (there) {
      links.back().problem = there->problem;
    }
  }
  const auto rates = conversation_.ask(connecting, kTrial_s);
  for (ExaminedLink& link : links) {
    const auto tried = in<of_device::Tried>(rates[asked_for(link.a)]);
    if (tried && connecting[asked_for(link.a)]) {
      link.problem = tried->problem;
      link.round_trip_s = tried->rates.round_trip_s;
      link.forward_bytes_per_s = tried->rates.to_bytes_per_s;
      link.back_bytes_per_s = tried->rates.from_bytes_per_s;
    }
    result_.links.push_back(link);
  }
}

}  // namespace

ShellTrouble shell_trouble(const std::vector<std::string>& errors, int exit_code) {
  struct Sign {
    const char* text;
    ShellTrouble trouble;
  };
  // The first of these that is said counts: a key that has changed is also one that was not
  // verified.
  constexpr std::array<Sign, 13> kSigns{{{"IDENTIFICATION HAS CHANGED", ShellTrouble::ChangedKey},
                                         {"Host key verification failed", ShellTrouble::UnknownKey},
                                         {"Could not resolve hostname", ShellTrouble::UnknownName},
                                         {"Permission denied", ShellTrouble::Denied},
                                         {"Too many authentication failures", ShellTrouble::Denied},
                                         {"Connection refused", ShellTrouble::Refused},
                                         {"No route to host", ShellTrouble::Unreachable},
                                         {"Network is unreachable", ShellTrouble::Unreachable},
                                         {"timed out", ShellTrouble::Unreachable},
                                         {"Host is down", ShellTrouble::Unreachable},
                                         {"Connection closed", ShellTrouble::Other},
                                         {"Connection reset", ShellTrouble::Other},
                                         {"kex_exchange", ShellTrouble::Other}}};
  for (const Sign& sign : kSigns) {
    for (const std::string& line : errors) {
      if (line.find(sign.text) != std::string::npos) {
        return sign.trouble;
      }
    }
  }
  return exit_code == kNotFound && errors.empty() ? ShellTrouble::NotStarted : ShellTrouble::Other;
}

std::string examining_command(const std::string& program, const std::string& folder) {
  const std::string name = shell_word(program);
  const std::string path = shell_word(folder);
  const std::string script = fmt::format(
      "p=missing; if [ -x {0} ] && [ -f {0} ]; then p=there; elif [ -e {0} ]; then p=unusable; fi; "
      "r=0; if command -v rsync >/dev/null 2>&1; then r=1; fi; f=0; if [ -d {1} ]; then f=1; fi; "
      "echo \"{2} $(uname -m) $(getconf LONG_BIT 2>/dev/null || echo '?') "
      "$(dpkg --print-architecture 2>/dev/null || echo '?') $p $r $f\"; "
      "if [ $p = there ]; then exec {0} agent --examine; fi",
      name,
      path,
      kShellMark);
  return "exec /bin/sh -c " + shell_word(script);
}

std::optional<ShellFacts> shell_facts_in(const std::string& line) {
  std::istringstream words(line);
  std::string mark;
  ShellFacts facts;
  int has_rsync = 0;
  int has_folder = 0;
  if (!(words >> mark >> facts.architecture >> facts.word_bits >> facts.packages >> facts.program >>
        has_rsync >> has_folder) ||
      mark != kShellMark) {
    return std::nullopt;
  }
  facts.has_rsync = has_rsync != 0;
  facts.has_folder = has_folder != 0;
  return facts;
}

Examination examine(const ExaminationRequest& request) {
  return Examiner(request).run();
}

}  // namespace tessera::engine
