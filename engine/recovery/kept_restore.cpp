#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/execution/parameter_regrid.h"
#include "engine/recovery/device_name.h"
#include "engine/recovery/kept_state.h"
#include "engine/recovery/slot_file.h"
#include "engine/system/kept_files.h"
#include "partitioner/network/network.h"
#include "partitioner/plan/plan_fingerprint.h"

namespace tessera::engine {

namespace {

// Ranks that started together have one number. Others may have kept other parts of the same step,
// which do not go together with theirs.
using StepName = std::pair<Index, std::uint64_t>;

// A content of a file that this rank reads for its device.
struct ReadContent {
  StepName name;
  std::size_t file = 0;  // of ReadHere::files
  SlotReader::Content content;
  KeptText text;
};

struct ReadHere {
  std::vector<SlotReader> files;
  std::vector<ReadContent> contents;
};

// The lowest rank of a device reads for all of them.
ReadHere read_here(const std::filesystem::path& folder, const std::string& network, bool adam) {
  ReadHere here;
  std::error_code error;
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == kKeptEnding) {
      paths.insert(entry.path());
    }
  }
  for (const auto& path : paths) {
    SlotReader file(path);
    bool any = false;
    for (const SlotReader::Content& content : file.contents()) {
      auto text = parse_kept_text(content.text, content.floats);
      if (text && text->network == network && text->adam == adam && content.step > 0) {
        any = true;
        here.contents.push_back(
            {{content.step, text->start}, here.files.size(), content, std::move(*text)});
      }
    }
    if (any) {
      here.files.push_back(std::move(file));
    }
  }
  return here;
}

// The steps and texts of all contents, without the networks, which are all the same.
std::string announced(const ReadHere& here) {
  nlohmann::json list = nlohmann::json::array();
  for (const ReadContent& one : here.contents) {
    list.push_back({one.name.first, one.content.floats, to_text(one.text)});
  }
  return list.dump();
}

// A part that some rank reads, and where its elements lie in the array of all that this rank reads
// of the same array.
struct FoundPart {
  int rank = 0;
  Range elements;
  Index at = 0;
};

struct FoundStep {
  std::string plan;
  int copies = 1;
  bool first_learns = false;
  Index images_seen = 0;
  std::vector<StepLoss> latest;
  std::map<ArrayName, std::vector<FoundPart>> arrays;
};

using FoundSteps = std::map<StepName, FoundStep, std::greater<>>;  // the newest first

// The same on all ranks.
FoundSteps found_steps(const std::vector<std::string>& announced) {
  FoundSteps steps;
  for (std::size_t rank = 0; rank < announced.size(); ++rank) {
    std::map<std::pair<StepName, ArrayName>, Index> read;  // elements so far
    const auto list = nlohmann::json::parse(announced[rank], nullptr, false);
    for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
      const auto text =
          parse_kept_text(list[i].at(2).get<std::string>(), list[i].at(1).get<Index>());
      if (!text) {
        continue;
      }
      const StepName name{list[i].at(0).get<Index>(), text->start};
      FoundStep& step = steps[name];
      step.plan = text->plan;
      step.copies = text->copies;
      step.first_learns = text->first_learns;
      step.images_seen = text->images_seen;
      step.latest = text->latest;
      for (const KeptPart& part : text->parts) {
        Index& begin = read[{name, part.array}];
        step.arrays[part.array].push_back({static_cast<int>(rank), part.elements, begin});
        begin += part.elements.size();
      }
    }
  }
  return steps;
}

// Each of the elements once, of the parts that are there; nothing where one is missing.
std::optional<std::vector<PlacedRun>> covering(const FoundStep& step,
                                               const ArrayName& name,
                                               Index size) {
  const auto found = step.arrays.find(name);
  std::vector<FoundPart> parts =
      found == step.arrays.end() ? std::vector<FoundPart>() : found->second;
  std::stable_sort(parts.begin(), parts.end(), [](const FoundPart& a, const FoundPart& b) {
    return a.elements.begin < b.elements.begin;
  });
  std::vector<PlacedRun> runs;
  Index covered = 0;
  for (const FoundPart& part : parts) {
    if (part.elements.begin > covered) {
      return std::nullopt;
    }
    if (part.elements.end > covered) {
      runs.push_back(
          {part.rank, {covered, part.elements.end}, part.at + covered - part.elements.begin});
      covered = part.elements.end;
    }
  }
  return covered == size ? std::optional(runs) : std::nullopt;
}

