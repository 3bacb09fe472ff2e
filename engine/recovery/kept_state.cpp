#include "engine/recovery/kept_state.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "engine/comm/tags.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/execution/parameter_regrid.h"
#include "engine/files/json_text.h"
#include "partitioner/network/network.h"
#include "partitioner/plan/plan_fingerprint.h"

namespace tessera::engine {

namespace {

using nlohmann::json;

constexpr const char* kEnding = ".kept";
constexpr Index kLatestSteps = 100;

// Which array a part belongs to.
enum class ArrayKind { Values, First, Second, OfRank };

// Elements of a tensor, in the order of its elements; of a rank's own state: all of it.
struct KeptPart {
  int tensor = 0;  // in Plan::parameters; of a rank's own state: the rank
  ArrayKind kind = ArrayKind::Values;
  Range elements;
};

Index elements_of(const partitioner::ParameterPlan& parameter) {
  return parameter.shape.channels * parameter.shape.row;
}

Index own_state_size(const RankState& state) {
  Index size = 0;
  for (const std::span<float> array : state.arrays) {
    size += std::ssize(array);
  }
  return size;
}

// What a rank owns, with `own` elements of state of its own.
std::vector<KeptPart> parts_of(const partitioner::Plan& plan, bool adam, int rank, Index own) {
  std::vector<KeptPart> parts;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const partitioner::ParameterPlan& parameter = plan.parameters[i];
    for (const Range& run : parameter.owned[static_cast<std::size_t>(rank)]) {
      const auto add = [&](ArrayKind kind) { parts.push_back({static_cast<int>(i), kind, run}); };
      add(ArrayKind::Values);
      if (is_learnt(parameter)) {
        add(ArrayKind::First);
        if (adam) {
          add(ArrayKind::Second);
        }
      }
    }
  }
  if (own > 0) {
    parts.push_back({rank, ArrayKind::OfRank, {0, own}});
  }
  return parts;
}

// The rank that has a copy of what each one owns: the next one on another device, where there is
// one; -1: nobody has to.
std::vector<int> keepers(const std::vector<std::string>& hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  std::vector<int> keeper(hosts.size(), -1);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int step = 1; step < ranks; ++step) {
      const int other = (rank + step) % ranks;
      if (hosts[static_cast<std::size_t>(other)] != hosts[static_cast<std::size_t>(rank)]) {
        keeper[static_cast<std::size_t>(rank)] = other;
        break;
      }
    }
  }
  return keeper;
}

// Whether a keeper has such elements anyway, as everybody who computes with them does. Running
// statistics may differ until they are next needed.
bool is_held(const partitioner::ParameterPlan& parameter, const KeptPart& part, int keeper) {
  if (part.kind != ArrayKind::Values || is_running_statistic(parameter)) {
    return false;
  }
  const Range& channels = parameter.required[static_cast<std::size_t>(keeper)];
  return contains({channels.begin * parameter.shape.row, channels.end * parameter.shape.row},
                  part.elements);
}

json described(const std::vector<KeptPart>& parts) {
  json list = json::array();
  for (const KeptPart& part : parts) {
    list.push_back(
        {part.tensor, static_cast<int>(part.kind), part.elements.begin, part.elements.end});
  }
  return list;
}

}  // namespace

