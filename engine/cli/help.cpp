#include "engine/cli/help.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"
#include "partitioner/base/text_table.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kLeftColumn = 27;

struct Examples {
  const char* command;
  const char* lines;
};

constexpr std::array<Examples, 22> kExamples{
    {{"train",
      "  tessera train m.cfg --data photos --run runs/a --epochs 20\n"
      "  tessera run -n 4 -- train m.cfg --data photos --run runs/a --grid 2x2\n"},
     {"choose",
      "  tessera choose m.cfg --data photos --cluster hosts.cluster.toml \\\n"
      "    --objective energy --epochs 20 --dry-run\n"
      "  tessera run --hostfile hosts -- choose m.cfg --data photos \\\n"
      "    --cluster hosts.cluster.toml --objective edp --epochs 20 --run runs/a\n"},
     {"run",
      "  tessera run -n 2 -- train m.cfg --data photos --run runs/a --grid 1x2\n"
      "  tessera run --hostfile hosts -- train m.cfg --data photos --run runs/a \\\n"
      "    --partition auto --cluster hosts.cluster.toml\n"
      "  tessera run --continue runs/a\n"},
     {"doctor",
      "  tessera doctor --hostfile hosts\n"
      "  tessera doctor --hostfile hosts --json\n"},
     {"deploy",
      "  tessera deploy --hostfile hosts m.cfg\n"
      "  tessera deploy --hostfile hosts m.cfg --data photos --dry-run\n"
      "  tessera deploy --hostfile hosts --data photos-{rank} --data-map data-map.toml\n"},
     {"eval",
      "  tessera eval --data photos --weights runs/a\n"
      "  mpiexec.mpich -n 4 tessera eval m.cfg --data photos --weights w.safetensors \\\n"
      "    --grid 2x2 --json\n"},
     {"predict",
      "  tessera predict cup.jpg --weights runs/a\n"
      "  tessera predict m.cfg holiday/ more.txt --weights w.safetensors --out seen\n"
      "  tessera predict m.cfg *.jpg --weights w.safetensors --top 1 --json\n"},
     {"plan",
      "  tessera plan m.cfg --cluster hosts.cluster.toml --data photos\n"
      "  tessera plan m.cfg --cluster hosts.cluster.toml --explain\n"
      "  tessera plan m.cfg --grid 2x2 --regions\n"
      "  tessera plan m.cfg --grid 2x2 --groups 0-3,4-7 --save mine.toml\n"},
     {"time",
      "  mpiexec.mpich -n 4 tessera time m.cfg --grid 2x2 --parts\n"
      "  tessera time m.cfg --batch 8 --layers\n"},
     {"probe",
      "  mpiexec.mpich -f hosts -n 4 tessera probe --hostfile hosts\n"
      "  mpiexec.mpich -n 2 tessera probe m.cfg --out mine.cluster.toml\n"
      "  mpiexec.mpich -f hosts -n 4 tessera probe --hostfile hosts \\\n"
      "    --meter pi1=shelly:http://10.0.0.7\n"},
     {"top",
      "  tessera top runs/a\n"
      "  ssh pi1 tessera top --once runs/a\n"
      "  tessera top runs/a --serve 8080\n"
      "  tessera top runs/a --serve 0.0.0.0:8080\n"},
     {"check",
      "  mpiexec.mpich -n 4 tessera check m.cfg --grid 2x2\n"
      "  mpiexec.mpich -n 6 tessera check m.cfg --partition mine.toml --batch 4\n"},
     {"gradients", "  tessera gradients m.cfg --in in.safetensors --out out.safetensors\n"},
     {"check-data",
      "  tessera check-data photos\n"
      "  tessera check-data photos --model m.cfg\n"
      "  tessera check-data traffic.data --sheet sheet.png\n"},
     {"adapt",
      "  tessera adapt yolov4-tiny.cfg --data traffic.data --out traffic.cfg\n"
      "  tessera adapt resnet18.cfg --data photos --size 128x128 --out photos.cfg\n"},
     {"anchors",
      "  tessera anchors traffic.data --count 6 --size 416x416\n"
      "  tessera anchors traffic.data --count 5 --stride 32\n"},
     {"make-detection-set",
      "  tessera make-detection-set things --pictures 2000 --size 160x160 --seed 1\n"},
     {"map", "  tessera map --ground-truth instances.json --detections results.json\n"},
     {"balance",
      "  tessera balance m.cfg --cluster hosts.cluster.toml --epochs 20 \\\n"
      "    --samples 6000,500,500 --sample-bytes 3072 --out data-map.toml\n"},
     {"convert",
      "  tessera convert m.cfg --from runs/a/best.safetensors --to m.weights\n"
      "  tessera convert m.cfg --from m.weights --to m.safetensors\n"
      "  tessera convert m.cfg --from m.weights --to m.conv.29 --layers 29\n"
      "  tessera convert m.onnx --out m.cfg\n"
      "  tessera convert m.onnx --model m.cfg --to m.safetensors\n"},
     {"export",
      "  tessera export --weights runs/a --out m.onnx\n"
      "  tessera export m.cfg --weights m.weights --names coco.names --out m.onnx --raw\n"
      "  tessera export m.cfg --weights runs/a/best.safetensors --out m.onnx \\\n"
      "    --calibration camera.data --count 256\n"},
     {"report",
      "  tessera report runs/a\n"
      "  tessera report runs/a --out a.html --title \"Six boards, one night\"\n"}}};

