#include "partitioner/search/partition_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/plan/plan_size.h"

namespace tessera::partitioner {

namespace {

void set_gradient_precision(const PartitionRequest& request, Partition& partition) {
  partition.gradient_reduction.compression =
      request.gradient_precision.value_or(partition.gradient_reduction.compression);
}

void expect_ranks_of_grid(const Shorthand& shorthand) {
  const Index tiles = shorthand.grid_rows * shorthand.grid_cols;
  if (tiles > shorthand.ranks) {
    throw InputError("--grid",
                     0,
                     fmt::format("{}x{} needs {} ranks, there are {}: start {} with mpiexec.mpich "
                                 "-n {}, or give a smaller grid",
                                 shorthand.grid_rows,
                                 shorthand.grid_cols,
                                 tiles,
                                 shorthand.ranks,
                                 tiles,
                                 tiles));
  }
}

Partition partition_from_file(const Network& network,
                              const PartitionRequest& request,
                              int ranks,
                              Index batch) {
  Partition partition = read_partition(request.file);
  validate(partition, network, batch, request.file);
  if (partition.ranks > ranks) {
    throw InputError(
        request.file,
        0,
        fmt::format(
            "the partition is for {} ranks, there are {}: start {} with mpiexec.mpich -n {}",
            partition.ranks,
            ranks,
            partition.ranks,
            partition.ranks));
  }
  if (partition.replicas.count > 1 && partition.ranks != ranks) {
    throw InputError(request.file,
                     0,
                     fmt::format("the partition is for {} replicas on {} ranks, there are {}",
                                 partition.replicas.count,
                                 partition.ranks,
                                 ranks));
  }
  partition.ranks = ranks;  // more than it asks for are idle
  if (request.reader) {
    partition.reader = requested_reader(request, ranks);
  }
  if (request.kernels) {
    partition.kernels = choose_kernels(network, *request.kernels);
  }
  set_gradient_precision(request, partition);
  validate(partition, network, batch, request.file);
  return partition;
}

Partition partition_from_shorthand(const Network& network,
                                   const PartitionRequest& request,
                                   int ranks,
                                   Index batch) {
  Shorthand shorthand;
  shorthand.ranks = ranks;
  std::tie(shorthand.grid_rows, shorthand.grid_cols) =
      request.cut.grid ? *request.cut.grid : squarest_grid(ranks);
  expect_ranks_of_grid(shorthand);
  shorthand.groups = request.cut.groups;
  shorthand.recompute = request.cut.recompute;
  shorthand.recompute_all = request.cut.recompute_all;
  shorthand.data_parallel_from = request.cut.data_parallel_from;
  shorthand.filter_parallel_from = request.cut.filter_parallel_from;
  shorthand.reader = requested_reader(request, ranks);
  shorthand.kernels = request.kernels.value_or(request.default_kernels);
  Partition partition = make_partition(network, shorthand);
  validate(partition, network, batch, "--grid");
  set_gradient_precision(request, partition);
  return partition;
}

Partition partition_for_replicas(const Network& network,
                                 const PartitionRequest& request,
                                 const Replicas& replicas,
                                 int ranks,
                                 Index batch) {
  expect_even_replicas(replicas.count, ranks, batch);
  const Index share = batch / replicas.count;
  const Partition one =
      requested_partition(network, request_for_one_replica(request), ranks / replicas.count, share);
  if (one.replicas.count > 1) {
    throw InputError(
        request.file, 0, "the partition has replicas itself: leave out --replicas and --sync");
  }
  Partition all = replicated(one, replicas, share);
  validate(all, network, batch, "--replicas");
  return all;
}

}  // namespace

PartitionRequest comparable_request() {
  PartitionRequest request;
  request.default_kernels = KernelRule::Direct;
  return request;
}

Reader parse_reader(const std::string& text) {
  if (text == "every") {
    return Reader::every_rank();
  }
  const auto reader = parsed_number<int>(text, 0);
  if (!reader) {
    throw InputError(
        "--reader",
        0,
        fmt::format("\"{}\" is not a rank: give a number from 0 on, or \"every\"", text));
  }
  return Reader::rank(*reader);
}

Reader requested_reader(const PartitionRequest& request, int ranks) {
  const Reader reader = request.reader.value_or(Reader::every_rank());
  if (!reader.is_among(ranks)) {
    throw InputError("--reader",
                     0,
                     fmt::format("\"{}\" is not a rank: give one from 0 to {}, or \"every\"",
                                 reader.first_rank(),
                                 ranks - 1));
  }
  return reader;
}

Replicas requested_replicas(const PartitionRequest& request) {
  Replicas replicas;
  replicas.sync = request.cut.sync.value_or(replicas.sync);
  if (!request.cut.replicas && replicas.sync.mode != SyncMode::EveryStep) {
    throw InputError(fmt::format("--sync {} needs --replicas N", to_text(replicas.sync)));
  }
  replicas.count = std::max(request.cut.replicas.value_or(1), 1);
  return replicas;
}

PartitionRequest request_for_one_replica(PartitionRequest request) {
  request.cut.replicas.reset();
  request.cut.sync.reset();
  return request;
}

Partition requested_partition(const Network& network,
                              const PartitionRequest& request,
                              int ranks,
                              Index batch) {
  expect_plannable(network, ranks, batch);
  if (request.memory_limit_bytes || request.objective) {
    throw InputError("--memory-limit and --objective guide a search: they need --partition auto");
  }
  if (const Replicas replicas = requested_replicas(request); replicas.count > 1) {
    return partition_for_replicas(network, request, replicas, ranks, batch);
  }
  return request.file.empty() ? partition_from_shorthand(network, request, ranks, batch)
                              : partition_from_file(network, request, ranks, batch);
}

}  // namespace tessera::partitioner
