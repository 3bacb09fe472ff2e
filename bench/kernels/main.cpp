// Measures every convolution of a model, pass by pass and kernel by kernel, beside oneDNN: see
// README.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

#include "bench/kernels/comparison_table.h"
#include "bench/kernels/error_table.h"
#include "bench/kernels/fma_peak.h"
#include "bench/kernels/onednn_convolution.h"

#include "engine/ops/loops/threads.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/partition/partition.h"

namespace tessera::bench {

namespace {

struct Options {
  std::string model = "models/yolov2-early.cfg";
  std::string size = "416x416";
  Index batch = 1;
  int threads = 1;
  bool errors = false;
  std::string candidate;  // to be called only, if not empty
  int calls = 1;
  std::vector<std::string> others;  // Google Benchmark's
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("measures the convolutions of a model, beside oneDNN's");
  app.add_option("--model", options.model, "model file, Darknet's .cfg")->capture_default_str();
  app.add_option("--size", options.size, "input's size, HxW; \"\": what the model says")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "images")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads)->capture_default_str()->check(CLI::PositiveNumber);
  app.add_flag(
      "--errors", options.errors, "instead of times: each kernel's error against double precision");
  CLI::Option* candidate = app.add_option(
      "--candidate",
      options.candidate,
      "instead of times: only call this one, such as layer4/forward/tessera/direct, unchecked");
  app.add_option("--calls", options.calls, "how often, for what counts instructions or misses")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->needs(candidate);
  app.allow_extras();
  app.footer("What else is given goes to Google Benchmark: --benchmark_filter=layer4/ and others.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  options.others = app.remaining();
  return options;
}

partitioner::Network read_network(const Options& options) {
  partitioner::Network network = partitioner::read_model(options.model).network;
  if (options.size.empty()) {
    return network;
  }
  const auto [rows, cols] = partitioner::parse_grid(options.size, "--size", partitioner::kPixels);
  partitioner::Network resized;
  resized.image = {network.image.channels, rows, cols};
  for (const partitioner::LayerSpec& layer : network.layers) {
    add_layer(resized, layer.operation, layer.inputs, layer.line);
  }
  return resized;
}

// Repetitions of all candidates in random order, so that what else the machine does meets all of
// them alike. What the user gave comes later and counts.
std::vector<std::string> benchmark_arguments(const char* program,
                                             const std::vector<std::string>& given) {
  std::vector<std::string> arguments = {program,
                                        "--benchmark_repetitions=5",
                                        "--benchmark_min_time=0.1",
                                        "--benchmark_enable_random_interleaving=true"};
  arguments.insert(arguments.end(), given.begin(), given.end());
  return arguments;
}

// Google Benchmark keeps pointers to the arguments.
void initialize_benchmark(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size());
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) {
    std::exit(2);
  }
}

// Throws InputError where there is none.
const Candidate& named(const std::vector<Candidate>& found, const std::string& name) {
  const auto at = std::find_if(found.begin(), found.end(), [&name](const Candidate& candidate) {
    return candidate.name() == name;
  });
  if (at == found.end()) {
    throw InputError("--candidate", 0, "the model has no \"" + name + "\"");
  }
  return *at;
}

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::vector<std::string> arguments = benchmark_arguments(argv[0], options.others);
  initialize_benchmark(arguments);
  engine::set_threads(options.threads);
  const partitioner::Network network = read_network(options);
  const std::vector<ConvolutionCase> cases = convolution_cases(network, options.batch);
  if (options.errors) {
    fmt::print("{}", error_table(cases));
    return;
  }
  const std::vector<Candidate> found = candidates(cases);
  if (!options.candidate.empty()) {
    call(named(found, options.candidate), options.calls);
    return;
  }
  for (const Candidate& candidate : found) {
    check(candidate);
  }
  const FmaPeak peak = measure_fma_peak(options.threads);
  for (const Candidate& candidate : found) {
    benchmark::RegisterBenchmark(candidate.name().c_str(),
                                 [&candidate, &peak](benchmark::State& state) {
                                   measure(state, candidate, peak.flops_per_s);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  GatheringReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const std::string version = onednn_version();
  fmt::print(
      "\n{}, {}x{}, batch {}, {}; {:.1f} GFLOP/s of multiply-adds at most, {} floats a "
      "vector; {}\n\n{}",
      options.model,
      network.image.rows,
      network.image.cols,
      options.batch,
      counted(options.threads, "thread"),
      1e-9 * peak.flops_per_s,
      peak.width,
      version.empty() ? "no oneDNN" : "oneDNN " + version,
      comparison_table(found, reporter));
}

}  // namespace

}  // namespace tessera::bench

int main(int argc, char** argv) {
  try {
    tessera::bench::run(argc, argv);
  } catch (const tessera::InputError& error) {
    fmt::print(stderr, "kernels_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kernels_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
