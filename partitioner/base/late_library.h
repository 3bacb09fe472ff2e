// A library that is loaded when something of it is wanted, since it would take megabytes of every
// process; it stays then.

#pragma once

#include <initializer_list>
#include <type_traits>

namespace tessera {

class LateLibrary {
 public:
  // The first of these that there is.
  explicit LateLibrary(std::initializer_list<const char*> names);

  // Assigns the library's function of that name, or null. `Function` is a pointer to it.
  template <class Function>
  void find(Function& function, const char* name) {
    static_assert(std::is_pointer_v<Function>);
    function = reinterpret_cast<Function>(address_of(name));
  }

  // Whether the library is there, with all that was looked for.
  [[nodiscard]] bool is_complete() const { return complete_; }

 private:
  void* address_of(const char* name);

  void* library_ = nullptr;
  bool complete_ = true;
};

}  // namespace tessera
