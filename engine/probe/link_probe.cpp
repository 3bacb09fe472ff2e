#include "engine/probe/link_probe.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

#include "engine/base/median.h"
#include "engine/comm/bulk_transfers.h"
#include "engine/comm/tags.h"
#include "engine/probe/link_fit.h"
#include "engine/probe/round_robin.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr int kRepeats = 5;  // of each size: their median counts

// Leaves caches as a step does in which a rank computes before it sends: full of other things.
class OtherWork {
 public:
  // Others that share the processor get it here, not in what is timed next.
  void run() {
    constexpr std::size_t kLine = 64 / sizeof(float);
    float sum = 0;
    for (std::size_t i = 0; i < values_.size(); i += kLine) {
      sum += values_[i];
    }
    values_[0] = sum;
    std::this_thread::yield();
  }

 private:
  std::vector<float> values_ = std::vector<float>(std::size_t{1} << 20U);  // 4 MiB
};

// Two ranks that measure the link between them. The lower one leads: it says when to go on.
class Pair {
 public:
  Pair(const Communicator& communicator, int peer) : communicator_(communicator), peer_(peer) {}

  [[nodiscard]] bool leads() const { return communicator_.rank() < peer_; }

  // What the leader said, on both, after a round trip that starts both at nearly the same time.
  bool go_on(bool said) {
    std::byte word{said};
    const double start = now_s();
    if (leads()) {
      send(word);
      receive(word);
      round_trip_s_ = now_s() - start;
    } else {
      receive(word);
      send(word);
    }
    return word == std::byte{true};
  }
  [[nodiscard]] double round_trip_s() const { return round_trip_s_; }  // of the leader's last word

  // The leader's number, on both.
  double agree(double mine) {
    if (leads()) {
      send(mine);
    } else {
      receive(mine);
    }
    return mine;
  }

  // Seconds until as many bytes have come as are sent at the same time.
  double swap_s(std::vector<std::byte>& in, const std::vector<std::byte>& out) {
    Requests receives;
    Requests sends;
    const double start = now_s();
    communicator_.post_receive(receives, peer_, kProbeLoadTag, in);
    communicator_.post_send(sends, peer_, kProbeLoadTag, out);
    receives.wait_all();
    const double taken = now_s() - start;
    sends.wait_all();
    return taken;
  }

  // Processor seconds for each second of waiting: a rank that waits looks for messages again and
  // again.
  double processor_share_of_waiting() {
    constexpr std::chrono::milliseconds kWait{10};
    std::byte word{};
    double share = 0;
    for (const bool mine : {leads(), !leads()}) {
      if (mine) {
        const double start = now_s();
        const double used = processor_s();
        receive(word);
        share = (processor_s() - used) / (now_s() - start);
      } else {
        std::this_thread::sleep_for(kWait);
        send(word);
      }
    }
    return share;
  }

  // Processor seconds of a byte that is sent or received in large messages, waiting apart.
  double processor_s_of_byte() {
    constexpr std::size_t kMessage = 65536;
    constexpr std::size_t kMessages = 4;
    const double waiting = processor_share_of_waiting();
    std::vector<std::byte> in(kMessages * kMessage);
    const std::vector<std::byte> out(kMessages * kMessage);
    std::vector<double> of_byte;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      (void)go_on(true);
      const double start = now_s();
      const double used = processor_s();
      Requests requests;
      for (std::size_t i = 0; i < kMessages; ++i) {
        communicator_.post_receive(requests, peer_, kProbeLoadTag, {&in[i * kMessage], kMessage});
        communicator_.post_send(requests, peer_, kProbeLoadTag, {&out[i * kMessage], kMessage});
      }
      requests.wait_all();
      const double taken = processor_s() - used - waiting * (now_s() - start);
      of_byte.push_back(std::max(taken, 0.0) / static_cast<double>(2 * in.size()));
    }
    return median(of_byte);
  }

  // Processor seconds of a message, as the mean of some that go both ways.
  double processor_s_of_message() {
    constexpr std::size_t kMessages = 64;
    std::vector<std::byte> in(kMessages);
    const std::vector<std::byte> out(kMessages);
    const double start = processor_s();
    Requests requests;
    for (std::byte& byte : in) {
      communicator_.post_receive(requests, peer_, kProbeLoadTag, {&byte, 1});
    }
    for (const std::byte& byte : out) {
      communicator_.post_send(requests, peer_, kProbeLoadTag, {&byte, 1});
    }
    requests.wait_all();
    return (processor_s() - start) / (2 * kMessages);
  }

  // Processor seconds to send a message after `other` work: the median of some.
  double processor_s_of_first_message(OtherWork& other) {
    std::byte word{};
    std::vector<double> sent_s;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (const bool mine : {leads(), !leads()}) {
        if (!mine) {
          receive(word);
          continue;
        }
        other.run();
        const double start = processor_s();
        send(word);
        sent_s.push_back(processor_s() - start);
      }
    }
    return median(sent_s);
  }

 private:
  template <class Word>
  void send(const Word& word) {
    Requests requests;
    communicator_.post_send(requests, peer_, kProbeControlTag, bytes_of(&word, 1));
    requests.wait_all();
  }
  template <class Word>
  void receive(Word& word) {
    Requests requests;
    communicator_.post_receive(requests, peer_, kProbeControlTag, bytes_of(&word, 1));
    requests.wait_all();
  }

  const Communicator& communicator_;
  int peer_;
  double round_trip_s_ = 0;
};

