// Times all-reduces: each rank owns a part of the vector, adds it up and sends it back, as the
// owners of parameters do, but with messages that are waited for at once.

#include <algorithm>
#include <utility>

#include "engine/base/median.h"
#include "engine/comm/exchange.h"
#include "engine/probe/link_probe.h"
#include "engine/system/clock.h"

namespace tessera::engine {

namespace {

using partitioner::AllReducePoint;
using partitioner::Message;

Region elements(const Range& range) {
  return {{0, 1}, {0, 1}, {0, 1}, range};
}

// From who owns a part of the vector to all others.
std::vector<Message> owners_messages(int ranks, Index count) {
  std::vector<Message> messages;
  for (int to = 0; to < ranks; ++to) {
    for (int from = 0; from < ranks; ++from) {
      const Range part{count * from / ranks, count * (from + 1) / ranks};
      if (from != to && !part.empty()) {
        messages.push_back({from, to, partitioner::Payload::cells(elements(part))});
      }
    }
  }
  return messages;
}

// Seconds of an all-reduce of the first `ranks`; the others wait.
double all_reduce_s(const Communicator& communicator, int ranks, Index count) {
  constexpr int kRepeats = 3;  // after one that connects those that have not met
  Array<float> values(count);
  const View<float> view{values.data(), elements({0, count}), 1};
  Exchange<float> exchange(communicator, owners_messages(ranks, count), kFirstExchangeTag);
  std::vector<double> seconds;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    communicator.barrier();
    const double start = now_s();
    exchange.start_add(view);
    exchange.finish_add(view);
    exchange.start_copy(view);
    exchange.finish_copy(view);
    const std::vector<double> taken = communicator.of_ranks(now_s() - start);
    seconds.push_back(*std::max_element(taken.begin(), taken.end()));
  }
  seconds.erase(seconds.begin());
  return median(seconds);
}

}  // namespace

std::vector<AllReducePoint> measure_all_reduces(const Communicator& communicator, double seconds) {
  std::vector<int> devices;
  for (int count = 2; count < communicator.size(); count *= 2) {
    devices.push_back(count);
  }
  devices.push_back(communicator.size());
  constexpr Index kSmallest = 4096;
  constexpr Index kLargest = 16 << 20;
  constexpr Index kGrowth = 8;
  std::vector<AllReducePoint> points;
  for (const int count : devices) {
    const double end = now_s() + seconds / static_cast<double>(devices.size());
    double size_s = 0;
    for (Index bytes = kSmallest; communicator.share(
             bytes == kSmallest || (bytes <= kLargest && now_s() + kGrowth * size_s < end));
         bytes *= kGrowth) {
      const double start = now_s();
      const double taken =
          all_reduce_s(communicator, count, bytes / static_cast<Index>(sizeof(float)));
      points.push_back({count, bytes, taken});
      size_s = now_s() - start;
    }
  }
  return points;
}

}  // namespace tessera::engine