constexpr const char* kPartitionExamples =
    "Examples:\n"
    "  tessera plan m.cfg --grid 2x2 --groups 0-3,4-7,8-15\n"
    "  tessera plan m.cfg --ranks 4 --data-parallel-from 4\n"
    "  tessera plan m.cfg --partition auto --ranks 8 --memory-limit 400\n";

class Listing : public CLI::Formatter {
 public:
  // A group without options leaves empty lines: never more than one.
  [[nodiscard]] std::string make_help(const CLI::App* app,
                                      std::string name,
                                      CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) {
      text.erase(at, 1);
    }
    return text;
  }

  // How to cut has a page of its own.
  [[nodiscard]] std::string make_group(std::string group,
                                       bool is_positional,
                                       std::vector<const CLI::Option*> options) const override {
    return group == kPartitionGroup ? ""
                                    : CLI::Formatter::make_group(group, is_positional, options);
  }

  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override {
    std::string left = "  " + make_option_name(option, is_positional);
    if (const std::string type = type_of(*option); !type.empty()) {
      left += " " + type;
    }
    const std::string right = description_of(*option);
    left += left.size() + 2 > kLeftColumn ? "\n" + std::string(kLeftColumn, ' ')
                                          : std::string(kLeftColumn - left.size(), ' ');
    return left + in_lines(right, kWidth - kLeftColumn, kLeftColumn) + "\n";
  }

  [[nodiscard]] std::string make_subcommand(const CLI::App* command) const override {
    constexpr std::size_t kNames = 13;
    const std::string left = "  " + command->get_name();
    const bool fits = left.size() < kNames;
    return left +
           (fits ? std::string(kNames - left.size(), ' ') : "\n" + std::string(kNames, ' ')) +
           in_lines(command->get_description(), kWidth - kNames, kNames) + "\n";
  }
};

}  // namespace

std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t choices = type.find(":{");
  return choices == std::string::npos ? type : type.substr(choices + 1);
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::string type = type_of(option);
  if (type.size() < 2 || type.front() != '{' || type.back() != '}') {
    return {};
  }
  return CLI::detail::split(type.substr(1, type.size() - 2), ',');
}

bool is_positional(const CLI::Option& option) {
  return option.get_lnames().empty() && option.get_snames().empty();
}

std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_required() && !is_positional(option)) {
    text += " (required)";
  }
  if (!option.get_default_str().empty()) {
    text += " (default: " + option.get_default_str() + ")";
  }
  return text;
}

std::string examples_of(const std::string& command) {
  for (const Examples& examples : kExamples) {
    if (command == examples.command) {
      return examples.lines;
    }
  }
  return "";
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<Listing>();
}

HelpPages::HelpPages(CLI::App& program) : program_(&program) {
  for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    std::string footer;
    bool cuts = false;
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group() == kPartitionGroup) {
        cuts = true;
        if (command->get_name() == "plan") {
          partition_options_.push_back(option);
        }
      }
    }
    if (cuts) {
      footer += "Partitioning options (--partition, --grid, ...): tessera help partitioning\n";
    }
    if (const std::string examples = examples_of(command->get_name()); !examples.empty()) {
      footer += "Examples:\n" + examples;
    }
    if (!footer.empty()) {
      footer.pop_back();  // the formatter ends the line
    }
    command->footer(footer);
  }
}

std::string HelpPages::partitioning() const {
  std::string text = in_lines(
      "How to cut a network: options of train, eval, predict, plan, time, check and gradients. By "
      "default, maps are cut into a grid of tiles, one per rank, up to the first layer that cannot "
      "be tiled; from there on, images are divided among ranks.",
      kWidth,
      0);
  text += "\n\nOptions:\n";
  const Listing listing;
  for (const CLI::Option* option : partition_options_) {
    text += listing.make_option(option, false);
  }
  return text + "\n" + kPartitionExamples;
}

std::string HelpPages::page(const std::string& topic) const {
  if (topic.empty()) {
    return program_->help();
  }
  if (topic == "partitioning") {
    return partitioning();
  }
  std::vector<std::string> topics = command_names(*program_);
  if (std::find(topics.begin(), topics.end(), topic) != topics.end()) {
    return program_->get_subcommand(topic)->help("tessera");
  }
  topics.emplace_back("partitioning");
  throw InputError(fmt::format("there is no help on \"{}\"{} (expected {})",
                               printable_start(topic),
                               suggestion(topic, topics),
                               fmt::join(topics, ", ")));
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& words) {
  return tessera::suggestion(word, std::vector<std::string_view>(words.begin(), words.end()));
}

}  // namespace tessera::engine
