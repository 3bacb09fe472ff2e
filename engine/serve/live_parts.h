// The parts of a page as its viewers have them. A part that has changed is released when there are
// bytes to spend on it, so that keeping a page current takes no more than a fixed rate, however
// large the page is: small parts at once, large ones one after the other, what has waited longest
// first. One that alone takes longer than is saved up or owed at most, such as pictures, takes as
// much again: it is released no more often than that rate allows for it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/piece.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

class LiveParts {
 public:
  static constexpr double kBytes_per_s = 3000;  // compressed
  static constexpr double kMostSaved_s = 10;    // worth of bytes, while nothing changes

  // `name` tells the marks of one program from those of another. The part `first` waits half as
  // long as others.
  LiveParts(std::string name, std::size_t first) : name_(std::move(name)), first_(first) {}

  // The parts as they are now, always as many.
  void offer(std::vector<std::string> html);
  // What may be released now, or all of it.
  void release(double now_s, bool all = false);

  // What has been released up to now, as a word of letters, digits and hyphens.
  [[nodiscard]] std::string mark() const;
  // Parts that were released after a mark; all, where it is none of this page's.
  [[nodiscard]] std::vector<const Piece*> since(std::string_view mark) const;

 private:
  struct Part {
    Piece piece;         // as released: an element with the part in it
    std::string newest;  // likewise, as offered
    Index release = 0;
    double released_s = 0;
  };
  void release(Part& part, double now_s);

  std::string name_;
  std::size_t first_;
  std::vector<Part> parts_;
  Index releases_ = 0;
  double bytes_ = 0;  // to spend; less than 0: after a large part
  double last_s_ = 0;
};

}  // namespace tessera::engine
