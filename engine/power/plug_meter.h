// Plugs with a meter, which are asked over the network. They show what goes into the power supply:
// more than what the board behind it takes. Watts change about once a second.

#pragma once

#include <string>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// Reads plugs of the first generation (/meter/0) and later ones (/rpc/Switch.GetStatus): the plug
// says which it is. `seconds` is as for http_answer. Both throw InputError where no such plug
// answers.
[[nodiscard]] PowerMeter shelly_meter(const std::string& address, double seconds);

[[nodiscard]] PowerMeter tasmota_meter(const std::string& address, double seconds);

}  // namespace tessera::engine
