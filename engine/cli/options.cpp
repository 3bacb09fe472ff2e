#include <fmt/format.h>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/cli/common_options.h"
#include "engine/cli/partition_options.h"
#include "partitioner/balance/balance.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"

namespace tessera::engine {

namespace {

void add_size_of_input(CLI::App& app, std::string& size, const char* help) {
  add_text(app, "--size HxW", size, help)->capture_default_str();
}

void add_remote_shell(CLI::App& app, std::string& remote_shell) {
  add_text(app,
           "--remote-shell PROGRAM",
           remote_shell,
           "what reaches the other devices, called with a host and a command")
      ->capture_default_str();
}

}  // namespace

void add_options(CLI::App& app, EvalCommand& command) {
  add_text(app, "MODEL", command.model, "model file (default: the one in the checkpoint)");
  add_text(app, "--data DATA", command.data, "data set, as for train")->required();
  add_skip_broken(app, command.skip_broken);
  add_allow_unlabelled(app, command.allow_unlabelled);
  add_weights(app, command.weights);
  add_count(app, "--batch", command.batch, "images at a time (default: 32)");
  add_json(app,
           command.json,
           "print JSON: accuracy, loss, pictures, top5, classes, confusion; of a detector map50, "
           "loss, pictures, coco, voc_11_points, voc_all_points, classes, confusion, curves");
  add_pixels(app, command.mean, command.stddev);
  add_partition(app, command.partition);
}

void add_options(CLI::App& app, DoctorCommand& command) {
  add_text(app, "--hostfile FILE", command.hostfile, "the devices, HOST:RANKS a line")->required();
  add_remote_shell(app, command.remote_shell);
  add_json(app, command.json, "print JSON: well, devices, links, problems, warnings");
}

void add_options(CLI::App& app, DeployCommand& command) {
  add_text(app, "--hostfile FILE", command.hostfile, "the devices, HOST:RANKS a line")->required();
  app.add_option(
      "PATH", command.paths, "files and folders for all devices, to the same path there");
  auto* data = add_text(app,
                        "--data DATA",
                        command.data,
                        "a data set in a folder, for all devices; with {rank} in it, which stands "
                        "for the number of a rank, for the device of that rank");
  add_text(
      app, "--data-map FILE", command.data_map, "ranks without samples in this map need no data")
      ->needs(data);
  add_remote_shell(app, command.remote_shell);
  app.add_flag("--dry-run", command.dry_run, "say what would be copied, and copy nothing");
  app.add_flag("--overwrite",
               command.overwrite,
               "replace files on devices that are newer and different; without it they are named, "
               "and nothing is copied");
}

void add_options(CLI::App& app, RunCommand& command) {
  auto* hosts = add_text(app,
                         "--hostfile FILE",
                         command.hostfile,
                         "the devices, HOST:RANKS a line; this machine is one of them");
  auto* ranks = add_count(app, "-n", command.ranks, "ranks on this machine", kMostThreads);
  hosts->excludes(ranks);
  add_remote_shell(app, command.remote_shell);
  constexpr Index kMostSilence = 3600;
  add_count(app,
            "--silence",
            command.silence_s,
            "seconds after which a device or rank that does not answer is left out (default: 3)",
            kMostSilence);
  add_text(app,
           "--witness ADDRESS",
           command.witness,
           "what exactly half of the devices has to reach by ping to go on without the others "
           "(default: the gateway of the default route)");
  auto* goes_on = add_text(app,
                           "--continue DIR",
                           command.goes_on,
                           "go on with the run in this folder, on its devices that are there");
  goes_on->excludes(ranks);
  app.add_flag("--alone",
               command.alone,
               "with --continue: go on with the devices that are there, even if they are less than "
               "half; the others must not train")
      ->needs(goes_on);
  app.add_flag("--or-continue",
               command.or_continue,
               "go on with the run in the folder of --run, if there is one")
      ->excludes(goes_on);
  app.add_flag("--at-boot",
               command.at_boot,
               "start nothing: print a systemd unit that goes on with the run, or begins it, when "
               "this machine boots");
  app.add_flag("--keep-partition",
               command.keeps_partition,
               "do not add --rebalance, as is done on several devices where --partition auto and "
               "--cluster are given");
  app.add_option("--take-over", command.take_over)->group("")->excludes(ranks);
  app.add_option("COMMAND",
                 command.words,
                 "train or choose, and its options, after --; without --data-map: what lies on a "
                 "device that vanishes could not be trained on");
}

void add_options(CLI::App& app, CheckDataCommand& command) {
  add_text(app, "DATA", command.data, "data set, as for train")->required();
  add_text(app, "--model FILE", command.model, "also check that it fits this model file");
  add_text(app,
           "--sheet FILE.png",
           command.sheet,
           "data sets with boxes: draw some training pictures with their boxes; FILE.png.txt "
           "beside it names them");
  add_skip_broken(app, command.skip_broken);
  add_allow_unlabelled(app, command.allow_unlabelled);
  add_json(app, command.json, "print JSON: pictures of each class, all problems");
}

void add_options(CLI::App& app, AnchorsCommand& command) {
  add_text(app, "DATA", command.data, "data set with boxes, as for train")->required();
  add_count(app, "--count", command.count, "anchors in all");
  add_size_of_input(app, command.size, "input size of the network");
  add_count(app,
            "--stride",
            command.stride,
            "print them in cells of so many pixels: 32 for most [region] heads");
  add_allow_unlabelled(app, command.allow_unlabelled);
  add_json(app, command.json, "print JSON: anchors, mean_iou, boxes");
}

void add_options(CLI::App& app, MakeDetectionSetCommand& command) {
  add_text(app, "OUT", command.out, "folder to make")->required();
  add_text(app, "--from FOLDER", command.from, "Fashion-MNIST, or other grey pictures as IDX")
      ->capture_default_str();
  add_count(app, "--pictures", command.pictures, "pictures for training");
  add_count(app,
            "--test-pictures",
            command.test_pictures,
            "pictures for testing (default: a fifth as many)");
  add_size_of_input(app, command.size, "size of the pictures");
  add_seed(app, command.seed, "the same seed gives the same pictures")->capture_default_str();
}

void add_options(CLI::App& app, MapCommand& command) {
  add_text(app,
           "--ground-truth FILE",
           command.ground_truth,
           "the objects on the images (JSON, as COCO's instances_val2017.json)")
      ->required();
  add_text(app,
           "--detections FILE",
           command.detections,
           "what was found (JSON, in COCO's format of results)")
      ->required();
  add_json(app,
           command.json,
           "print JSON: AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl, "
           "ap_by_class, ap_by_iou; -1 where there is nothing to be found");
}

void add_options(CLI::App& app, BalanceCommand& command) {
  add_text(app,
           "MODEL",
           command.model,
           "model file, whose training time per sample is predicted for each device");
  add_text(app, "--cluster FILE", command.cluster, "profile of devices and links")->required();
  add_numbers(app,
              "--samples",
              command.samples,
              whole_number(0, partitioner::kMostSamples),
              "samples on each device now (default: those of --classes)");
  add_number(app, "--sample-bytes B", command.sample_bytes, "bytes of a sample")->required();
  add_number(app, "--epochs E", command.epochs, "epochs to train")->required();
  add_numbers(app,
              "--seconds-per-sample",
              command.seconds_per_sample,
              real_number(kLeastQuantity, kMostQuantity),
              "training time of each device, instead of MODEL");
  add_numbers(app,
              "--capacity",
              command.capacity,
              whole_number(0, partitioner::kMostSamples),
              "samples that each device can hold");
  auto* shards = app.add_option("--shard-size",
                                command.shard_size,
                                "samples move in whole shards of so many (default: 1)")
                     ->type_name("N")
                     ->check(whole_number(1, partitioner::kMostSamples));
  auto* classes = add_text(
      app,
      "--classes FILE",
      command.classes,
      "keep the class mix equal on all devices; FILE is a CSV with the samples of each class "
      "on each device, device,CLASS,... in its first line");
  app.add_option("--class-tolerance",
                 command.class_tolerance,
                 "how far the share of a class on a device may be from its share of all samples, "
                 "relative to that")
      ->type_name("X")
      ->check(real_number(0, kMostQuantity))
      ->needs(classes)
      ->capture_default_str();
  shards->excludes(classes);
  add_choice(app,
             "--method",
             command.method,
             {"exact", "greedy"},
             "whose moves to print and to write; both are compared");
  add_text(app, "--out FILE", command.out, "write the moves as a data map (TOML)");
  add_json(app, command.json, "print JSON: moves, t_move_s, t_epoch_s, total_s, lower_bound_s");
}

void add_options(CLI::App& app, PredictCommand& command) {
  app.add_option("PICTURES",
                 command.pictures,
                 "pictures, IDX files, text files with one path per line, and folders, which are "
                 "searched recursively; a first name that ends in .cfg is the model file (default: "
                 "the one in the checkpoint)")
      ->type_name("")
      ->required();
  app.parse_complete_callback([&command] {
    if (command.pictures.front().ends_with(".cfg")) {
      command.model = command.pictures.front();
      command.pictures.erase(command.pictures.begin());
    }
    if (command.pictures.empty()) {
      throw CLI::RequiredError("PICTURES");
    }
  });
  add_weights(app, command.weights);
  add_text(app, "--names FILE", command.names, "text file with one class name per line");
  add_text(app,
           "--out DIR",
           command.out,
           "new folder for annotated pictures (PNG), each with its class and probability below");
  add_count(app, "--top", command.top, "number of classes to list");
  app.add_option("--threshold",
                 command.least_score,
                 "of a detector: the least score of an object that is shown (default: 0.25)")
      ->type_name("X")
      ->check(real_number(0, 1));
  add_count(app, "--batch", command.batch, "images at a time (default: up to 8)");
  add_json(app, command.json, "print a JSON object for each picture");
  add_pixels(app, command.mean, command.stddev);
  add_partition(app, command.partition);
}

namespace {

// What `plan` plans for: the steps of a run and its pictures.
void add_planned_run(CLI::App& app, PlanCommand& command) {
  add_count(app, "--batch", command.batch, "images per step (default: the model's)");
  add_subdivisions(app, command.subdivisions);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_multi_scale(app, command.multi_scale);
  auto* data = add_text(app,
                        "--data DATA",
                        command.data,
                        "data set, as for train, to say how long an epoch takes, and what memory");
  auto* pictures = add_count(
      app, "--pictures", command.pictures, "the same for a data set of N photos of a camera");
  data->excludes(pictures);
  add_alias(app, "--photos", command.pictures, pictures)
      ->excludes(data)
      ->check(whole_number(1, kMostCount));
  add_count(app,
            "--augment-variants",
            command.variants,
            "ways in which training shows each picture, for maps of frozen layers that are kept");
  add_batch_norm(
      app,
      command.batch_norm,
      "as `train` will: batch statistics, running statistics, or each tile's own (not exact)");
  app.add_flag("--keep-state",
               command.keeps_state,
               "count what `tessera run` adds: the state of each step travels to a second device");
}

}  // namespace

void add_options(CLI::App& app, PlanCommand& command) {
  constexpr Index kMostScale = 4096;
  add_model(app, command.model);
  add_count(
      app,
      "--ranks",
      command.ranks,
      "number of ranks (default: one per tile; where nothing says how to cut, a search does for "
      "all devices of --cluster)",
      partitioner::kMostRanks);
  add_planned_run(app, command);
  add_text(app, "--save FILE", command.save, "write the partition to this file, for --partition");
  add_json(app, command.json, "print JSON");
  app.add_flag("--regions",
               command.regions,
               "also print tables of each group, each rank's regions and each kind of memory");
  auto* explain = app.add_flag("--explain",
                               command.explain,
                               "also show where the predicted time of a step goes, compared with "
                               "other partitions and other numbers of devices");
  auto* samples = add_numbers(app,
                              "--samples",
                              command.samples,
                              whole_number(0, partitioner::kMostSamples),
                              "with --explain: samples that lie on each device, to compare "
                              "training on them as they lie and after moving some");
  auto* bytes = add_number(app, "--sample-bytes B", command.sample_bytes, "bytes of such a sample");
  samples->needs(explain)->needs(bytes);
  bytes->needs(samples);
  add_number(app, "--epochs E", command.epochs, "epochs that are trained on them (default: 1)")
      ->needs(samples);
  auto* baselines =
      add_text(app,
               "--save-baselines DIR",
               command.save_baselines,
               "write the partitions that --explain compares to this folder, one file each");
  baselines->needs(explain);
  add_alias(app, "--save-rivals", command.save_baselines, baselines)->needs(explain);
  add_count(app,
            "--scale",
            command.scale,
            "instead of a plan: predicted steps of the best partitions for 1, 2, 4, ... up to this "
            "many devices, ignoring memory limits; with --json one object per line",
            kMostScale);
  add_partition(app, command.partition, "as square as possible", &command.measures_kernels);
  add_synchronisation(app, command.partition);
}

void add_options(CLI::App& app, TimeCommand& command) {
  add_model(app, command.model);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_count(app, "--batch", command.batch, "images per step");
  add_count(app,
            "--threads",
            command.threads,
            "threads per rank (default: OMP_NUM_THREADS, else the machine's processors divided "
            "among its ranks)",
            kMostThreads);
  add_count(app, "--steps", command.steps, "steps to measure, after one warm-up step");
  app.add_flag("--parts",
               command.parts,
               "also show where the time of an average rank went, next to the prediction if there "
               "is a cluster profile");
  app.add_flag("--layers",
               command.layers,
               "also show each layer's computing time: on an average rank, on the slowest, and as "
               "predicted if there is a cluster profile");
  add_text(app,
           "--trace FILE",
           command.trace,
           "write a trace of the last step: every action of every rank, and its predicted time "
           "where there is a profile. Open it with https://ui.perfetto.dev. Ranks start that step "
           "together, and times are from there");
  app.add_flag("--monitor",
               command.monitor,
               "look at the devices meanwhile, as `train` does, and say what that takes");
  add_json(app, command.json, "print JSON");
  add_partition(app, command.partition);
  add_synchronisation(app, command.partition);
}

void add_options(CLI::App& app, ProbeCommand& command) {
  auto* model = add_text(app,
                         "MODEL",
                         command.model,
                         "model file whose convolutions to time (default: a standard set)");
  app.add_option("--size", command.size, "input size, if other than the model's")
      ->type_name("HxW")
      ->needs(model);
  auto* out = add_text(app, "--out FILE", command.out, "where to write the profile");
  add_text(app,
           "--hostfile FILE",
           command.hostfile,
           "the cluster's host file; the profile is written to FILE.cluster.toml (default: "
           "cluster.toml in the current folder)")
      ->excludes(out);
  app.add_flag("--force", command.force, "replace an existing profile");
  app.add_flag("--apart",
               command.apart,
               "describe each device by its own measurements, even where several are alike");
  add_count(app, "--threads", command.threads, "threads per rank, as for time", kMostThreads);
  app.add_option("--kernels", command.kernels, "convolution kernels to time")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"direct", "winograd2", "winograd4"}))
      ->default_str("direct,winograd4");
  constexpr Index kMostSeconds = 86400;
  add_count(app,
            "--seconds",
            command.seconds,
            "approximate time to spend; with less, large convolutions are left out",
            kMostSeconds);
  add_meters(app, command.meters, "pi1=shelly:URL");
  add_json(app,
           command.json,
           "print JSON: devices, groups of alike devices, link, what was left out, file");
}

