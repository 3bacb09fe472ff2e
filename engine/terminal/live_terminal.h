// The terminal of a program that fills it: a screen of its own without a cursor, keys as they are
// pressed, and everything as it was before when this object ends, whichever way the program does
// (SIGKILL aside).

#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tessera::engine {

struct TerminalSize {
  int columns = 80;
  int lines = 24;
};

// The size of the terminal at standard output, else what COLUMNS and LINES say.
[[nodiscard]] TerminalSize terminal_size();

// What the terminal at standard output understands: escape sequences, colours (NO_COLOR and TERM
// may say no), Unicode (by the locale).
struct TerminalAbilities {
  bool is_terminal = false;
  bool sequences = false;
  bool colours = false;
  bool unicode = false;
};
[[nodiscard]] TerminalAbilities terminal_abilities();

class LiveTerminal {
 public:
  enum class Key { None, Quit, Up, Down, PageUp, PageDown, Home, End, Other };

  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  // Replaces what the screen shows. False where the terminal is gone.
  bool show(const std::vector<std::string>& lines);

  // Waits for a key, a change of size, or the time: then the key is None. Where a signal asks for
  // an end (SIGINT, SIGTERM, SIGHUP) it is Quit. A stop (Ctrl-Z) gives the terminal back meanwhile.
  Key wait(double seconds);

  // The signal that asked for the end; 0: none.
  [[nodiscard]] int end_signal() const;

 private:
  struct State;
  void enter();
  void leave();
  Key read_key();

  std::unique_ptr<State> state_;
};

}  // namespace tessera::engine
