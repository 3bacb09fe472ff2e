#include "engine/monitor/energy_account.h"

#include <cmath>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DeviceSample;
using engine::EnergyAccount;
using engine::EnergyInterval;
using engine::RunEnergy;

DeviceSample sample(double t_s, double energy_j, double power_w) {
  DeviceSample sample;
  sample.t_s = t_s;
  sample.energy_j = energy_j;
  sample.power_w = power_w;
  return sample;
}

TEST_CASE("without a meter there is no energy") {
  EnergyAccount account(2);
  CHECK_FALSE(account.at(0).total_j);
  account.add(0, {});
  account.add(1, {});
  const RunEnergy energy = account.at(5);
  CHECK_FALSE(energy.total_j);
  CHECK(energy.of_rank_j.size() == 2);
  CHECK_FALSE(energy.of_rank_j[1]);
}

TEST_CASE("energy is the sum of the devices that have a meter, until now by their last power") {
  EnergyAccount account(3);
  account.add(0, sample(10, 40, 4));
  account.add(2, sample(11, 20, 2));
  const RunEnergy energy = account.at(12);
  CHECK(*energy.total_j == doctest::Approx(40 + 2 * 4 + 20 + 2));
  CHECK(*energy.of_rank_j[0] == doctest::Approx(48));
  CHECK_FALSE(energy.of_rank_j[1]);
  CHECK(*energy.of_rank_j[2] == doctest::Approx(22));
}

TEST_CASE("a device that is silent for long needs no made-up energy") {
  EnergyAccount account(1);
  account.add(0, sample(10, 40, 4));
  CHECK(*account.at(1000).total_j < 40 + 4 * 10);
}

TEST_CASE("energy never goes back, and the next sample puts it right") {
  EnergyAccount account(1);
  account.add(0, sample(10, 40, 4));
  CHECK(*account.at(11).total_j == doctest::Approx(44));
  account.add(0, sample(11, 42, 1));  // the power fell meanwhile
  CHECK(*account.at(11).total_j == doctest::Approx(44));
  CHECK(*account.at(13.5).total_j == doctest::Approx(44.5));
}

TEST_CASE("what a meter of the whole cluster counts includes the boards") {
  EnergyAccount account(2);
  DeviceSample root = sample(1, 3, 3);
  root.cluster_energy_j = 20;
  root.cluster_power_w = 20;
  account.add(0, root);
  account.add(1, sample(1, 4, 4));
  CHECK(*account.at(1).total_j == doctest::Approx(20));
  CHECK(*account.at(2).total_j == doctest::Approx(40));
  CHECK(*account.at(2).of_rank_j[1] == doctest::Approx(8));
}

TEST_CASE("a run that goes on adds to what was used before, also with fewer ranks") {
  const RunEnergy before{100.0, {60.0, std::nullopt, 40.0}};
  EnergyAccount account(2, before);
  CHECK(*account.at(0).total_j == 100);
  account.add(0, sample(1, 5, 0));
  account.add(1, sample(1, 7, 0));
  const RunEnergy energy = account.at(1);
  CHECK(*energy.total_j == doctest::Approx(112));
  CHECK(*energy.of_rank_j[0] == doctest::Approx(65));
  CHECK(*energy.of_rank_j[1] == doctest::Approx(7));
  CHECK(account.since_start(0, sample(1, 5, 0)).energy_j == doctest::Approx(65));
  CHECK(std::isnan(account.since_start(0, {}).energy_j));
}

TEST_CASE("intervals add up to the whole") {
  EnergyInterval interval(RunEnergy{100.0, {100.0, std::nullopt}});
  const RunEnergy first = interval.next({107.0, {105.0, 2.0}});
  CHECK(*first.total_j == 7);
  CHECK(*first.of_rank_j[0] == 5);
  CHECK(*first.of_rank_j[1] == 2);
  const RunEnergy second = interval.next({108.0, {105.0, 3.0}});
  CHECK(*second.total_j == 1);
  CHECK(*second.of_rank_j[0] == 0);
  CHECK(*second.of_rank_j[1] == 1);
}

}  // namespace
