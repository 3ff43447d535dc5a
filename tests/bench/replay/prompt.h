/* The body of a session's next request, built by appending to the previous body.
 *
 *   {"model":..,"stream":..,"messages":[ {system: leading system blocks} {user: blocks 0-15}
 *                                        {assistant: blocks 16-31} ... {user: the rest} ] ,..}
 *
 * The end of a message depends only on the block before and the block's index, so two turns with
 * the same leading blocks have the same leading bytes. Only the last message, words that fill up
 * the target length, belongs to a single turn. The cost of a turn is therefore only the cost of the
 * new blocks. */
#ifndef TESTS_BENCH_REPLAY_PROMPT_H
#define TESTS_BENCH_REPLAY_PROMPT_H

#include "tests/bench/replay/trace.h"

struct prompt {
    struct buf body;
    size_t *ends;  /* bytes of body behind block i, with the message still open */
    uint32_t *ids; /* of the blocks in the body */
    uint32_t blocks, cap;
    size_t start; /* bytes of body before the first message */
    uint64_t seed;
};

/* `stream` asks for server-sent events with usage at their end. */
void prompt_init(struct prompt *p, const char *model, bool stream);
void prompt_free(struct prompt *p);

/* Begins a session: forgets all blocks. */
void prompt_reset(struct prompt *p, uint64_t seed);

/* Builds the body of `turn`; p->body has it until the next call. */
void prompt_build(struct prompt *p, const struct trace *t, const struct trace_turn *turn);

#endif
