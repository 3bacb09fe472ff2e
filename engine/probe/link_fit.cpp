#include "engine/probe/link_fit.h"

#include <cmath>

#include <Eigen/QR>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// An equation for each transfer, latency + bytes * s_per_byte = seconds, divided by the root of the
// seconds: (transfers, 2) and (transfers).
struct Equations {
  Eigen::MatrixX2d terms;
  Eigen::VectorXd seconds;

  explicit Equations(const std::vector<TimedTransfer>& transfers)
      : terms(static_cast<Eigen::Index>(transfers.size()), 2),
        seconds(static_cast<Eigen::Index>(transfers.size())) {
    Eigen::Index row = 0;
    for (const TimedTransfer& transfer : transfers) {
      const double root = std::sqrt(transfer.seconds);
      terms.row(row) << 1 / root, transfer.bytes / root;
      seconds(row++) = root;
    }
  }
};

}  // namespace

partitioner::LinkProfile fit_link(const std::vector<TimedTransfer>& transfers) {
  const Equations equations(transfers);
  const auto bytes = equations.terms.col(1);
  expects(bytes.squaredNorm() > 0, "a rate is fitted to transfers of some bytes");
  const Eigen::RowVector2d scales = equations.terms.colwise().norm();
  Eigen::ColPivHouseholderQR<Eigen::MatrixX2d> line(equations.terms *
                                                    scales.asDiagonal().inverse());
  // Rounding would be what is fitted where sizes are more alike, or the latency is less.
  constexpr double kLeastSpread = 3e-5;
  constexpr double kLeastLatency = 1e-9;  // of a transfer's time
  line.setThreshold(kLeastSpread);
  const Eigen::Vector2d solution = line.solve(equations.seconds);
  if (line.rank() < 2 || solution(1) <= 0 ||
      solution(0) <= kLeastLatency * equations.seconds.norm()) {
    return {0, bytes.squaredNorm() / bytes.dot(equations.seconds)};
  }
  return {solution(0) / scales(0), scales(1) / solution(1)};
}

}  // namespace tessera::engine
