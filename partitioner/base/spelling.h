// What somebody may have meant who wrote a word that is not known: `Filters`, `batch_normalise`.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The nearest of the known words, of equally near ones the first; empty where none is near. Small
// and large letters, '-', ' ' and '_' are the same; of up to three letters none may be wrong, of up
// to six one, of more two (missing, added, another, or two that changed places).
[[nodiscard]] std::string_view nearest_word(std::string_view word,
                                            const std::vector<std::string_view>& known);

// ": did you mean `filters`?", or nothing.
[[nodiscard]] std::string suggestion(std::string_view word,
                                     const std::vector<std::string_view>& known);

}  // namespace tessera
