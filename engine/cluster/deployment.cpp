#include "engine/cluster/deployment.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <list>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "engine/processes/command_output.h"
#include "engine/processes/remote_shell.h"
#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAtOnce = 4;  // copies; this machine encrypts all of them
constexpr double kLooks_s = 0.1;

// A process whose lines are counted.
class CopyUnderWay {
 public:
  CopyUnderWay(Copy copy, const std::vector<std::string>& words)
      : copy_(std::move(copy)), process_(start_line_process(words)) {}

  // Whether it has ended.
  [[nodiscard]] bool look() {
    take_lines();
    if (!process_.process.look()) {
      return false;
    }
    take_lines();  // what it wrote last
    return true;
  }

  [[nodiscard]] const Copy& copy() const { return copy_; }
  [[nodiscard]] bool has_failed() {
    return process_.process.look().value_or(ProcessEnd()) != ProcessEnd();
  }
  [[nodiscard]] const std::string& first_error() const { return first_error_; }
  [[nodiscard]] Index files() const { return files_; }
  [[nodiscard]] Index bytes() const { return bytes_; }
  // That are newer, or different, over there.
  [[nodiscard]] const std::vector<std::string>& named() const { return named_; }
  [[nodiscard]] const LineStream& output() const { return process_.lines; }

 private:
  void take_lines() {
    for (const std::string& line : process_.lines.receive()) {
      if (const auto bytes = copied_bytes(line)) {
        ++files_;
        bytes_ += *bytes;
      }
      for (const auto& name : {newer_file(line), different_file(line)}) {
        if (name) {
          named_.push_back(*name);
        }
      }
    }
    for (const std::string& line : process_.errors.receive()) {
      if (first_error_.empty() && line.find_first_not_of(" \t\r") != std::string::npos) {
        first_error_ = line;
      }
    }
  }

  Copy copy_;
  LineProcess process_;
  Index files_ = 0;
  Index bytes_ = 0;
  std::vector<std::string> named_;
  std::string first_error_;
};

// All that a program prints, line by line; none where it fails or does not end in time.
std::vector<std::string> lines_of(const std::vector<std::string>& words) {
  constexpr double kTimeout_s = 15;
  std::vector<std::string> lines;
  try {
    std::istringstream text(
        output_of({.words = words, .environment = {{"LC_ALL", "C"}}}, words[0], kTimeout_s));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(line);
    }
  } catch (const InputError&) {
    // What it was to say is not known.
  }
  return lines;
}

bool is_rsync_here() {
  return !lines_of({"rsync", "--version"}).empty();
}

std::vector<std::string> packages_of(const std::vector<std::string>& libraries) {
  std::set<std::string> packages;
  for (const std::string& library : libraries) {
    const auto lines = lines_of({"dpkg-query", "-S", "*/" + library});
    const std::string line = lines.empty() ? library : lines.front();
    packages.insert(line.substr(0, line.find(':')));
  }
  return {packages.begin(), packages.end()};
}

class Deployer {
 public:
  explicit Deployer(const Deployment& deployment)
      : deployment_(deployment), examination_(examine(deployment.cluster)) {}

  std::vector<Finding> run() {
    check_devices();
    if (findings_.empty()) {
      const std::deque<Copy> copies = wanted_copies();
      if (!deployment_.overwrite) {
        perform(RsyncPass::FindNewer, copies);
        perform(RsyncPass::Compare, std::exchange(with_newer_, {}));
      }
      if (deployment_.dry_run) {
        perform(RsyncPass::Copy, copies);
      } else if (findings_.empty()) {
        make_folders();
        perform(RsyncPass::Copy, copies);
      }
    }
    if (findings_.empty() && !deployment_.dry_run) {
      check_programs();
    }
    return std::move(findings_);
  }

