#include "engine/cli/options.h"

#include "engine/cli/common_options.h"
#include "engine/cli/help.h"
#include "engine/cli/partition_options.h"
#include "engine/cli/train_options.h"
#include "partitioner/balance/balance.h"

namespace tessera::engine {

namespace {

void add_size_of_input(CLI::App& app, std::string& size, const char* help) {
  add_text(app, "--size", size, "HxW", help)->capture_default_str();
}

void add_eval(CLI::App& program, EvalCommand& command) {
  CLI::App& app =
      *program.add_subcommand("eval", "evaluate a trained model on the test part of a data set");
  add_model(app, command.model);
  add_text(app, "--data", command.data, "DATA", "data set, as for train")->required();
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
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_remote_shell(CLI::App& app, std::string& remote_shell) {
  add_text(app,
           "--remote-shell",
           remote_shell,
           "PROGRAM",
           "what reaches the other devices, called with a host and a command")
      ->capture_default_str();
}

void add_doctor(CLI::App& program, DoctorCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "doctor", "check the devices of a cluster and the links between them");
  add_text(app, "--hostfile", command.hostfile, "FILE", "the devices, HOST:RANKS a line")
      ->required();
  add_remote_shell(app, command.remote_shell);
  add_json(app, command.json, "print JSON: well, devices, links, problems, warnings");
}

void add_deploy(CLI::App& program, DeployCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "deploy", "copy the program, files and data sets to the devices of a cluster");
  add_text(app, "--hostfile", command.hostfile, "FILE", "the devices, HOST:RANKS a line")
      ->required();
  app.add_option(
      "PATH", command.paths, "files and folders for all devices, to the same path there");
  auto* data = add_text(app,
                        "--data",
                        command.data,
                        "DATA",
                        "a data set in a folder, for all devices; with {rank} in it, which stands "
                        "for the number of a rank, for the device of that rank");
  add_text(
      app, "--data-map", command.data_map, "FILE", "ranks without samples in this map need no data")
      ->needs(data);
  add_remote_shell(app, command.remote_shell);
  app.add_flag("--dry-run", command.dry_run, "say what would be copied, and copy nothing");
  app.add_flag("--overwrite",
               command.overwrite,
               "replace files on devices that are newer and different; without it they are named, "
               "and nothing is copied");
}

void add_run(CLI::App& program, RunCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "run", "train, and go on by itself when devices or ranks vanish and return");
  auto* hosts = add_text(app,
                         "--hostfile",
                         command.hostfile,
                         "FILE",
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
           "--witness",
           command.witness,
           "ADDRESS",
           "what exactly half of the devices has to reach by ping to go on without the others "
           "(default: the gateway of the default route)");
  auto* goes_on = add_text(app,
                           "--continue",
                           command.goes_on,
                           "DIR",
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
               "start nothing: print a systemd unit that goes on with the run, or begins it, "
               "when this machine boots");
  app.add_flag("--keep-partition",
               command.keeps_partition,
               "do not add --rebalance, as is done on several devices where --partition auto and "
               "--cluster are given");
  app.add_option("--take-over", command.take_over)->group("")->excludes(ranks);
  app.add_option(
      "COMMAND",
      command.words,
      "train or choose, and its options, after --; without --data-map: what lies on a device "
      "that vanishes could not be trained on");
}

void add_check_data(CLI::App& program, CheckDataCommand& command) {
  CLI::App& app = *program.add_subcommand("check-data",
                                          "find all problems of a data set; decodes every picture");
  add_text(app, "DATA", command.data, "", "data set, as for train")->required();
  add_text(app, "--model", command.model, "FILE", "also check that it fits this model file");
  add_text(
      app,
      "--sheet",
      command.sheet,
      "FILE.png",
      "data sets with boxes: draw some training pictures with their boxes; FILE.png.txt beside "
      "it names them");
  add_skip_broken(app, command.skip_broken);
  add_allow_unlabelled(app, command.allow_unlabelled);
  add_json(app, command.json, "print JSON: pictures of each class, all problems");
}

void add_anchors(CLI::App& program, AnchorsCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "anchors", "anchors for a detector's heads, by k-means over the boxes of a data set");
  add_text(app, "DATA", command.data, "", "data set with boxes, as for train")->required();
  add_count(app, "--count", command.count, "anchors in all");
  add_size_of_input(app, command.size, "input size of the network");
  add_count(app,
            "--stride",
            command.stride,
            "print them in cells of so many pixels: 32 for most [region] heads");
  add_allow_unlabelled(app, command.allow_unlabelled);
  add_json(app, command.json, "print JSON: anchors, mean_iou, boxes");
}

