#include <filesystem>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/files/atomic_file.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

void run_adapt(const AdaptCommand& command) {
  std::error_code error;
  if (std::filesystem::equivalent(command.out, command.request.model, error)) {
    throw InputError(command.out, 0, "is the model file itself: give --out another name");
  }
  AdaptationRequest request = command.request;
  request.keep_anchors = command.anchors == "keep";
  const AdaptedModel adapted = adapt_model(request);
  for (const std::string& notice : adapted.notices) {
    print_warning(notice);
  }
  write_atomically(command.out, adapted.text, Links::Follow);
  for (const std::string& change : adapted.changes) {
    fmt::print("{}\n", printable(change));
  }
  fmt::print("{}: {}\n",
             printable(command.out),
             adapted.changes.empty() ? "the same, which fits already" : "written");
}

}  // namespace tessera::engine
