// The lines of a run's growing files as records: metrics, samples of devices, events, timings.

#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

// Each adds what a line says to the data and returns whether it is a line of that file. Objects of
// a kind that a later version may write are left out without being damaged.
bool add_metrics_line(const nlohmann::ordered_json& line, RunData& data);
bool add_device_line(const nlohmann::ordered_json& line, RunData& data);
bool add_event_line(const nlohmann::ordered_json& line, RunData& data);
bool add_timing_line(const nlohmann::ordered_json& line, RunData& data);

}  // namespace tessera::engine
