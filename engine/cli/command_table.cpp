#include "engine/cli/command_table.h"

#include <type_traits>

#include "engine/cli/common_options.h"

namespace tessera::engine {

namespace {

constexpr int kFailed = 1;  // a check, or a cluster on which training cannot begin

template <class Command>
void add_options_of(CLI::App& app, Commands& commands) {
  add_options(app, commands.values[typeid(Command)].emplace<Command>());
}

// What a command returns, nothing or whether all is well, as an exit code.
template <class Run>
int exit_code_of(const Run& run) {
  using Result = decltype(run());
  if constexpr (std::is_void_v<Result>) {
    run();
    return 0;
  } else if constexpr (std::is_same_v<Result, bool>) {
    return run() ? 0 : kFailed;
  } else {
    return run();
  }
}

template <class Command, class Result>
CommandRow alone(const char* name, const char* purpose, Result (*run)(const Command&)) {
  return {.name = name,
          .purpose = purpose,
          .add_options = add_options_of<Command>,
          .run_alone = [run](const Commands& all) {
            return exit_code_of([&] { return run(all.of<Command>()); });
          }};
}

template <class Command, class Result>
CommandRow together(const char* name,
                    const char* purpose,
                    Result (*run)(const Command&, const Communicator&),
                    bool watched = true) {
  return {.name = name,
          .purpose = purpose,
          .add_options = add_options_of<Command>,
          .run_together =
              [run](const Commands& all, const Communicator& world) {
                return exit_code_of([&] { return run(all.of<Command>(), world); });
              },
          .watched = watched};
}

CommandRow choice() {
  constexpr const char* kPurpose =
      "choose the devices of a cluster to train on, by short trials, and train";
  CommandRow row = together("choose", kPurpose, run_choose, false);
  row.run_alone = alone("choose", kPurpose, run_dry_choose).run_alone;
  return row;
}

std::vector<CommandRow> all_rows() {
  return {
      together("train", "train a model, on one device or tiled over several", run_train, false),
      choice(),
      alone("run", "train, and go on by itself when devices or ranks vanish and return", run_run),
      alone("doctor", "check the devices of a cluster and the links between them", run_doctor),
      alone("deploy",
            "copy the program, files and data sets to the devices of a cluster",
            run_deploy),
      together("eval", "evaluate a trained model on the test part of a data set", run_eval),
      together("predict", "name what is in pictures, or find it", run_predict),
      alone("plan", "predict memory (exit code 3 if it does not fit), time, messages", run_plan),
      together("time", "measure a training step on random pictures", run_time),
      together("probe", "measure devices and links, and write a cluster profile", run_probe),
      alone("top",
            "watch a training run: devices, step time, memory, loss, events; q quits",
            run_top),
      together(
          "check", "compare a partition with a single tile; exit code 1 if they differ", run_check),
      together("gradients",
               "compute a vector-Jacobian product, to compare with other frameworks",
               run_gradients),
      alone("convert",
            "convert weights to and from Darknet's .weights, and models from ONNX",
            run_convert),
      alone("export", "write a trained model as an ONNX file, for other programs", run_export),
      alone("report",
            "write a page about a run: what it learnt, where its time and energy went",
            run_report),
      alone("check-data", "find all problems of a data set; decodes every picture", run_check_data),
      alone("adapt", "change a model file to fit the classes and boxes of a data set", run_adapt),
      alone("anchors",
            "anchors for a detector's heads, by k-means over the boxes of a data set",
            run_anchors),
      alone("make-detection-set",
            "compose a data set for object detection from Fashion-MNIST",
            run_make_detection_set),
      alone(
          "map", "average precision of boxes that a detector found (COCO, VOC, Darknet)", run_map),
      alone(
          "balance", "choose which samples to move between devices before training", run_balance)};
}

}  // namespace

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = all_rows();
  return rows;
}

void add_commands(CLI::App& program, Commands& commands) {
  for (const CommandRow& row : command_rows()) {
    CLI::App& app = *program.add_subcommand(row.name, row.purpose);
    row.add_options(app, commands);
    if (row.watched) {
      add_stall_timeout(app, commands.stall_timeout_s);
    }
  }
}

}  // namespace tessera::engine