// Where the parts lie that this rank keeps, and what it sends and receives.
class KeptState::Layout {
 public:
  Layout(const partitioner::Plan& plan, Trainer& trainer, const Communicator& communicator)
      : plan_(plan), trainer_(trainer), communicator_(communicator) {
    const bool adam = trainer.optimizer().adam();
    const int mine = communicator.rank();
    const std::vector<int> keeper = keepers(hosts_of_ranks(communicator));
    const RankState state = trainer.rank_state();
    const std::vector<Index> own = communicator.of_ranks(own_state_size(state));
    layout_ = state.layout;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const auto place = static_cast<std::size_t>(rank);
      if (rank != mine && keeper[place] != mine) {
        continue;
      }
      Arrival arrival{.from = rank};
      for (const KeptPart& part : parts_of(plan, adam, rank, own[place])) {
        const bool arrives = rank != mine && !held_by(part, mine);
        kept_.push_back(part);
        sources_.push_back({arrives ? static_cast<int>(arrivals_.size()) : -1,
                            static_cast<std::size_t>(arrival.size)});
        arrival.size += arrives ? part.elements.size() : 0;
      }
      if (rank != mine) {
        arrival.values.resize(static_cast<std::size_t>(arrival.size));
        arrivals_.push_back(std::move(arrival));
      }
    }
    keeper_ = keeper[static_cast<std::size_t>(mine)];
    if (keeper_ >= 0) {
      for (const KeptPart& part : parts_of(plan, adam, mine, own[static_cast<std::size_t>(mine)])) {
        if (!held_by(part, keeper_)) {
          sent_.push_back(part);
          sent_size_ += part.elements.size();
        }
      }
      out_.reserve(static_cast<std::size_t>(sent_size_));
    }
  }

  json text;  // of the file

  [[nodiscard]] const std::vector<KeptPart>& kept() const { return kept_; }
  [[nodiscard]] const std::string& plan() const { return layout_; }
  [[nodiscard]] Index sent_size() const { return sent_size_; }

  // Sends and receives, and says where all that is kept lies now, in the order of kept().
  std::vector<std::span<const float>> collect() {
    gather_own_state();
    out_.clear();
    for (const KeptPart& part : sent_) {
      const std::span<const float> values = here(part);
      out_.insert(out_.end(), values.begin(), values.end());
    }
    Requests requests;
    for (Arrival& arrival : arrivals_) {
      communicator_.post_receive(
          requests, arrival.from, kKeptStateTag, bytes_of(arrival.values.data(), arrival.size));
    }
    if (keeper_ >= 0) {
      communicator_.post_send(
          requests, keeper_, kKeptStateTag, bytes_of(std::as_const(out_).data(), sent_size_));
    }
    requests.wait_all();
    std::vector<std::span<const float>> pieces;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const auto& [arrival, at] = sources_[i];
      const auto size = static_cast<std::size_t>(kept_[i].elements.size());
      pieces.push_back(
          arrival < 0 ? here(kept_[i])
                      : std::span<const float>(
                            arrivals_[static_cast<std::size_t>(arrival)].values.data() + at, size));
    }
    return pieces;
  }

 private:
  struct Arrival {
    int from = 0;
    Index size = 0;
    std::vector<float> values = {};
  };

  [[nodiscard]] bool held_by(const KeptPart& part, int rank) const {
    return part.kind != ArrayKind::OfRank &&
           is_held(plan_.parameters[static_cast<std::size_t>(part.tensor)], part, rank);
  }

  void gather_own_state() {
    own_.clear();
    for (const std::span<float> array : trainer_.rank_state().arrays) {
      own_.insert(own_.end(), array.begin(), array.end());
    }
  }

  // Elements that this rank has itself.
  [[nodiscard]] std::span<const float> here(const KeptPart& part) const {
    const auto size = static_cast<std::size_t>(part.elements.size());
    if (part.kind == ArrayKind::OfRank) {
      return {own_.data(), size};
    }
    const auto tensor = static_cast<std::size_t>(part.tensor);
    if (part.kind == ArrayKind::Values) {
      const Parameter<float>& parameter = trainer_.execution().parameters().all()[tensor];
      return {parameter.values.data() + part.elements.begin - parameter.held.begin, size};
    }
    const OptimizerState<float>& state = trainer_.optimizer().states()[tensor];
    const Array<float>& array = part.kind == ArrayKind::First ? state.first : state.second;
    Index at = 0;
    for (const Range& run :
         plan_.parameters[tensor].owned[static_cast<std::size_t>(communicator_.rank())]) {
      if (run.begin == part.elements.begin) {
        break;
      }
      at += run.size();
    }
    return {array.data() + at, size};
  }

  const partitioner::Plan& plan_;
  Trainer& trainer_;
  const Communicator& communicator_;
  std::string layout_;  // of states of ranks
  std::vector<KeptPart> kept_;
  std::vector<std::pair<int, std::size_t>> sources_;  // arrival, or -1: this rank; place in it
  std::vector<Arrival> arrivals_;
  int keeper_ = -1;
  std::vector<KeptPart> sent_;
  Index sent_size_ = 0;
  std::vector<float> out_;
  std::vector<float> own_;
};

bool KeptState::is_kept(const Trainer& trainer) {
  return !trainer.runs_ahead() && !trainer.has_independent_replicas();
}

