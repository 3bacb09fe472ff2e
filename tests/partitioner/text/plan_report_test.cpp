#include "partitioner/text/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/memory_use.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/base/quantities.h"
#include "partitioner/base/text_table.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace
using Json = nlohmann::json;
using tests::has;

const std::string kSource = TESSERA_SOURCE_DIR;

struct Case {
  Network network;
  Partition partition;
  Plan plan;
  ReportOptions options;
};

Case make_case(const Network& network, const Shorthand& shorthand, Index batch) {
  Case result{network, make_partition(network, shorthand), {}, {}};
  validate(result.partition, network, batch, "made");
  result.plan = make_plan(network, result.partition, batch);
  result.options.model = "some.cfg";
  return result;
}

std::string table_of(const Case& of) {
  return plan_table(of.network, of.plan, of.partition, of.options);
}

Network classifier() {
  Network network;
  network.image = {3, 32, 32};
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {kImage});
  add_layer(
      network, Convolution{.filters = 32, .size = 3, .padding = 1, .batch_normalize = true}, {0});
  add_layer(network, MaxPool{.size = 2, .stride = 2, .padding = 1}, {1});
  add_layer(network, Convolution{.filters = 64, .size = 3, .padding = 1}, {2});
  add_layer(network, AvgPool{}, {3});
  add_layer(network, Connected{.outputs = 10}, {4});
  add_layer(network, Softmax{}, {5});
  return network;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

Index volume(const Json& region) {
  Index result = 1;
  for (const char* dimension : {"images", "channels", "rows", "cols"}) {
    result *= region[dimension][1].get<Index>() - region[dimension][0].get<Index>();
  }
  return result;
}

}  // namespace

TEST_CASE("the table names every group and rank and stays within 100 columns") {
  const Network early = read_model(kSource + "/models/yolov2-early.cfg").network;
  const std::vector<Case> cases = {
      make_case(early, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 3}, {4, 7}, {8, 15}}}, 64),
      make_case(early, {.grid_rows = 2, .grid_cols = 4, .groups = {}}, 8),
      make_case(early, {.grid_rows = 1, .grid_cols = 2, .groups = {}, .recompute_all = true}, 8),
      make_case(early, {.groups = {}, .data_parallel_from = 0, .ranks = 7}, 5),
      make_case(early, {.groups = {}, .filter_parallel_from = 8, .ranks = 3}, 8),
      make_case(classifier(), {.grid_rows = 5, .grid_cols = 7, .groups = {}, .ranks = 40}, 128),
      make_case(classifier(), {.groups = {}}, 1),
  };
  for (const Case& of : cases) {
    const std::string table = table_of(of);
    for (const std::string& line : lines_of(table)) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
      CHECK((line.empty() || line.back() != ' '));
    }
    CHECK(has(table, "some.cfg"));
    CHECK(has(table, "multiply-adds"));
    CHECK(has(table, "Planned memory, MiB"));
    if (of.plan.ranks > 1) {
      for (std::size_t group = 0; group < of.partition.groups.size(); ++group) {
        CHECK(has(table, "\ngroup " + std::to_string(group) + ", layer"));
      }
    }
    const std::string summary = plan_summary(of.network, of.plan, of.partition, of.options);
    CHECK(!summary.empty());
    CHECK(!has(summary, "\n"));
  }
}

TEST_CASE("the table shows regions as the plan has them") {
  const Network early = read_model(kSource + "/models/yolov2-early.cfg").network;
  const std::string table = table_of(
      make_case(early, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 3}, {4, 7}, {8, 15}}}, 8));
  CHECK(
      has(table,
          "group 0, layers 0-3: owned of layer 3's 64x152x152, computed of layer 0's 32x608x608"));
  CHECK(has(table, "   3  76:152  76:152   302:608   302:608"));
  CHECK(has(table, "layers 0-15 as 2x2 tiles"));
  CHECK(has(table, "convolutional x3,"));
}

