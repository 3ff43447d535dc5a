/* Known bugs that the simulation compiles in, one active at a time, to show that its checks catch
 * them (docs/simulation.md). Without GRAPEVINE_BUGS, which only the simulator's build sets, BUG()
 * is the constant false and the compiler removes what it guards.
 */
#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stdbool.h>

/* Name; what the code does wrong while the bug is active; the profile of the simulator that
 * provokes it most; the rules, one of which must catch it there (tests/sim). */
#define BUG_MAP(X)                                                                                 \
    X(SKIP_FENCE, "observations of a retired incarnation count again", STORM,                      \
      "phantom, equal vectors")                                                                    \
    X(SKIP_FLOOR, "observations below the floor are accepted", STORM, "expired, _check()")         \
    X(FUTURE_CLAMP, "generations of the future are clamped instead of refused", STORM, "phantom")  \
    X(TIE_BY_ARRIVAL, "the last report to arrive wins, not the greatest", JOIN,                    \
      "report regressed, start")                                                                   \
    X(DEAD_LOAD, "the load of a dead router still counts", STORM, "reports of the dead")           \
    X(NO_GAP_REPAIR, "a gap in an author's deltas is never asked for", STRICT,                     \
      "no agreement, start")                                                                       \
    X(GAP_SKIPPED, "a gap counts as received", STRICT, "equal vectors")                            \
    X(NO_RECONCILE, "anti-entropy never runs", STORM, "no agreement, start")                       \
    X(SKETCH_STALE, "a refreshed entry stays in the sketch of its old generation", STORM,          \
      "_check()")                                                                                  \
    X(REPLAY_ACCEPTED, "a packet with a counter seen before is accepted", STRICT,                  \
      "replayed packet")                                                                           \
    X(NO_REFUTE, "a node that is suspected does not say that it is alive", JOIN,                   \
      "not refuted, no agreement")                                                                 \
    X(EPOCH_IGNORED, "deltas of a router's earlier life continue its new stream", JOIN,            \
      "no agreement, equal vectors")                                                               \
    X(FLOOR_UNANNOUNCED, "entries are dropped under pressure without raising the floor", PRESSURE, \
      "lost observation")                                                                          \
    X(LOG_GAP_APPLIED, "a precise log is applied over a gap", STORM, "log")                        \
    X(RELAY_NOT_FORWARDED, "a relay keeps a delta for itself now and then", CALM, "calm")          \
    X(SNAPSHOT_VECTOR_LATE, "a snapshot claims the vector of its end, not of its start", JOIN,     \
      "equal vectors")

enum bug {
    BUG_NONE,
#define BUG_ENUM(name, text, profile, rules) BUG_##name,
    BUG_MAP(BUG_ENUM)
#undef BUG_ENUM
        BUG_COUNT,
};

#ifdef GRAPEVINE_BUGS
extern enum bug bug_active; /* defined by the simulator */
#define BUG(name) (bug_active == BUG_##name)
#else
#define BUG(name) false
#endif

#endif
