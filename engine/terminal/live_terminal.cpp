#include "engine/terminal/live_terminal.h"

#include <array>
#include <cerrno>
#include <clocale>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <string_view>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace tessera::engine {

namespace {

// What signals have asked for; handlers can do no more than note it.
volatile std::sig_atomic_t asked_to_end = 0;   // by which signal
volatile std::sig_atomic_t asked_to_stop = 0;  // for a while

void note_end(int signal) {
  asked_to_end = signal;
}
void note_stop(int /*signal*/) {
  asked_to_stop = 1;
}
void note_nothing(int /*signal*/) {}

struct Handler {
  int signal;
  void (*function)(int);
};
constexpr std::array kHandlers = {Handler{SIGINT, note_end},
                                  Handler{SIGTERM, note_end},
                                  Handler{SIGHUP, note_end},
                                  Handler{SIGTSTP, note_stop},
                                  Handler{SIGWINCH, note_nothing}};

// A screen of its own without a cursor, whose lines do not wrap.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

const char* environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing changes it
}

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      (void)::poll(&ready, 1, -1);
      continue;
    }
    if (count <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

int positive(const char* text, int otherwise) {
  const int number = text == nullptr ? 0 : std::atoi(text);
  constexpr int kMost = 10'000;
  return number > 0 && number <= kMost ? number : otherwise;
}

bool is_utf8_locale() {
  const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) {
    return false;
  }
  const bool utf8 = std::strcmp(::nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
  ::freelocale(locale);
  return utf8;
}

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  TerminalSize result;
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  result.columns =
      known && size.ws_col > 0 ? size.ws_col : positive(environment("COLUMNS"), result.columns);
  result.lines =
      known && size.ws_row > 0 ? size.ws_row : positive(environment("LINES"), result.lines);
  return result;
}

TerminalAbilities terminal_abilities() {
  const char* term = environment("TERM");
  const char* no_color = environment("NO_COLOR");
  TerminalAbilities abilities;
  abilities.is_terminal = ::isatty(STDOUT_FILENO) == 1;
  abilities.sequences =
      abilities.is_terminal && term != nullptr && *term != 0 && std::strcmp(term, "dumb") != 0;
  abilities.colours = abilities.sequences && (no_color == nullptr || *no_color == 0);
  abilities.unicode = is_utf8_locale();
  return abilities;
}

struct LiveTerminal::State {
  bool reads_keys = false;  // standard input is a terminal, too
  termios before{};
  std::array<struct sigaction, kHandlers.size()> handlers_before{};
  sigset_t signals_before{};
  bool entered = false;
  std::string keys;  // read and not yet told of
};

LiveTerminal::LiveTerminal() : state_(std::make_unique<State>()) {
  asked_to_end = 0;
  asked_to_stop = 0;
  state_->reads_keys =
      ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &state_->before) == 0;
  // They come only while it waits: none is missed between a look and the wait.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (std::size_t i = 0; i < kHandlers.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = kHandlers[i].function;
    ::sigemptyset(&action.sa_mask);
    ::sigaddset(&signals, kHandlers[i].signal);
    ::sigaction(kHandlers[i].signal, &action, &state_->handlers_before[i]);
    // One that is ignored, as under nohup, stays so.
    if (state_->handlers_before[i].sa_handler == SIG_IGN) {
      ::sigaction(kHandlers[i].signal, &state_->handlers_before[i], nullptr);
    }
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, &state_->signals_before);
  enter();
}

LiveTerminal::~LiveTerminal() {
  leave();
  for (std::size_t i = 0; i < kHandlers.size(); ++i) {
    ::sigaction(kHandlers[i].signal, &state_->handlers_before[i], nullptr);
  }
  ::pthread_sigmask(SIG_SETMASK, &state_->signals_before, nullptr);
}

void LiveTerminal::enter() {
  if (state_->reads_keys) {
    termios now = state_->before;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  state_->entered = write_all(kEnter);
}

void LiveTerminal::leave() {
  if (state_->entered) {
    (void)write_all(kLeave);
    state_->entered = false;
  }
  if (state_->reads_keys) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &state_->before);
  }
}

bool LiveTerminal::show(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  }
  return write_all(text + "\x1b[J");
}

LiveTerminal::Key LiveTerminal::read_key() {
  struct Sequence {
    std::string_view bytes;
    Key key;
  };
  constexpr std::array kSequences = {Sequence{"\x1b[A", Key::Up},
                                     Sequence{"\x1b[B", Key::Down},
                                     Sequence{"\x1bOA", Key::Up},
                                     Sequence{"\x1bOB", Key::Down},
                                     Sequence{"\x1b[5~", Key::PageUp},
                                     Sequence{"\x1b[6~", Key::PageDown},
                                     Sequence{"\x1b[H", Key::Home},
                                     Sequence{"\x1b[F", Key::End},
                                     Sequence{"k", Key::Up},
                                     Sequence{"j", Key::Down},
                                     Sequence{"g", Key::Home},
                                     Sequence{"G", Key::End},
                                     Sequence{" ", Key::PageDown},
                                     Sequence{"q", Key::Quit},
                                     Sequence{"Q", Key::Quit}};
  std::string& keys = state_->keys;
  if (keys.empty()) {
    return Key::None;
  }
  for (const Sequence& sequence : kSequences) {
    if (std::string_view(keys).starts_with(sequence.bytes)) {
      keys.erase(0, sequence.bytes.size());
      return sequence.key;
    }
  }
  // A sequence that means nothing here is dropped whole.
  keys.erase(0, keys[0] == '\x1b' ? keys.size() : 1);
  return Key::Other;
}

LiveTerminal::Key LiveTerminal::wait(double seconds) {
  if (const Key key = read_key(); key != Key::None) {
    return key;
  }
  pollfd input{state_->reads_keys ? STDIN_FILENO : -1, POLLIN, 0};
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(seconds);
  time.tv_nsec = static_cast<long>(1e9 * (seconds - std::floor(seconds)));
  const int ready = ::ppoll(&input, 1, &time, &state_->signals_before);
  if (asked_to_end != 0) {
    return Key::Quit;
  }
  if (asked_to_stop != 0) {
    asked_to_stop = 0;
    leave();
    ::raise(SIGSTOP);
    enter();
    return Key::Other;
  }
  if (ready > 0) {
    std::array<char, 64> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) {
      state_->reads_keys = state_->reads_keys && (count < 0 && (errno == EINTR || errno == EAGAIN));
      return Key::None;
    }
    state_->keys.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return read_key();
}

int LiveTerminal::end_signal() const {
  return asked_to_end;
}

}  // namespace tessera::engine
