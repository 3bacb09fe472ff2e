// Which supervisor has a run. Several may want it: one that a person starts while another goes on,
// one of a device that boots again after another device has taken over, or two that begin at the
// same moment. Each device decides for itself by what it has heard, and a supervisor that is
// refused anywhere starts no ranks, so at most one of those that reach a common device does.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

#include "partitioner/base/region.h"

namespace tessera::engine {

// How often a supervisor has taken over or gone on before it, and a random number of its own, for
// two that count alike.
struct SupervisorId {
  Index generation = 0;
  std::string number;

  friend auto operator<=>(const SupervisorId&, const SupervisorId&) = default;
};

// A supervisor that is there, as the agent on this device knows.
struct HeardSupervisor {
  SupervisorId id;
  bool leads = false;  // it has started ranks; else it is still reaching devices
  double heard_s = 0;  // when, by this device's clock
  pid_t agent = 0;     // by that process

  friend bool operator==(const HeardSupervisor&, const HeardSupervisor&) = default;
};

enum class Claim {
  Granted,
  Heard,      // another one has the run
  Superseded  // a newer one has had it since, and is gone perhaps: its folder knows more
};

// Whether it is still there, as far as can be told: it was heard within `lately_s`, and the agent
// that has heard it has not ended, as one does at once whose supervisor has.
[[nodiscard]] bool is_there(const HeardSupervisor& heard, double now_s, double lately_s);

// What a device answers a supervisor: `newest` is the last one that has started ranks here,
// `heard` one that is there. `leads`: this one has started ranks itself, elsewhere perhaps. Where
// two that count alike have, in two parts of a network that had come apart, the one with the larger
// number stays.
[[nodiscard]] Claim judged(const SupervisorId& mine,
                           bool leads,
                           const SupervisorId& newest,
                           const std::optional<HeardSupervisor>& heard);

// How new a record of a run is: supervisors so far, and devices that were chosen to have a copy of
// the run folder.
struct RecordAge {
  Index generation = 0;
  Index copies = 0;

  friend auto operator<=>(const RecordAge&, const RecordAge&) = default;
};

// How many others try before it to take over a run whose supervisor is gone: a device at that place
// among so many, the supervisor's own being 0, with the record `here` in its folder; nothing: it
// has none. Devices whose folder is as new as what all were `told` come first, by their places;
// then those whose copy was given up, the older the later, and with the first of them those that
// have none, which can only learn that the run has finished.
[[nodiscard]] Index turn_to_take_over(Index place,
                                      Index devices,
                                      const RecordAge& told,
                                      const std::optional<RecordAge>& here);

// In a file of the state folder. Writing replaces it whole; without a folder nothing is written.
void write_heard(const std::filesystem::path& file, const HeardSupervisor& heard);
// Nothing where there is no such file, or it is damaged.
[[nodiscard]] std::optional<HeardSupervisor> read_heard(const std::filesystem::path& file);

}  // namespace tessera::engine
