#include "engine/supervisor/agent.h"

#include "engine/supervisor/device_agent.h"

namespace tessera::engine {

int run_agent(const AgentOptions& options) {
  Agent agent(options);
  return agent.run();
}

}  // namespace tessera::engine
