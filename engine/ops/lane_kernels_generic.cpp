// The inner loops for any machine: what the compiler makes of them for its default target.

#include "engine/ops/lane_kernel_versions.h"

namespace engine::generic {

#include "engine/ops/lane_kernels.inl"
#include "engine/ops/row_kernels.inl"

}  // namespace engine::generic
