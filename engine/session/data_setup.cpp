#include "engine/session/data_setup.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <string_view>

#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/data/inspection/box_checks.h"
#include "engine/data/inspection/data_summary.h"
#include "engine/session/class_outputs.h"
#include "engine/session/own_data.h"
#include "engine/system/host_name.h"
#include "engine/train/verifying/picture_equality.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

// Files that people keep beside pictures, and that nobody misses among them.
constexpr std::array kNotes{".txt", ".csv", ".json", ".xml", ".md", ".db", ".ini", ".log"};

// Reading ranks count with theirs.
ReadingRules shared_rules(const ReadingRules& mine, const Communicator& communicator) {
  ReadingRules shared;
  for (const ReadingRules& rules : communicator.of_ranks(mine)) {
    shared.pictures = std::max(shared.pictures, rules.pictures);
    shared.total_bytes = std::max(shared.total_bytes, rules.total_bytes);
  }
  return shared;
}

// The names of pictures that cannot be used on some rank.
std::set<std::string> bad_names(const InspectedHalf* half, const Communicator& communicator) {
  std::vector<std::string> mine;
  if (half != nullptr && half->dataset.files() != nullptr) {
    const CommonNames names(*half->dataset.files());
    for (const BadPicture& bad : half->bad) {
      mine.emplace_back(names[bad.item]);
    }
  }
  std::set<std::string> all;
  for (const std::vector<std::string>& theirs : lists_of_ranks(communicator, mine)) {
    all.insert(theirs.begin(), theirs.end());
  }
  return all;
}

std::vector<Index> items_named(const Dataset& dataset, const std::set<std::string>& names) {
  std::vector<Index> items;
  const CommonNames all(*dataset.files());
  for (Index item = 0; item < dataset.size(); ++item) {
    if (names.count(std::string(all[item])) > 0) {
      items.push_back(item);
    }
  }
  return items;
}

// Whether it is about files that nobody misses among pictures.
bool is_note(const DataProblem& problem) {
  return problem.fault == DataFault::LeftOut &&
         std::any_of(kNotes.begin(), kNotes.end(), [&](std::string_view ending) {
           return problem.what.find(fmt::format(" {} file", ending)) != std::string::npos;
         });
}

class DataOpening {
 public:
  DataOpening(const DataChoice& choice,
              const partitioner::Network& network,
              bool reads,
              const Communicator& communicator,
              const SessionObserver& observer,
              InspectedData data,
              KeptFindings kept,
              const Detail& detail)
      : choice_(choice),
        network_(network),
        reads_(reads),
        communicator_(communicator),
        observer_(observer),
        data_(std::move(data)),
        kept_(std::move(kept)),
        detail_(detail) {}

  OpenedData open(Index memory_bytes) {
    const ReadingRules mine = reading_rules_for(data_);
    const ReadingRules rules = choice_.own ? mine : shared_rules(mine, communicator_);
    recall(rules);
    inspect(data_, rules, {.decode = choice_.skip_broken, .memory_bytes = memory_bytes});
    keep_findings(rules);
    if (choice_.skip_broken) {
      const std::vector<Index> before = training_sizes();
      drop_everywhere(data_.training);
      drop_everywhere(data_.testing);
      find_emptied(before);
    }
    refuse_problems();
    compare();
    say_all();
    return {opened(data_.training), opened(data_.testing)};
  }

 private:
  void recall(const ReadingRules& rules) {
    for (InspectedHalf* half : data_.halves()) {
      recall_contents(kept_, rules, *half);
      recalled_ += std::ssize(half->known_contents) -
                   std::count(half->known_contents.begin(), half->known_contents.end(), 0U);
    }
  }

  // Ranks of one device that read the same write the same file: one of them is enough, and where
  // there is no room for it the next start reads the pictures again.
  void keep_findings(const ReadingRules& rules) {
    if (choice_.kept_folder.empty() || data_.halves().empty()) {
      return;
    }
    const KeptFindings found = findings_of(data_, detail_, rules.whole());
    if (!found.files.empty() && found != kept_) {
      (void)problem_of(
          [&] { write_findings(findings_file(choice_.kept_folder, choice_.path), found); });
    }
    kept_ = {};
  }

  [[nodiscard]] std::string described() const {
    return summary_of(data_) +
           (recalled_ > 0 ? fmt::format("; {} need not be read again", counted(recalled_, "file"))
                          : "");
  }