KeptState::KeptState(std::filesystem::path folder,
                     const partitioner::Network& network,
                     const partitioner::Plan& plan,
                     Trainer& trainer,
                     const Communicator& communicator)
    : folder_(std::move(folder)),
      trainer_(&trainer),
      communicator_(&communicator),
      layout_(std::make_unique<Layout>(plan, trainer, communicator)) {
  // A name of its own: until all ranks have kept twice, files of before may be the newest.
  const std::uint64_t start = communicator.share(std::uint64_t{std::random_device()()});
  path_ = folder_ / fmt::format("rank-{}-{:08x}{}", communicator.rank(), start, kEnding);
  layout_->text = json{{"network", fingerprint(network)},
                       {"plan", layout_->plan()},
                       {"start", start},
                       {"images_seen", 0},
                       {"latest", json::array()},
                       {"parts", described(layout_->kept())}};
  Index floats = 0;
  for (const KeptPart& part : layout_->kept()) {
    floats += part.elements.size();
  }
  constexpr Index kNumbers = 64 + kLatestSteps * 80;  // bytes of what changes from step to step
  throw_agreed(communicator, problem_of([&] {
                 file_.emplace(path_, std::ssize(layout_->text.dump()) + kNumbers, floats);
               }));
}

KeptState::~KeptState() = default;

void KeptState::keep(const StepLoss& step, Index images_seen) {
  if (std::ssize(latest_) == kLatestSteps) {
    latest_.erase(latest_.begin());
  }
  latest_.push_back(step);
  layout_->text["latest"] = json::array();
  for (const StepLoss& latest : latest_) {
    layout_->text["latest"].push_back({latest.step, latest.loss, latest.learning_rate});
  }
  layout_->text["images_seen"] = images_seen;
  (void)trainer_->execution().parameters();  // waits for values
  file_->write(step.step, layout_->text.dump(), layout_->collect());
  if (++kept_ == 2) {
    remove_older();
  }
}

Index KeptState::sent_bytes() const {
  return layout_->sent_size() * static_cast<Index>(sizeof(float));
}

// By now all ranks have kept a state of this run of theirs, since no step ends before all have
// begun it.
void KeptState::remove_older() {
  const std::string mine = path_.stem().string();
  const std::string start = mine.substr(mine.rfind('-'));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == kEnding && name.substr(name.rfind('-')) != start) {
      std::error_code gone;  // another rank here does the same
      std::filesystem::remove(entry.path(), gone);
    }
  }
}

void KeptState::discard() {
  file_.reset();
  std::error_code error;
  std::filesystem::remove(path_, error);
}

namespace {

// Ranks that started together have one number. Others may have kept other parts of the same step,
// which do not go together with theirs.
using StepName = std::pair<Index, std::uint64_t>;

struct KeptHere {
  Index step = 0;
  std::uint64_t start = 0;
  Index images_seen = 0;
  std::string plan = {};
  json latest = json::array();
  std::vector<KeptPart> parts = {};
  std::vector<float> floats = {};  // of this rank's files alone

