#include "partitioner/base/late_library.h"

#include <dlfcn.h>

namespace tessera {

LateLibrary::LateLibrary(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    library_ = library_ == nullptr ? ::dlopen(name, RTLD_NOW | RTLD_LOCAL) : library_;
  }
  complete_ = library_ != nullptr;
}

void* LateLibrary::address_of(const char* name) {
  void* const address = library_ == nullptr ? nullptr : ::dlsym(library_, name);
  complete_ = complete_ && address != nullptr;
  return address;
}

}  // namespace tessera
