#include "engine/cluster/copies.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/processes/remote_shell.h"
#include "engine/session/own_data.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

// As rsync takes words of its remote shell: in quotes, which are doubled inside.
std::string rsync_shell_word(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) {
    text += letter == '\'' ? std::string("''") : std::string(1, letter);
  }
  return text + "'";
}

std::string rsync_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::vector<Copy> copies_of_data(const std::vector<Host>& hosts, const DataToCopy& data) {
  std::vector<Copy> copies;
  if (data.path.empty()) {
    return copies;
  }
  const bool own = path_of_rank(data.path, 0) != data.path;
  if (data.map && !own) {
    throw InputError(
        "with a data map each device has pictures of its own: give --data a path with {rank} in "
        "it, which stands for the number of a rank");
  }
  int rank = 0;
  for (int device = 0; device < static_cast<int>(hosts.size()); ++device) {
    for (int i = 0; i < hosts[static_cast<std::size_t>(device)].ranks; ++i, ++rank) {
      const fs::path path = fs::absolute(path_of_rank(data.path, rank)).lexically_normal();
      const auto place = static_cast<std::size_t>(rank);
      const bool has_samples =
          !data.map || (place < data.map->before.size() && data.map->before[place] > 0);
      const bool known = !copies.empty() && copies.back() == Copy{device, path};
      if (has_samples && !known) {
        copies.push_back({device, path});
      }
    }
  }
  if (data.map && data.map->before.size() != static_cast<std::size_t>(rank)) {
    throw InputError(fmt::format(
        "the data map is one of {} ranks, the host file has {}", data.map->before.size(), rank));
  }
  return copies;
}

std::vector<std::string> rsync_words(const RsyncCall& call) {
  std::vector<std::string> shell;
  for (const std::string& word : remote_shell_words(call.remote_shell)) {
    shell.push_back(rsync_shell_word(word));
  }
  std::vector<std::string> words{"rsync",
                                 "--recursive",
                                 "--links",
                                 "--copy-unsafe-links",  // what they lead to may not be there
                                 "--perms",
                                 "--times",
                                 "--mkpath",
                                 "-s",  // the shell over there does not see paths
                                 fmt::format("--rsh={}", fmt::join(shell, " "))};
  words.emplace_back(call.pass == RsyncPass::Compare ? "--out-format=%i %n" : "--out-format=%i %l");
  if (call.dry_run || call.pass != RsyncPass::Copy) {
    words.emplace_back("--dry-run");
  }
  if (call.pass == RsyncPass::Compare) {
    words.emplace_back("--checksum");
  } else if (!call.overwrite) {
    words.emplace_back("--update");
  }
  if (call.pass == RsyncPass::FindNewer) {
    words.emplace_back("--info=skip1");
  }
  const std::string path = call.path.string() + (call.is_folder ? "/" : "");
  words.insert(words.end(), {"--", path, rsync_host(call.host) + ":" + path});
  return words;
}

std::optional<Index> copied_bytes(const std::string& line) {
  // "<f+++++++++ 1234": sent, a file.
  if (line.rfind("<f", 0) != 0) {
    return std::nullopt;
  }
  return parsed_number<Index>(line.substr(line.rfind(' ') + 1));
}

std::optional<std::string> newer_file(const std::string& line) {
  constexpr std::string_view kSign = " is newer";
  return line.ends_with(kSign) ? std::optional(line.substr(0, line.size() - kSign.size()))
                               : std::nullopt;
}

std::optional<std::string> different_file(const std::string& line) {
  // "<fcst...... sub/name": a file that would be sent, since its checksum is another one.
  const std::size_t blank = line.find(' ');
  return line.starts_with("<fc") && blank != std::string::npos
             ? std::optional(line.substr(blank + 1))
             : std::nullopt;
}

std::string missing_library(const std::string& line) {
  constexpr std::string_view kSign = " => not found";
  const std::size_t sign = line.find(kSign);
  const std::size_t begin = line.find_first_not_of(" \t");
  return sign == std::string::npos || begin > sign ? "" : line.substr(begin, sign - begin);
}

}  // namespace tessera::engine
