// Chooses which devices of a cluster to train a model on, by predictions and short trials, and
// trains on them, a rank for each device: mpiexec.mpich -n 2 choose MODEL DATA CLUSTER RUN.

#include <cstdio>

#include "engine/comm/agreement.h"
#include "engine/comm/mpi_session.h"
#include "engine/session/training_session.h"

using namespace tessera;

int main(int argc, char** argv) {
  const engine::MpiSession mpi(argc, argv);
  const auto world = engine::Communicator::world();
  if (argc != 5) {
    std::fprintf(stderr, "choose MODEL DATA CLUSTER RUN\n");
    return 2;
  }
  engine::TrainingRequest request{.model = argv[1], .data = argv[2], .run = argv[4]};
  request.partition.cluster = argv[3];
  request.devices = engine::DeviceRequest{.objective = partitioner::Objective::EnergyDelay};
  request.steps = 30;
  request.batch = 8;
  request.replace = true;

  engine::TrainingSessionObserver observer;
  observer.messages.warning = [](const std::string& warning) {
    std::fprintf(stderr, "%s\n", warning.c_str());
  };
  observer.steps.step = [](Index step, const engine::StepResult& result) {
    if (step % 10 == 0) {
      std::printf("step %lld: loss %.4f\n", static_cast<long long>(step), result.loss);
    }
  };
  try {
    engine::TrainingSession session(request, world, observer);
    const engine::TrainingResult result = session.run();
    if (world.rank() == 0) {
      std::printf("trained up to step %lld, tested: %s\n",
                  static_cast<long long>(result.step),
                  result.best ? described(result.best->tested.score).c_str() : "no");
    }
    return result.step == request.steps ? 0 : 1;
  } catch (const engine::AgreedError& error) {
    if (world.rank() == 0) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    return 2;
  }
}
