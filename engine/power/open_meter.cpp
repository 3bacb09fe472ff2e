#include "engine/power/open_meter.h"

#include "engine/power/file_meter.h"
#include "engine/power/power_table.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

using partitioner::InputError;

OpenedMeter automatic_meter(const MeterPlaces& places) {
  OpenedMeter opened;
  if (const BoardPower* board = this_board_power(places.root)) {
    opened.meter = table_meter(*board);
  }
  return opened;
}

PowerMeter this_board_meter(const MeterPlaces& places) {
  const BoardPower* board = this_board_power(places.root);
  if (board == nullptr) {
    throw InputError("no power is known of this machine: name a board, such as table:pi3b");
  }
  return table_meter(*board);
}

}  // namespace

OpenedMeter open_meter(const MeterSpec& spec, const MeterPlaces& places) {
  switch (spec.kind) {
    case MeterKind::Automatic:
      return automatic_meter(places);
    case MeterKind::File:
      return {file_meter(spec.argument), {}};
    case MeterKind::Table:
      return {spec.argument.empty() ? this_board_meter(places)
                                    : table_meter(board_power(spec.argument)),
              {}};
    case MeterKind::None:
      return {};
    default:
      throw InputError("this kind of meter cannot be read: " + to_text(spec));
  }
}

}  // namespace tessera::engine
