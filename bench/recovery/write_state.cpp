// How fast a rank keeps its state: a content of a slot file, copied and digested, beside memcpy.
//
//   write_state [MIB]    of floats (default 4)

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <numeric>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "engine/base/median.h"
#include "engine/recovery/slot_file.h"
#include "engine/system/clock.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a program of this project

int main(int count, char** words) {
  Index mib = 4;
  if (count > 1) {
    const std::string_view word = words[1];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), mib);
    if (error != std::errc() || end != word.data() + word.size() || mib < 1 || mib > 4096) {
      fmt::print(stderr, "usage: write_state [MIB], from 1 to 4096\n");
      return 2;
    }
  }
  const Index floats = (mib << 20U) / static_cast<Index>(sizeof(float));
  std::vector<float> state(static_cast<std::size_t>(floats));
  std::iota(state.begin(), state.end(), 1.0F);
  std::vector<float> copy(state.size());
  const std::filesystem::path path = fmt::format("/dev/shm/tessera-bench-{}", ::getpid());
  std::vector<double> writing_s;
  std::vector<double> copying_s;
  bool right = false;
  {
    engine::SlotFile file(path, 4096, floats);
    constexpr int kRounds = 31;
    for (int round = 0; round < kRounds; ++round) {
      state[0] = static_cast<float>(round);
      const double begin_s = engine::now_s();
      file.write(round + 1, "of a bench", {std::span<const float>(state)});
      const double between_s = engine::now_s();
      std::memcpy(copy.data(), state.data(), state.size() * sizeof(float));
      copying_s.push_back(engine::now_s() - between_s);
      writing_s.push_back(between_s - begin_s);
    }
    const engine::SlotReader reader(path);
    std::fill(copy.begin(), copy.end(), 0.0F);
    if (reader.contents().size() == 2) {
      reader.read(reader.contents()[0], 0, copy);  // that of the last, odd round
      right = copy == state;
    }
  }
  std::filesystem::remove(path);
  const double bytes = static_cast<double>(state.size() * sizeof(float));
  const auto [least, most] = std::minmax_element(writing_s.begin(), writing_s.end());
  fmt::print("{} MiB: written in {:.2f} ms ({:.2f} to {:.2f}), {:.1f} GB/s; memcpy {:.1f} GB/s\n",
             mib,
             1e3 * engine::median(writing_s),
             1e3 * *least,
             1e3 * *most,
             1e-9 * bytes / engine::median(writing_s),
             1e-9 * bytes / engine::median(copying_s));
  if (!right) {
    fmt::print(stderr, "what was read is not what was written\n");
  }
  return right ? 0 : 1;
}
