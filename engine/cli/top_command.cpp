#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <sys/resource.h>

#include "engine/cli/commands.h"
#include "engine/run_view/run_reader.h"
#include "engine/run_view/top_screen.h"
#include "engine/serve/qr_code.h"
#include "engine/serve/run_server.h"
#include "engine/system/clock.h"
#include "engine/terminal/live_terminal.h"

namespace tessera::engine {

namespace {

constexpr double kRefresh_s = 1;

TopView view_of(const TopCommand& command, const TerminalAbilities& abilities) {
  TopView view;
  view.style = {.colours = abilities.colours, .unicode = abilities.unicode && !command.ascii};
  return view;
}

// Lines for all devices, beside what else there is to see.
void print_once(const RunData& data, TopView view) {
  constexpr int kBesideDevices = 20;
  view.columns = terminal_size().columns;
  view.lines = std::max(TerminalSize().lines, data.ranks() + kBesideDevices);
  view.live = false;
  for (const std::string& line : top_screen(data, view)) {
    fmt::print("{}\n", line);
  }
}

// The first device to show after a key.
int scrolled(LiveTerminal::Key key, int first, const RunData& data, const TopView& view) {
  using Key = LiveTerminal::Key;
  const int last = last_first_device(data, view);
  const int page = std::max(data.ranks() - last, 1);
  switch (key) {
    case Key::Up:
      --first;
      break;
    case Key::Down:
      ++first;
      break;
    case Key::PageUp:
      first -= page;
      break;
    case Key::PageDown:
      first += page;
      break;
    case Key::Home:
      first = 0;
      break;
    case Key::End:
      first = last;
      break;
    default:
      break;
  }
  return std::clamp(first, 0, last);
}

bool show(LiveTerminal& terminal, const RunData& data, TopView& view) {
  const TerminalSize size = terminal_size();
  view.columns = size.columns;
  view.lines = size.lines;
  return terminal.show(top_screen(data, view));
}

// Until the folder is there: that of a run that starts soon. False where the user ends it before.
bool wait_for_folder(const std::filesystem::path& folder, LiveTerminal& terminal, TopView& view) {
  RunData nothing;
  nothing.folder = folder;
  std::error_code error;
  while (std::filesystem::status(folder, error).type() == std::filesystem::file_type::not_found) {
    if (!show(terminal, nothing, view) || terminal.wait(kRefresh_s) == LiveTerminal::Key::Quit) {
      return false;
    }
  }
  return true;
}

// Returns the signal that ended it, or 0.
int watch_run(const std::filesystem::path& folder, TopView view) {
  LiveTerminal terminal;
  if (!wait_for_folder(folder, terminal, view)) {
    return terminal.end_signal();
  }
  RunReader reader(folder);
  reader.read();
  double changed_s = now_s();
  double read_s = changed_s;
  for (;;) {
    view.quiet_s = now_s() - changed_s;
    if (!show(terminal, reader.data(), view)) {
      return 0;
    }
    const LiveTerminal::Key key =
        terminal.wait(std::clamp(read_s + kRefresh_s - now_s(), 0.0, kRefresh_s));
    if (key == LiveTerminal::Key::Quit) {
      return terminal.end_signal();
    }
    view.first_device = scrolled(key, view.first_device, reader.data(), view);
    if (now_s() - read_s >= kRefresh_s) {
      read_s = now_s();
      changed_s = reader.read() ? read_s : changed_s;
    }
  }
}

// For a telephone's camera, where the terminal can show it.
void print_code(const std::string& url) {
  const TerminalAbilities abilities = terminal_abilities();
  const auto modules = qr_modules(url);
  constexpr int kMargins = 8;
  if (abilities.colours && abilities.unicode &&
      std::ssize(modules) + kMargins <= terminal_size().columns) {
    for (const std::string& line : qr_lines(modules)) {
      fmt::print("{}\n", line);
    }
  }
}

void serve_run(const std::string& folder, const ServeAddress& where) {
  // Than ranks on this machine; the last one, 19, might wait for minutes.
  constexpr int kLessUrgent = 10;
  ::setpriority(PRIO_PROCESS, 0, kLessUrgent);
  RunServer server(folder, where);
  for (const std::string& url : server.urls()) {
    fmt::print("{}\n", url);
  }
  if (server.is_open_to_others()) {
    print_code(server.urls().front());
  }
  std::fflush(stdout);
  server.serve();
}

}  // namespace

void run_top(const TopCommand& command) {
  if (command.serve) {
    serve_run(command.run, *command.serve);
    return;
  }
  const TerminalAbilities abilities = terminal_abilities();
  if (command.once || !abilities.sequences) {
    RunReader reader(command.run);
    reader.read();
    print_once(reader.data(), view_of(command, abilities));
    return;
  }
  if (const int signal = watch_run(command.run, view_of(command, abilities)); signal != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // now that the terminal is as it was
  }
}

}  // namespace tessera::engine
