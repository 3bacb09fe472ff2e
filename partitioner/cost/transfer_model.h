// How long a set of messages takes that all start together: what each processor spends on posting,
// packing and unpacking, and what the busiest network interface has to carry. A device's messages
// share its rate, out and in.

#pragma once

#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::partitioner {

// Messages that an interface sends, or receives.
struct Flow {
  double bytes = 0;
  double messages = 0;

  void add(const Flow& other) {
    bytes += other.bytes;
    messages += other.messages;
  }
};

// Bytes from one rank to another, as `messages` messages.
struct Parcel {
  int from = 0;
  int to = 0;
  double bytes = 0;
  int messages = 1;

  [[nodiscard]] Flow flow() const { return {bytes, static_cast<double>(messages)}; }
};

// Processor time of messages at either end.
[[nodiscard]] double processor_seconds(const DeviceProfile& device, const Flow& flow);

// What the first message after `computed_s` of computing takes beyond others: the more has been
// computed, the less of what it needs is still in a cache.
[[nodiscard]] double first_message_more_s(const DeviceProfile& device, double computed_s);

// Seconds of a set of messages, by what each device sends and receives.
class TransferSeconds {
 public:
  void add(const DeviceProfile& device, const Flow& out, const Flow& in);
  // `link_s`: of the busiest link.
  [[nodiscard]] double total(double link_s, double latency_s) const;

 private:
  double pack_s_ = 0;
  double unpack_s_ = 0;
  double wire_s_ = 0;
};

// What a set of messages amounts to. The time of a set is
//   slowest packing + busiest interface or link + largest latency + slowest unpacking:
// exact where no interface carries more than one message at a time.
class TransferLoad {
 public:
  explicit TransferLoad(const ClusterProfile& cluster);

  void clear();
  void add(const Parcel& parcel);  // one to oneself is no message
  // `bytes` from each of the ranks to each other.
  void add_all_to_all(const std::vector<int>& ranks, double bytes);
  // Rank i sends bytes[i] to each of the others; not `outward`: each of the others sends it that.
  void add_one_to_all(const std::vector<int>& ranks,
                      const std::vector<double>& bytes,
                      bool outward);

  [[nodiscard]] double seconds() const;
  // ... of the same messages from their receivers to their senders.
  [[nodiscard]] double reversed_seconds() const;
  [[nodiscard]] bool empty() const { return !loaded_; }
  // Whether anything depends on what single pairs of ranks send each other, or only on what each
  // interface carries in all.
  [[nodiscard]] bool has_pairs() const { return !pair_bytes_.empty(); }

 private:
  struct Interface {
    Flow out;
    Flow in;
  };
  void load(int rank, const Flow& out, const Flow& in);
  void cross(const LinkProfile& link, double bytes);
  [[nodiscard]] double seconds(Flow Interface::*sent,
                               Flow Interface::*received,
                               double link_s,
                               double latency_s) const;

  const ClusterProfile* cluster_;
  std::vector<Interface> interfaces_;
  std::vector<double> pair_bytes_;  // [from * ranks + to]; empty where no pair matters
  std::vector<std::size_t> used_pairs_;
  double link_s_ = 0;  // the largest of each
  double latency_s_ = 0;
  bool loaded_ = false;
};

// All-reduce algorithms: ways to add up a vector over ranks so that all have the sum.
enum class AllReduceAlgorithm {
  Owners,          // each rank adds up its share, then sends it to all: as the engine does it
  Star,            // one rank adds up all of it
  Ring,            // Patarasuk, Yuan 2009
  HalvingDoubling  // Rabenseifner 2004; ranks beyond a power of two fold onto the others first
};
inline constexpr AllReduceAlgorithm kAllReduceAlgorithms[] = {AllReduceAlgorithm::Owners,
                                                              AllReduceAlgorithm::Star,
                                                              AllReduceAlgorithm::Ring,
                                                              AllReduceAlgorithm::HalvingDoubling};
[[nodiscard]] const char* name_of(AllReduceAlgorithm algorithm);

// 0, 1, ..., count - 1.
[[nodiscard]] std::vector<int> first_ranks(int count);

// Seconds to all-reduce `bytes` over the ranks, in buckets of at most `bucket_bytes` one after the
// other.
[[nodiscard]] double all_reduce_seconds(const ClusterProfile& cluster,
                                        AllReduceAlgorithm algorithm,
                                        const std::vector<int>& ranks,
                                        double bytes,
                                        double bucket_bytes);

}  // namespace tessera::partitioner
