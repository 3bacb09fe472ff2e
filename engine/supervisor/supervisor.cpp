#include "engine/supervisor/supervisor.h"

#include "engine/supervisor/supervised_run.h"

namespace tessera::engine {

int run_supervised(const SupervisorRequest& request) {
  SupervisedRun run(request);
  return run.run();
}

}  // namespace tessera::engine
