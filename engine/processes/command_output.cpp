#include "engine/processes/command_output.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostBytes = 65536;
constexpr double kLook_s = 0.02;  // from one look at the clock and at `stop` to the next

}  // namespace

std::string output_of(const ProgramToStart& program,
                      const std::string& name,
                      double seconds,
                      const std::stop_token& stop) {
  const double end_s = now_s() + seconds;
  const auto refuse = [&](const std::string& message) {
    throw InputError(fmt::format("{} {}", name, message));
  };
  const auto expect_patience = [&] {
    if (stop.stop_requested()) {
      refuse("was stopped");
    }
    if (now_s() > end_s) {
      refuse(fmt::format("took more than {:g} s", seconds));
    }
  };
  std::array<int, 2> pipe{-1, -1};  // programs may open /dev/stdout, which a socket cannot be
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    throw InputError("no more pipes can be made");
  }
  const Descriptor reader(pipe[0]);
  Descriptor writer(pipe[1]);
  ProgramToStart started = program;
  started.descriptors = {{STDOUT_FILENO, writer.number()}};
  ChildProcess process(started);
  writer.close();
  std::string text;
  for (ssize_t count = 1; count > 0;) {
    expect_patience();
    if (is_ready(reader.number(), POLLIN, kLook_s)) {
      std::array<char, 4096> bytes{};
      count = ::read(reader.number(), bytes.data(), bytes.size());
      text.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    if (text.size() > kMostBytes) {
      refuse("prints more than 64 KiB");
    }
  }
  while (!process.wait(kLook_s)) {
    expect_patience();
  }
  if (const ProcessEnd end = *process.look(); end.signal != 0) {
    refuse(fmt::format("was ended by signal {}", end.signal));
  } else if (end.code != 0) {
    refuse(fmt::format("exits with {}", end.code));
  }
  return text;
}

std::string command_output(const std::string& command,
                           double seconds,
                           const std::stop_token& stop) {
  return output_of({.words = {"/bin/sh", "-c", command}},
                   fmt::format("the command \"{}\"", printable_start(command)),
                   seconds,
                   stop);
}

}  // namespace tessera::engine
