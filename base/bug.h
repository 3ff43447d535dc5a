/* Known bugs, one active at a time. They show that the simulation (docs/simulation.md) and
 * jepsen-lite with real processes (docs/jepsen-lite.md) catch faults. Only VARIANT=lab sets
 * GRAPEVINE_LAB; BUG=NAME in a router's environment then chooses one. Otherwise BUG() is the
 * constant false, and the compiler removes the guarded code. BUG_RARE() is true once in a thousand
 * calls.
 */
#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stdbool.h>

/* Name; what the code does wrong while the bug is active; the profile of the simulator that
 * provokes it most; the rules, one of which must catch it there (tests/sim); how many of a hundred
 * seeds of that profile catch it at least. */
#define BUG_MAP(X)                                                                                 \
    X(SKIP_FENCE, "observations of a retired incarnation count again", STORM,                      \
      "phantom, equal vectors", 80)                                                                \
    X(SKIP_FLOOR, "observations below the floor are accepted", STORM, "expired, _check()", 80)     \
    X(FUTURE_CLAMP, "generations of the future are clamped instead of refused", STORM, "phantom",  \
      50)                                                                                          \
    X(TIE_BY_ARRIVAL, "the last report to arrive wins, not the greatest", JOIN,                    \
      "report regressed, start", 80)                                                               \
    X(DEAD_LOAD, "the load of a dead router still counts", STORM, "reports of the dead", 80)       \
    X(NO_GAP_REPAIR, "a gap in an author's deltas is never asked for", STRICT,                     \
      "no agreement, start", 80)                                                                   \
    X(GAP_SKIPPED, "a gap counts as received", STRICT, "equal vectors, start", 60)                 \
    X(NO_RECONCILE, "anti-entropy never runs", STORM, "no agreement, start, lost observation", 60) \
    X(SKETCH_STALE, "a refreshed entry stays in the sketch of its old generation", STORM,          \
      "_check()", 80)                                                                              \
    X(REPLAY_ACCEPTED, "a packet with a counter seen before is accepted", STRICT,                  \
      "replayed packet", 80)                                                                       \
    X(NO_REFUTE, "a node that is suspected does not say that it is alive", JOIN,                   \
      "not refuted, no agreement", 60)                                                             \
    X(EPOCH_IGNORED, "deltas of a router's earlier life continue its new stream", JOIN,            \
      "no agreement, equal vectors, report regressed", 80)                                         \
    X(FLOOR_UNANNOUNCED, "entries are dropped under pressure without raising the floor", PRESSURE, \
      "lost observation", 50)                                                                      \
    X(RELAY_NOT_FORWARDED, "a relay keeps a delta for itself now and then", CALM, "calm", 50)      \
    X(SNAPSHOT_VECTOR_LATE, "a snapshot claims the vector of its end, not of its start", JOIN,     \
      "equal vectors", 30)                                                                         \
    X(HELLO_REPLAYED, "a hello whose stamp was seen before is answered", STRICT, "replayed hello", \
      70)                                                                                          \
    X(QUARANTINE_ENDLESS, "a peer that once made no sense is ignored for ever", LONG, "deaf", 70)  \
    X(MEDIAN_IGNORED, "the latest clock is followed, not the median of all", LONG, "clock", 50)    \
    X(MESSAGE_REPEATED, "a message whose parts come again is delivered again", STORM,              \
      "repeated message", 30)                                                                      \
    X(STALE_ADDRESS, "the first address that a peer was seen at is kept", ONE_SEED,                \
      "stale address", 50)                                                                         \
    X(VERSION_SKIPPED, "a peer with which no version is common is understood all the same",        \
      BUILDS, "reports of the foreign", 60)                                                        \
    X(NAME_RETURNS, "a name below the floor is taken in all the same", CHURN,                      \
      "name returns, _check()", 70)                                                                \
    X(DRAIN_LOST, "an add and a drain of the same moment are one register", CALM, "drain", 70)     \
    X(RARE_DELTA, "one delta in a thousand counts as applied and is not", STRICT,                  \
      "equal vectors, lost observation, no agreement", 50)                                         \
    X(RARE_ENTRY, "one entry of a snapshot in a thousand is left out", JOIN,                       \
      "equal vectors, lost observation", 50)                                                       \
    X(RARE_GENERATION, "one observation in a thousand is of the next generation", CALM, "phantom", \
      50)                                                                                          \
    X(RARE_RELAY, "a relay keeps one delta in a thousand for itself", CALM, "calm", 30)            \
    X(RETRY_ANSWERED, "an answer that has begun is tried elsewhere", SERVICE, "bytes, malformed",  \
      25)                                                                                          \
    X(BOOKING_KEPT, "a booking stays when its client leaves", SERVICE, "bookings", 80)             \
    X(BODY_LET_GO, "a body is let go while another try may need it", SERVICE, "_check(), bytes",   \
      80)                                                                                          \
    X(STALE_ANSWER, "a connection waits for the next request with an answer under way", SERVICE,   \
      "stale answer, bytes, still running, avoidable, _check()", 10)                               \
    X(LIMIT_UNARMED, "nothing limits how long an engine may be silent", SERVICE,                   \
      "silent too long, open too long, drain", 2)                                                  \
    X(DRAIN_CUTS, "a drain closes connections with a request under way", SERVICE,                  \
      "needless cut, avoidable, cut in a pause", 10)                                               \
    X(GONE_KEPT, "a client that left keeps its engine at work", SERVICE, "still running", 10)      \
    X(DEED_TWICE, "what is no computation is tried again too", SERVICE, "twice", 10)               \
    X(NEVER_RESUMED, "an engine that was held back for a slow client is never read again",         \
      SERVICE, "_check()", 20)                                                                     \
    X(PIPELINE_LOST, "a request that waits behind another one is forgotten", SERVICE,              \
      "open too long, drain, avoidable", 80)                                                       \
    X(SLOW_READER_KEPT, "nothing limits how long a client may not read", SERVICE,                  \
      "open too long, drain", 15)                                                                  \
    X(CLIENTS_UNLIMITED, "more clients are served than connections-max", SERVICE, "limits", 15)    \
    X(END_UNTOLD, "the end of a stream is not passed on", SERVICE,                                 \
      "needless cut, avoidable, malformed, cut in a pause", 10)                                    \
    X(RARE_PIECE, "one piece of an answer in a thousand is lost", SERVICE,                         \
      "bytes, needless cut, cut in a pause", 20)                                                   \
    X(CUT_AT_PAUSE, "an answer is cut as soon as its engine is silent for a while", SERVICE,       \
      "cut in a pause, needless cut", 6)                                                           \
    X(REJECT_COUNTS_AS_SPARE, "a replica that rejects at once passes for one with room", SERVICE,  \
      "fair share, rejections", 3)                                                                 \
    X(HOST_OF_CLIENT, "engines are asked by the name that the client used", SERVICE, "host", 15)   \
    X(USAGE_SHOWN, "usage that was asked for goes on where something compresses", SERVICE,         \
      "usage", 5)                                                                                  \
    X(ERROR_EVENT_ENDS, "an error event with [DONE] behind it passes for an answer", SERVICE,      \
      "avoidable", 1)                                                                              \
    X(FINDING_KEPT, "a router reports a stall until it has tried the engine", SERVICE,             \
      "avoided for good", 2)                                                                       \
    X(REJECTS_REPORTED, "a router reports rejections until it has tried the engine", SERVICE,      \
      "avoided for good", 3)                                                                       \
    X(STALE_BY_CLOCK, "an end counts as stale for 100 ms, however far the engine is", SERVICE,     \
      "charged, avoidable, avoided for good, bytes", 5)                                            \
    X(SHORTAGE_CHARGED, "a lack of ports or files passes for a failure of the replica", SERVICE,   \
      "charged, avoidable", 5)                                                                     \
    X(INTERIM_BUYS_TIME, "each head 1xx begins the limit on an answer anew", SERVICE,              \
      "silent too long, open too long, drain", 2)                                                  \
    X(UNASKED_SERVED, "what comes on an idle connection is the answer to the next request",        \
      SERVICE, "bytes, unfinished, stale answer, malformed, avoidable", 3)                         \
    X(OLD_ADDRESS_USED, "a connection to an address that its name has lost is used again",         \
      SERVICE, "old address", 5)

