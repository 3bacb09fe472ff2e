#include "engine/run_files/run_event.h"

#include "engine/run_files/record_fields.h"

namespace tessera::engine {

static auto fields_of(const RunEvent& /*event*/) {
  return std::tuple{Field("t_s", &RunEvent::t_s, 3),
                    Field("step", &RunEvent::step),
                    Field("rank", &RunEvent::rank, Absent::Null),
                    Field("kind", &RunEvent::kind),
                    Field("text", &RunEvent::text),
                    Field("device", &RunEvent::device, Absent::LeftOut),
                    Field("lost_s", &RunEvent::lost_s, 3, Absent::LeftOut),
                    Field("repeated_steps", &RunEvent::repeated_steps, Absent::LeftOut)};
}

std::string line_of(const RunEvent& event) {
  return record_text(event);
}

std::optional<RunEvent> run_event(const RecordJson& line) {
  auto event = record_of<RunEvent>(line);
  return event.kind.empty() ? std::nullopt : std::optional(std::move(event));
}

}  // namespace tessera::engine
