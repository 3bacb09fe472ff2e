// JSON of what may be missing.

#pragma once

#include <optional>

namespace tessera {

// The value, or null where there is none.
template <class Json, class Value>
[[nodiscard]] Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace tessera
