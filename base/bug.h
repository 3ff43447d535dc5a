/* Known bugs, at most one active at a time, to prove that the simulation (docs/simulation.md) and
 * jepsen-lite with real processes (docs/jepsen-lite.md) find faults. Only VARIANT=lab sets
 * GRAPEVINE_LAB; BUG=NAME in a router's environment then chooses one. Otherwise BUG() is the
 * constant false, and the compiler removes the guarded code. BUG_RARE() is true in 1 of 1,000
 * calls.
 */
#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stdbool.h>

/* Columns: name; what the code does wrong while the bug is active; the simulator profile most
 * likely to provoke the bug; the rules of tests/sim, at least one of which must catch the bug in
 * that profile; the minimum number of seeds, of 100 in that profile, that must catch the bug. */
#define BUG_MAP(X)                                                                                 \
    X(SKIP_FENCE, "observations of a retired incarnation count again", STORM,                      \
      "phantom, equal vectors", 80)                                                                \
    X(SKIP_FLOOR, "observations below the floor are accepted", STORM, "expired, _check()", 80)     \
    X(FUTURE_CLAMP, "generations of the future are clamped instead of refused", STORM, "phantom",  \
      50)                                                                                          \
    X(TIE_BY_ARRIVAL, "the last report to arrive wins, not the greatest", JOIN,                    \
      "report regressed, start", 80)                                                               \
    X(DEAD_LOAD, "the load of a dead router still counts", STORM, "reports of the dead", 80)       \
    X(NO_GAP_REPAIR, "a router never asks for a gap in an author's deltas", STRICT,                \
      "no agreement, start", 80)                                                                   \
    X(GAP_SKIPPED, "a gap counts as received", STRICT, "equal vectors, start", 60)                 \
    X(NO_RECONCILE, "anti-entropy never runs", STORM, "no agreement, start, lost observation", 60) \
    X(SKETCH_STALE, "a refreshed entry stays in the sketch of its old generation", STORM,          \
      "_check()", 80)                                                                              \
    X(REPLAY_ACCEPTED, "a router accepts a packet with a counter seen before", STRICT,             \
      "replayed packet", 80)                                                                       \
    X(NO_REFUTE, "a suspected node does not refute the suspicion", JOIN,                           \
      "not refuted, no agreement", 60)                                                             \
    X(EPOCH_IGNORED, "deltas of a router's earlier life continue its new stream", JOIN,            \
      "no agreement, equal vectors, report regressed", 80)                                         \
    X(FLOOR_UNANNOUNCED, "a router drops entries under pressure without raising the floor",        \
      PRESSURE, "lost observation", 50)                                                            \
    X(RELAY_NOT_FORWARDED, "a relay keeps a delta for itself now and then", CALM, "calm", 50)      \
    X(SNAPSHOT_VECTOR_LATE, "a snapshot claims the vector of its end, not of its start", JOIN,     \
      "equal vectors", 30)                                                                         \
    X(HELLO_REPLAYED, "a router answers a hello with a stamp seen before", STRICT,                 \
      "replayed hello", 70)                                                                        \
    X(QUARANTINE_ENDLESS, "a peer that once sent invalid frames is ignored for ever", LONG,        \
      "deaf", 70)                                                                                  \
    X(MEDIAN_IGNORED, "a router follows the latest clock, not the median of all", LONG, "clock",   \
      50)                                                                                          \
    X(MESSAGE_REPEATED, "a message with repeated parts is delivered again", STORM,                 \
      "repeated message", 30)                                                                      \
    X(STALE_ADDRESS, "a router keeps the first address of a peer", ONE_SEED, "stale address", 50)  \
    X(VERSION_SKIPPED, "a router accepts a peer without a common protocol version", BUILDS,        \
      "reports of the foreign", 60)                                                                \
    X(NAME_RETURNS, "a router accepts a name below the floor", CHURN, "name returns, _check()",    \
      70)                                                                                          \
    X(DRAIN_LOST, "an add and a drain of the same moment share one register", CALM, "drain", 70)   \
    X(RARE_DELTA, "one delta in a thousand counts as applied without being so", STRICT,            \
      "equal vectors, lost observation, no agreement", 50)                                         \
    X(RARE_ENTRY, "a snapshot lacks one entry in a thousand", JOIN,                                \
      "equal vectors, lost observation", 50)                                                       \
    X(RARE_GENERATION, "one observation in a thousand has the next generation", CALM, "phantom",   \
      50)                                                                                          \
    X(RARE_RELAY, "a relay keeps one delta in a thousand for itself", CALM, "calm", 30)            \
    X(RETRY_ANSWERED, "a router retries a request after its answer has begun", SERVICE,            \
      "bytes, malformed", 25)                                                                      \
    X(BOOKING_KEPT, "a booking stays when its client leaves", SERVICE, "bookings", 80)             \
    X(BODY_LET_GO, "a router frees a body that another attempt may need", SERVICE,                 \
      "_check(), bytes", 80)                                                                       \
    X(STALE_ANSWER, "a connection with an answer in progress takes the next request", SERVICE,     \
      "stale answer, bytes, still running, avoidable, _check()", 10)                               \
    X(LIMIT_UNARMED, "no limit ends an engine's silence", SERVICE,                                 \
      "silent too long, open too long, drain", 2)                                                  \
    X(DRAIN_CUTS, "a drain closes connections with a request in progress", SERVICE,                \
      "needless cut, avoidable, cut in a pause", 10)                                               \
    X(GONE_KEPT, "an engine keeps working for a client that left", SERVICE, "still running", 10)   \
    X(DEED_TWICE, "a router also retries requests that are no computation", SERVICE, "twice", 10)  \
    X(NEVER_RESUMED, "a router never resumes an engine paused for a slow client", SERVICE,         \
      "_check()", 20)                                                                              \
    X(PIPELINE_LOST, "a router forgets a request that waits behind another one", SERVICE,          \
      "open too long, drain, avoidable", 80)                                                       \
    X(SLOW_READER_KEPT, "no limit ends a client's refusal to read", SERVICE,                       \
      "open too long, drain", 15)                                                                  \
    X(CLIENTS_UNLIMITED, "a router serves more clients than connections-max", SERVICE, "limits",   \
      15)                                                                                          \
    X(END_UNTOLD, "a router does not pass on the end of a stream", SERVICE,                        \
      "needless cut, avoidable, malformed, cut in a pause", 10)                                    \
    X(RARE_PIECE, "a router loses one piece of an answer in a thousand", SERVICE,                  \
      "bytes, needless cut, cut in a pause", 20)                                                   \
    X(CUT_AT_PAUSE, "a router cuts an answer as soon as its engine pauses", SERVICE,               \
      "cut in a pause, needless cut", 6)                                                           \
    X(REJECT_COUNTS_AS_SPARE, "a replica that rejects at once counts as one with room", SERVICE,   \
      "fair share, rejections", 3)                                                                 \
    X(HOST_OF_CLIENT, "requests to engines carry the client's Host", SERVICE, "host", 15)          \
    X(USAGE_SHOWN, "usage that the router asked for reaches the client in compressed answers",     \
      SERVICE, "usage", 5)                                                                         \
    X(ERROR_EVENT_ENDS, "an error event before [DONE] counts as a complete answer", SERVICE,       \
      "avoidable", 1)                                                                              \
    X(FINDING_KEPT, "a router reports a stall until that router tries the engine", SERVICE,        \
      "avoided for good", 2)                                                                       \
    X(REJECTS_REPORTED, "a router reports rejections until that router tries the engine", SERVICE, \
      "avoided for good", 3)                                                                       \
    X(STALE_BY_CLOCK, "an end counts as stale for 100 ms, whatever the distance of the engine",    \
      SERVICE, "charged, avoidable, avoided for good, bytes", 5)                                   \
    X(SHORTAGE_CHARGED, "a lack of ports or files counts as a failure of the replica", SERVICE,    \
      "charged, avoidable", 5)                                                                     \
    X(INTERIM_BUYS_TIME, "each 1xx head restarts the limit on an answer", SERVICE,                 \
      "silent too long, open too long, drain", 2)                                                  \
    X(UNASKED_SERVED, "bytes on an idle connection count as the next answer", SERVICE,             \
      "bytes, unfinished, stale answer, malformed, avoidable", 3)                                  \
    X(OLD_ADDRESS_USED, "a router reuses a connection to an address that its name has lost",       \
      SERVICE, "old address", 5)

