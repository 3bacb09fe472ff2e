#include "engine/recovery/kept_text.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/files/json_text.h"

namespace tessera::engine {

using nlohmann::json;

namespace {

// Without what changes from step to step.
json unchanging(const KeptText& text) {
  json parts = json::array();
  for (const KeptPart& part : text.parts) {
    parts.push_back({part.array.tensor,
                     static_cast<int>(part.array.kind),
                     part.array.copy,
                     part.elements.begin,
                     part.elements.end});
  }
  return {{"network", text.network},
          {"start", text.start},
          {"plan", text.plan},
          {"adam", text.adam},
          {"copies", text.copies},
          {"first_learns", text.first_learns},
          {"parts", parts}};
}

std::string dumped(const json& json) {
  return json.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string number_or_null(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string line_of(const StepLoss& step) {
  return fmt::format(
      "[{},{},{}]", step.step, number_or_null(step.loss), number_or_null(step.learning_rate));
}

template <class Lines>
std::string completed(const std::string& unchanging, Index images_seen, const Lines& latest) {
  return fmt::format(
      R"({},"images_seen":{},"latest":[{}]}})", unchanging, images_seen, fmt::join(latest, ","));
}

}  // namespace

KeptTexts::KeptTexts(const KeptText& text) : unchanging_(dumped(unchanging(text))) {
  unchanging_.pop_back();
}

Index KeptTexts::most_bytes() const {
  constexpr Index kMostOfStep = 80;  // three numbers of at most 24 letters
  constexpr Index kMostElse = 80;
  return std::ssize(unchanging_) + kMostElse + static_cast<Index>(kLatest) * kMostOfStep;
}

std::string KeptTexts::after(const StepLoss& step, Index images_seen) {
  if (latest_.size() == kLatest) {
    latest_.pop_front();
  }
  latest_.push_back(line_of(step));
  return completed(unchanging_, images_seen, latest_);
}

std::string to_text(const KeptText& text) {
  std::string fixed = dumped(unchanging(text));
  fixed.pop_back();
  std::vector<std::string> latest;
  for (const StepLoss& step : text.latest) {
    latest.push_back(line_of(step));
  }
  return completed(fixed, text.images_seen, latest);
}

namespace {

// -1 where it is no whole number from 0.
Index count_in(const json& value, Index most = std::numeric_limits<Index>::max()) {
  const bool is_count =
      value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  return is_count ? value.get<Index>() : -1;
}

int small_count_in(const json& value) {
  constexpr int kMost = 1 << 24;
  return static_cast<int>(count_in(value, kMost));
}

std::optional<KeptPart> parse_part(const json& part) {
  const int tensor = small_count_in(part.at(0));
  const int kind = small_count_in(part.at(1));
  const int copy = small_count_in(part.at(2));
  const Range elements{count_in(part.at(3)), count_in(part.at(4))};
  if (tensor < 0 || kind < 0 || kind > static_cast<int>(ArrayKind::Average) || copy < 0 ||
      elements.begin < 0 || elements.end < elements.begin) {
    return std::nullopt;
  }
  return KeptPart{{tensor, static_cast<ArrayKind>(kind), copy}, elements};
}

// Numbers that are none, or lines of another form, are left out.
std::vector<StepLoss> parse_latest(const json& list) {
  std::vector<StepLoss> steps;
  for (const json& one : list) {
    if (one.is_array() && one.size() == 3 && count_in(one[0]) > 0 && one[1].is_number() &&
        one[2].is_number()) {
      steps.push_back({one[0].get<Index>(), one[1].get<double>(), one[2].get<double>()});
    }
  }
  return steps;
}

}  // namespace

std::optional<KeptText> parse_kept_text(const std::string& text, Index floats) {
  if (!is_shallow_json(text)) {
    return std::nullopt;
  }
  const json read = json::parse(text, nullptr, false);
  try {
    KeptText kept{.network = read.at("network").get<std::string>(),
                  .start = read.at("start").get<std::uint64_t>(),
                  .plan = read.at("plan").get<std::string>(),
                  .adam = read.at("adam").get<bool>(),
                  .copies = small_count_in(read.at("copies")),
                  .first_learns = read.at("first_learns").get<bool>(),
                  .images_seen = count_in(read.at("images_seen")),
                  .latest = parse_latest(read.at("latest"))};
    if (!read.at("start").is_number_unsigned() || kept.copies < 1 || kept.images_seen < 0) {
      return std::nullopt;
    }
    Index left = floats;
    for (const json& one : read.at("parts")) {
      const auto part = parse_part(one);
      if (!part || part->elements.size() > left) {
        return std::nullopt;
      }
      left -= part->elements.size();
      kept.parts.push_back(*part);
    }
    return left == 0 ? std::optional(std::move(kept)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tessera::engine