ArrayName in_copy(ArrayName array, int copy) {
  array.copy = copy;
  return array;
}

// Where a trainer is given what was found.
class Restoration {
 public:
  Restoration(const ReadHere& here,
              const StepName& step,
              const FoundStep& found,
              const partitioner::Plan& plan,
              Trainer& trainer,
              const Communicator& communicator)
      : here_(here),
        step_(step),
        found_(found),
        plan_(plan),
        trainer_(trainer),
        communicator_(communicator),
        same_plan_(found.plan == fingerprint(plan) && found.copies == plan.copies()) {}

  void give_arrays() {
    for (const ArrayName& array : arrays_of(plan_, trainer_.optimizer().trained())) {
      if (found_.copies == 1) {
        give(array, places(array, std::nullopt), place(array).data());
      } else if (same_plan_) {
        for (int copy = 0; copy < found_.copies; ++copy) {
          give(in_copy(array, copy), places(array, copy), place(array).data());
        }
      } else if (found_.first_learns && is_learnt(parameter(array))) {
        give(array, places(array, std::nullopt), place(array).data());
      } else {
        give_average(array);
      }
    }
  }

  // States of ranks mean something to the same ranks of the same plan. Whether all have theirs.
  bool give_rank_states() {
    Index mine = 0;
    for (const std::span<float> array : trainer_.own_arrays()) {
      mine += std::ssize(array);
    }
    const std::vector<Index> sizes = communicator_.of_ranks(mine);
    const auto name = [](std::size_t rank) {
      return ArrayName{static_cast<int>(rank), ArrayKind::OfRank, 0};
    };
    std::vector<std::vector<PlacedRun>> from(sizes.size());
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      const auto runs = covering(found_, name(rank), sizes[rank]);
      if (!same_plan_ || (sizes[rank] > 0 && !runs)) {
        return false;
      }
      from[rank] = runs.value_or(std::vector<PlacedRun>());
    }
    std::vector<float> own(static_cast<std::size_t>(mine));
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      if (sizes[rank] > 0) {
        give(name(rank), from[rank], {{static_cast<int>(rank), {0, sizes[rank]}, 0}}, own.data());
      }
    }
    auto at = own.cbegin();
    for (const std::span<float> array : trainer_.own_arrays()) {
      std::copy_n(at, array.size(), array.begin());
      at += std::ssize(array);
    }
    return true;
  }

  // Throws AgreedError where a file could not be read.
  void finish() const { throw_agreed(communicator_, problem_); }

 private:
  [[nodiscard]] const partitioner::ParameterPlan& parameter(const ArrayName& array) const {
    return plan_.parameters[static_cast<std::size_t>(array.tensor)];
  }
  [[nodiscard]] Index size(const ArrayName& array) const {
    return parameter(array).shape.channels * parameter(array).shape.row;
  }

  // Who is to have it: the ranks of a replica, or of all.
  [[nodiscard]] std::vector<PlacedRun> places(const ArrayName& array,
                                              std::optional<int> copy) const {
    std::vector<PlacedRun> runs = array.kind == ArrayKind::Values ? held_values(parameter(array))
                                                                  : all_states(parameter(array));
    std::erase_if(runs, [&](const PlacedRun& run) {
      return copy && run.rank / plan_.ranks_of_copy() != *copy;
    });
    return runs;
  }

  [[nodiscard]] std::span<float> place(const ArrayName& array) {
    const auto tensor = static_cast<std::size_t>(array.tensor);
    OptimizerState<float>& state = trainer_.optimizer().states()[tensor];
    return array.kind == ArrayKind::Values
               ? trainer_.execution().parameters().all()[tensor].values.span()
           : array.kind == ArrayKind::Average ? state.average.span()
           : array.kind == ArrayKind::First   ? state.first.span()
                                              : state.second.span();
  }

  void give(const ArrayName& array, const std::vector<PlacedRun>& to, float* now) {
    give(array, covering(found_, array, size(array)).value(), to, now);
  }

  void give(const ArrayName& array,
            const std::vector<PlacedRun>& from,
            const std::vector<PlacedRun>& to,
            float* now) {
    const std::vector<float> mine = floats_here(array);
    regrid_elements(communicator_, from, mine.data(), to, now);
  }

  // The model that replicas have in common.
  void give_average(const ArrayName& array) {
    const std::span<float> now = place(array);
    std::vector<float> one(now.size());
    std::vector<float> sum(now.size());
    for (int copy = 0; copy < found_.copies; ++copy) {
      give(in_copy(array, copy), places(array, std::nullopt), one.data());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += one[i];
      }
    }
    std::transform(sum.begin(), sum.end(), now.begin(), [this](float value) {
      return value / static_cast<float>(found_.copies);
    });
  }

  // All that this rank reads of an array, in the order in which it was announced.
  [[nodiscard]] std::vector<float> floats_here(const ArrayName& array) {
    std::vector<float> floats;
    for (const ReadContent& one : here_.contents) {
      if (one.name != step_) {
        continue;
      }
      Index at = 0;
      for (const KeptPart& part : one.text.parts) {
        if (part.array == array) {
          const std::size_t before = floats.size();
          floats.resize(before + static_cast<std::size_t>(part.elements.size()));
          const auto problem = problem_of([&] {
            here_.files[one.file].read(one.content, at, std::span(floats).subspan(before));
          });
          problem_ = problem_ ? problem_ : problem;  // others wait for what is to be sent
        }
        at += part.elements.size();
      }
    }
    return floats;
  }

  const ReadHere& here_;
  const StepName& step_;
  const FoundStep& found_;
  const partitioner::Plan& plan_;
  Trainer& trainer_;
  const Communicator& communicator_;
  bool same_plan_;
  std::optional<std::string> problem_;
};

