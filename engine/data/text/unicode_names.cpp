#include "engine/data/text/unicode_names.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utf8proc.h>

namespace tessera::engine {

std::string composed(std::string_view name) {
  const bool ascii = std::all_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x80;
  });
  if (ascii) {
    return std::string(name);
  }
  utf8proc_uint8_t* text = nullptr;
  const utf8proc_ssize_t bytes =
      ::utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                     static_cast<utf8proc_ssize_t>(name.size()),
                     &text,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(text, std::free);
  return bytes < 0
             ? std::string(name)
             : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes));
}

}  // namespace tessera::engine
