// Where an axis has its ticks: on numbers that people count in.

#pragma once

#include <string>
#include <vector>

namespace tessera::engine {

struct Ticks {
  std::vector<double> values;  // rising, from low to high
  double step = 0;             // between two of them; 0 on a logarithmic axis
};

// At most `most` multiples of 1, 2 or 5 times a power of ten. Empty where low is not below high.
[[nodiscard]] Ticks linear_ticks(double low, double high, int most);

// The same where only integers make sense, as for steps.
[[nodiscard]] Ticks whole_ticks(double low, double high, int most);

// Powers of ten, and 2 and 5 times those where there are few. Both bounds are positive.
[[nodiscard]] Ticks log_ticks(double low, double high);

// "0.25" beside a step of 0.05; "0.001" on a logarithmic axis.
[[nodiscard]] std::string tick_text(double value, double step);

}  // namespace tessera::engine
