// Serves the report's page of a run, kept current, over HTTP. It reads the run's folder and nothing
// else, and writes nothing.

#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/serve/serve_address.h"

namespace tessera::engine {

class RunServer {
 public:
  // Listens. The folder need not be there yet. Throws InputError where it is no folder, the address
  // is not to be had, or there is no HTTP server.
  RunServer(std::filesystem::path folder, const ServeAddress& where);
  ~RunServer();
  RunServer(const RunServer&) = delete;
  RunServer& operator=(const RunServer&) = delete;

  // What to open in a browser. Beyond the loopback a secret word is part of it.
  [[nodiscard]] const std::vector<std::string>& urls() const;
  // Whether other devices reach it.
  [[nodiscard]] bool is_open_to_others() const;

  // Until some time after the run has ended: see run_end.h.
  void serve();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::engine
