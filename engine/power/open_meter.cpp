#include "engine/power/open_meter.h"

#include "engine/power/command_meter.h"
#include "engine/power/file_meter.h"
#include "engine/power/hwmon_meter.h"
#include "engine/power/plug_meter.h"
#include "engine/power/pmic_meter.h"
#include "engine/power/power_table.h"
#include "engine/power/rapl_meter.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// A meter of this machine; nothing where there is no such thing.
std::optional<PowerMeter> find(MeterKind kind, const MeterPlaces& places) {
  switch (kind) {
    case MeterKind::Rapl:
      return find_rapl_meter(places.root);
    case MeterKind::Hwmon:
      return find_hwmon_meter(places.root);
    case MeterKind::Pmic:
      return find_pmic_meter(places.root, places.command_s);
    default:
      return std::nullopt;
  }
}

// The meter, having shown something.
PowerMeter tried(PowerMeter meter) {
  if (!meter.read()) {
    throw InputError(meter.problem());
  }
  return meter;
}

OpenedMeter automatic_meter(const MeterPlaces& places) {
  OpenedMeter opened;
  for (const MeterKind kind : {MeterKind::Rapl, MeterKind::Hwmon, MeterKind::Pmic}) {
    try {
      if (const auto meter = find(kind, places)) {
        opened.meter = tried(*meter);
        return opened;
      }
    } catch (const InputError& error) {
      opened.notes.emplace_back(error.what());
    }
  }
  if (const BoardPower* board = this_board_power(places.root)) {
    opened.meter = table_meter(*board);
  }
  return opened;
}

PowerMeter own_meter(const MeterSpec& spec, const MeterPlaces& places) {
  if (const auto meter = find(spec.kind, places)) {
    return *meter;
  }
  throw InputError("this machine has no such meter");
}

PowerMeter table_of(const std::string& key, const MeterPlaces& places) {
  const BoardPower* board = key.empty() ? this_board_power(places.root) : &board_power(key);
  if (board == nullptr) {
    throw InputError("no power is known of this machine: name a board, such as table:pi3b");
  }
  return table_meter(*board);
}

PowerMeter named_meter(const MeterSpec& spec, const MeterPlaces& places) {
  switch (spec.kind) {
    case MeterKind::Command:
      return command_meter(spec.argument, places.command_s);
    case MeterKind::Shelly:
      return shelly_meter(spec.argument, places.request_s);
    case MeterKind::Tasmota:
      return tasmota_meter(spec.argument, places.request_s);
    case MeterKind::File:
      return file_meter(spec.argument);
    case MeterKind::Table:
      return table_of(spec.argument, places);
    default:
      return own_meter(spec, places);
  }
}

}  // namespace

OpenedMeter open_meter(const MeterSpec& spec, const MeterPlaces& places) {
  if (spec.kind == MeterKind::None) {
    return {};
  }
  if (spec.kind == MeterKind::Automatic) {
    return automatic_meter(places);
  }
  try {
    PowerMeter meter = named_meter(spec, places);
    if (spec.kind != MeterKind::File) {  // which may begin with a failure
      meter = tried(meter);
    }
    if (spec.cluster) {
      meter.set_scope(MeterScope::Cluster);
    }
    return {meter, {}};
  } catch (const InputError& error) {
    throw InputError("--meter " + to_text(spec) + ": " + error.what());
  }
}

}  // namespace tessera::engine
