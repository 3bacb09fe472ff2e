#include "partitioner/search/device_sets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

// Whether the cluster is the same with the two devices in each other's place.
bool stand_for_each_other(const ClusterProfile& cluster, int a, int b) {
  DeviceProfile renamed = cluster.device(a);
  renamed.name = cluster.device(b).name;
  if (renamed != cluster.device(b) || cluster.between(a, b) != cluster.between(b, a)) {
    return false;
  }
  for (int other = 0; other < cluster.size(); ++other) {
    if (other != a && other != b &&
        (cluster.between(a, other) != cluster.between(b, other) ||
         cluster.between(other, a) != cluster.between(other, b))) {
      return false;
    }
  }
  return true;
}

// How many devices of each kind.
using Counts = std::vector<std::size_t>;

class SetSearch {
 public:
  SetSearch(const ClusterProfile& cluster,
            const DeviceSetOptions& options,
            const FindPartitions& find)
      : options_(options), find_(find), kinds_(device_kinds(cluster, options.needed)) {}

  DeviceSetSearch run() {
    DeviceSetSearch result;
    result.all = number_of_sets();
    if (result.all <= static_cast<double>(options_.most)) {
      look_at(all_sets());
    } else {
      climb();
    }
    std::vector<std::pair<Price, const DeviceSet*>> order;
    for (const auto& [counts, known] : known_) {
      order.emplace_back(known.price, &known.set);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first
                                : a.second->devices.size() < b.second->devices.size();
    });
    for (const auto& [price, set] : order) {
      result.sets.push_back(*set);
    }
    return result;
  }

 private:
  // What exceeds limits counts before all else.
  using Price = std::pair<double, double>;

  struct Known {
    DeviceSet set;
    Price price;
    bool gone_on = false;  // its neighbours are known
  };

  [[nodiscard]] bool is_set(const Counts& counts) const {
    std::size_t devices = 0;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      devices += counts[kind];
      if (counts[kind] == 0 && options_.needed && kinds_[kind].front() == *options_.needed) {
        return false;
      }
    }
    return devices > 0;
  }

  [[nodiscard]] double number_of_sets() const {
    double product = 1;
    for (const std::vector<int>& kind : kinds_) {
      const bool needed = options_.needed && kind.front() == *options_.needed;
      product *= static_cast<double>(kind.size() + (needed ? 0 : 1));
    }
    return options_.needed ? product : product - 1;
  }

  [[nodiscard]] std::vector<Counts> all_sets() const {
    std::vector<Counts> sets;
    Counts counts(kinds_.size());
    for (;;) {
      std::size_t kind = 0;
      while (kind < kinds_.size() && counts[kind] == kinds_[kind].size()) {
        counts[kind++] = 0;
      }
      if (kind == kinds_.size()) {
        return sets;
      }
      ++counts[kind];
      if (is_set(counts)) {
        sets.push_back(counts);
      }
    }
  }

  [[nodiscard]] std::vector<int> devices_of(const Counts& counts) const {
    std::vector<int> devices;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const auto first = kinds_[kind].begin();
      devices.insert(devices.end(), first, first + static_cast<std::ptrdiff_t>(counts[kind]));
    }
    std::sort(devices.begin(), devices.end());
    return devices;
  }

  [[nodiscard]] Price price_of(const std::optional<Candidate>& found) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (!found) {
      return {kNever, kNever};
    }
    const double energy_j = found->energy ? found->energy->energy_j : 0;
    return {options_.limits.excess(found->predicted_s(), energy_j),
            objective_value(options_.objective, *found)};
  }

  // At those of which nothing is known yet, as far as there may be more.
  void look_at(const std::vector<Counts>& all) {
    std::vector<Counts> fresh;
    std::vector<std::vector<int>> sets;
    for (const Counts& counts : all) {
      const bool is_known =
          known_.count(counts) > 0 || std::find(fresh.begin(), fresh.end(), counts) != fresh.end();
      if (is_set(counts) && !is_known && known_.size() + fresh.size() < options_.most) {
        fresh.push_back(counts);
        sets.push_back(devices_of(counts));
      }
    }
    if (fresh.empty()) {
      return;
    }
    std::vector<std::optional<Candidate>> found = find_(sets);
    expects(found.size() == sets.size(), "an answer for each set");
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const Price price = price_of(found[i]);
      known_.emplace(std::move(fresh[i]), Known{{std::move(sets[i]), std::move(found[i])}, price});
    }
  }

  void climb() {
    Counts all;
    for (const std::vector<int>& kind : kinds_) {
      all.push_back(kind.size());
    }
    std::vector<Counts> first{all};
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      first.push_back(one_of(kind));
    }
    look_at(first);
    std::vector<std::pair<std::size_t, Price>> alone;  // kinds
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const auto found = known_.find(one_of(kind));
      alone.emplace_back(kind,
                         found == known_.end() ? price_of(std::nullopt) : found->second.price);
    }
    add_first(alone, [](const Price& price) { return price; });
    for (auto& [kind, price] : alone) {
      const auto found = known_.find(one_of(kind));
      const bool fits = found != known_.end() && found->second.set.found;
      price.second = fits ? found->second.set.found->predicted_s() : price.second;
    }
    add_first(alone, [](const Price& price) { return Price{0, price.second}; });
    for (const bool exchanges : {false, true}) {
      for (auto& [counts, known] : known_) {
        known.gone_on = false;
      }
      while (const auto from = best_to_go_on_from()) {
        known_.at(*from).gone_on = true;
        look_at(neighbours_of(*from, exchanges));
      }
    }
  }

  // Only what is needed.
  [[nodiscard]] Counts least_counts() const {
    Counts counts(kinds_.size());
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      counts[kind] = options_.needed && kinds_[kind].front() == *options_.needed ? 1 : 0;
    }
    return counts;
  }

  [[nodiscard]] Counts one_of(std::size_t kind) const {
    Counts counts = least_counts();
    counts[kind] = 1;
    return counts;
  }

  // The first 1, 2, 3, ... devices in the order of what their kinds are worth.
  template <class Worth>
  void add_first(std::vector<std::pair<std::size_t, Price>> kinds, Worth worth) {
    std::stable_sort(kinds.begin(), kinds.end(), [&](const auto& a, const auto& b) {
      return worth(a.second) < worth(b.second);
    });
    std::vector<Counts> prefixes;
    Counts counts = least_counts();
    for (const auto& [kind, price] : kinds) {
      while (counts[kind] < kinds_[kind].size()) {
        ++counts[kind];
        prefixes.push_back(counts);
      }
    }
    look_at(prefixes);
  }

  [[nodiscard]] std::optional<Counts> best_to_go_on_from() const {
    if (known_.size() >= options_.most) {
      return std::nullopt;
    }
    const Known* best = nullptr;
    const Counts* from = nullptr;
    const Known* next = nullptr;
    for (const auto& [counts, known] : known_) {
      if (best == nullptr || known.price < best->price) {
        best = &known;
      }
      if (!known.gone_on && (next == nullptr || known.price < next->price)) {
        next = &known;
        from = &counts;
      }
    }
    const bool is_near = next != nullptr && next->price.first <= best->price.first &&
                         next->price.second <= options_.near * best->price.second;
    return is_near ? std::optional(*from) : std::nullopt;
  }

  // With a device more or less; or, with `exchanges`, with one in the place of another.
  [[nodiscard]] std::vector<Counts> neighbours_of(const Counts& counts, bool exchanges) const {
    std::vector<Counts> result;
    for (std::size_t more = 0; more < kinds_.size(); ++more) {
      Counts larger = counts;
      ++larger[more];
      const bool is_there = larger[more] <= kinds_[more].size();
      if (is_there && !exchanges) {
        result.push_back(larger);
      }
      for (std::size_t less = 0; less < kinds_.size(); ++less) {
        if (exchanges && is_there && more != less && counts[less] > 0) {
          Counts other = larger;
          --other[less];
          result.push_back(std::move(other));
        }
      }
      if (!exchanges && counts[more] > 0) {
        Counts smaller = counts;
        --smaller[more];
        result.push_back(std::move(smaller));
      }
    }
    return result;
  }

  const DeviceSetOptions& options_;
  const FindPartitions& find_;
  std::vector<std::vector<int>> kinds_;
  std::map<Counts, Known> known_;
};

}  // namespace

