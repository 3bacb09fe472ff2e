#include "partitioner/cost/wire.h"

#include <algorithm>
#include <cmath>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

Wire::Wire(const ClusterProfile& cluster, double bulk_under_way)
    : cluster_(&cluster),
      bulk_under_way_(bulk_under_way),
      queues_(cluster.devices.size() * cluster.devices.size()),
      out_(cluster.devices.size()),
      in_(cluster.devices.size()) {}

int Wire::send(int from, int to, double bytes, double time, Kind kind) {
  expects(time >= time_, "messages are sent in the order of time");
  flows_.push_back({from, to, bytes, 0, kind, cluster_->between(from, to).bytes_per_s});
  const int message = static_cast<int>(flows_.size()) - 1;
  starts_.push({time, message});
  return message;
}

std::size_t Wire::pair(const Flow& flow) const {
  return static_cast<std::size_t>(flow.from) * out_.size() + static_cast<std::size_t>(flow.to);
}

void Wire::begin_due() {
  while (!starts_.empty() && starts_.top().time <= time_) {
    const int message = starts_.top().message;
    starts_.pop();
    line_up(message);
  }
}

// Behind those of its pair that go first, and behind what has set out of the one that stands back.
void Wire::line_up(int message) {
  auto& queue = queues_[pair(flow(message))];
  const int first = queue.empty() ? message : queue.front();
  const auto place = flow(message).kind == Kind::Bulk
                         ? queue.end()
                         : std::find_if(queue.begin(), queue.end(), [this](int other) {
                             return flow(other).kind == Kind::Bulk;
                           });
  queue.insert(place, message);
  if (queue.size() == 1) {
    moving_.push_back(message);
  } else if (queue.front() != first) {
    *std::find(moving_.begin(), moving_.end(), first) = message;
    const double ahead = std::min(bulk_under_way_, flow(first).left);
    flow(first).left -= ahead;
    flow(message).left += ahead;
  }
  shared_ = shared_ && queue.front() != message;
}

// Progressive filling (Bertsekas, Gallager 1992): the flow with the least share is given it for
// good, and what it takes is no longer there for the others.
void Wire::share_rates() {
  for (std::size_t i = 0; i < out_.size(); ++i) {
    out_[i] = {cluster_->devices[i].send_bytes_per_s, 0, 0};
    in_[i] = {cluster_->devices[i].receive_bytes_per_s, 0, 0};
  }
  open_ = moving_;
  for (const int message : open_) {
    ++out_[static_cast<std::size_t>(flow(message).from)].flows;
    ++in_[static_cast<std::size_t>(flow(message).to)].flows;
  }
  while (!open_.empty()) {
    for (auto* interfaces : {&out_, &in_}) {
      for (Interface& interface : *interfaces) {
        interface.share = interface.flows > 0 ? interface.rate / interface.flows : 0;
      }
    }
    shares_.clear();
    double least = kInfiniteRate;
    for (const int message : open_) {
      const Flow& open_flow = flow(message);
      const double out = out_[static_cast<std::size_t>(open_flow.from)].share;
      const double in = in_[static_cast<std::size_t>(open_flow.to)].share;
      shares_.push_back(std::min({out, in, open_flow.link_rate}));
      least = std::min(least, shares_.back());
    }
    constexpr double kRounding = 1 + 1e-12;  // flows that are equal but for rounding go together
    std::size_t rest = 0;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (shares_[i] > least * kRounding) {
        open_[rest++] = open_[i];
        continue;
      }
      Flow& open_flow = flow(open_[i]);
      open_flow.rate = least;
      for (Interface* interface : {&out_[static_cast<std::size_t>(open_flow.from)],
                                   &in_[static_cast<std::size_t>(open_flow.to)]}) {
        interface->rate =
            std::isinf(interface->rate) ? interface->rate : std::max(interface->rate - least, 0.0);
        --interface->flows;
      }
    }
    open_.resize(rest);
  }
  shared_ = true;
}

Wire::Departure Wire::next() {
  for (;;) {
    begin_due();
    if (moving_.empty()) {
      if (starts_.empty()) {
        return {};
      }
      time_ = starts_.top().time;
      continue;
    }
    if (finished_ < gone_.size()) {  // whatever rates are now
      return leave(gone_[finished_++]);
    }
    if (!shared_) {
      share_rates();
    }
    const auto remaining = [this](int message) { return flow(message).left / flow(message).rate; };
    double duration = kInfiniteRate;
    for (const int message : moving_) {
      duration = std::min(duration, remaining(message));
    }
    const bool interrupted = !starts_.empty() && starts_.top().time < time_ + duration;
    const double passed = interrupted ? starts_.top().time - time_ : duration;
    constexpr double kRounding = 1 + 1e-12;  // messages that end together but for rounding
    gone_.clear();
    finished_ = 0;
    for (const int message : moving_) {
      if (!interrupted && remaining(message) <= duration * kRounding) {
        gone_.push_back(message);
        flow(message).left = 0;
      } else if (passed > 0) {
        flow(message).left = std::max(flow(message).left - passed * flow(message).rate, 0.0);
      }
    }
    std::sort(gone_.begin(), gone_.end());
    time_ = interrupted ? starts_.top().time : time_ + duration;
  }
}

// The message makes room for the next of its pair.
Wire::Departure Wire::leave(int message) {
  auto& queue = queues_[pair(flow(message))];
  const bool moves = queue.front() == message;  // else another has stepped in just now
  queue.erase(std::find(queue.begin(), queue.end(), message));
  const auto place = std::find(moving_.begin(), moving_.end(), message);
  if (moves && queue.empty()) {
    *place = moving_.back();
    moving_.pop_back();
  } else if (moves) {
    *place = queue.front();
  }
  shared_ = false;
  return {message, time_};
}

}  // namespace tessera::partitioner