  void drop_everywhere(std::optional<InspectedHalf>& half) {
    const std::set<std::string> names = bad_names(half ? &*half : nullptr, communicator_);
    if (names.empty() || !half || half->dataset.files() == nullptr) {
      return;
    }
    const std::vector<Index> items = items_named(half->dataset, names);
    half->drop(items);
    dropped_.insert(names.begin(), names.end());
  }

  // Pictures of each class; nothing where this rank reads none.
  [[nodiscard]] std::vector<Index> training_sizes() const {
    return data_.training ? class_sizes(data_.training->dataset) : std::vector<Index>();
  }

  void find_emptied(const std::vector<Index>& before) {
    const std::vector<Index> after = training_sizes();
    for (std::size_t i = 0; i < after.size() && !choice_.own; ++i) {
      if (before[i] > 0 && after[i] == 0) {
        emptied_.push_back(data_.training->dataset.class_names()[i]);
      }
    }
  }

  // A part may have no pictures, or none of a class.
  [[nodiscard]] bool stops(const DataProblem& problem) const {
    const bool may_lack =
        problem.fault == DataFault::Unusable || problem.fault == DataFault::EmptyClass;
    return is_error(problem.fault) && !(choice_.skip_broken && is_of_picture(problem.fault)) &&
           !(choice_.own && may_lack);
  }

  // The first problem for which nothing can be trained or tested, and how many more there are.
  [[nodiscard]] std::optional<std::string> refusal() const {
    std::vector<DataProblem> errors = problems_of(data_);
    std::erase_if(errors, [&](const DataProblem& each) { return !stops(each); });
    if (errors.empty() && !emptied_.empty()) {
      return fmt::format(
          "{}: --skip-broken leaves no picture to train on of class {}: mend some, or remove the "
          "class",
          choice_.path,
          fmt::join(emptied_, ", "));
    }
    if (errors.empty()) {
      for (const InspectedHalf* half : data_.halves()) {
        if (half->dataset.size() == 0 && !choice_.own) {
          return choice_.path +
                 ": no picture of this data set can be used: `tessera check-data` "
                 "says why";
        }
      }
      return std::nullopt;
    }
    std::string text = fmt::format("{}: {}", errors[0].where, errors[0].what);
    if (errors.size() > 1) {
      text += fmt::format(
          " ({}; `tessera check-data {}` lists them)", count_of(errors), shell_word(choice_.path));
    }
    if (!choice_.own && std::all_of(errors.begin(), errors.end(), [](const DataProblem& each) {
          return is_of_picture(each.fault);
        })) {
      text += kSkipHint;
    }
    return text;
  }

  void refuse_problems() const {
    throw_agreed(communicator_, named_problem(communicator_, refusal(), reads_));
  }

  void compare() const {
    const std::vector<int> read = communicator_.of_ranks(static_cast<int>(reads_));
    if (choice_.own || std::count(read.begin(), read.end(), 1) < 2) {
      return;
    }
    expects(reads_, "one rank reads, or every rank");
    for (const auto& [half, name] : {std::pair(&data_.training, "pictures for training"),
                                     std::pair(&data_.testing, "pictures for testing")}) {
      if (*half) {
        expect_same_pictures((*half)->dataset, (*half)->records, name, communicator_);
      }
    }
  }

  // Rank 0 says what the first rank that reads knows; of parts, what all do.
  void say_all() const {
    if (choice_.own) {
      say_of_parts();
      return;
    }
    const auto summary = communicator_.agree(
        reads_ ? std::optional(choice_.training ? described() + "\n" : "") : std::nullopt);
    const auto warned = communicator_.agree(reads_ ? std::optional(warnings()) : std::nullopt);
    if (communicator_.rank() == 0) {
      warn_each(warned.value_or(""));
      observer_.say(summary.value_or(""));
    }
  }

  void say_of_parts() const {
    const std::string summary = summary_of_ranks(data_, communicator_) + "\n";
    const std::vector<std::string> warned = texts_of_ranks(communicator_, warnings());
    if (communicator_.rank() == 0) {
      for (const std::string& text : warned) {
        warn_each(text);
      }
      observer_.say(summary);
    }
  }