double half_round_trip_s(Pair& pair, double seconds) {
  constexpr std::size_t kLeast = 10;
  constexpr std::size_t kMost = 1000;
  (void)pair.go_on(true);  // connects the two
  const double end = now_s() + seconds;
  std::vector<double> halves;
  while (pair.go_on(halves.size() < kLeast || (halves.size() < kMost && now_s() < end))) {
    halves.push_back(pair.round_trip_s() / 2);
  }
  return pair.agree(pair.leads() ? median(halves) : 0);
}

double received_bytes_per_s(Pair& pair, double seconds) {
  constexpr std::size_t kSmallest = 16384;
  constexpr std::size_t kLargest = 4U << 20U;
  constexpr std::size_t kGrowth = 4;
  const double end = now_s() + seconds;
  std::vector<TimedTransfer> transfers;
  double size_s = 0;  // of all repeats of a size
  for (std::size_t bytes = kSmallest;
       pair.go_on(bytes == kSmallest || (bytes <= kLargest && now_s() + kGrowth * size_s < end));
       bytes *= kGrowth) {
    std::vector<std::byte> in(bytes);
    const std::vector<std::byte> out(bytes);
    const double start = now_s();
    std::vector<double> seconds_of_each;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      (void)pair.go_on(true);
      seconds_of_each.push_back(pair.swap_s(in, out));
    }
    transfers.push_back({static_cast<double>(bytes), median(seconds_of_each)});
    size_s = now_s() - start;
  }
  return fit_link(transfers).bytes_per_s;
}

// All rounds of pairs. A rank that rests waits for the others' round to end.
void measure_pairs(const Communicator& communicator,
                   double seconds,
                   LinkMeasurements& measurements) {
  const auto rounds = round_robin(communicator.size());
  const double round_s = seconds / static_cast<double>(rounds.size());
  std::vector<double> message_s;
  std::vector<double> first_message_s;
  std::vector<double> byte_s;
  OtherWork other;
  for (const auto& round : rounds) {
    for (const auto& [a, b] : round) {
      if (communicator.rank() != a && communicator.rank() != b) {
        continue;
      }
      const int peer = communicator.rank() == a ? b : a;
      Pair pair(communicator, peer);
      constexpr double kLatencyPart = 0.2;
      measurements.half_round_trip_s[static_cast<std::size_t>(peer)] =
          half_round_trip_s(pair, kLatencyPart * round_s);
      message_s.push_back(pair.processor_s_of_message());
      first_message_s.push_back(pair.processor_s_of_first_message(other));
      byte_s.push_back(pair.processor_s_of_byte());
      measurements.received_bytes_per_s[static_cast<std::size_t>(peer)] =
          received_bytes_per_s(pair, (1 - kLatencyPart) * round_s);
    }
    communicator.barrier();
  }
  measurements.message_s = median(message_s);
  measurements.first_message_s = median(first_message_s);
  measurements.byte_s = median(byte_s);
}

enum class Direction { Out, In };