  [[nodiscard]] StepName name() const { return {step, start}; }
};

std::optional<KeptHere> understood(SlotContent content, const std::string& network) {
  if (!is_shallow_json(content.text)) {
    return std::nullopt;
  }
  const json text = json::parse(content.text, nullptr, false);
  try {
    if (text.at("network").get<std::string>() != network) {
      return std::nullopt;
    }
    KeptHere kept{.step = content.step,
                  .start = text.at("start").get<std::uint64_t>(),
                  .images_seen = text.at("images_seen").get<Index>(),
                  .plan = text.at("plan").get<std::string>(),
                  .latest = text.at("latest")};
    Index floats = 0;
    for (const json& part : text.at("parts")) {
      const int kind = part.at(1).get<int>();
      kept.parts.push_back({part.at(0).get<int>(),
                            static_cast<ArrayKind>(kind),
                            {part.at(2).get<Index>(), part.at(3).get<Index>()}});
      const Range& elements = kept.parts.back().elements;
      if (kind < 0 || kind > static_cast<int>(ArrayKind::OfRank) || elements.begin < 0 ||
          elements.end < elements.begin || elements.size() > std::ssize(content.floats) - floats) {
        return std::nullopt;
      }
      floats += elements.size();
    }
    if (floats != std::ssize(content.floats)) {
      return std::nullopt;
    }
    kept.floats = std::move(content.floats);
    return kept;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// All that lies on this device, which the lowest rank here reads for all of them.
std::vector<KeptHere> read_kept(const std::filesystem::path& folder, const std::string& network) {
  std::vector<KeptHere> all;
  std::error_code error;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == kEnding) {
      files.insert(entry.path());
    }
  }
  for (const auto& file : files) {
    for (SlotContent& content : read_slots(file)) {
      if (auto kept = understood(std::move(content), network)) {
        all.push_back(std::move(*kept));
      }
    }
  }
  return all;
}

std::string announced(const std::vector<KeptHere>& kept) {
  json list = json::array();
  for (const KeptHere& one : kept) {
    list.push_back({{"step", one.step},
                    {"start", one.start},
                    {"images_seen", one.images_seen},
                    {"plan", one.plan},
                    {"latest", one.latest},
                    {"parts", described(one.parts)}});
  }
  return list.dump();
}

// A part that some rank has read, and where its elements lie in the array of all that this rank has
// read of the same tensor and kind.
struct FoundPart {
  int rank = 0;
  Range elements;
  Index at = 0;
};

using ArrayName = std::pair<int, ArrayKind>;

struct FoundStep {
  Index images_seen = 0;
  json latest = json::array();
  std::string plan;
  std::map<ArrayName, std::vector<FoundPart>> arrays;
};

using FoundSteps = std::map<StepName, FoundStep, std::greater<>>;  // the newest first

// The same on all ranks.
FoundSteps found_steps(const std::vector<std::string>& announced) {
  FoundSteps steps;
  for (std::size_t rank = 0; rank < announced.size(); ++rank) {
    std::map<std::pair<StepName, ArrayName>, Index> read;  // elements so far
    for (const json& one : json::parse(announced[rank])) {
      const StepName name{one.at("step").get<Index>(), one.at("start").get<std::uint64_t>()};
      FoundStep& step = steps[name];
      step.images_seen = one.at("images_seen").get<Index>();
      step.plan = one.at("plan").get<std::string>();
      step.latest = one.at("latest");
      for (const json& part : one.at("parts")) {
        const ArrayName array{part.at(0).get<int>(), static_cast<ArrayKind>(part.at(1).get<int>())};
        const Range elements{part.at(2).get<Index>(), part.at(3).get<Index>()};
        Index& begin = read[{name, array}];
        step.arrays[array].push_back({static_cast<int>(rank), elements, begin});
        begin += elements.size();
      }
    }
  }
  return steps;
}

// Each of the elements once, of the parts that are there; nothing where one is missing.
std::optional<std::vector<PlacedRun>> covering(std::vector<FoundPart> parts, Index size) {
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

struct WantedArray {
  ArrayName name;
  Index size = 0;
};

std::vector<WantedArray> wanted_arrays(const partitioner::Plan& plan, bool adam) {
  std::vector<WantedArray> wanted;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const partitioner::ParameterPlan& parameter = plan.parameters[i];
    const auto add = [&](ArrayKind kind) {
      wanted.push_back({{static_cast<int>(i), kind}, elements_of(parameter)});
    };
    add(ArrayKind::Values);
    if (is_learnt(parameter)) {
      add(ArrayKind::First);
      if (adam) {
        add(ArrayKind::Second);
      }
    }
  }
  return wanted;
}

bool is_complete(const FoundStep& step, const std::vector<WantedArray>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const WantedArray& array) {
    const auto found = step.arrays.find(array.name);
    return found != step.arrays.end() && covering(found->second, array.size);
  });
}

// What this rank has read of an array of that step.
std::vector<float> read_here(const std::vector<KeptHere>& kept,
                             const StepName& step,
                             const ArrayName& name) {
  std::vector<float> values;
  for (const KeptHere& one : kept) {
    Index at = 0;
    for (const KeptPart& part : one.parts) {
      if (one.name() == step && ArrayName(part.tensor, part.kind) == name) {
        values.insert(
            values.end(), one.floats.begin() + at, one.floats.begin() + at + part.elements.size());
      }
      at += part.elements.size();
    }
  }
  return values;
}