  // Warns of each line of a text as warnings() makes it.
  void warn_each(const std::string& lines) const {
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin);
      observer_.warn(lines.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  // A line each: they travel as one text.
  [[nodiscard]] std::string warnings() const {
    std::string text;
    const std::string of_rank =
        choice_.own ? rank_on(communicator_.rank(), host_name()) + ": " : "";
    const auto warn = [&](const std::string& what) { text += printable(of_rank + what) + "\n"; };
    if (!dropped_.empty()) {
      warn(fmt::format("--skip-broken skips {} unusable pictures: {}{}",
                       dropped_.size(),
                       *dropped_.begin(),
                       dropped_.size() > 1 ? ", ..." : ""));
    }
    if (!data_.halves().empty()) {
      if (const auto spare = spare_outputs(
              network_, choice_.model, data_.halves().front()->dataset, choice_.path)) {
        warn(choice_.path + ": " + *spare);
      }
    }
    if (const auto few = few_tested(data_)) {
      warn(choice_.path + ": " + *few);
    }
    std::vector<DataProblem> problems = problems_of(data_);
    const std::vector<DataProblem> for_heads = box_problems(data_, network_);
    problems.insert(problems.end(), for_heads.begin(), for_heads.end());
    const auto of_kind = [&](DataFault fault) {
      std::vector<DataProblem> some = problems;
      std::erase_if(some, [&](const DataProblem& each) { return each.fault != fault; });
      std::erase_if(some, is_note);
      return some;
    };
    const auto warn_first = [&](const std::vector<DataProblem>& some, std::size_t most) {
      for (std::size_t i = 0; i < std::min(most, some.size()); ++i) {
        warn(some[i].where + ": " + some[i].what);
      }
      if (some.size() > most) {
        warn(fmt::format("{} more of this kind: `tessera check-data {}` lists them",
                         some.size() - most,
                         shell_word(choice_.path)));
      }
    };
    warn_first(of_kind(DataFault::LeftOut), 3);
    warn_first(of_kind(DataFault::DeeperFolder), 3);
    warn_first(of_kind(DataFault::InBothHalves), 1);
    warn_first(of_kind(DataFault::SameName), 1);
    warn_first(of_kind(DataFault::SameBox), 1);
    for (const DataProblem& each : problems) {
      if (is_of_set(each.fault)) {
        warn(each.where + ": " + each.what);
      }
    }
    if (choice_.skip_broken) {  // what is not even in the list
      warn_first(of_kind(DataFault::Missing), 3);
      warn_first(of_kind(DataFault::Unreadable), 3);
      warn_first(of_kind(DataFault::Unlabelled), 3);
      warn_first(of_kind(DataFault::BadLabel), 3);
      warn_first(of_kind(DataFault::OutOfRange), 3);
    }
    return text;
  }

  static std::optional<Dataset> opened(std::optional<InspectedHalf>& half) {
    if (!half) {
      return std::nullopt;
    }
    if (half->dataset.files() != nullptr) {
      half->dataset.expect_files(std::move(half->records));
    }
    return std::move(half->dataset);
  }

  const DataChoice& choice_;
  const partitioner::Network& network_;
  bool reads_;
  const Communicator& communicator_;
  const SessionObserver& observer_;
  InspectedData data_;
  KeptFindings kept_;
  Detail detail_;
  Index recalled_ = 0;  // files whose contents were known
  std::set<std::string> dropped_;
  std::vector<std::string> emptied_;  // classes, by what was dropped
};

}  // namespace

ListedData::ListedData(DataChoice choice,
                       const partitioner::Network& network,
                       bool reads,
                       const Communicator& communicator,
                       const SessionObserver& observer)
    : choice_(std::move(choice)),
      network_(&network),
      reads_(reads),
      communicator_(&communicator),
      observer_(&observer) {
  data_.path = choice_.path;
  if (choice_.own) {
    list_parts();
    return;
  }
  const auto half = [&](Split split) {
    return InspectedHalf(
        open_labelled(choice_.path, split, network, choice_.model, choice_.allow_unlabelled));
  };
  const auto problem = problem_of([&] {
    if (reads_ && choice_.training) {
      data_.training.emplace(half(Split::Train));
    }
    if (reads_ && choice_.testing) {
      data_.testing.emplace(half(Split::Test));
    }
  });
  throw_agreed(communicator, named_problem(communicator, problem, reads_));
}

// What the rank has; nothing where it has no folder and needs none.
void ListedData::list(Split split, std::optional<InspectedHalf>& half) const {
  std::error_code error;
  if (choice_.own->samples > 0 || std::filesystem::exists(choice_.path, error)) {
    half.emplace(InspectedHalf(list_dataset(choice_.path,
                                            split,
                                            network_->image.channels,
                                            {.is_part = true, .kind = TargetKind::Classes})));
  }
}