void add_make_detection_set(CLI::App& program, MakeDetectionSetCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "make-detection-set", "compose a data set for object detection from Fashion-MNIST");
  add_text(app, "OUT", command.out, "", "folder to make")->required();
  add_text(app, "--from", command.from, "FOLDER", "Fashion-MNIST, or other grey pictures as IDX")
      ->capture_default_str();
  add_count(app, "--pictures", command.pictures, "pictures for training");
  add_count(app,
            "--test-pictures",
            command.test_pictures,
            "pictures for testing (default: a fifth as many)");
  add_size_of_input(app, command.size, "size of the pictures");
  add_seed(app, command.seed, "the same seed gives the same pictures")->capture_default_str();
}

void add_map(CLI::App& program, MapCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "map", "average precision of boxes that a detector found (COCO, VOC, Darknet)");
  add_text(app,
           "--ground-truth",
           command.ground_truth,
           "FILE",
           "the objects on the images (JSON, as COCO's instances_val2017.json)")
      ->required();
  add_text(app,
           "--detections",
           command.detections,
           "FILE",
           "what was found (JSON, in COCO's format of results)")
      ->required();
  add_json(app,
           command.json,
           "print JSON: AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl, "
           "ap_by_class, ap_by_iou; -1 where there is nothing to be found");
}

void add_balance(CLI::App& program, BalanceCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "balance", "choose which samples to move between devices before training");
  add_text(app,
           "MODEL",
           command.model,
           "",
           "model file, whose training time per sample is predicted for each device");
  add_text(app, "--cluster", command.cluster, "FILE", "profile of devices and links")->required();
  add_numbers(app,
              "--samples",
              command.samples,
              whole_number(0, partitioner::kMostSamples),
              "samples on each device now (default: those of --classes)");
  app.add_option("--sample-bytes", command.sample_bytes, "bytes of a sample")
      ->type_name("B")
      ->check(real_number(kLeastQuantity, kMostQuantity))
      ->required();
  app.add_option("--epochs", command.epochs, "epochs to train")
      ->type_name("E")
      ->check(real_number(kLeastQuantity, kMostQuantity))
      ->required();
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
      "--classes",
      command.classes,
      "FILE",
      "give each device of each class what it is of all samples: a CSV with the samples of "
      "each class on each device, device,CLASS,... in its first line");
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
  add_text(app, "--out", command.out, "FILE", "write the moves as a data map (TOML)");
  add_json(app, command.json, "print JSON: moves, t_move_s, t_epoch_s, total_s, lower_bound_s");
}