bool is_complete(const FoundStep& step,
                 const partitioner::Plan& plan,
                 const partitioner::TrainedArrays& trained) {
  for (const ArrayName& array : arrays_of(plan, trained)) {
    const auto& shape = plan.parameters[static_cast<std::size_t>(array.tensor)].shape;
    for (int copy = 0; copy < step.copies; ++copy) {
      if (!covering(step, in_copy(array, copy), shape.channels * shape.row)) {
        return false;
      }
    }
  }
  return true;
}

// What each rank reads for its device, and what all of them find.
struct Found {
  ReadHere here;
  FoundSteps steps;
};

Found find_steps(const std::filesystem::path& folder,
                 const partitioner::Network& network,
                 bool adam,
                 const Communicator& communicator) {
  const std::vector<std::string> devices = texts_of_ranks(communicator, device_name(folder));
  const auto mine = devices.begin() + communicator.rank();
  const bool reads = std::find(devices.begin(), mine, *mine) == mine;
  Found found{reads ? read_here(folder, fingerprint(network), adam) : ReadHere(), {}};
  found.steps = found_steps(texts_of_ranks(communicator, announced(found.here)));
  return found;
}

}  // namespace

std::optional<Index> newest_kept_step(const std::filesystem::path& folder,
                                      const partitioner::Network& network,
                                      const std::function<partitioner::Plan(Index step)>& plan_in,
                                      const partitioner::TrainedArrays& trained,
                                      const Communicator& communicator) {
  for (const auto& [name, step] : find_steps(folder, network, trained.adam, communicator).steps) {
    if (is_complete(step, plan_in(name.first), trained)) {
      return name.first;
    }
  }
  return std::nullopt;
}

std::optional<KeptStep> restore_kept_state(const std::filesystem::path& folder,
                                           const partitioner::Network& network,
                                           const partitioner::Plan& plan,
                                           Trainer& trainer,
                                           const Communicator& communicator,
                                           const std::optional<Index>& step) {
  const partitioner::TrainedArrays trained = trainer.optimizer().trained();
  const Found found = find_steps(folder, network, trained.adam, communicator);
  const auto newest = std::find_if(found.steps.begin(), found.steps.end(), [&](const auto& each) {
    return step.value_or(each.first.first) == each.first.first &&
           is_complete(each.second, plan, trained);
  });
  if (newest == found.steps.end()) {
    return std::nullopt;
  }
  const auto& [name, state] = *newest;
  Restoration restoration(found.here, name, state, plan, trainer, communicator);
  restoration.give_arrays();
  const bool rank_states = restoration.give_rank_states();
  restoration.finish();
  trainer.resume_at(name.first, rank_states);
  return KeptStep{name.first, state.images_seen, state.latest, rank_states};
}

}  // namespace tessera::engine