TEST_CASE("the table says where one cut is handed over to another") {
  const std::string table =
      table_of(make_case(classifier(), {.grid_rows = 2, .grid_cols = 2, .groups = {}}, 8));
  CHECK(has(table, "layers 0-3 as 2x2 tiles, 4-6 as images in 4"));
}

TEST_CASE("the table and the JSON form say which groups are recomputed") {
  const Shorthand shorthand{.grid_rows = 2, .groups = {{0, 0}, {1, 3}}, .recompute = {{1, 3}}};
  const Case some = make_case(classifier(), shorthand, 8);
  CHECK(has(table_of(some), "\nrecomputed          layers 1-3\n"));
  const Json json = Json::parse(plan_json(some.network, some.plan, some.options));
  CHECK(json["groups"][0]["recompute"] == false);
  CHECK(json["groups"][1]["recompute"] == true);
  CHECK(!has(table_of(make_case(classifier(), {.grid_rows = 2, .groups = {}}, 8)), "recomputed"));
}

TEST_CASE("with more than eight ranks the least, the median and the most stand for all") {
  const std::string table =
      table_of(make_case(classifier(), {.grid_rows = 3, .grid_cols = 3, .groups = {}}, 9));
  CHECK(has(table, "least "));
  CHECK(has(table, "median "));
  CHECK(has(table, "most "));
}

TEST_CASE("the JSON form holds every layer, owner, message and byte of the plan") {
  const Case of = make_case(
      classifier(),
      {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 1}}, .ranks = 5, .reader = Reader::rank(0)},
      6);
  const Json json = Json::parse(plan_json(of.network, of.plan, of.options));
  CHECK(json["model"] == "some.cfg");
  CHECK(json["batch"] == 6);
  CHECK(json["ranks"] == 5);
  REQUIRE(json["layers"].size() == 7);
  CHECK(json["layers"][2] ==
        Json{{"index", 2}, {"kind", "maxpool"}, {"output", Json::array({32, 16, 16})}});
  CHECK(json["layers"][5]["output"] == Json::array({10, 1, 1}));
  CHECK(json["layers"][6]["output"] == Json::array({10, 1, 1}));
  REQUIRE(json["groups"].size() == of.partition.groups.size());
  for (const Json& group : json["groups"]) {
    const int last = group["layers"][1].get<int>();
    Index owned = 0;
    REQUIRE(group["ranks"].size() == 5);
    for (const Json& rank : group["ranks"]) {
      owned += volume(rank["owned"]);
    }
    CHECK(owned == whole_map(of.network, last, 6).volume());
    for (const Json& read : group["reads"]) {
      CHECK(read["map"] < group["layers"][0]);
      CHECK(read["required"].size() == 5);
    }
    for (const Json& message : group["messages"]) {
      CHECK(message["from"] != message["to"]);
      CHECK(message["bytes"] == 4 * volume(message["region"]));
    }
  }
  CHECK(!json["groups"][0]["messages"].empty());  // pictures, from the reader
  const std::vector<Region>& required = of.plan.groups[0].required.at(kImage);
  REQUIRE(json["groups"][0]["reads"].size() == 1);
  CHECK(json["groups"][0]["reads"][0]["map"] == kImage);
  for (std::size_t rank = 0; rank < 5; ++rank) {
    CHECK(volume(json["groups"][0]["reads"][0]["required"][rank]) == required[rank].volume());
  }
  REQUIRE(json["memory"].size() == 5);
  for (int rank = 0; rank < 5; ++rank) {
    const MemoryUse use = tests::planned_memory(of.network, of.plan, rank, {});
    const Json& memory = json["memory"][static_cast<std::size_t>(rank)];
    CHECK(memory["activations"] == use.activations);
    CHECK(memory["total"] == use.total());
  }
}

