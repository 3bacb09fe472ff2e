#include "engine/serve/live_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kSmall_bytes = 4000;  // before compression

}  // namespace

void LiveParts::offer(std::vector<std::string> html) {
  expects(parts_.empty() || parts_.size() == html.size(), "a page always has as many parts");
  parts_.resize(html.size());
  for (std::size_t i = 0; i < html.size(); ++i) {
    parts_[i].newest = fmt::format("<div id=\"part-{}\">\n{}</div>\n", i, html[i]);
  }
}

void LiveParts::release(double now_s, bool all) {
  bytes_ = std::min(bytes_ + kBytes_per_s * (now_s - std::exchange(last_s_, now_s)),
                    kBytes_per_s * kMostSaved_s);
  std::vector<std::pair<double, Part*>> waiting;  // the longest last
  for (Part& part : parts_) {
    if (part.newest == part.piece.text) {
      continue;
    }
    if (all || part.release == 0 || part.newest.size() <= kSmall_bytes) {
      release(part, now_s);
      continue;
    }
    const double waited_s = now_s - part.released_s;
    if (waited_s * kBytes_per_s >= static_cast<double>(part.piece.deflated.size())) {
      const bool is_first = first_ < parts_.size() && &part == &parts_[first_];
      waiting.emplace_back(waited_s * (is_first ? 2 : 1), &part);
    }
  }
  std::sort(waiting.begin(), waiting.end());
  for (; !waiting.empty() && bytes_ > 0; waiting.pop_back()) {
    release(*waiting.back().second, now_s);
  }
}

void LiveParts::release(Part& part, double now_s) {
  const bool is_first_time = part.release == 0;
  part.piece = make_piece(part.newest);
  part.release = ++releases_;
  part.released_s = now_s;
  if (!is_first_time) {
    bytes_ = std::max(bytes_ - static_cast<double>(part.piece.deflated.size()),
                      -kBytes_per_s * kMostSaved_s);
  }
}

std::string LiveParts::mark() const {
  return fmt::format("{}-{}", name_, releases_);
}

std::vector<const Piece*> LiveParts::since(std::string_view mark) const {
  const bool is_ours = mark.size() > name_.size() && mark.starts_with(name_);
  const Index release =
      is_ours ? parsed_number<Index>(mark.substr(name_.size() + 1), 0, releases_).value_or(0) : 0;
  std::vector<const Piece*> pieces;
  for (const Part& part : parts_) {
    if (part.release > release) {
      pieces.push_back(&part.piece);
    }
  }
  return pieces;
}

}  // namespace tessera::engine
