/* A trace in memory: clients' requests and their times, whatever the file format.
 *
 *   session 0   turn 0   turn 1   turn 2      turn: keep   blocks of the turn before that stay
 *   session 1   turn 0   ...                        more   ids that follow them
 *
 * A prompt is a run of blocks of `block_tokens` tokens. An id identifies the text of a block: alone
 * if it has ID_SHARED, otherwise together with the session's seed. Leading blocks with ID_SYSTEM
 * are the system prompt. A turn may carry real text instead of ids.
 *
 * A trace is a closed loop or timed. In a closed loop a session starts when a slot is free, and
 * every turn comes `think_s` after the answer to the previous turn. A timed trace starts sessions
 * at `start_s`. Seconds are the trace's; the replay divides them. */
#ifndef TESTS_BENCH_REPLAY_TRACE_H
#define TESTS_BENCH_REPLAY_TRACE_H

#include <stdbool.h>

#include "base/buf.h"

#define ID_SHARED 0x80000000u
#define ID_SYSTEM 0x40000000u

struct trace_turn {
    double think_s;
    uint32_t in;  /* prompt tokens */
    uint32_t out; /* tokens to generate */
    uint32_t keep;
    uint32_t more;
    size_t id_first; /* in trace.ids */
    size_t text_at;  /* in trace.texts, JSON-escaped */
    size_t text_len; /* 0: the turn is made of ids */
};

struct trace_session {
    char name[48];
    uint64_t seed;
    double start_s;
    size_t turn_first; /* in trace.turns */
    size_t turn_count;
};

struct trace {
    struct trace_session *sessions;
    size_t session_count, session_cap;
    struct trace_turn *turns;
    size_t turn_count, turn_cap;
    uint32_t *ids;
    size_t id_count, id_cap;
    struct buf texts;
    uint32_t block_tokens;
    uint32_t cut_blocks; /* most blocks of a chat message */
    bool timed;
};

struct trace_options {
    uint64_t seed;       /* order of the sessions, text, jitter */
    double spread_ms;    /* arrivals move by a random part of this time, for rounded timestamps */
    double think_max_s;  /* longer pauses are cut: people go home, benchmarks do not */
    uint32_t prompt_max; /* coding sessions: requests of more tokens are left out */
    size_t requests_max; /* loading stops at this number; 0: all of the trace */
    size_t sessions;     /* of a closed loop; this many are loaded beyond requests_max */
};

/* `spec` is demo, coding:DIR, conversation:FILE, miniswe:DIR or azure:FILE. On failure prints a
 * line to stderr and returns an error; the trace can be freed in any case. */
int trace_load(struct trace *t, const char *spec, const struct trace_options *options);
void trace_free(struct trace *t);

/* For the loaders. Each returns the new, zeroed element; valid until the next call. */
struct trace_session *trace_add_session(struct trace *t, struct slice name, uint64_t seed);
struct trace_turn *trace_add_turn(struct trace *t); /* of the newest session */
void trace_add_id(struct trace *t, uint32_t id);    /* of the newest turn */

/* Removes the newest session if no turn was added. */
void trace_drop_empty(struct trace *t);

/* Gives the newest session a turn with these ids, storing only the ids missing from the turn
 * before. `before` has the previous turn's ids and is replaced. */
struct trace_ids {
    uint32_t *at;
    size_t count, cap;
};
void trace_ids_push(struct trace_ids *ids, uint32_t id);
struct trace_turn *trace_add_turn_ids(struct trace *t, struct trace_ids *before,
                                      const struct trace_ids *ids);

/* The loaders, one per kind. */
int trace_load_demo(struct trace *t, const struct trace_options *options);
int trace_load_coding(struct trace *t, const char *dir, const struct trace_options *options);
int trace_load_miniswe(struct trace *t, const char *dir, const struct trace_options *options);
int trace_load_conversation(struct trace *t, const char *file, const struct trace_options *options);
int trace_load_azure(struct trace *t, const char *file, const struct trace_options *options);

#endif
