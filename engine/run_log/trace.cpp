#include "engine/run_log/trace.h"

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "partitioner/plan/transfers.h"

namespace tessera::engine {

using partitioner::Action;
using partitioner::Transfer;
using partitioner::TransferIndex;
using partitioner::TransferKind;
using OrderedJson = nlohmann::ordered_json;

namespace {

double microseconds(double seconds) {
  return 1e6 * seconds;
}

class Trace {
 public:
  Trace(const partitioner::Plan& plan,
        const partitioner::Schedule& schedule,
        const TracedStep& step)
      : plan_(plan), schedule_(schedule), step_(step) {}

  [[nodiscard]] std::string text() {
    for (std::size_t rank = 0; rank < step_.per_rank.size(); ++rank) {
      add_rank(static_cast<int>(rank));
    }
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  void add(const OrderedJson& event) {
    events_ += events_.empty() ? "" : ",\n";
    events_ += event.dump();
  }

  void add_rank(int rank) {
    add({{"name", "process_name"},
         {"ph", "M"},
         {"pid", rank},
         {"args", {{"name", fmt::format("rank {}", rank)}}}});
    add({{"name", "thread_name"},
         {"ph", "M"},
         {"pid", rank},
         {"tid", 0},
         {"args", {{"name", "actions"}}}});
    std::map<TransferIndex, double> started;  // by transfer: when its Start was over
    for (const PerformedAction& performed : step_.per_rank[static_cast<std::size_t>(rank)]) {
      const Action& action = schedule_.actions[performed.action];
      add({{"name", action_name(action)},
           {"cat", name_of(action.kind)},
           {"ph", "X"},
           {"pid", rank},
           {"tid", 0},
           {"ts", microseconds(performed.begin_s)},
           {"dur", microseconds(performed.end_s - performed.begin_s)},
           {"args", arguments(action, performed, rank)}});
      if (action.kind == Action::Kind::Start) {
        started[action.transfer] = performed.end_s;
      }
      if (action.kind == Action::Kind::Finish && started.contains(action.transfer) &&
          concerns(action.transfer, rank)) {
        add_flight(action.transfer, rank, started[action.transfer], performed.end_s);
      }
    }
  }

  void add_flight(TransferIndex transfer, int rank, double begin_s, double end_s) {
    const std::string id = fmt::format("{}.{}", rank, flights_++);
    for (const auto& [phase, at_s] : {std::pair{"b", begin_s}, std::pair{"e", end_s}}) {
      add({{"name", transfer_name(transfer)},
           {"cat", "in flight"},
           {"ph", phase},
           {"id2", {{"local", id}}},
           {"pid", rank},
           {"tid", 0},
           {"ts", microseconds(at_s)}});
    }
  }

  [[nodiscard]] const Transfer& transfer(TransferIndex number) const {
    return plan_.transfers[number];
  }

  [[nodiscard]] std::string transfer_name(TransferIndex number) const {
    const Transfer& named = transfer(number);
    return named.kind == TransferKind::RunningStatistics
               ? name_of(named.kind)
               : fmt::format("{} {}", name_of(named.kind), named.subject);
  }

  [[nodiscard]] std::string action_name(const Action& action) const {
    if (action.kind != Action::Kind::Compute) {
      return fmt::format("{} {}", name_of(action.kind), transfer_name(action.transfer));
    }
    const int subject = action.bucket >= 0 ? action.bucket : action.layer;
    return subject < 0 ? name_of(action.phase)
                       : fmt::format("{} {}", name_of(action.phase), subject);
  }

  [[nodiscard]] bool concerns(TransferIndex number, int rank) const {
    bool found = false;
    for_each_message(plan_, transfer(number), [&](int from, int to, const partitioner::Payload&) {
      found = found || (from != to && (from == rank || to == rank));
    });
    return found;
  }

  [[nodiscard]] OrderedJson arguments(const Action& action,
                                      const PerformedAction& performed,
                                      int rank) const {
    OrderedJson result{{"action", performed.action.number()}, {"pass", performed.pass}};
    if (action.kind == Action::Kind::Compute) {
      result["phase"] = name_of(action.phase);
      if (action.bucket >= 0) {
        result["bucket"] = action.bucket;
      } else if (action.layer >= 0) {
        result["layer"] = action.layer;
        result["part"] = action.part;
      }
    } else {
      add_transfer(action.transfer, rank, result);
    }
    if (!step_.predicted_s.empty()) {
      const double seconds = step_.predicted_s[static_cast<std::size_t>(rank)]
                                              [static_cast<std::size_t>(performed.action.number())];
      if (seconds >= 0) {
        result["predicted_s"] = seconds;
      }
    }
    return result;
  }

  void add_transfer(TransferIndex number, int rank, OrderedJson& result) const {
    const Transfer& added = transfer(number);
    result["transfer"] = number.number();
    result["kind"] = name_of(added.kind);
    if (const char* subject = subject_of(added.kind)) {
      result[subject] = added.subject;
    }
    Index sent = 0;
    Index received = 0;
    for_each_message(plan_, added, [&](int from, int to, const partitioner::Payload& payload) {
      const Index bytes = from == to ? 0 : message_bytes(plan_, added, payload, sizeof(float));
      sent += from == rank ? bytes : 0;
      received += to == rank ? bytes : 0;
    });
    result["sent_bytes"] = sent;
    result["received_bytes"] = received;
  }

  const partitioner::Plan& plan_;
  const partitioner::Schedule& schedule_;
  const TracedStep& step_;
  std::string events_;
  int flights_ = 0;
};

}  // namespace

std::string trace_json(const partitioner::Plan& plan,
                       const partitioner::Schedule& schedule,
                       const TracedStep& step) {
  return Trace(plan, schedule, step).text();
}

}  // namespace tessera::engine
