/* One author's received deltas: all up to `applied`, and some ranges beyond.
 *
 *     1 ............ applied   | hole | range | hole | range | hole |  known
 *
 * The receiver asks for a hole older than the grace (packets overtake one another), and again with
 * a back-off.
 *
 * Invariants: the ranges are ascending and apart from each other, the first begins beyond
 * applied + 1, the last ends at `known` or before; applied <= known. There are never more than
 * GOSSIP_STREAM_RANGES of them: a delta that would make one more is dropped, and asked for when the
 * holes are closed.
 */
#ifndef GOSSIP_STREAM_H
#define GOSSIP_STREAM_H

#include "gossip/frame.h"

enum { GOSSIP_STREAM_RANGES = GOSSIP_RANGES_MAX };

struct gossip_stream {
    uint64_t epoch; /* the author's life; 0: none known */
    uint64_t applied, known;
    uint64_t gap_us;        /* since when known > applied; 0: no gap */
    uint64_t nack_us;       /* when to ask for it; UINT64_MAX: not */
    uint64_t asked;         /* the holes up to here have been asked for, */
    uint64_t again_us;      /* and are not asked for again before */
    uint64_t told, told_us; /* others have this number, as was told first then; 0: none */
    unsigned tries;
    unsigned count;
    struct gossip_range ranges[GOSSIP_STREAM_RANGES];
};

enum gossip_stream_take {
    GOSSIP_STREAM_NEW,   /* it is new and now counts as received: apply it */
    GOSSIP_STREAM_FILLS, /* the same, and it closed (a part of) a hole */
    GOSSIP_STREAM_AGAIN, /* known already */
    GOSSIP_STREAM_LATER, /* too many holes: drop the delta, a later request brings it */
};

/* A new life begins at number 1. */
void gossip_stream_restart(struct gossip_stream *s, uint64_t epoch);
/* `grace_us`: how long from now until a hole that this number shows is asked for. */
enum gossip_stream_take gossip_stream_take(struct gossip_stream *s, uint64_t seq, uint64_t now_us,
                                           uint64_t grace_us);
/* The author has made all up to `seq`. */
void gossip_stream_known(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t grace_us);
/* Another node has all up to `seq`, more than is known here. The rest may be in flight. A second
 * report after `settle_us` makes `seq` known. */
void gossip_stream_told(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t settle_us,
                        uint64_t grace_us);
/* The holes beyond number `from`, at most `numbers_max` numbers in all. */
void gossip_stream_missing(const struct gossip_stream *s, uint64_t from, uint64_t numbers_max,
                           struct gossip_ranges *out);
/* Everything up to `seq` counts as received; how many numbers that were missing it covered. */
uint64_t gossip_stream_close(struct gossip_stream *s, uint64_t seq);
void gossip_stream_check(const struct gossip_stream *s);

#endif
