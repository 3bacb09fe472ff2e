// How many threads operators use on this rank.

#pragma once

namespace engine {

void set_threads(int count);
[[nodiscard]] int threads();

}  // namespace engine
