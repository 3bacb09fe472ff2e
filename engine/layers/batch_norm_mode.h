// Which statistics batch normalisation takes while it trains.

#pragma once

namespace tessera::engine {

enum class BatchNormMode {
  Sync,     // statistics over all cells of the whole batch
  Frozen,   // running statistics, as constants
  PerTile,  // statistics over what each rank owns: cheaper, and not what one device computes
};

}  // namespace tessera::engine
