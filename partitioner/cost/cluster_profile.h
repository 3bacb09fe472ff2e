// What the machines of a cluster and the wires between them can do: as measured, or from a few
// numbers. A text file that a person can read and change; plans are made from it without the
// machines.
//
// Device i runs rank i. Rates may be infinite: what they stand for then takes no time.

#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/cost/power_profile.h"
#include "partitioner/partition/kernels.h"

namespace tessera::partitioner {

inline constexpr double kInfiniteRate = std::numeric_limits<double>::infinity();

// How long one device took for one whole convolution of one image with `rows` x `cols` outputs.
struct ConvolutionPoint {
  ConvolutionKernel kernel = ConvolutionKernel::Direct;
  Index channels = 1;
  Index filters = 1;
  Index size = 1;
  Index stride = 1;
  Index groups = 1;
  Index rows = 1;
  Index cols = 1;
  double forward_s = 0;
  double backward_data_s = 0;
  double backward_weights_s = 0;
  friend bool operator==(const ConvolutionPoint&, const ConvolutionPoint&) = default;
};

// Rates of layers that are bound by memory.
struct PassRates {
  double forward_bytes_per_s = kInfiniteRate;
  double backward_bytes_per_s = kInfiniteRate;
  friend bool operator==(const PassRates&, const PassRates&) = default;
};

// What a process takes before there is a network, where nobody has measured it: of this program
// over TCP on x86-64 it was 23 to 26 MiB with MPICH 4.0, 27 to 28 with MPICH 4.2.
inline constexpr Index kUsualProgramBytes = Index{25} << 20U;

// More than any device has; sums over all devices of a cluster are an Index, too.
inline constexpr Index kMostMemoryBytes = Index{1} << 48U;

struct DeviceProfile {
  std::string name;
  Index memory_bytes = kMostMemoryBytes;  // that a process of it may take
  Index program_bytes = 0;  // of these without a network; 0: memory_bytes is without them
  double memory_bytes_per_s = kInfiniteRate;  // read
  double message_s = 0;                       // processor time to post or to take in a message
  // Of the first one after computing, at least message_s.
  double first_message_s = 0;
  // What the processor does with messages: packs them and hands them to the network, or takes them
  // from it and unpacks them.
  double copied_bytes_per_s = kInfiniteRate;
  double send_bytes_per_s = kInfiniteRate;     // of its network interface, all peers together
  double receive_bytes_per_s = kInfiniteRate;  // likewise
  // Convolutions, in operations of the direct sum (two for each multiply-add), where no point of
  // the kernel was measured.
  double direct_flops_per_s = kInfiniteRate;
  double winograd_flops_per_s = kInfiniteRate;
  PassRates normalize;    // with activation, by bytes of its output
  PassRates activate;     // without normalisation, likewise
  PassRates exponential;  // what an activation with an exponential takes beyond that, likewise
  PassRates pool;         // by bytes of inputs and output
  PassRates elementwise;  // whatever else: likewise
  double updated_weights_per_s = kInfiniteRate;  // their gradients set to zero again included
  std::vector<ConvolutionPoint> convolutions;
  std::string board;                  // key of board_power.h; empty: not said
  std::optional<PowerProfile> power;  // as measured; nothing: unknown
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

inline constexpr PassRates DeviceProfile::*kPassRates[] = {&DeviceProfile::normalize,
                                                           &DeviceProfile::activate,
                                                           &DeviceProfile::exponential,
                                                           &DeviceProfile::pool,
                                                           &DeviceProfile::elementwise};

// From one device to another.
struct LinkProfile {
  double latency_s = 0;  // from the last byte sent to its arrival
  double bytes_per_s = kInfiniteRate;
  friend bool operator==(const LinkProfile&, const LinkProfile&) = default;
};

// Power of a device: as measured, else by its board; nothing where neither is known.
[[nodiscard]] std::optional<PowerProfile> known_power(const DeviceProfile& device);

struct LinkException {
  int from = 0;
  int to = 0;
  LinkProfile link;
  friend bool operator==(const LinkException&, const LinkException&) = default;
};

// An all-reduce of so many bytes over the first `devices` of the cluster.
struct AllReducePoint {
  int devices = 1;
  Index bytes = 0;
  double seconds = 0;
  friend bool operator==(const AllReducePoint&, const AllReducePoint&) = default;
};

struct ClusterProfile {
  std::vector<DeviceProfile> devices;
  LinkProfile link;                         // of every pair that is not listed below
  std::vector<LinkException> exceptions;    // by `from`, then `to`
  std::vector<AllReducePoint> all_reduces;  // as measured; may be empty

  [[nodiscard]] int size() const { return static_cast<int>(devices.size()); }
  [[nodiscard]] const DeviceProfile& device(int rank) const {
    return devices[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const LinkProfile& between(int from, int to) const;
  friend bool operator==(const ClusterProfile&, const ClusterProfile&) = default;
};

// A cluster of equal devices from the numbers that people know. The defaults are round numbers of
// no device in particular; what plans assume of devices is in assumed_devices.h.
struct EqualDevices {
  int count = 1;
  double direct_flops_per_s = 4.5e9;
  double winograd_flops_per_s = 9e9;
  double link_bits_per_s = 100e6;
  double latency_s = 150e-6;
  double message_s = 50e-6;
  double memory_bytes_per_s = 2e9;
  Index memory_bytes = Index{900} << 20U;
  Index program_bytes = kUsualProgramBytes;
  std::string board = "pi3b";
};
[[nodiscard]] ClusterProfile equal_devices(const EqualDevices& numbers);

// What a process takes without a network, on each device.
[[nodiscard]] std::vector<Index> program_bytes(const ClusterProfile& cluster);

// The first `count` devices and what concerns them.
[[nodiscard]] ClusterProfile first_devices(const ClusterProfile& cluster, int count);
// The `count` devices from number `first` on; all-reduces were measured over first ones alone.
[[nodiscard]] ClusterProfile devices_from(const ClusterProfile& cluster, int first, int count);

// The devices that are listed, none twice, in this order, and what concerns them: device i of the
// result is devices[i]. Measured all-reduces are of the first devices of a cluster: they stay where
// those are the same.
[[nodiscard]] ClusterProfile devices_of(const ClusterProfile& cluster,
                                        const std::vector<int>& devices);

// The text form, TOML. parse_cluster_profile(to_text(c), ...) == c.
[[nodiscard]] std::string to_text(const ClusterProfile& cluster);
[[nodiscard]] ClusterProfile parse_cluster_profile(const std::string& text,
                                                   const std::string& name);
[[nodiscard]] ClusterProfile read_cluster_profile(const std::filesystem::path& path);

}  // namespace tessera::partitioner
