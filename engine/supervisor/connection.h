// Whether it is this device that is cut off from the others: its own cable, and a witness that is
// none of them.

#pragma once

#include <optional>
#include <string>

namespace tessera::engine {

// The interface by which this machine sends to a host, such as "eth0"; empty where that is not
// known: the name is not resolved, there is no route, or the host is this machine. May wait for a
// name server.
[[nodiscard]] std::string interface_towards(const std::string& host);

// Whether a cable is plugged into the interface, or it is associated with an access point.
[[nodiscard]] bool has_carrier(const std::string& interface);

// The gateway of this machine's default route (IPv4); empty where there is none.
[[nodiscard]] std::string default_gateway();

// Whether the address answers a ping within a second or two; nothing where `ping` cannot be run.
[[nodiscard]] std::optional<bool> answers_ping(const std::string& address);

}  // namespace tessera::engine