void give_array(const std::vector<KeptHere>& kept,
                const StepName& step,
                const FoundStep& found,
                const WantedArray& array,
                const partitioner::Plan& plan,
                Trainer& trainer,
                const Communicator& communicator) {
  const auto [tensor, kind] = array.name;
  const auto i = static_cast<std::size_t>(tensor);
  const partitioner::ParameterPlan& parameter = plan.parameters[i];
  OptimizerState<float>& state = trainer.optimizer().states()[i];
  const std::vector<float> mine = read_here(kept, step, array.name);
  regrid_elements(communicator,
                  covering(found.arrays.at(array.name), array.size).value(),
                  mine.data(),
                  kind == ArrayKind::Values ? held_values(parameter) : owned_alone(parameter),
                  kind == ArrayKind::Values
                      ? trainer.execution().parameters().all()[i].values.data()
                  : kind == ArrayKind::First ? state.first.data()
                                             : state.second.data());
}

// States of ranks mean something to the same ranks of the same plan; whether all have theirs.
bool give_rank_states(const std::vector<KeptHere>& kept,
                      const StepName& step,
                      const FoundStep& found,
                      Trainer& trainer,
                      const Communicator& communicator) {
  const RankState state = trainer.rank_state();
  const std::vector<Index> sizes = communicator.of_ranks(own_state_size(state));
  std::vector<std::vector<PlacedRun>> from(sizes.size());
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    const auto parts = found.arrays.find({rank, ArrayKind::OfRank});
    if (sizes[place] == 0) {
      continue;
    }
    const auto runs =
        parts == found.arrays.end() ? std::nullopt : covering(parts->second, sizes[place]);
    if (!runs || found.plan != state.layout) {
      return false;
    }
    from[place] = *runs;
  }
  bool any = false;
  std::vector<float> mine_now(
      static_cast<std::size_t>(sizes[static_cast<std::size_t>(communicator.rank())]));
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    if (sizes[place] > 0) {
      any = true;
      const std::vector<float> mine = read_here(kept, step, {rank, ArrayKind::OfRank});
      regrid_elements(
          communicator, from[place], mine.data(), {{rank, {0, sizes[place]}, 0}}, mine_now.data());
    }
  }
  auto at = mine_now.cbegin();
  for (const std::span<float> array : state.arrays) {
    std::copy_n(at, array.size(), array.begin());
    at += std::ssize(array);
  }
  return any;
}

}  // namespace

namespace {

// Numbers that are none, or lines of another form, are left out.
std::vector<StepLoss> latest_steps(const json& list) {
  std::vector<StepLoss> steps;
  for (const json& one : list) {
    const bool sound = one.is_array() && one.size() == 3 && one[0].is_number_integer() &&
                       one[1].is_number() && one[2].is_number();
    if (sound) {
      steps.push_back({one[0].get<Index>(), one[1].get<double>(), one[2].get<double>()});
    }
  }
  return steps;
}

}  // namespace

std::optional<KeptStep> restore_kept_state(const std::filesystem::path& folder,
                                           const partitioner::Network& network,
                                           const partitioner::Plan& plan,
                                           Trainer& trainer,
                                           const Communicator& communicator) {
  const std::vector<std::string> hosts = hosts_of_ranks(communicator);
  const auto mine = static_cast<std::size_t>(communicator.rank());
  const bool reads = std::find(hosts.begin(), hosts.end(), hosts[mine]) - hosts.begin() ==
                     static_cast<std::ptrdiff_t>(mine);
  const std::vector<KeptHere> kept =
      reads ? read_kept(folder, fingerprint(network)) : std::vector<KeptHere>();
  const auto steps = found_steps(texts_of_ranks(communicator, announced(kept)));
  const std::vector<WantedArray> wanted = wanted_arrays(plan, trainer.optimizer().adam());
  const auto newest = std::find_if(steps.begin(), steps.end(), [&](const auto& step) {
    return is_complete(step.second, wanted);
  });
  if (newest == steps.end()) {
    return std::nullopt;
  }
  const auto& [step, found] = *newest;
  for (const WantedArray& array : wanted) {
    give_array(kept, step, found, array, plan, trainer, communicator);
  }
  const bool rank_states = give_rank_states(kept, step, found, trainer, communicator);
  trainer.resume_at(step.first, rank_states);
  return KeptStep{step.first, found.images_seen, latest_steps(found.latest), rank_states};
}

}  // namespace tessera::engine
