// The ranks of a device: starting them, relaying what they say, and ending them.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <thread>

#include "engine/files/atomic_file.h"
#include "engine/supervisor/connection.h"
#include "engine/supervisor/device_agent.h"
#include "engine/supervisor/left_segments.h"
#include "engine/supervisor/pmi_server.h"
#include "engine/system/limits.h"
#include "engine/system/system_memory.h"
#include "engine/system/test_point.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

// What a device has little of that ranks may have failed for.
std::string limits_of_ranks(Index ranks) {
  constexpr Index kMpiOfRank = Index{8} << 20U;  // twice what UCX takes
  std::error_code error;
  const std::filesystem::path memory = "/dev/shm";
  const auto room = std::filesystem::space(memory, error);
  std::string text = tight_limits();
  if (!error && std::cmp_less(room.available, ranks * kMpiOfRank)) {
    text += fmt::format("{}{} has {} left, of which MPI takes several MiB for each rank",
                        text.empty() ? "" : ", ",
                        memory.string(),
                        readable_bytes(static_cast<Index>(room.available)));
  }
  return text;
}

}  // namespace

// Before this agent itself ends: what they leave behind is to be removed.
void Agent::end_ranks() {
  kill_ranks();
  const double killed_s = now_s();
  while (!ranks_.empty() && now_s() < killed_s + kLongestKill_s) {
    std::erase_if(ranks_, [](RankProcess& rank) { return rank.process.look().has_value(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  remove_segments();
}

void Agent::remove_segments() const {
  if (begun_ != 0) {
    remove_left_segments(begun_);
  }
}

void Agent::take(const to_agent::Start& start) {
  kill_ranks();
  next_world_ = start;
  next_world_s_ = now_s();
}

void Agent::start(const to_agent::Start& start) {
  world_ = start.world;
  if (!state_ && is_run_number(run_)) {
    take_state();
  }
  if (!state_) {
    throw InputError("a world was to start before it was told of");
  }
  ranks_finished_ = false;
  keeps_ = true;
  note_that_ranks_start();
  write_atomically(state_->path() / kRequestName, text_of(start.request));
  if (start.forget) {
    state_->forget_kept();
  }
  test_point("ranks_start");
  for (const int rank : start.ranks) {
    start_rank(start, rank);
  }
}

void Agent::start_rank(const to_agent::Start& start, int rank) {
  constexpr int kPmi = 3;
  constexpr int kStatus = 4;
  auto [pmi, rank_pmi] = socket_pair();
  auto [status, rank_status] = socket_pair();
  const int output = options_.output >= 0 ? options_.output : STDERR_FILENO;
  ProgramToStart program{.words = start.words,
                         .environment = environment_,
                         .folder = folder_,
                         .descriptors = {{STDOUT_FILENO, output},
                                         {STDERR_FILENO, STDERR_FILENO},
                                         {kPmi, rank_pmi.number()},
                                         {kStatus, rank_status.number()}}};
  program.environment["PMI_FD"] = fmt::format("{}", kPmi);
  program.environment["PMI_RANK"] = fmt::format("{}", rank);
  program.environment["PMI_SIZE"] = fmt::format("{}", start.size);
  program.environment["MPI_LOCALNRANKS"] = fmt::format("{}", start.ranks.size());
  program.environment["MPI_LOCALRANKID"] = fmt::format("{}", rank - start.ranks.front());
  program.environment[rank_variable::kAgent] = fmt::format("{}", kStatus);
  program.environment[rank_variable::kStateFolder] = state_->path().string();
  program.environment[rank_variable::kRequest] = (state_->path() / kRequestName).string();
  program.environment[rank_variable::kFaults] = (state_->path() / kFaultsName).string();
  program.environment[rank_variable::kCommand] = text_of_words(start.typed);
  if (start.again) {
    program.environment[rank_variable::kStartedAgain] = "1";
  }
  ranks_.emplace_back(
      rank, ChildProcess(program), LineStream(std::move(pmi)), LineStream(std::move(status)));
}

void Agent::kill_ranks() {
  for (const RankProcess& rank : ranks_) {
    rank.process.kill_group();
  }
}

void Agent::signal_ranks(int number) {
  if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGUSR1) {
    for (const RankProcess& rank : ranks_) {
      rank.process.signal(number);
    }
  }
}

// Of an older world: those ranks are gone.
void Agent::take(const PmiLine& message) {
  for (RankProcess& rank : ranks_) {
    if (message.world == world_ && rank.rank == message.rank) {
      rank.pmi.send(message.line);
    }
  }
}

void Agent::take(const to_agent::Pause& message) {
  for (RankProcess& rank : ranks_) {
    if (message.world == world_) {
      rank.status.send(line_of(to_rank::Pause{}));
    }
  }
}

void Agent::look_at_rank(RankProcess& rank) {
  for (const std::string& line : rank.pmi.receive()) {
    if (const auto code = abort_code_in(line)) {
      rank.aborted = code;
      rank.process.kill_group();
    }
    send(PmiLine{world_, rank.rank, line});
  }
  for (const std::string& line : rank.status.receive()) {
    rank.heard_s = now_s();
    rank.speaks = true;
    rank.told_late = false;
    const auto message = message_in<of_rank::Message>(line);
    if (message && !std::holds_alternative<of_rank::Beat>(*message)) {
      send(to_supervisor::Status{world_, rank.rank, *message});
    }
  }
  const double silent_s = now_s() - rank.heard_s;
  if (rank.speaks && !rank.told_late && silent_s > limit_s_ && !rank.process.look()) {
    rank.told_late = true;
    send(to_supervisor::Late{world_, rank.rank, static_cast<Index>(silent_s * 1000)});
  }
}

void Agent::look_at_ranks() {
  for (RankProcess& rank : ranks_) {
    look_at_rank(rank);
  }
  for (auto rank = ranks_.begin(); rank != ranks_.end();) {
    if (!rank->process.look()) {
      ++rank;
      continue;
    }
    look_at_rank(*rank);  // what it said last
    const ProcessEnd end = rank->aborted ? ProcessEnd{*rank->aborted, 0} : *rank->process.look();
    const Index kills = kills_for_memory();
    send(to_supervisor::Exit{.world = world_,
                             .rank = rank->rank,
                             .code = end.code,
                             .signal = end.signal,
                             .limits = limits_of_ranks(std::ssize(ranks_)),
                             .memory = kills > killed_for_memory_});
    killed_for_memory_ = kills;
    ranks_finished_ = ranks_finished_ || end == ProcessEnd();
    rank = ranks_.erase(rank);
    if (ranks_.empty()) {
      remove_segments();
    }
  }
}

}  // namespace tessera::engine
