// What the program can do: for each subcommand its options as plain values, what reads them from
// the command line, and a function.
//
// Under mpiexec all ranks run a command together; rank 0 prints. Errors of the user's are
// AgreedErrors, on all ranks.

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/layers/layer.h"
#include "engine/serve/serve_address.h"
#include "engine/session/model_adaptation.h"
#include "engine/session/prediction.h"
#include "engine/session/step_timing.h"
#include "engine/session/training_request.h"

namespace tessera::engine {

// `train`, and `choose` where the request asks for devices.
struct TrainCommand {
  TrainingRequest request;  // as it was typed
  std::string progress = "auto";
  Index stall_timeout_s = 0;  // of other ranks; 0: the usual one
};
void add_options(CLI::App& app, TrainCommand& command);
void run_train(const TrainCommand& command, const Communicator& communicator);
// What is trained: what the supervisor asks for that has started this rank, else what was typed.
[[nodiscard]] TrainingRequest started_request(const TrainCommand& command);

struct ChooseCommand {
  TrainCommand train;  // with devices
  bool dry_run = false;
};
void add_options(CLI::App& app, ChooseCommand& command);
void run_choose(const ChooseCommand& command, const Communicator& communicator);
// By predictions alone, without other ranks.
void run_dry_choose(const ChooseCommand& command);

// A training run that goes on by itself.
struct RunCommand {
  std::string hostfile;
  Index ranks = 0;  // on this machine, instead of a host file
  std::string remote_shell = "ssh";
  Index silence_s = 0;             // of a device or rank; 0: the usual
  std::string goes_on;             // folder of a run that an earlier supervisor began
  bool or_continue = false;        // where the command's run folder has a run: go on with that
  bool at_boot = false;            // print a unit of systemd instead
  bool keeps_partition = false;    // also where devices change their speed
  std::string witness;             // asked by half of the devices; empty: the default gateway
  bool alone = false;              // goes on with whatever devices are there
  std::string take_over;           // record of a run whose supervisor is gone: an agent's word
  std::vector<std::string> words;  // "train" or "choose" and what follows
};
void add_options(CLI::App& app, RunCommand& command);
// Returns the exit code of the run.
[[nodiscard]] int run_run(const RunCommand& command);

struct DoctorCommand {
  std::string hostfile;
  std::string remote_shell = "ssh";
  bool json = false;
};
void add_options(CLI::App& app, DoctorCommand& command);
// Prints what is found; returns whether training can begin.
[[nodiscard]] bool run_doctor(const DoctorCommand& command);

struct DeployCommand {
  std::string hostfile;
  std::string remote_shell = "ssh";
  std::vector<std::string> paths;  // files and folders for all devices
  std::string data;
  std::string data_map;
  bool dry_run = false;
  bool overwrite = false;
};
void add_options(CLI::App& app, DeployCommand& command);
// Prints what is copied; returns whether each device has what it needs.
[[nodiscard]] bool run_deploy(const DeployCommand& command);

struct EvalCommand {
  std::string model;
  std::string data;
  std::string weights;
  PartitionRequest partition;
  Index batch = 0;
  std::vector<float> mean;
  std::vector<float> stddev;
  bool skip_broken = false;
  bool allow_unlabelled = false;
  bool json = false;
};
void add_options(CLI::App& app, EvalCommand& command);
void run_eval(const EvalCommand& command, const Communicator& communicator);

struct CheckDataCommand {
  std::string data;
  std::string model;  // empty: none is at hand
  std::string sheet;  // a PNG file for some pictures with their boxes; empty: none
  bool skip_broken = false;
  bool allow_unlabelled = false;
  bool json = false;
};
void add_options(CLI::App& app, CheckDataCommand& command);
// Prints what it finds; InputError where that is an error.
void run_check_data(const CheckDataCommand& command);

// Of the sizes of a data set's boxes.
struct AdaptCommand {
  AdaptationRequest request;
  std::string anchors = "auto";  // or "keep"
  std::string out;
};
void add_options(CLI::App& app, AdaptCommand& command);
void run_adapt(const AdaptCommand& command);

struct AnchorsCommand {
  std::string data;
  Index count = 6;
  std::string size = "416x416";  // of the network's input
  Index stride = 1;              // pixels of the input that are one unit of an anchor
  bool allow_unlabelled = false;
  bool json = false;
};
void add_options(CLI::App& app, AnchorsCommand& command);
void run_anchors(const AnchorsCommand& command);

struct MakeDetectionSetCommand {
  std::string out;                                         // a folder, which is made
  std::string from = "/usr/share/datasets/fashion-mnist";  // where Debian's package puts it
  Index pictures = 2000;                                   // for training
  Index test_pictures = 0;                                 // 0: a fifth as many
  std::string size = "160x160";
  std::uint64_t seed = 1;
};
void add_options(CLI::App& app, MakeDetectionSetCommand& command);
void run_make_detection_set(const MakeDetectionSetCommand& command);

struct BalanceCommand {
  std::string model;  // empty: seconds_per_sample are given
  std::string cluster;
  std::vector<Index> samples;  // these and what follows: of each device; empty: those of classes
  std::vector<double> seconds_per_sample;
  std::vector<Index> capacity;  // empty: no limit
  double sample_bytes = 0;
  double epochs = 1;
  Index shard_size = 1;  // samples that move together
  std::string classes;   // a table of the samples of each class; empty: classes do not count
  double class_tolerance = 0.1;
  std::string method = "exact";
  std::string out;  // data map; empty: none
  bool json = false;
};
void add_options(CLI::App& app, BalanceCommand& command);
void run_balance(const BalanceCommand& command);

struct PredictCommand : PredictionRequest {
  std::string out;  // a folder for the pictures with their captions; empty: none are drawn
  Index top = 5;
  double least_score = 0.25;  // of objects
  bool json = false;
};
void add_options(CLI::App& app, PredictCommand& command);
void run_predict(const PredictCommand& command, const Communicator& communicator);

struct PlanCommand {
  std::string model;
  PartitionRequest partition;
  bool measures_kernels = false;  // --kernels measured: the fastest of a trial
  bool keeps_state = false;       // as under `tessera run`
  int ranks = 0;
  Index batch = 0;         // of a step; 0, and below: as the model file says
  Index subdivisions = 0;  // passes of a step
  std::string size;
  std::string freeze;
  std::optional<double> multi_scale;        // nothing: as the model file says
  std::string data;                         // data set; empty: not at hand
  Index pictures = 0;                       // of the data set, for training; 0: not known
  Index variants = 0;                       // of each picture
  std::optional<BatchNormMode> batch_norm;  // nothing: Sync
  std::string save;                         // write the partition there
  bool json = false;
  bool regions = false;  // also tables of groups, regions and memory
  bool explain = false;
  std::vector<Index> samples;  // of each device, for an explanation; none: not said
  double sample_bytes = 0;
  double epochs = 1;
  std::string save_baselines;  // a folder for the partitions that an explanation compares
  int scale = 0;               // devices up to which the best step is predicted; 0: not asked for
};
void add_options(CLI::App& app, PlanCommand& command);
// Prints the plan; returns the exit code, which says whether it fits.
[[nodiscard]] int run_plan(const PlanCommand& given);

struct TimeCommand : TimingRequest {
  bool json = false;
};
void add_options(CLI::App& app, TimeCommand& command);
void run_time(const TimeCommand& command, const Communicator& communicator);

struct ProbeCommand {
  std::string model;  // whose convolutions to time; empty: a standard set
  std::string size;
  std::string out;
  std::string hostfile;  // beside which the profile goes, where `out` does not say
  bool force = false;    // replace a file that is there
  bool apart = false;    // describe devices that measure alike each by itself
  int threads = 0;
  std::vector<std::string> kernels{"direct", "winograd2", "winograd4"};
  Index seconds = 40;
  std::vector<MeterSpec> meters;  // of electric power; none: automatic
  bool json = false;
};
void add_options(CLI::App& app, ProbeCommand& command);
void run_probe(const ProbeCommand& command, const Communicator& communicator);

struct TopCommand {
  std::string run;                    // a run's folder
  bool once = false;                  // one picture of it, as lines of text
  bool ascii = false;                 // no other characters, whatever the locale says
  std::optional<ServeAddress> serve;  // to browsers, instead of in the terminal
};
void add_options(CLI::App& app, TopCommand& command);
// Shows the run until the user ends it; once, where standard output is no terminal.
void run_top(const TopCommand& command);

struct CheckCommand {
  std::string model;
  PartitionRequest partition = partitioner::comparable_request();
  std::string size;
  std::string freeze;
  Index batch = 2;
  std::uint64_t seed = 1;
};
void add_options(CLI::App& app, CheckCommand& command);
// Returns whether all differences are within their bounds.
[[nodiscard]] bool run_check(const CheckCommand& command, const Communicator& communicator);

struct GradientsCommand {
  std::string model;
  std::string in;
  std::string out;
  std::string freeze;
  PartitionRequest partition = partitioner::comparable_request();
  std::optional<BatchNormMode> batch_norm;  // nothing: Sync
  std::string precision = "single";
};
void add_options(CLI::App& app, GradientsCommand& command);
void run_gradients(const GradientsCommand& command, const Communicator& communicator);

struct MapCommand {
  std::string ground_truth;  // files in the format of COCO
  std::string detections;
  bool json = false;
};
void add_options(CLI::App& app, MapCommand& command);
void run_map(const MapCommand& command);

struct ConvertCommand {
  std::string model;  // or an ONNX file
  std::string from;
  std::string to;
  std::string out;        // a model file, which an ONNX file becomes
  std::string size;       // "HxW" of its input; empty: it says it
  std::string for_model;  // which an ONNX file gives its weights to
  int layers = 0;         // how many, from the first, as `darknet partial` writes them; 0: all
};
void add_options(CLI::App& app, ConvertCommand& command);
void run_convert(const ConvertCommand& command);

// To an ONNX file.
struct ExportCommand {
  std::string model;
  std::string weights;
  std::string out;
  std::string names;  // a file that names classes; empty: as the weights say
  std::string size;
  std::optional<Index> batch = 1;  // nothing: any number
  bool raw = false;
  bool logits = false;
  std::string layout = "boxes";
  bool keep_batch_norm = false;
  std::string calibration;  // a data set, or pictures; empty: none
  Index count = 256;        // of these
  bool force = false;       // replace names of other classes
  // Mean and deviation of pixels; empty: those of the weights, else 0, 1.
  std::vector<float> mean;
  std::vector<float> stddev;
};
void add_options(CLI::App& app, ExportCommand& command);
// Prints what stands in the file.
void run_export(const ExportCommand& command);

struct ReportCommand {
  std::string run;    // a run folder
  std::string out;    // empty: report.html in it
  std::string title;  // empty: the model's name
};
void add_options(CLI::App& app, ReportCommand& command);
// Writes a page about a run and prints where it is.
void run_report(const ReportCommand& command);

}  // namespace tessera::engine
