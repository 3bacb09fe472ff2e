#include <algorithm>
#include <fmt/format.h>

#include "engine/cluster/finding_list.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

constexpr double kSlowLink_bits_per_s = 90e6;
constexpr double kLongRoundTrip_s = 5e-3;
constexpr double kLittleOfLink = 0.6;  // of what its interfaces have negotiated
constexpr double kMuchSlower = 5;      // than the fastest link
constexpr double kBitsPerByte = 8;

const of_device::Address* interface_of_device(const ExaminedDevice& device) {
  for (const of_device::Address& own : device.addresses) {
    if (own.address == device.address) {
      return &own;
    }
  }
  return nullptr;
}

std::string megabits(double bits_per_s) {
  return fmt::format("{} Mbit/s", three_digits(1e-6 * bits_per_s));
}

double least_bits_per_s(const ExaminedLink& link) {
  return kBitsPerByte * std::min(link.forward_bytes_per_s, link.back_bytes_per_s);
}

// `fastest`: of all links.
void judge_link(const Examination& examination,
                const ExaminedLink& link,
                const ExaminedLink& fastest,
                FindingList& findings) {
  const auto at = [&](int device) -> const ExaminedDevice& {
    return examination.devices[static_cast<std::size_t>(device)];
  };
  const ExaminedDevice& a = at(link.a);
  const ExaminedDevice& b = at(link.b);
  findings.device = link.b;
  if (!link.problem.empty()) {
    findings.problem(
        "link",
        fmt::format(
            "{} cannot connect to {} at {}: {}", a.host.name, b.host.name, b.address, link.problem),
        "does a firewall keep them apart? Ranks connect at ports from 32768 to 60999");
    return;
  }
  if (link.round_trip_s > kLongRoundTrip_s) {
    findings.warning("link",
                     fmt::format("between {} and {} a round trip takes {} ms",
                                 a.host.name,
                                 b.host.name,
                                 three_digits(1e3 * link.round_trip_s)),
                     "cables rather than Wi-Fi, and one switch for all");
  }
  const double least = least_bits_per_s(link);
  double negotiated = 0;
  bool wireless = false;
  for (const ExaminedDevice* device : {&a, &b}) {
    const of_device::Address* own = interface_of_device(*device);
    wireless = wireless || (own != nullptr && own->wireless);
    if (own != nullptr && own->bits_per_s) {
      negotiated = negotiated > 0 ? std::min(negotiated, *own->bits_per_s) : *own->bits_per_s;
    }
  }
  // What is faster than the slowest interface of a Raspberry Pi may well be limited by processors.
  const bool little = negotiated > 0 && negotiated <= 1.2 * kSlowLink_bits_per_s &&
                      least < kLittleOfLink * negotiated;
  if (little) {
    findings.warning("link",
                     fmt::format("between {} and {} go only {} of {}",
                                 a.host.name,
                                 b.host.name,
                                 megabits(least),
                                 megabits(negotiated)),
                     "try another cable and another port of the switch; was the network in use?");
    return;
  }
  const double times = least_bits_per_s(fastest) / least;
  // An interface that is slow, or Wi-Fi, has been told of.
  if (times > kMuchSlower && !wireless && (negotiated == 0 || least < kLittleOfLink * negotiated)) {
    findings.warning(
        "link",
        fmt::format("between {} and {} go only {}, {:.0f} times less than between {} and {}",
                    a.host.name,
                    b.host.name,
                    megabits(least),
                    times,
                    at(fastest.a).host.name,
                    at(fastest.b).host.name),
        "all devices wait for the slowest link: try another cable and another port of the "
        "switch; was the network in use?");
  }
}

}  // namespace

void add_findings_of_links(const Examination& examination, FindingList& findings) {
  for (int i = 0; i < static_cast<int>(examination.devices.size()); ++i) {
    findings.device = i;
    const ExaminedDevice& device = examination.devices[static_cast<std::size_t>(i)];
    const of_device::Address* own = interface_of_device(device);
    if (own == nullptr || examination.devices.size() == 1) {
      continue;
    }
    if (own->wireless) {
      findings.warning(
          "link",
          fmt::format("{} is connected by Wi-Fi ({})", device.host.name, own->interface),
          "a cable: Wi-Fi is slower, and all devices share it");
    } else if (own->bits_per_s && *own->bits_per_s < kSlowLink_bits_per_s) {
      findings.warning("link",
                       fmt::format("{} of {} has negotiated only {}",
                                   own->interface,
                                   device.host.name,
                                   megabits(*own->bits_per_s)),
                       "try another cable and another port of the switch");
    }
  }
  const auto fastest = std::max_element(examination.links.begin(),
                                        examination.links.end(),
                                        [](const ExaminedLink& one, const ExaminedLink& other) {
                                          return least_bits_per_s(one) < least_bits_per_s(other);
                                        });
  for (const ExaminedLink& link : examination.links) {
    judge_link(examination, link, *fastest, findings);
  }
}

}  // namespace tessera::engine