std::vector<std::vector<int>> device_kinds(const ClusterProfile& cluster,
                                           std::optional<int> alone) {
  std::vector<std::vector<int>> kinds;
  for (int device = 0; device < cluster.size(); ++device) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return device != alone && kind.front() != alone &&
             stand_for_each_other(cluster, kind.front(), device);
    });
    if (found == kinds.end()) {
      kinds.push_back({device});
    } else {
      found->push_back(device);
    }
  }
  return kinds;
}

SearchResult search_devices(const Network& network,
                            const ClusterProfile& cluster,
                            const SearchOptions& options,
                            const std::vector<int>& devices) {
  SearchOptions part_options = options;
  if (const auto single = options.reader.single_rank()) {
    const auto reader = std::find(devices.begin(), devices.end(), *single);
    expects(reader != devices.end(), "the reader is one of the devices");
    part_options.reader = Reader::rank(static_cast<int>(reader - devices.begin()));
  }
  SearchResult result = search_partition(network, devices_of(cluster, devices), part_options);
  const auto lift = [&](Candidate& candidate) {
    candidate.partition = on_ranks(std::move(candidate.partition), devices, cluster.size());
  };
  std::for_each(result.candidates.begin(), result.candidates.end(), lift);
  if (result.smallest) {
    lift(*result.smallest);
  }
  return result;
}

FindPartitions one_by_one(
    std::function<std::optional<Candidate>(const std::vector<int>& devices)> find) {
  return [find = std::move(find)](const std::vector<std::vector<int>>& sets) {
    std::vector<std::optional<Candidate>> found;
    for (const std::vector<int>& devices : sets) {
      found.push_back(find(devices));
    }
    return found;
  };
}

double StepLimits::excess(double step_s, double energy_j) const {
  return std::max({0.0, step_s / seconds - 1, energy_j / step_s / watts - 1});
}

DeviceSetSearch search_device_sets(const ClusterProfile& cluster,
                                   const DeviceSetOptions& options,
                                   const FindPartitions& find) {
  expects(cluster.size() > 0, "a cluster has a device");
  return SetSearch(cluster, options, find).run();
}

}  // namespace tessera::partitioner
