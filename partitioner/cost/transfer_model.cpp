#include "partitioner/cost/transfer_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::partitioner {

namespace {

// One bucket.
class Sum {
 public:
  Sum(const ClusterProfile& cluster, const std::vector<int>& ranks, double bytes)
      : load_(cluster), ranks_(ranks), bytes_(bytes) {}

  double seconds(AllReduceAlgorithm algorithm) {
    switch (algorithm) {
      case AllReduceAlgorithm::Owners:
        return owners();
      case AllReduceAlgorithm::Star:
        return star();
      case AllReduceAlgorithm::Ring:
        return ring();
      case AllReduceAlgorithm::HalvingDoubling:
        return halving_doubling();
    }
    return 0;
  }

 private:
  [[nodiscard]] std::size_t count() const { return ranks_.size(); }

  // Position `from` sends to position `to`.
  void send(std::size_t from, std::size_t to, double bytes) {
    load_.add({ranks_[from], ranks_[to], bytes});
  }

  double round() {
    const double seconds = load_.seconds();
    load_.clear();
    return seconds;
  }

  double owners() {
    load_.add_all_to_all(ranks_, bytes_ / static_cast<double>(count()));
    return 2 * round();
  }

  double star() {
    for (std::size_t i = 1; i < count(); ++i) {
      send(i, 0, bytes_);
    }
    const double in = round();
    for (std::size_t i = 1; i < count(); ++i) {
      send(0, i, bytes_);
    }
    return in + round();
  }

  double ring() {
    for (std::size_t i = 0; i < count(); ++i) {
      send(i, (i + 1) % count(), bytes_ / static_cast<double>(count()));
    }
    return 2 * static_cast<double>(count() - 1) * round();
  }

  double halving_doubling() {
    std::size_t power = 1;
    while (power * 2 <= count()) {
      power *= 2;
    }
    double seconds = 0;
    for (std::size_t i = power; i < count(); ++i) {
      send(i, i - power, bytes_);
    }
    seconds += round();
    double part = bytes_;
    for (std::size_t distance = power / 2; distance > 0; distance /= 2) {
      part /= 2;
      for (std::size_t i = 0; i < power; ++i) {
        send(i, i ^ distance, part);
      }
      seconds += 2 * round();  // halving, and later doubling between the same pairs
    }
    for (std::size_t i = power; i < count(); ++i) {
      send(i - power, i, bytes_);
    }
    return seconds + round();
  }

  TransferLoad load_;
  const std::vector<int>& ranks_;
  double bytes_;
};

}  // namespace

double processor_seconds(const DeviceProfile& device, const Flow& flow) {
  return flow.messages * device.message_s + flow.bytes / device.copied_bytes_per_s;
}

double first_message_more_s(const DeviceProfile& device, double computed_s) {
  constexpr double kCacheBytes = 1U << 20U;  // the second level, as computing passes over it
  const double more_s = device.first_message_s - device.message_s;
  if (more_s <= 0 || computed_s <= 0) {
    return 0;
  }
  return more_s * std::min(1.0, computed_s * device.memory_bytes_per_s / kCacheBytes);
}

void TransferSeconds::add(const DeviceProfile& device, const Flow& out, const Flow& in) {
  pack_s_ = std::max(pack_s_, processor_seconds(device, out));
  unpack_s_ = std::max(unpack_s_, processor_seconds(device, in));
  wire_s_ = std::max(
      {wire_s_, out.bytes / device.send_bytes_per_s, in.bytes / device.receive_bytes_per_s});
}

double TransferSeconds::total(double link_s, double latency_s) const {
  return pack_s_ + std::max(wire_s_, link_s) + latency_s + unpack_s_;
}

TransferLoad::TransferLoad(const ClusterProfile& cluster)
    : cluster_(&cluster), interfaces_(cluster.devices.size()) {
  const auto outruns_links = [&cluster](const DeviceProfile& device) {
    return device.send_bytes_per_s > cluster.link.bytes_per_s ||
           device.receive_bytes_per_s > cluster.link.bytes_per_s;
  };
  if (!cluster.exceptions.empty() ||
      std::any_of(cluster.devices.begin(), cluster.devices.end(), outruns_links)) {
    pair_bytes_.resize(cluster.devices.size() * cluster.devices.size());
  }
}

void TransferLoad::clear() {
  std::fill(interfaces_.begin(), interfaces_.end(), Interface{});
  for (const std::size_t pair : used_pairs_) {
    pair_bytes_[pair] = 0;
  }
  used_pairs_.clear();
  link_s_ = latency_s_ = 0;
  loaded_ = false;
}

void TransferLoad::load(int rank, const Flow& out, const Flow& in) {
  Interface& interface = interfaces_[static_cast<std::size_t>(rank)];
  interface.out.add(out);
  interface.in.add(in);
}