void ListedData::list_parts() {
  const auto of_rank = [this](const std::string& what) {
    return fmt::format("{}: {}", rank_on(communicator_->rank(), host_name()), what);
  };
  std::optional<std::string> problem = problem_of([this] {
    if (choice_.training) {
      list(Split::Train, data_.training);
    }
    if (choice_.testing) {
      list(Split::Test, data_.testing);
    }
  });
  if (target_kind(*network_) == TargetKind::Boxes) {
    problem = fmt::format(
        "{} finds objects: a data map is for data sets with one class per picture", choice_.model);
  }
  throw_agreed(*communicator_, problem ? std::optional(of_rank(*problem)) : std::nullopt);
  unite(data_, network_->image.channels, *communicator_);
  throw_agreed(*communicator_, problem_of([this] {
    expect_outputs(*network_, choice_.model, data_.halves().front()->dataset, choice_.path);
  }));
  const Index found = data_.training ? data_.training->dataset.size() : choice_.own->samples;
  throw_agreed(*communicator_,
               found == choice_.own->samples
                   ? std::nullopt
                   : std::optional(of_rank(fmt::format(
                         "{} has {} for training, and the data map says {}: make a data map with "
                         "the numbers of samples that there are",
                         choice_.path,
                         counted(found, "picture"),
                         choice_.own->samples))));
}

bool ListedData::varies(const RenderingRules& rules) const {
  return on_any_rank(
      *communicator_,
      data_.training && varies_pictures(rules, data_.training->dataset.shape_of_all()));
}

Index ListedData::training_pictures() const {
  const std::vector<Index> of_ranks =
      communicator_->of_ranks(data_.training ? data_.training->dataset.size() : Index{0});
  return *std::max_element(of_ranks.begin(), of_ranks.end());
}

Index ListedData::bytes() const {
  Index bytes = 0;
  for (const InspectedHalf* half : data_.halves()) {
    bytes += half->dataset.bytes();
  }
  return bytes;
}

DataNeeds ListedData::needs(const RenderingRules& rules) {
  DataNeeds mine;
  detail_ = needed_detail(rules);
  if (!choice_.kept_folder.empty()) {
    kept_ = read_findings(findings_file(choice_.kept_folder, choice_.path));
  }
  for (InspectedHalf* half : data_.halves()) {
    DecodingNeed most;
    if (const PictureFiles* files = half->dataset.files()) {
      recall_headers(kept_, detail_, *half);
      half->headers = decoding_of_each(*files, detail_, std::move(half->headers));
      most = most_decoding(half->headers);
    }
    add_needs(half->dataset, most, mine);
    mine.own_file_bytes += reading_rules_for(half->records).total_bytes;
  }
  mine.tested_pictures = data_.testing ? data_.testing->dataset.size() : 0;
  if (choice_.own && data_.training) {
    const BytePictures* held = data_.training->dataset.byte_pictures();
    const Index more = std::max<Index>(0, choice_.own->samples_after - choice_.own->samples);
    mine.data_bytes += held == nullptr ? 0 : more * (held->shape.volume() + 1);
    if (held == nullptr && mine.own_pictures > 0) {  // those to come are about like those there are
      mine.own_cached_bytes += more * mine.own_cached_bytes / mine.own_pictures;
      mine.own_pictures += more;
    }
  }
  return most_needs(mine, *communicator_);
}

OpenedData ListedData::open(Index memory_bytes) && {
  return DataOpening(choice_,
                     *network_,
                     reads_,
                     *communicator_,
                     *observer_,
                     std::move(data_),
                     std::move(kept_),
                     detail_)
      .open(memory_bytes);
}

void expect_same_everywhere(bool reads, const Dataset* pictures, const Communicator& communicator) {
  const std::vector<int> readers = communicator.of_ranks(static_cast<int>(reads));
  if (std::count(readers.begin(), readers.end(), 1) < 2) {
    return;
  }
  throw_agreed(communicator,
               reads && pictures == nullptr
                   ? std::optional(fmt::format("{} lacks pictures that others have: give all ranks "
                                               "the same, or let one read with --reader 0",
                                               rank_on(communicator.rank(), host_name())))
                   : std::nullopt);
  expects(reads, "one rank reads, or every rank");
  PictureRecords records;
  if (const PictureFiles* files = pictures->files()) {
    records = record_sizes(*files);
  }
  const ReadingRules rules = shared_rules(reading_rules_for(records), communicator);
  if (const PictureFiles* files = pictures->files()) {
    record_contents(*files, rules, records);
  }
  expect_same_pictures(*pictures, records, "pictures", communicator);
}

}  // namespace tessera::engine
