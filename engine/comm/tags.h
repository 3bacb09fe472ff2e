// Tags of messages. What may be under way between the same two ranks at once has different tags.

#pragma once

namespace tessera::engine {

inline constexpr int kGatherTag = 1;
inline constexpr int kRegridTag = 2;
inline constexpr int kTargetsTag = 3;
inline constexpr int kProbeControlTag = 4;
inline constexpr int kProbeLoadTag = 5;
inline constexpr int kBulkTag = 6;
inline constexpr int kNoMessageTag = 7;
inline constexpr int kLetterTag = 8;
inline constexpr int kPeersTag = 9;
inline constexpr int kParameterLinkTag = 10;
inline constexpr int kOutcomeTag = 11;
inline constexpr int kChunkTag = 12;
inline constexpr int kChunkReadyTag = 13;
inline constexpr int kParameterRegridTag = 14;
inline constexpr int kPairTag = 15;
inline constexpr int kPairSizeTag = 16;
inline constexpr int kKeptStateTag = 17;
inline constexpr int kTrunkTag = 18;
inline constexpr int kFirstExchangeTag = 32;  // each transfer of a plan has two

}  // namespace tessera::engine