void TransferLoad::cross(const LinkProfile& link, double bytes) {
  loaded_ = true;
  link_s_ = std::max(link_s_, bytes / link.bytes_per_s);
  latency_s_ = std::max(latency_s_, link.latency_s);
}

void TransferLoad::add(const Parcel& parcel) {
  if (parcel.from == parcel.to) {
    return;
  }
  const Flow flow{parcel.bytes, static_cast<double>(parcel.messages)};
  load(parcel.from, flow, {});
  load(parcel.to, {}, flow);
  if (pair_bytes_.empty()) {  // what an interface carries in all takes at least as long
    return cross(cluster_->link, 0);
  }
  const std::size_t pair = static_cast<std::size_t>(parcel.from) * interfaces_.size() +
                           static_cast<std::size_t>(parcel.to);
  if (pair_bytes_[pair] == 0) {
    used_pairs_.push_back(pair);
  }
  pair_bytes_[pair] += parcel.bytes;
  cross(cluster_->between(parcel.from, parcel.to), pair_bytes_[pair]);
}

void TransferLoad::add_all_to_all(const std::vector<int>& ranks, double bytes) {
  add_one_to_all(ranks, std::vector<double>(ranks.size(), bytes), true);
}

// Without a pair that is slower than the rest, only what an interface carries in all matters.
void TransferLoad::add_one_to_all(const std::vector<int>& ranks,
                                  const std::vector<double>& bytes,
                                  bool outward) {
  if (!pair_bytes_.empty()) {
    for (std::size_t one = 0; one < ranks.size(); ++one) {
      for (const int other : ranks) {
        if (bytes[one] > 0) {
          add(outward ? Parcel{ranks[one], other, bytes[one]}
                      : Parcel{other, ranks[one], bytes[one]});
        }
      }
    }
    return;
  }
  Flow all;
  for (const double sent : bytes) {
    all.bytes += sent;
    all.messages += sent > 0 ? 1 : 0;
  }
  for (std::size_t one = 0; one < ranks.size() && ranks.size() > 1; ++one) {
    const double peers = bytes[one] > 0 ? static_cast<double>(ranks.size() - 1) : 0;
    const Flow given{peers * bytes[one], peers};
    const Flow taken{all.bytes - bytes[one], all.messages - (bytes[one] > 0 ? 1 : 0)};
    load(ranks[one], outward ? given : taken, outward ? taken : given);
    if (bytes[one] > 0) {
      cross(cluster_->link, 0);
    }
  }
}

double TransferLoad::seconds() const {
  return seconds(&Interface::out, &Interface::in, link_s_, latency_s_);
}

double TransferLoad::reversed_seconds() const {
  double link_s = link_s_;
  double latency_s = latency_s_;
  if (!cluster_->exceptions.empty()) {  // links may differ by direction
    link_s = latency_s = 0;
    for (const std::size_t pair : used_pairs_) {
      const auto from = static_cast<int>(pair / interfaces_.size());
      const auto to = static_cast<int>(pair % interfaces_.size());
      const LinkProfile& link = cluster_->between(to, from);
      link_s = std::max(link_s, pair_bytes_[pair] / link.bytes_per_s);
      latency_s = std::max(latency_s, link.latency_s);
    }
  }
  return seconds(&Interface::in, &Interface::out, link_s, latency_s);
}

double TransferLoad::seconds(Flow Interface::*sent,
                             Flow Interface::*received,
                             double link_s,
                             double latency_s) const {
  TransferSeconds transfers;
  for (std::size_t rank = 0; rank < interfaces_.size(); ++rank) {
    transfers.add(cluster_->devices[rank], interfaces_[rank].*sent, interfaces_[rank].*received);
  }
  return transfers.total(link_s, latency_s);
}

const char* name_of(AllReduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllReduceAlgorithm::Owners:
      return "owners";
    case AllReduceAlgorithm::Star:
      return "star";
    case AllReduceAlgorithm::Ring:
      return "ring";
    case AllReduceAlgorithm::HalvingDoubling:
      return "halving and doubling";
  }
  return "";
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

double all_reduce_seconds(const ClusterProfile& cluster,
                          AllReduceAlgorithm algorithm,
                          const std::vector<int>& ranks,
                          double bytes,
                          double bucket_bytes) {
  if (ranks.size() < 2 || bytes <= 0) {
    return 0;
  }
  const double bucket = std::min(bytes, bucket_bytes);
  const double whole = std::floor(bytes / bucket);
  const double rest = bytes - whole * bucket;
  double seconds = rest > 0 ? Sum(cluster, ranks, rest).seconds(algorithm) : 0;
  return seconds + whole * Sum(cluster, ranks, bucket).seconds(algorithm);
}

}  // namespace tessera::partitioner
