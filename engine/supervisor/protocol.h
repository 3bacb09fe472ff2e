// What the supervisor of a run, the agents on its devices and the ranks that these start tell each
// other, and what they agree on beside messages. A message is a struct; on its way it is a line of
// JSON, written and read here alone.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/supervisor/run_record.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Variables of the environment by which an agent tells a rank where it is.
namespace rank_variable {
inline constexpr const char* kAgent = "TESSERA_AGENT_FD";         // descriptor of its messages
inline constexpr const char* kStateFolder = "TESSERA_STATE_DIR";  // for the state of the last step
inline constexpr const char* kRequest = "TESSERA_REQUEST";        // a file, see training_request.h
inline constexpr const char* kFaults = "TESSERA_FAULTS";          // a file, see run_notes.h
inline constexpr const char* kCommand = "TESSERA_COMMAND";        // as a person has typed it
inline constexpr const char* kStartedAgain = "TESSERA_STARTED_AGAIN";  // set: no first start
}  // namespace rank_variable

// Whether a variable of the supervisor's environment is set for ranks on all devices: what steers
// OpenMP, MPICH, UCX and this program, but for what agents set themselves.
[[nodiscard]] bool travels(std::string_view variable);

enum class RankPhase {
  Setup,  // whatever is no other one
  Steps,
  Test,
  Saving
};

// Of a rank; its agent relays all but signs of life to the supervisor.
namespace of_rank {
struct Beat {};   // a sign of life
struct Works {};  // and of work, see work_watch.h
struct Stuck {};  // it has neither worked nor waited for long
struct Phase {
  RankPhase phase = RankPhase::Setup;
  Index steps = 0;  // it should take no longer than so many; 0: unknown
  Index bytes = 0;  // that it may have to write; 0: unknown
};
struct Step {
  Index step = 0;  // that is done
  Index last = 0;  // of the run
};
struct Saved {};  // all that it has learnt is on the disk: it is told to stop, or has finished
struct Silent {
  std::vector<int> ranks;  // of which it has heard nothing
};
using Message = std::variant<Beat, Works, Stuck, Phase, Step, Saved, Silent>;
}  // namespace of_rank

// To a rank.
namespace to_rank {
struct Pause {};  // it is to end after a step, with its state kept
using Message = std::variant<Pause>;
}  // namespace to_rank

// A line of the protocol by which MPI finds its ranks, either way.
struct PmiLine {
  Index world = 0;
  int rank = 0;
  std::string line;
};

namespace to_agent {
struct Beat {};
struct Hello {
  std::string run;  // its number
  std::string host;
  Index ranks = 1;
  Index limit_ms = 3000;  // after which somebody who is silent counts as lost
  std::string folder;
  std::map<std::string, std::string> environment;
  Index place = 0;          // among the devices, the supervisor's own first
  bool takes_over = false;  // it may still find that it reaches too few devices
  bool leads = false;       // it has started ranks
  SupervisorRecord record;
};
struct Start {
  Index world = 0;
  std::vector<int> ranks;  // on this device
  Index size = 1;          // of the world
  bool again = false;      // the run has begun before
  bool forget = false;     // what ranks keep there: others have gone on from a later step
  TrainingRequest request;
  // For whoever looks at processes or records.
  std::vector<std::string> typed;
  std::vector<std::string> words;
};
struct Kill {};  // ranks; others start elsewhere
struct Wait {};  // without ranks: too few devices are there
struct Record {
  SupervisorRecord record;
};
struct Signal {
  int signal = 0;  // for ranks
};
struct Pause {
  Index world = 0;
};
struct Look {
  std::string file;  // in the run folder, as this device sees it
};
struct FilePart {  // for its copy of the run folder
  std::string file;
  Index offset = 0;
  bool appends = false;  // to the file that is there; else it replaces that once it is whole
  bool last = false;
  std::vector<unsigned char> bytes;
};
struct End {
  bool remove = false;  // what ranks keep
};
using Message = std::
    variant<Beat, Hello, Start, Kill, Wait, Record, Signal, PmiLine, Pause, Look, FilePart, End>;
}  // namespace to_agent

namespace to_supervisor {
struct Beat {};
struct Hello {
  std::string version;
  std::string host;
  bool folder_there = true;
};
struct Heard {};       // another supervisor is there, to whom the device has promised itself
struct Superseded {};  // a newer one has had the run
struct Finished {};    // the run has, as its folder says
struct Stopped {};     // somebody has stopped the run: it is not to be taken over
struct Problem {
  std::string text;
};
struct Ending {
  int signal = 0;  // by which the agent itself was told to end
};
struct Look {
  std::string file;
  bool there = false;
};
struct Status {
  Index world = 0;
  int rank = 0;
  of_rank::Message status;
};
struct Late {
  Index world = 0;
  int rank = 0;
  Index silent_ms = 0;
};
struct Exit {
  Index world = 0;
  int rank = 0;
  int code = 0;
  int signal = 0;
  std::string limits = {};  // what the device has little of, which may be why
  bool memory = false;      // the kernel has killed it since memory ran out
};
using Message = std::variant<Beat,
                             Hello,
                             Heard,
                             Superseded,
                             Finished,
                             Stopped,
                             Problem,
                             Ending,
                             Look,
                             PmiLine,
                             Status,
                             Late,
                             Exit>;
}  // namespace to_supervisor

// Without the end of the line.
[[nodiscard]] std::string line_of(const of_rank::Message& message);
[[nodiscard]] std::string line_of(const to_rank::Message& message);
[[nodiscard]] std::string line_of(const to_agent::Message& message);
[[nodiscard]] std::string line_of(const to_supervisor::Message& message);

// Nothing where the line is no such message, or damaged. What a message lacks has its default.
// Message: one of those above.
template <class Message>
[[nodiscard]] std::optional<Message> message_in(const std::string& line);

// A command in a variable.
[[nodiscard]] std::string text_of_words(const std::vector<std::string>& words);
[[nodiscard]] std::vector<std::string> words_in(const std::string& text);  // none: it is not one

}  // namespace tessera::engine
