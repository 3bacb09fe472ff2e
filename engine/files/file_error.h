// What the operating system says about a file, as a message for the user: which file, what failed,
// what to do.

#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::engine {

// Throws InputError "PATH: ACTION: REASON; HINT" for the value of errno that a failed call left
// behind.
[[noreturn]] void throw_file_error(const std::filesystem::path& path,
                                   std::string_view action,
                                   int error_number);

}  // namespace tessera::engine
