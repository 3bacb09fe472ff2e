#include "engine/cli/cli.h"

int main(int argc, char** argv) {
  return engine::run_program(argc, argv);
}