// One rank and all others: it sends `bytes` to each of them at once, or they to it. As in gradient
// reductions, a few chunks at a time: more than an interface can carry at once would be lost on the
// way, and waited for much longer than it takes.
class Star {
 public:
  Star(const Communicator& communicator, int hub, Direction direction, std::size_t bytes)
      : communicator_(communicator),
        transfers_(communicator),
        hub_(hub),
        direction_(direction),
        load_((communicator.rank() == hub ? static_cast<std::size_t>(communicator.size()) : 1) *
              bytes),
        bytes_(bytes) {}

  // Until all are there, on the hub. All ranks call this together.
  [[nodiscard]] double seconds() {
    communicator_.barrier();
    const double start = now_s();
    if (communicator_.rank() == hub_) {
      meet_all();
    } else {
      meet_hub();
    }
    return now_s() - start;
  }

 private:
  void meet_all() {
    std::vector<std::byte> words(static_cast<std::size_t>(communicator_.size()));
    Requests requests;
    BulkTransfers::Batch batch;
    for (int peer = 0; peer < communicator_.size(); ++peer) {
      if (peer == hub_) {
        continue;
      }
      const auto part = std::span(load_).subspan(static_cast<std::size_t>(peer) * bytes_, bytes_);
      if (direction_ == Direction::In) {
        transfers_.post_receive(batch, peer, part);
      } else {
        std::byte& word = words[static_cast<std::size_t>(peer)];
        communicator_.post_receive(requests, peer, kProbeControlTag, {&word, 1});
        transfers_.post_send(batch, peer, part);
      }
    }
    transfers_.wait(batch);
    requests.wait_all();
  }

  void meet_hub() {
    BulkTransfers::Batch batch;
    if (direction_ == Direction::In) {
      transfers_.post_send(batch, hub_, load_);
      transfers_.wait(batch);
      return;
    }
    transfers_.post_receive(batch, hub_, load_);
    transfers_.wait(batch);
    Requests requests;
    const std::byte arrived{1};
    communicator_.post_send(requests, hub_, kProbeControlTag, {&arrived, 1});
    requests.wait_all();
  }

  const Communicator& communicator_;
  BulkTransfers transfers_;
  int hub_;
  Direction direction_;
  std::vector<std::byte> load_;  // on the hub: of each rank, by rank
  std::size_t bytes_;
};

// The network interface of the hub. The least time counts: where something is lost on the way,
// such a short transfer waits longer for that than for all the rest.
double star_bytes_per_s(const Communicator& communicator,
                        int hub,
                        Direction direction,
                        std::size_t bytes) {
  Star star(communicator, hub, direction, bytes);
  double least_s = partitioner::kInfiniteRate;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    least_s = std::min(least_s, star.seconds());
  }
  return static_cast<double>(bytes) * (communicator.size() - 1) / least_s;
}

void measure_stars(const Communicator& communicator,
                   double seconds,
                   LinkMeasurements& measurements) {
  double slowest = partitioner::kInfiniteRate;
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer != communicator.rank()) {
      slowest =
          std::min(slowest, measurements.received_bytes_per_s[static_cast<std::size_t>(peer)]);
    }
  }
  const std::vector<double> all = communicator.of_ranks(slowest);
  slowest = *std::min_element(all.begin(), all.end());
  const double others = communicator.size() - 1;
  const double star_s = seconds / (2 * communicator.size());
  const double share = slowest * star_s / (kRepeats * others);
  const auto bytes = static_cast<std::size_t>(std::clamp(share, 16384.0, 1048576.0));
  for (int hub = 0; hub < communicator.size(); ++hub) {
    const double out = star_bytes_per_s(communicator, hub, Direction::Out, bytes);
    const double in = star_bytes_per_s(communicator, hub, Direction::In, bytes);
    if (hub == communicator.rank()) {
      measurements.send_bytes_per_s = out;
      measurements.receive_bytes_per_s = in;
    }
  }
}

}  // namespace

LinkMeasurements measure_links(const Communicator& communicator, double seconds) {
  expects(communicator.size() > 1, "a link is between two ranks");
  LinkMeasurements measurements;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  measurements.half_round_trip_s.resize(ranks);
  measurements.received_bytes_per_s.resize(ranks);
  constexpr double kPairsPart = 0.6;
  communicator.barrier();
  measure_pairs(communicator, kPairsPart * seconds, measurements);
  measure_stars(communicator, (1 - kPairsPart) * seconds, measurements);
  return measurements;
}

}  // namespace tessera::engine
