#include "partitioner/cfg/cfg_options.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"
#include "partitioner/cfg/cfg_keys.h"

namespace tessera::partitioner {

namespace {

std::string_view without_plus(std::string_view text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
}

// Whether `text` is a number of this type and nothing else.
template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const std::optional<Number> parsed = parsed_number<Number>(without_plus(text));
  number = parsed.value_or(0);
  return parsed.has_value();
}

std::vector<std::string_view> split_at_commas(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(trimmed(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::string text(double number) {
  std::string digits(32, '\0');
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  digits.resize(error == std::errc{} ? static_cast<std::size_t>(end - digits.data()) : 0);
  return digits;
}

template <typename Number>
std::string bounds(Number least,
                   Number most,
                   const std::string& least_text,
                   const std::string& most_text) {
  if (least == std::numeric_limits<Number>::lowest()) {
    return "must be at most " + most_text;
  }
  if (most == std::numeric_limits<Number>::max()) {
    return "must be at least " + least_text;
  }
  return "must be between " + least_text + " and " + most_text;
}

}  // namespace

CfgOptions::CfgOptions(const CfgSection& section, const std::string& file)
    : section_(section), file_(file) {}

const CfgEntry* CfgOptions::find(std::string_view key) const {
  const auto found = std::find_if(section_.entries.begin(),
                                  section_.entries.end(),
                                  [&](const CfgEntry& entry) { return entry.key == key; });
  return found == section_.entries.end() ? nullptr : &*found;
}

const CfgEntry* CfgOptions::take(std::string_view key) {
  known_.push_back(key);
  return find(key);
}

bool CfgOptions::has(std::string_view key) {
  return take(key) != nullptr;
}

std::string CfgOptions::word(std::string_view key, std::string_view otherwise) {
  const CfgEntry* entry = take(key);
  return entry == nullptr ? std::string(otherwise) : entry->value;
}

Index CfgOptions::integer(std::string_view key, Index otherwise, Index least, Index most) {
  const CfgEntry* entry = take(key);
  if (entry == nullptr) {
    return otherwise;
  }
  Index number = 0;
  if (!parse_number(entry->value, number)) {
    refuse(key, "expected an integer of at most 18 digits");
  }
  if (number < least || number > most) {
    refuse(key, bounds(least, most, std::to_string(least), std::to_string(most)));
  }
  return number;
}

double CfgOptions::real(std::string_view key, double otherwise, double least, double most) {
  const CfgEntry* entry = take(key);
  if (entry == nullptr) {
    return otherwise;
  }
  double number = 0;
  if (!parse_number(entry->value, number) || !std::isfinite(number)) {
    refuse(key, "expected a number");
  }
  if (number < least || number > most) {
    refuse(key, bounds(least, most, text(least), text(most)));
  }
  return number;
}

bool CfgOptions::flag(std::string_view key, bool otherwise) {
  return integer(key, otherwise ? 1 : 0, 0, 1) == 1;
}

std::vector<Index> CfgOptions::integers(std::string_view key) {
  const CfgEntry* entry = take(key);
  std::vector<Index> numbers;
  if (entry != nullptr) {
    for (const std::string_view part : split_at_commas(entry->value)) {
      if (!parse_number(part, numbers.emplace_back())) {
        refuse(key, "expected integers separated by commas");
      }
    }
  }
  return numbers;
}

std::vector<double> CfgOptions::reals(std::string_view key) {
  const CfgEntry* entry = take(key);
  std::vector<double> numbers;
  if (entry != nullptr) {
    for (const std::string_view part : split_at_commas(entry->value)) {
      if (!parse_number(part, numbers.emplace_back()) || !std::isfinite(numbers.back())) {
        refuse(key, "expected numbers separated by commas");
      }
    }
  }
  return numbers;
}

void CfgOptions::apply_rules(std::string_view section) {
  std::set<std::string_view> seen;
  for (const CfgEntry& entry : section_.entries) {
    const KeyRule* rule = key_rule(section, entry.key);
    if (rule == nullptr || !seen.insert(entry.key).second) {
      continue;  // the first counts
    }
    if (std::find(known_.begin(), known_.end(), rule->key) != known_.end()) {
      continue;  // it was asked for by name
    }
    known_.push_back(rule->key);
    const bool as_key = rule->neutral.substr(0, 1) == "@";
    const std::string neutral =
        as_key ? word(rule->neutral.substr(1), "1") : std::string(rule->neutral);
    if (rule->effect == KeyEffect::None || same_value(entry.value, neutral)) {
      continue;
    }
    const std::string changes =
        rule->effect == KeyEffect::Training ? "training" : "what is computed";
    refuse(rule->key,
           "not supported, and it changes " + changes + ": leave it out" +
               (neutral.empty() ? "" : " or give the usual value, " + neutral));
  }
  ruled_ = ruled_keys(section);
}

InputError CfgOptions::about(std::string_view key, const std::string& message) const {
  const CfgEntry* entry = find(key);
  std::string what = '[' + section_.name + "] " + std::string(key);
  if (entry != nullptr) {
    what += '=' + printable_start(entry->value);
  }
  return {file_, entry == nullptr ? section_.line : entry->line, what + ": " + message};
}

void CfgOptions::refuse(std::string_view key, const std::string& message) const {
  throw about(key, message);
}

void CfgOptions::warn(std::string_view key, const std::string& message) {
  warned_.push_back({std::string(key), about(key, message).what()});
}

std::string CfgOptions::located(int line, const std::string& message) const {
  return InputError(file_, line, message).what();
}

std::string CfgOptions::meant(std::string_view key) const {
  std::vector<std::string_view> all = known_;
  all.insert(all.end(), ruled_.begin(), ruled_.end());
  return suggestion(key, all);
}

std::vector<CfgOptions::Complaint> CfgOptions::complaints() const {
  std::vector<Complaint> all = warned_;
  const std::set<std::string_view> known(known_.begin(), known_.end());
  std::set<std::string_view> seen;
  for (const CfgEntry& entry : section_.entries) {
    const std::string what = '[' + section_.name + "] " + printable_start(entry.key);
    if (known.count(entry.key) == 0) {
      all.push_back(
          {entry.key, located(entry.line, what + ": unknown key, ignored" + meant(entry.key))});
    } else if (!seen.insert(entry.key).second) {
      all.push_back({entry.key, located(entry.line, what + ": given twice, the first one counts")});
    }
  }
  return all;
}

}  // namespace tessera::partitioner