void add_options(CLI::App& app, TopCommand& command) {
  add_text(app, "DIR", command.run, "folder of a run, as in train --run DIR")->required();
  app.add_flag(
      "--once",
      command.once,
      "print the current state and exit (default where standard output is not a terminal)");
  app.add_flag(
      "--ascii", command.ascii, "draw with ASCII characters (default: if the locale is not UTF-8)");
  add_read(
      app,
      "--serve [ADDRESS:]PORT",
      [&command](const std::string& text) { command.serve = parse_serve_address(text); },
      "instead show it in browsers, as the page of tessera report, kept current: with all that is "
      "on that page, pictures of the data set included. ADDRESS: 127.0.0.1 if not given, which no "
      "other machine reaches; 0.0.0.0 is the whole network, unencrypted, for whoever knows the "
      "random word in the address that is printed. PORT 0: any that is free. Ends a minute after "
      "the run has (ten, if it was killed: it may go on), or with Ctrl-C")
      ->excludes("--once")
      ->excludes("--ascii");
}

void add_options(CLI::App& app, CheckCommand& command) {
  add_model(app, command.model);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_count(app, "--batch", command.batch, "images");
  add_seed(app, command.seed, "seed of the random weights and pictures")->capture_default_str();
  add_partition(app, command.partition);
  add_replicas(app, command.partition);
}

void add_options(CLI::App& app, GradientsCommand& command) {
  add_model(app, command.model);
  add_text(app,
           "--in FILE",
           command.in,
           "safetensors: input, output_gradient, layers.I.weight, .bias, .bn.scale, .bn.mean, "
           ".bn.variance")
      ->required();
  add_text(
      app,
      "--out FILE",
      command.out,
      "safetensors: output, input_gradient, gradients, running statistics; or output.I of each "
      "layer I that ends the network, where there are several and no output_gradient")
      ->required();
  add_freeze(app, command.freeze);
  add_batch_norm(
      app,
      command.batch_norm,
      "batch statistics, running statistics as constants, or statistics of each tile alone");
  add_choice(app,
             "--precision",
             command.precision,
             {"single", "double"},
             "precision of the computation; double writes F64, and reads F64 or F32");
  add_partition(app, command.partition, "1x1");
}

void add_options(CLI::App& app, ReportCommand& command) {
  add_text(app, "DIR", command.run, "folder of the run, also while it is going")->required();
  add_text(app, "--out FILE", command.out, "the page (default: DIR/report.html)");
  add_text(app, "--title TEXT", command.title, "its title (default: the model's name)");
}

}  // namespace tessera::engine
