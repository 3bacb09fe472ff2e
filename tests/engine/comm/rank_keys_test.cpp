#include "engine/comm/rank_keys.h"

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("two ranks compute the same key, and a third one another") {
  const RankKeyPair first(0);
  const RankKeyPair second(1);
  const RankKeyPair third(2);
  const auto key = first.shared_with(1, second.public_key());
  REQUIRE(key);
  CHECK(*key == second.shared_with(0, first.public_key()).value());
  CHECK_FALSE(*key == first.shared_with(2, third.public_key()).value());
  CHECK_FALSE(*key == third.shared_with(0, first.public_key()).value());
  CHECK_FALSE(*key == third.shared_with(1, second.public_key()).value());
}

TEST_CASE("keys of ranks are others in each run") {
  const RankKeyPair first(0);
  CHECK(RankKeyPair(1).public_key() != RankKeyPair(1).public_key());
  CHECK_FALSE(first.shared_with(1, RankKeyPair(1).public_key()).value() ==
              first.shared_with(1, RankKeyPair(1).public_key()).value());
}

TEST_CASE("there is no key with oneself, nor with a public key that makes the secret known") {
  const RankKeyPair pair(1);
  CHECK_FALSE(pair.shared_with(1, RankKeyPair(0).public_key()));
  CHECK_FALSE(pair.shared_with(0, PublicKey{}));   // of a rank that takes no part
  CHECK_FALSE(pair.shared_with(0, PublicKey{1}));  // a point of order one
}

TEST_CASE("one rank alone has no keys") {
  const auto keys = keys_with_ranks(Communicator::self(), "heartbeat");
  REQUIRE(keys.size() == 1);
  CHECK_FALSE(keys[0]);
}

}  // namespace tessera::engine