TEST_CASE("messages of the JSON form are those that the table counts") {
  Case of = make_case(classifier(), {.grid_rows = 2, .grid_cols = 3, .groups = {{0, 3}}}, 6);
  of.partition.groups[0].reduce_to_owner = {1};
  of.plan = make_plan(of.network, of.partition, 6);
  const Json json = Json::parse(plan_json(of.network, of.plan, of.options));
  const PlanTotals totals = plan_totals(of.network, of.plan, 4);
  CHECK(json["groups"][0]["messages"].empty());  // every rank reads its own part of the pictures
  CHECK(!json["groups"][0]["collapses"].empty());
  for (std::size_t group = 0; group < json["groups"].size(); ++group) {
    Index bytes = 0;
    for (const Json& message : json["groups"][group]["messages"]) {
      bytes += message["bytes"].get<Index>();
    }
    CHECK(bytes == totals.group_totals[group].forward_in.bytes);
  }
  CHECK(json["multiply_adds"] == totals.sum.work.multiply_adds);
  CHECK(json["redundant_multiply_adds"] > 0);
}

// Of all groups and ranks.
double step_multiply_adds(const Json& plan) {
  double sum = 0;
  for (const Json& group : plan["groups"]) {
    for (const Json& rank : group["ranks"]) {
      sum += rank["step_multiply_adds"].get<double>();
    }
  }
  return sum;
}

TEST_CASE("the JSON form counts what fills whole tiles of Winograd's, in all passes of a step") {
  const auto plan = [](int grid_rows, KernelRule kernels) {
    const Shorthand shorthand{
        .grid_rows = grid_rows, .groups = {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, .kernels = kernels};
    const Case of = make_case(classifier(), shorthand, 1);
    return Json::parse(plan_json(of.network, of.plan, of.options));
  };
  const double cells = 32 * 32;
  const double all = 2 * 16.0 * 3 * 9 * cells +  // pictures have no gradient
                     3 * 32.0 * 16 * 9 * cells + 3 * 64.0 * 32 * 9 * cells / 4;
  const Json one = plan(1, KernelRule::Direct);
  CHECK(one["step_multiply_adds_of_one"] == all);
  CHECK(step_multiply_adds(one) == all);
  const Json three = plan(3, KernelRule::Direct);
  CHECK(three["step_multiply_adds_of_one"] == all);
  CHECK(step_multiply_adds(three) == all);

  const Json tiled = plan(3, KernelRule::Winograd);
  CHECK(tiled["step_multiply_adds_of_one"] == all);  // 32 and 16 rows are whole tiles of 4
  // Rows 0 to 11 touch three rows of tiles, 11 to 22 four.
  CHECK(tiled["groups"][1]["ranks"][0]["step_multiply_adds"] == 3 * 32.0 * 16 * 9 * 12 * 32);
  CHECK(tiled["groups"][1]["ranks"][1]["step_multiply_adds"] == 3 * 32.0 * 16 * 9 * 16 * 32);
  CHECK(step_multiply_adds(tiled) > all);
}

TEST_CASE("the JSON form lists transfers and the schedule") {
  const Case of =
      make_case(classifier(), {.groups = {{0, 0}}, .data_parallel_from = 1, .ranks = 2}, 4);
  const Json json = Json::parse(plan_json(of.network, of.plan, of.options));
  const std::vector<Transfer>& transfers = of.plan.transfers.elements();
  REQUIRE(json["transfers"].size() == transfers.size());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Json& listed = json["transfers"][i];
    CHECK(listed["kind"] == name_of(transfers[i].kind));
    CHECK(listed["order"] == (transfers[i].adds ? "by rank" : "as it arrives"));
    CHECK(listed["priority"] == (transfers[i].yields ? "yields" : "urgent"));
    Json messages = Json::array();
    for_each_message(of.plan, transfers[i], [&](int from, int to, const Payload& payload) {
      if (from != to) {
        messages.push_back({from, to, message_bytes(of.plan, transfers[i], payload, 4)});
      }
    });
    CHECK(listed["messages"] == messages);
  }
  const Json& schedule = json["schedule"];
  REQUIRE(schedule.size() == of.plan.schedule.actions.size());
  const std::vector<Json> ends = {schedule.front(), schedule.back()};
  const int values = of.plan.buckets.front().values.number();
  CHECK(ends[0]["section"] == "forward");
  CHECK(
      ends[1] ==
      Json{{"section", "update"}, {"action", "start"}, {"transfer", values}, {"passes", "every"}});
  const Json weights = {{"section", "backward"},
                        {"action", "compute"},
                        {"phase", "backward weights"},
                        {"layer", 0},
                        {"part", 0},
                        {"passes", "every"}};
  CHECK(std::count(schedule.begin(), schedule.end(), weights) == 1);
}

