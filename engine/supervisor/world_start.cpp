#include "engine/supervisor/world_start.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/files/atomic_file.h"
#include "engine/supervisor/state_folder.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

std::vector<int> profile_rows(const std::vector<Host>& hosts, const std::vector<int>& places) {
  std::vector<int> first_rank(hosts.size());
  int ranks = 0;
  for (std::size_t place = 0; place < hosts.size(); ++place) {
    first_rank[place] = ranks;
    ranks += hosts[place].ranks;
  }
  std::vector<int> rows;
  for (const int number : places) {
    const auto place = static_cast<std::size_t>(number);
    for (int i = 0; i < hosts[place].ranks; ++i) {
      rows.push_back(first_rank[place] + i);
    }
  }
  return rows;
}

WorldStart::WorldStart(const SupervisorRequest& request,
                       const SupervisorRecord& record,
                       RunDevices& devices)
    : request_(request),
      record_(record),
      devices_(devices),
      folder_(StateFolder::of_run(record.run_number)),
      spare_plans_(request.agents.program, folder_) {}

std::vector<int> WorldStart::devices_of_ranks() const {
  std::vector<int> devices;
  for (const int device : devices_.roster().taking_part()) {
    devices.insert(
        devices.end(), static_cast<std::size_t>(devices_.link(device).host().ranks), device);
  }
  return devices;
}

// The profile of these devices, in a file; empty where none is known.
std::string WorldStart::cluster_of(const std::vector<int>& devices) const {
  const std::string& given = record_.request.partition.cluster;
  if (given.empty()) {
    return "";
  }
  const partitioner::ClusterProfile all = partitioner::read_cluster_profile(given);
  std::vector<int> places;
  places.reserve(devices.size());
  for (const int device : devices) {
    places.push_back(devices_.place_of(device));
  }
  int ranks = 0;
  for (const Host& host : record_.hosts) {
    ranks += host.ranks;
  }
  if (ranks > all.size()) {
    return "";
  }
  const std::filesystem::path file =
      folder_ / fmt::format("cluster-{}.toml", fmt::join(devices, "-"));
  write_atomically(file, to_text(devices_of(all, profile_rows(record_.hosts, places))));
  return file.string();
}

TrainingRequest WorldStart::request_now() const {
  const std::vector<int> devices = devices_.roster().taking_part();
  return static_cast<int>(devices.size()) == devices_.size()
             ? record_.request
             : for_other_devices(record_.request, spare_plans_.found(devices), cluster_of(devices));
}

bool WorldStart::had_last_step(int device) const {
  const std::vector<int>& places = record_.last_step;
  return std::find(places.begin(), places.end(), devices_.place_of(device)) != places.end();
}

void WorldStart::start(const World& world, bool again) {
  const TrainingRequest request = request_now();
  std::vector<std::string> words = record_.words;
  words.insert(words.begin(), request_.agents.program);
  for (int device = 0; device < devices_.size(); ++device) {
    AgentLink& agent = devices_.link(device);
    if (!agent.is_ready()) {
      continue;
    }
    std::vector<int> ranks;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (world.device_of(rank) == device) {
        ranks.push_back(rank);
      }
    }
    if (ranks.empty()) {
      agent.send(to_agent::Kill{});
    } else {
      agent.send(to_agent::Start{.world = world.number(),
                                 .ranks = ranks,
                                 .size = world.size(),
                                 .again = again,
                                 .forget = !had_last_step(device),
                                 .request = request,
                                 .typed = record_.typed,
                                 .words = words});
    }
  }
}

void WorldStart::plan_ahead(const World* world) {
  constexpr Index kSettled = 3;  // steps
  if (world != nullptr && world->steps_done() == kSettled) {
    const std::vector<int> all = devices_.roster().taking_part();
    for (const int lost : all) {
      std::vector<int> left = all;
      left.erase(std::find(left.begin(), left.end(), lost));
      if (devices_.link(lost).is_here() || left.empty()) {
        continue;
      }
      std::vector<std::string> names;
      for (const int device : left) {
        const Host& host = devices_.link(device).host();
        names.insert(names.end(), static_cast<std::size_t>(host.ranks), host.name);
      }
      spare_plans_.want(left, for_other_devices(record_.request, "", cluster_of(left)), names);
    }
  }
  spare_plans_.look();
}

}  // namespace tessera::engine
