#include "engine/monitor/meter_summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "engine/run_files/record_fields.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

static auto fields_of(const RankMeter& /*meter*/) {
  return std::tuple{Field("source", &RankMeter::source),
                    Field("estimated", &RankMeter::estimated),
                    Field("error", &RankMeter::relative_error),
                    Field("cluster", &RankMeter::cluster)};
}

namespace {

// A meter, and the hosts that have it.
struct Source {
  RankMeter meter;
  std::vector<std::string> hosts;
};

std::string text_of(const Source& source, bool one_host) {
  std::string text = source.meter.source;
  if (source.meter.cluster) {
    text += " of the whole cluster";
  } else if (!one_host) {
    text += fmt::format(" of {}", fmt::join(source.hosts, ", "));
  }
  text += source.meter.estimated ? ", estimated" : "";
  if (source.meter.relative_error.value_or(0) > 0) {
    text += fmt::format(", +-{:g} %", 100 * *source.meter.relative_error);
  }
  return text;
}

}  // namespace

RankMeter rank_meter(const MeterDescription& description) {
  return {description.source, description.estimated, description.relative_error, false};
}

std::string to_line(const std::vector<RankMeter>& meters) {
  return record_text(meters);
}

std::vector<RankMeter> meters_of_line(const std::string& line) {
  return record_of<std::vector<RankMeter>>(RecordJson::parse(line, nullptr, false));
}

DeviceLine measured_line(const DeviceSample& sample, const std::vector<RankMeter>& meters) {
  DeviceLine line{sample};
  bool has_board = false;
  bool has_cluster = false;
  for (const RankMeter& meter : meters) {
    (meter.cluster ? has_cluster : has_board) = true;
    if (!meter.cluster || !has_board) {
      line.power_source = meter.source + (meter.cluster ? kClusterSuffix : "");
    }
  }
  if (has_cluster && !has_board) {
    line.power_w = sample.cluster_power_w;
    line.energy_j = sample.cluster_energy_j;
  }
  if (!has_cluster || !has_board) {
    line.cluster_power_w = kUnknown;
    line.cluster_energy_j = kUnknown;
  }
  return line;
}

std::string energy_text(double total_j,
                        double gap_s,
                        const std::vector<std::vector<RankMeter>>& meters,
                        const std::vector<std::string>& hosts,
                        double assumed_s) {
  std::vector<Source> sources;
  std::set<std::string> without(hosts.begin(), hosts.end());
  const bool one_host = without.size() == 1;
  bool of_cluster = false;
  for (const auto& of_rank : meters) {
    of_cluster = of_cluster || std::any_of(of_rank.begin(), of_rank.end(), [](const auto& meter) {
                   return meter.cluster;
                 });
  }
  for (std::size_t rank = 0; rank < meters.size(); ++rank) {
    for (const RankMeter& meter : meters[rank]) {
      if (meter.cluster != of_cluster) {
        continue;  // the sum is the cluster's meter's alone
      }
      without.erase(hosts[rank]);
      const auto same = std::find_if(sources.begin(), sources.end(), [&](const Source& source) {
        return source.meter == meter;
      });
      if (same == sources.end()) {
        sources.push_back({meter, {hosts[rank]}});
      } else {
        same->hosts.push_back(hosts[rank]);
      }
    }
  }
  std::vector<std::string> texts;
  for (const Source& source : sources) {
    texts.push_back(text_of(source, one_host));
  }
  std::string text =
      fmt::format("energy of the run: {} ({})", readable_energy(total_j), fmt::join(texts, "; "));
  if (!of_cluster && !without.empty()) {
    text += fmt::format(", without {}, which {} no meter",
                        fmt::join(without, ", "),
                        without.size() == 1 ? "has" : "have");
  }
  constexpr double kWorthSaying_s = 1;
  if (assumed_s >= kWorthSaying_s) {
    text += ", by the last power while the run stood still";
  }
  if (gap_s >= kWorthSaying_s) {
    text += fmt::format(", without {:.0f} s in which a meter could not be read", gap_s);
  }
  return text;
}

}  // namespace tessera::engine
