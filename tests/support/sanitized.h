// Whether a test runs under the address sanitizer.

#pragma once

namespace tessera::tests {

// Everything takes ten times as long there: tests that try out many cases try fewer.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace tessera::tests
