#include "engine/train/checkpoints/stored_metadata.h"

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/files/safetensors.h"
#include "engine/files/weights_format.h"

namespace tessera::engine {

std::string stored_metadata(const std::filesystem::path& path,
                            const char* key,
                            const Communicator& communicator) {
  std::string text;
  throw_agreed(communicator, problem_of([&] {
                 if (communicator.rank() != 0 || !is_safetensors(path)) {
                   return;
                 }
                 const SafetensorsReader file(path);
                 const auto found = file.metadata().find(key);
                 text = found == file.metadata().end() ? "" : found->second;
               }));
  return texts_of_ranks(communicator, text).front();
}

}  // namespace tessera::engine
