#include "engine/system/say.h"

#include <cstdio>

namespace tessera::engine {

void say(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

}  // namespace tessera::engine