TEST_CASE("a model's name that is no UTF-8 does not break the JSON form") {
  Case of = make_case(classifier(), {.groups = {}}, 1);
  of.options.model = "\xff\xfe\".cfg";
  CHECK(Json::accept(plan_json(of.network, of.plan, of.options)));
}

TEST_CASE("what is known of each rank is planned for each rank") {
  Case of = make_case(classifier(), {.grid_rows = 1, .grid_cols = 2, .groups = {}}, 1);
  of.options.workspace_bytes = {100, 200};
  of.options.program_bytes = {1000, 2000};
  const auto uses = planned_memory_of_ranks(of.network, of.plan, of.options);
  CHECK(uses[0].workspace == 100);
  CHECK(uses[1].workspace == 200);
  CHECK(uses[0].program == 1000);
  CHECK(uses[1].program == 2000);
}

TEST_CASE("the figure of geometry.md shows what the plan says") {
  Network network;
  network.image = {1, 10, 12};
  add_layer(network, Convolution{.filters = 1, .size = 1}, {kImage});
  add_layer(network, Convolution{.filters = 1, .size = 3, .padding = 1}, {0});
  add_layer(network, Convolution{.filters = 1, .size = 3, .padding = 1}, {1});
  const Plan plan =
      make_case(network, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 0}, {1, 2}}}, 1).plan;
  const auto box = [](Range rows, Range cols) { return Region{{0, 1}, {0, 1}, rows, cols}; };
  CHECK(plan.tile(0, 0).owned == box({0, 5}, {0, 6}));
  CHECK(plan.tile(1, 0).computed == box({0, 6}, {0, 7}));
  CHECK(plan.tile(2, 0).computed == box({0, 5}, {0, 6}));
  CHECK(plan.buffer(0, plan.producer(0, 0)).region == box({-1, 7}, {-1, 8}));
  CHECK(plan.buffer(0, plan.producer(0, 1)).region == box({-1, 6}, {-1, 7}));
  std::vector<Message> to_first;
  for (const Transfer& transfer : plan.transfers) {
    for (const Message& message : transfer.messages) {
      if (transfer.kind == TransferKind::FeatureMap && transfer.subject == 0 && message.to == 0) {
        to_first.push_back(message);
      }
    }
  }
  CHECK(to_first == std::vector<Message>{{1, 0, Payload::cells(box({0, 5}, {6, 8}))},
                                         {2, 0, Payload::cells(box({5, 7}, {0, 6}))},
                                         {3, 0, Payload::cells(box({5, 7}, {6, 8}))}});
}

TEST_CASE("quantities have at most three digits before the point") {
  CHECK(readable_bytes(0) == "0 B");
  CHECK(readable_bytes(999) == "999 B");
  CHECK(readable_bytes(1000) == "1.0 KiB");
  CHECK(readable_bytes(Index{1536} * 1024) == "1.5 MiB");
  CHECK(readable_bytes(Index{1023} * 1024) == "1.0 MiB");
  CHECK(readable_count(999'949) == "999.9 k");
  CHECK(readable_count(999'950) == "1.0 M");
  CHECK(readable_count(29'200'000'000) == "29.2 G");
  CHECK(share_of(0, 0) == "0 %");
  CHECK(share_of(1, 8) == "12.5 %");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(2, "rank") == "2 ranks");
}

TEST_CASE("columns of a table line up, also in rows of several lines") {
  TextTable table({{"name", Align::Left}, {"size"}});
  table.add_row({wrapped({"one", "two", "three"}, 9), "7"});
  table.add_row({"x", "1234567"});
  CHECK(table.text() ==
        "name          size\n"
        "one, two,        7\n"
        "three\n"
        "x          1234567\n");
}