/* Bugs only visible in real processes: in sockets, files, clocks, signals and ciphers. Columns:
 * name; what the code does wrong. For each bug, jepsen-lite/bugs names the workload to provoke the
 * bug and the rules to catch it. */
#define BUG_REAL_MAP(X)                                                                            \
    X(PROBE_UNLIMITED, "no limit ends a probe of an engine")                                       \
    X(DESCRIPTOR_LEAK, "the descriptor of a failed connection stays open")                         \
    X(BOOKING_RESET, "a booking stays when its engine's connection breaks")                        \
    X(WALL_TIME, "limits follow the wall clock")                                                   \
    X(ACCEPT_STOPPED, "a port accepts no connection after a lack of descriptors")                  \
    X(DRAIN_IMPATIENT, "a router ends while answers are in progress")                              \
    X(READ_MIXED, "one read in a thousand returns another connection's bytes")                     \
    X(UNSEALED, "routers send each other packets unsealed")                                        \
    X(JOIN_ENDLESS, "a router that no call to join reaches waits for ever")                        \
    X(LOG_BY_LOOP, "the event loop writes log lines itself")                                       \
    X(LOSS_UNCOUNTED, "lost log lines are not counted")                                            \
    X(NAME_AT_A_TIME, "a name is looked up only after the one before it")                          \
    X(NAMES_REPEATED, "a router names again whatever operators are reported to have added")

/* A lying member. No rule catches this bug: the other routers must cope with the lies. */
#define BUG_LIAR_MAP(X) X(LIES, "a member reports invalid or unused names, and invented loads")

enum bug {
    BUG_NONE,
#define BUG_ENUM(name, ...) BUG_##name,
    BUG_MAP(BUG_ENUM) BUG_REAL_MAP(BUG_ENUM) BUG_LIAR_MAP(BUG_ENUM)
#undef BUG_ENUM
        BUG_COUNT,
};

#ifdef GRAPEVINE_LAB
extern enum bug bug_active;
extern unsigned bug_chances; /* calls of BUG_RARE() for the active bug */
/* Makes the bug of this name active; NULL: none. False: there is no such bug. */
bool bug_choose(const char *name);
#define BUG(name)      (bug_active == BUG_##name)
#define BUG_RARE(name) (BUG(name) && ++bug_chances % 1000 == 0)
#else
#define BUG(name)      false
#define BUG_RARE(name) false
#endif

#endif
