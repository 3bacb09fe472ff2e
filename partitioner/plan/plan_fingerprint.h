// Whether two ranks have derived the same plan, without sending it.

#pragma once

#include <string>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// A short text that differs between plans of other regions, buffers, messages or kernels.
[[nodiscard]] std::string fingerprint(const Plan& plan);

}  // namespace tessera::partitioner
