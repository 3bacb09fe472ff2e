# cmake -D ROOT=FOLDER -D VERSION=V -D HEADER=FILE -P source_fingerprint.cmake: writes a header with a fingerprint of the
# sources of the program, by which ranks find out that they run the same.
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/engine/*.cpp ${ROOT}/engine/*.h ${ROOT}/engine/*.inl
  ${ROOT}/partitioner/*.cpp ${ROOT}/partitioner/*.h)
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${all}")
string(SUBSTRING ${fingerprint} 0 12 fingerprint)
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
#pragma once

namespace tessera::engine {

inline constexpr const char* kVersion = "@VERSION@";
inline constexpr const char* kSourceFingerprint = "@fingerprint@";

}  // namespace tessera::engine
]])
