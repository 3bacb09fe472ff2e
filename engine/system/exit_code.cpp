#include "engine/system/exit_code.h"

#include <new>
#include <system_error>

#include "engine/system/stop_request.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

int exit_code_of(const std::exception& error) {
  if (const auto* stopped = dynamic_cast<const Stopped*>(&error)) {
    return stopped->exit_code();
  }
  const bool input = dynamic_cast<const InputError*>(&error) != nullptr ||
                     dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                     dynamic_cast<const std::system_error*>(&error) != nullptr;
  return input ? kInputError : kInternalError;
}

}  // namespace tessera::engine