 private:
  void problem(int device, std::string subject, std::string what, std::string remedy) {
    findings_.push_back({device, true, std::move(subject), std::move(what), std::move(remedy)});
  }
  [[nodiscard]] const ExaminedDevice& at(int device) const {
    return examination_.devices[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] int devices() const { return static_cast<int>(examination_.devices.size()); }

  void check_devices();
  void check_architecture(int device);
  void make_folders();
  [[nodiscard]] std::deque<Copy> wanted_copies() const;
  void perform(RsyncPass pass, std::deque<Copy> waiting);
  void finish(RsyncPass pass, CopyUnderWay& copy);
  void judge_different(const CopyUnderWay& copy);
  void check_programs();
  void name_packages(int device);

  const Deployment& deployment_;
  Examination examination_;
  std::vector<Finding> findings_;
  std::deque<Copy> with_newer_;  // files over there
  std::set<std::tuple<int, fs::path, std::string>> newer_;
};

void Deployer::check_architecture(int device) {
  const ShellFacts& there = *at(device).shell;
  const ShellFacts& here = *examination_.origin.shell;
  const bool packages_known = there.packages != "?" && here.packages != "?";
  const bool alike =
      packages_known ? there.packages == here.packages
                     : there.architecture == here.architecture && there.word_bits == here.word_bits;
  if (!alike) {
    const auto name = [&](const ShellFacts& facts) {
      return packages_known ? facts.packages
                            : fmt::format("{}, {} bits", facts.architecture, facts.word_bits);
    };
    problem(device,
            "architecture",
            fmt::format("{} is a device of {}, this program is for {}",
                        at(device).host.name,
                        name(there),
                        name(here)),
            "build it there, in a folder of the same path: ./quickstart.sh installs the packages "
            "that it needs");
  }
}

void Deployer::check_devices() {
  if (!is_rsync_here()) {
    problem(-1, "rsync", "this machine has no rsync", "sudo apt-get install rsync");
  }
  for (int i = 0; i < devices(); ++i) {
    const ExaminedDevice& device = at(i);
    if (device.is_here) {
      continue;
    }
    for (Finding& finding : findings_of_shell(examination_, i)) {
      findings_.push_back(std::move(finding));
    }
    if (!device.shell) {
      continue;
    }
    check_architecture(i);
    if (!device.shell->has_rsync) {
      problem(i,
              "rsync",
              fmt::format("{} has no rsync", device.host.name),
              "there: sudo apt-get install rsync");
    }
    if (device.is_noisy) {
      problem(i,
              "ssh",
              fmt::format("the shell of {} prints something before a command starts, which rsync "
                          "does not take",
                          device.host.name),
              "there: let ~/.bashrc print nothing where there is no terminal");
    }
  }
}

// In which mpiexec starts ranks.
void Deployer::make_folders() {
  for (int i = 0; i < devices(); ++i) {
    if (!at(i).is_here && !at(i).shell->has_folder) {
      (void)lines_of(remote_command(examination_.remote_shell,
                                    at(i).host.name,
                                    "mkdir -p " + shell_word(examination_.folder)));
    }
  }
}

std::deque<Copy> Deployer::wanted_copies() const {
  std::vector<fs::path> paths{examination_.program};
  for (const fs::path& path : deployment_.paths) {
    paths.push_back(fs::absolute(path).lexically_normal());
  }
  std::deque<Copy> copies;
  for (const fs::path& path : paths) {
    for (int i = 0; i < devices(); ++i) {
      copies.push_back({i, path});
    }
  }
  for (const Copy& copy : copies_of_data(deployment_.cluster.hosts, deployment_.data)) {
    copies.push_back(copy);
  }
  copies.erase(
      std::remove_if(
          copies.begin(), copies.end(), [&](const Copy& copy) { return at(copy.device).is_here; }),
      copies.end());
  for (Copy& copy : copies) {
    if (!copy.path.has_filename()) {
      copy.path = copy.path.parent_path();  // "photos/"
    }
    std::error_code error;
    if (!fs::exists(copy.path, error)) {
      throw InputError(copy.path.string(),
                       0,
                       fmt::format("is not on this machine, {}, to be copied to {}",
                                   host_name(),
                                   at(copy.device).host.name));
    }
  }
  return copies;
}

// What is newer over there and has other content is somebody's work.
void Deployer::judge_different(const CopyUnderWay& copy) {
  constexpr std::size_t kMostNames = 5;
  std::vector<std::string> names;
  for (const std::string& name : copy.named()) {
    if (newer_.count({copy.copy().device, copy.copy().path, name}) > 0) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return;
  }
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  problem(copy.copy().device,
          "copy",
          fmt::format("{} has newer, different files in place of {}: {}{}",
                      at(copy.copy().device).host.name,
                      copy.copy().path.string(),
                      fmt::join(names, ", "),
                      more > 0 ? fmt::format(" and {} more", more) : ""),
          "copy them here if they are to be kept; --overwrite replaces them");
}

void Deployer::finish(RsyncPass pass, CopyUnderWay& copy) {
  const std::string& name = at(copy.copy().device).host.name;
  if (copy.has_failed()) {
    problem(copy.copy().device,
            "copy",
            fmt::format("{} could not be copied to {}: {}",
                        copy.copy().path.string(),
                        name,
                        copy.first_error()),
            "can this user write there, and is there room on its disk?");
    return;
  }
  if (pass == RsyncPass::FindNewer) {
    for (const std::string& file : copy.named()) {
      newer_.insert({copy.copy().device, copy.copy().path, file});
    }
    if (!copy.named().empty()) {
      with_newer_.push_back(copy.copy());
    }
    return;
  }
  if (pass == RsyncPass::Compare) {
    judge_different(copy);
    return;
  }
  deployment_.say(fmt::format("{}: {}: {}",
                              name,
                              copy.copy().path.string(),
                              copy.files() == 0
                                  ? "is there already"
                                  : fmt::format("{}{}, {}",
                                                deployment_.dry_run ? "would copy " : "",
                                                counted(copy.files(), "file"),
                                                readable_bytes(copy.bytes()))));
}

void Deployer::perform(RsyncPass pass, std::deque<Copy> waiting) {
  std::list<CopyUnderWay> under_way;
  while (!waiting.empty() || !under_way.empty()) {
    while (!waiting.empty() && under_way.size() < kAtOnce) {
      const Copy copy = waiting.front();
      waiting.pop_front();
      std::error_code error;
      under_way.emplace_back(copy,
                             rsync_words({.remote_shell = examination_.remote_shell,
                                          .host = at(copy.device).host.name,
                                          .path = copy.path,
                                          .is_folder = fs::is_directory(copy.path, error),
                                          .dry_run = deployment_.dry_run,
                                          .overwrite = deployment_.overwrite,
                                          .pass = pass}));
    }
    PollSet outputs;
    for (auto copy = under_way.begin(); copy != under_way.end();) {
      if (copy->look()) {
        finish(pass, *copy);
        copy = under_way.erase(copy);
      } else {
        outputs.add(copy->output());
        ++copy;
      }
    }
    const bool may_start_more = under_way.size() < kAtOnce && !waiting.empty();
    if (!under_way.empty() && !may_start_more) {
      outputs.wait(kLooks_s);
    }
  }
}

void Deployer::name_packages(int device) {
  std::vector<std::string> libraries;
  for (const std::string& line :
       lines_of(remote_command(examination_.remote_shell,
                               at(device).host.name,
                               "ldd " + shell_word(examination_.program)))) {
    if (const std::string library = missing_library(line); !library.empty()) {
      libraries.push_back(library);
    }
  }
  if (!libraries.empty()) {
    problem(device,
            "packages",
            fmt::format("{} lacks libraries of the program: {}",
                        at(device).host.name,
                        fmt::join(libraries, ", ")),
            fmt::format("there: sudo apt-get install {}", fmt::join(packages_of(libraries), " ")));
  }
}

void Deployer::check_programs() {
  examination_ = examine(deployment_.cluster);
  for (int i = 0; i < devices(); ++i) {
    if (!at(i).facts) {
      name_packages(i);
    }
  }
  if (findings_.empty()) {
    for (Finding& finding : findings_of(examination_)) {
      const bool concerns =
          finding.subject == "program" || finding.subject == "mpi" || finding.subject == "ssh";
      if (finding.is_problem && concerns) {
        findings_.push_back(std::move(finding));
      }
    }
  }
}

}  // namespace

std::vector<Finding> deploy(const Deployment& deployment) {
  return Deployer(deployment).run();
}

}  // namespace tessera::engine
