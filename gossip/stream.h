/* The numbers of an author's received deltas: all up to `applied`, and some ranges beyond.
 *
 *     1 ............ applied   | hole | range | hole | range | hole |  known
 *
 * Packets overtake one another, so the receiver requests a hole only after a grace period. Then it
 * repeats the request with a back-off.
 *
 * Invariants: the ranges are ascending with holes between them; the first begins beyond applied +
 * 1, the last ends at `known` or before; applied <= known. There are at most GOSSIP_STREAM_RANGES
 * ranges: a delta beyond them is dropped, and requested when the holes are closed.
 */
#ifndef GOSSIP_STREAM_H
#define GOSSIP_STREAM_H

#include "gossip/frame.h"

enum { GOSSIP_STREAM_RANGES = GOSSIP_RANGES_MAX };

struct gossip_stream {
    uint64_t epoch; /* the author's epoch; 0: none known */
    uint64_t applied, known;
    uint64_t gap_us;        /* since when known > applied; 0: no gap */
    uint64_t nack_us;       /* when to request the gap; UINT64_MAX: never */
    uint64_t asked;         /* holes up to this number were requested */
    uint64_t again_us;      /* earliest time to request these holes again */
    uint64_t told, told_us; /* number reported by another node, and the time of the report; 0:
                             * none */
    unsigned tries;
    unsigned count;
    struct gossip_range ranges[GOSSIP_STREAM_RANGES];
};

enum gossip_stream_take {
    GOSSIP_STREAM_NEW,   /* the number is new and now counts as received: apply the delta */
    GOSSIP_STREAM_FILLS, /* the number is new and fills a part of a hole: apply the delta */
    GOSSIP_STREAM_AGAIN, /* received before */
    GOSSIP_STREAM_LATER, /* too many holes: drop the delta, a later request brings it */
};

/* Begins a new epoch of the author, at number 1. */
void gossip_stream_restart(struct gossip_stream *s, uint64_t epoch);
/* Takes a delta's number. `grace_us`: time until a hole shown by this number is requested. */
enum gossip_stream_take gossip_stream_take(struct gossip_stream *s, uint64_t seq, uint64_t now_us,
                                           uint64_t grace_us);
/* The author has made all deltas up to `seq`. */
void gossip_stream_known(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t grace_us);
/* Another node has the author's deltas up to `seq`, which may still be in transit to this node. A
 * second report after `settle_us` makes `seq` known. */
void gossip_stream_told(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t settle_us,
                        uint64_t grace_us);
/* Gives the holes beyond number `from`, with at most `numbers_max` numbers in all. */
void gossip_stream_missing(const struct gossip_stream *s, uint64_t from, uint64_t numbers_max,
                           struct gossip_ranges *out);
/* Makes all numbers up to `seq` count as received. Returns how many numbers were missing. */
uint64_t gossip_stream_close(struct gossip_stream *s, uint64_t seq);
void gossip_stream_check(const struct gossip_stream *s);

#endif
