#include "engine/setup/host_addresses.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <ifaddrs.h>
#include <memory>
#include <mutex>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>

#include "engine/system/limits.h"

namespace tessera::engine {

namespace {

std::string text_of_address(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? std::string() : std::string(text.data());
}

std::vector<std::string> addresses_of_name(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
    return addresses;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const std::string text = text_of_address(one->ai_addr, one->ai_addrlen);
    if (!text.empty() && std::find(addresses.begin(), addresses.end(), text) == addresses.end()) {
      addresses.push_back(text);
    }
  }
  ::freeaddrinfo(found);
  return addresses;
}

// Outlives who asked: a thread that waits for a name server cannot be ended.
struct Resolution {
  std::mutex mutex;
  std::condition_variable done;
  std::map<std::string, std::vector<std::string>> addresses;
  std::size_t left = 0;
};

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> result;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return result;
  }
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const bool four = one->ifa_addr->sa_family == AF_INET;
    if (!four && one->ifa_addr->sa_family != AF_INET6) {
      continue;
    }
    const std::string text =
        text_of_address(one->ifa_addr, four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (!text.empty()) {
      const std::string name = one->ifa_name;
      std::error_code error;
      result.push_back({text,
                        name,
                        negotiated_bits_per_s(name),
                        std::filesystem::exists("/sys/class/net/" + name + "/wireless", error)});
    }
  }
  ::freeifaddrs(all);
  return result;
}

std::map<std::string, std::vector<std::string>> resolve_names(const std::vector<std::string>& names,
                                                              double timeout_s) {
  const auto resolution = std::make_shared<Resolution>();
  for (const std::string& name : names) {
    resolution->addresses[name];
  }
  resolution->left = resolution->addresses.size();
  for (const auto& [name, none] : std::map(resolution->addresses)) {
    std::thread([resolution, name = name] {
      std::vector<std::string> found = addresses_of_name(name);
      const std::lock_guard lock(resolution->mutex);
      resolution->addresses[name] = std::move(found);
      --resolution->left;
      resolution->done.notify_one();
    }).detach();
  }
  std::unique_lock lock(resolution->mutex);
  resolution->done.wait_for(
      lock, std::chrono::duration<double>(timeout_s), [&] { return resolution->left == 0; });
  return resolution->addresses;
}

bool is_loopback_address(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

}  // namespace tessera::engine
