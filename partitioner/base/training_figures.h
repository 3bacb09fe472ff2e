// Figures of a training run that several places show, each in one way.

#pragma once

#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera {

// The epoch, counted from 1, that a step belongs to, where all images have been seen `epochs` times
// after it. An epoch that ends within a step ends with that step.
[[nodiscard]] Index epoch_number(Index step, double epochs);

// Messages of training steps: their payload, as each rank sent it, however it travelled. What
// evaluation, monitoring and checkpoints send is not part of it.
struct SentMessages {
  Index steps = 0;            // in which they were sent
  std::vector<double> bytes;  // by rank, in all these steps
};
[[nodiscard]] double sum_of_bytes(const SentMessages& sent);

// "826.2 MiB in 300 steps by 4 ranks: 2.8 MiB per step, at most 704.1 KiB of it by one rank"; empty
// where nothing was sent.
[[nodiscard]] std::string described(const SentMessages& sent);

}  // namespace tessera
