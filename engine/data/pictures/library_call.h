// Calls of C libraries that report errors through a function that must not return (libjpeg,
// libpng). An exception must not pass their frames, so the function jumps back to here.

#pragma once

#include <array>
#include <csetjmp>
#include <string>

#include "engine/data/pictures/picture_formats.h"

namespace tessera::engine {

struct LibraryError {
  std::jmp_buf jump;
  bool cut_off = false;
  std::array<char, 256> reason{};
};

// Throws what has been written to `error` when the call is left by a jump to it. The jump skips
// destructors: `call` holds nothing that has one.
template <class Call>
void library_call(LibraryError& error, const Call& call) {
  if (setjmp(error.jump) != 0) {  // NOLINT(cert-err52-cpp): see above
    if (error.cut_off) {
      throw PictureCutOff();
    }
    throw PictureDamaged(error.reason.data());
  }
  call();
}

}  // namespace tessera::engine