/* Bugs that only real processes show: in sockets, files, clocks, signals and ciphers. Name; what
 * the code does wrong. jepsen-lite/bugs names the workload that provokes each and the rules that
 * must catch it. */
#define BUG_REAL_MAP(X)                                                                            \
    X(PROBE_UNLIMITED, "nothing limits how long a probe of an engine may take")                    \
    X(DESCRIPTOR_LEAK, "the descriptor of a connection that failed stays open")                    \
    X(BOOKING_RESET, "a booking stays when its engine's connection breaks")                        \
    X(WALL_TIME, "limits are counted by the wall clock")                                           \
    X(ACCEPT_STOPPED, "after a lack of descriptors no connection is taken any more")               \
    X(DRAIN_IMPATIENT, "a router ends while answers are under way")                                \
    X(READ_MIXED, "one read in a thousand hands on what came from somebody else")                  \
    X(UNSEALED, "packets between routers are not sealed")                                          \
    X(JOIN_ENDLESS, "a router that no call to join reaches waits for ever")                        \
    X(LOG_BY_LOOP, "the loop itself writes log lines")                                             \
    X(LOSS_UNCOUNTED, "log lines that are lost are not counted")                                   \
    X(NAME_AT_A_TIME, "no name is looked up while another one is")                                 \
    X(NAMES_REPEATED, "a router names again whatever operators are said to have added")

/* A lying member. No rule catches it; the other routers must bear it. */
#define BUG_LIAR_MAP(X)                                                                            \
    X(LIES, "a member tells names that nobody runs or that are none, and loads that nobody has")

enum bug {
    BUG_NONE,
#define BUG_ENUM(name, ...) BUG_##name,
    BUG_MAP(BUG_ENUM) BUG_REAL_MAP(BUG_ENUM) BUG_LIAR_MAP(BUG_ENUM)
#undef BUG_ENUM
        BUG_COUNT,
};

#ifdef GRAPEVINE_LAB
extern enum bug bug_active;
extern unsigned bug_chances; /* of a bug that is rare */
/* False: there is none of that name. NULL: none is active. */
bool bug_choose(const char *name);
#define BUG(name)      (bug_active == BUG_##name)
#define BUG_RARE(name) (BUG(name) && ++bug_chances % 1000 == 0)
#else
#define BUG(name)      false
#define BUG_RARE(name) false
#endif

#endif
