// Heartbeats between the ranks of a run: datagrams (UDP) of a few bytes, from each rank to each.
// Not messages of MPI: those share a connection with all else, which after a cable was out stays
// silent for as long again (TCP tries ever more rarely), and they wait while another thread is
// inside MPI. A lost datagram is no loss, the next one follows.
//
// A socket listens on one address only, that of the network by which MPI reaches the other
// machines, and on this machine alone where there are no others. What does not come from the
// address of a rank, or was not sealed by that rank for this one, is ignored, and so is what was
// heard before. The kernel drops datagrams of strangers by their address and size: they take no
// room from those of ranks, and wake nobody.

#pragma once

#include <chrono>
#include <map>
#include <sys/socket.h>
#include <vector>

#include "engine/comm/attendance.h"
#include "engine/comm/communicator.h"
#include "engine/comm/heartbeat_filter.h"
#include "engine/comm/sealed_heartbeats.h"
#include "engine/processes/descriptor.h"

namespace tessera::engine {

class HeartbeatSocket {
 public:
  // All ranks call this together, after they have exchanged messages.
  explicit HeartbeatSocket(const Communicator& communicator);

  // To all other ranks; what cannot be sent is not.
  void send(double stuck_s);

  // What has come; waits for it, no longer than given and until wake() is called.
  [[nodiscard]] std::vector<Heartbeat> receive(std::chrono::milliseconds longest);

  // Ends receive() in another thread, now or when it is called next.
  void wake() const;

 private:
  Descriptor socket_;  // none: nothing is sent or heard
  Descriptor wake_;
  int rank_;
  SealedHeartbeats heartbeats_;
  std::vector<sockaddr_storage> addresses_;  // of ranks
  std::map<DatagramSource, int> ranks_;      // other ranks by their address
};

}  // namespace tessera::engine