void add_predict(CLI::App& program, PredictCommand& command) {
  CLI::App& app = *program.add_subcommand("predict", "name what is in pictures, or find it");
  add_model(app, command.model);
  app.add_option("PICTURES",
                 command.pictures,
                 "pictures, IDX files, text files with one path per line, and folders, which are "
                 "searched recursively")
      ->type_name("")
      ->required();
  add_weights(app, command.weights);
  add_text(app, "--names", command.names, "FILE", "text file with one class name per line");
  add_text(app,
           "--out",
           command.out,
           "DIR",
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
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_plan(CLI::App& program, PlanCommand& command) {
  constexpr Index kMostScale = 4096;
  CLI::App& app = *program.add_subcommand(
      "plan", "show what a partition implies: regions, messages, work, memory");
  add_model(app, command.model);
  add_count(app,
            "--ranks",
            command.ranks,
            "number of ranks (default: one per tile of the grid)",
            partitioner::kMostRanks);
  add_count(app, "--batch", command.batch, "images per pass (default: the model's)");
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_multi_scale(app, command.multi_scale);
  add_count(app, "--photos", command.photos, "count memory for so many photos kept decoded");
  add_batch_norm(app,
                 command.batch_norm,
                 "as `train` will: batch statistics, running statistics, or each tile's own (not "
                 "exact)");
  app.add_flag("--keep-state",
               command.keeps_state,
               "count what `tessera run` adds: the state of each step travels to a second device");
  add_text(
      app, "--save", command.save, "FILE", "write the partition to this file, for --partition");
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
  auto* bytes = app.add_option("--sample-bytes", command.sample_bytes, "bytes of such a sample")
                    ->type_name("B")
                    ->check(real_number(kLeastQuantity, kMostQuantity));
  samples->needs(explain)->needs(bytes);
  bytes->needs(samples);
  app.add_option("--epochs", command.epochs, "epochs that are trained on them (default: 1)")
      ->type_name("E")
      ->check(real_number(kLeastQuantity, kMostQuantity))
      ->needs(samples);
  auto* baselines =
      add_text(app,
               "--save-baselines",
               command.save_baselines,
               "DIR",
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
  add_gradient_precision(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_sync(app, command.partition)->group(kPartitionGroup);
}

void add_time(CLI::App& program, TimeCommand& command) {
  CLI::App& app = *program.add_subcommand("time", "measure a training step on random pictures");
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
           "--trace",
           command.trace,
           "FILE",
           "write a trace of the last step: every action of every rank, and its predicted time "
           "where there is a profile. Open it with https://ui.perfetto.dev. Ranks start that step "
           "together, and times are from there");
  app.add_flag("--monitor",
               command.monitor,
               "look at the devices meanwhile, as `train` does, and say what that takes");
  add_json(app, command.json, "print JSON");
  add_partition(app, command.partition);
  add_gradient_precision(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_sync(app, command.partition)->group(kPartitionGroup);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_probe(CLI::App& program, ProbeCommand& command) {
  CLI::App& app =
      *program.add_subcommand("probe", "measure devices and links, and write a cluster profile");
  auto* model = add_text(app,
                         "MODEL",
                         command.model,
                         "",
                         "model file whose convolutions to time (default: a standard set)");
  app.add_option("--size", command.size, "input size, if other than the model's")
      ->type_name("HxW")
      ->needs(model);
  auto* out = add_text(app, "--out", command.out, "FILE", "where to write the profile");
  add_text(app,
           "--hostfile",
           command.hostfile,
           "FILE",
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
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_top(CLI::App& program, TopCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "top", "watch a training run: devices, step time, memory, loss, events; q quits");
  add_text(app, "DIR", command.run, "", "folder of a run, as in train --run DIR")->required();
  app.add_flag(
      "--once",
      command.once,
      "print the current state and exit (default where standard output is not a terminal)");
  app.add_flag(
      "--ascii", command.ascii, "draw with ASCII characters (default: if the locale is not UTF-8)");
}

void add_check(CLI::App& program, CheckCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "check", "compare a partition with a single tile; exit code 1 if they differ");
  add_model(app, command.model);
  add_size(app, command.size);
  add_freeze(app, command.freeze);
  add_count(app, "--batch", command.batch, "images");
  add_seed(app, command.seed, "seed of the random weights and pictures")->capture_default_str();
  add_partition(app, command.partition);
  add_replicas(app, command.partition)->group(kPartitionGroup);
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_gradients(CLI::App& program, GradientsCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "gradients", "compute a vector-Jacobian product, to compare with other frameworks");
  add_model(app, command.model);
  add_text(app,
           "--in",
           command.in,
           "FILE",
           "safetensors: input, output_gradient, layers.I.weight, .bias, .bn.scale, .bn.mean, "
           ".bn.variance")
      ->required();
  add_text(app,
           "--out",
           command.out,
           "FILE",
           "safetensors: output, input_gradient, gradients, running statistics")
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
  add_stall_timeout(app, command.stall_timeout_s);
}

void add_convert(CLI::App& program, ConvertCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "convert", "convert weights between .safetensors and Darknet's .weights");
  add_model(app, command.model);
  add_text(app, "--from", command.from, "FILE", "weights to read")->required();
  add_text(app, "--to", command.to, "FILE", "file to write, .weights or .safetensors")->required();
  add_count(app,
            "--layers",
            command.layers,
            "only the first N layers, in Darknet's format under any name: what other models that "
            "begin alike can start from");
}

void add_report(CLI::App& program, ReportCommand& command) {
  CLI::App& app = *program.add_subcommand(
      "report", "write a page about a run: what it learnt, where its time and energy went");
  add_text(app, "DIR", command.run, "", "folder of the run, also while it is going")->required();
  add_text(app, "--out", command.out, "FILE", "the page (default: DIR/report.html)");
  add_text(app, "--title", command.title, "TEXT", "its title (default: the model's name)");
}

}  // namespace

void add_commands(CLI::App& program, Commands& commands) {
  add_train(program, commands.train);
  add_choose(program, commands.choose);
  add_run(program, commands.run);
  add_doctor(program, commands.doctor);
  add_deploy(program, commands.deploy);
  add_eval(program, commands.eval);
  add_predict(program, commands.predict);
  add_plan(program, commands.plan);
  add_time(program, commands.time);
  add_probe(program, commands.probe);
  add_top(program, commands.top);
  add_check(program, commands.check);
  add_gradients(program, commands.gradients);
  add_convert(program, commands.convert);
  add_report(program, commands.report);
  add_check_data(program, commands.check_data);
  add_anchors(program, commands.anchors);
  add_make_detection_set(program, commands.make_detection_set);
  add_map(program, commands.map);
  add_balance(program, commands.balance);
}

}  // namespace tessera::engine
