/* The demo's mix: coding agents, people in chats, questions about documents, and one-shot prompts,
 * for about four minutes.
 *
 *   24 agents      a shared system prompt of 6,000 tokens, 8 to 14 turns that grow by 500 to 2,500
 *   36 chats       a shared system prompt of 1,500 tokens, 3 to 6 turns that grow by 150 to 700
 *   120 questions  about one of twelve documents of 5,000 tokens, by as many callers
 *   40 others      prompts of 1,000 to 5,000 tokens that share nothing
 *
 * Together they need more cache than `make demo` gives all engines, and several times the cache of
 * a single engine: if everything fits, every policy looks good. */
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "tests/bench/replay/trace.h"

enum {
    AGENTS = 24,
    CHATS = 36,
    QUESTIONS = 120,
    OTHERS = 40,
    DOCUMENTS = 12,
    DOCUMENT_BLOCKS = 78,
    DOCUMENT_FIRST = 20000,
    AGENT_SYSTEM_BLOCKS = 94, /* of 64 tokens */
    CHAT_SYSTEM_BLOCKS = 24,
    CHAT_SYSTEM_FIRST = 10000, /* the chats' ids, apart from the agents' */
};

struct kind {
    const char *name;
    uint32_t shared_first, shared_blocks; /* ids shared with others */
    uint32_t variants;                    /* different sets of shared ids */
    bool system;                          /* the shared part is a system prompt */
    uint32_t turns_min, turns_max;
    uint32_t grow_min, grow_max; /* tokens a turn */
    uint32_t out_min, out_max;
    double think_min_s, think_max_s;
    double start_max_s;
};

static uint32_t between(struct prng *random, uint32_t min, uint32_t max)
{
    return min + (uint32_t)prng_below(random, max - min + 1);
}

static void session(struct trace *t, const struct kind *k, size_t number, uint64_t seed,
                    struct prng *random)
{
    char name[48];
    (void)snprintf(name, sizeof name, "%s-%zu", k->name, number);
    trace_add_session(t, slice_of_cstr(name), seed)->start_s = prng_unit(random) * k->start_max_s;
    uint32_t blocks = 0, own = 0;
    uint32_t turns = between(random, k->turns_min, k->turns_max);
    uint32_t variant = k->variants > 1 ? (uint32_t)prng_below(random, k->variants) : 0;
    for (uint32_t i = 0; i < turns; i++) {
        struct trace_turn *turn = trace_add_turn(t);
        turn->keep = blocks;
        turn->think_s = k->think_min_s + prng_unit(random) * (k->think_max_s - k->think_min_s);
        turn->out = between(random, k->out_min, k->out_max);
        uint32_t grow = between(random, k->grow_min, k->grow_max) / t->block_tokens;
        for (uint32_t j = 0; i == 0 && j < k->shared_blocks; j++, blocks++)
            trace_add_id(t, (k->shared_first + variant * k->shared_blocks + j) | ID_SHARED |
                                (k->system ? ID_SYSTEM : 0));
        for (uint32_t j = 0; j < grow; j++, blocks++)
            trace_add_id(t, ++own);
        turn->in = blocks * t->block_tokens + between(random, 8, t->block_tokens - 1);
    }
}

static int by_start(const void *a, const void *b)
{
    double x = ((const struct trace_session *)a)->start_s;
    double y = ((const struct trace_session *)b)->start_s;
    return x < y ? -1 : x > y;
}

int trace_load_demo(struct trace *t, const struct trace_options *o)
{
    static const struct kind AGENT = {.name = "agent",
                                      .shared_first = 1,
                                      .shared_blocks = AGENT_SYSTEM_BLOCKS,
                                      .system = true,
                                      .turns_min = 8,
                                      .turns_max = 14,
                                      .grow_min = 500,
                                      .grow_max = 2500,
                                      .out_min = 60,
                                      .out_max = 300,
                                      .think_min_s = 2,
                                      .think_max_s = 12,
                                      .start_max_s = 60};
    static const struct kind CHAT = {.name = "chat",
                                     .shared_first = CHAT_SYSTEM_FIRST,
                                     .shared_blocks = CHAT_SYSTEM_BLOCKS,
                                     .system = true,
                                     .turns_min = 3,
                                     .turns_max = 6,
                                     .grow_min = 150,
                                     .grow_max = 700,
                                     .out_min = 80,
                                     .out_max = 250,
                                     .think_min_s = 10,
                                     .think_max_s = 40,
                                     .start_max_s = 90};
    static const struct kind QUESTION = {.name = "question",
                                         .shared_first = DOCUMENT_FIRST,
                                         .shared_blocks = DOCUMENT_BLOCKS,
                                         .variants = DOCUMENTS,
                                         .turns_min = 1,
                                         .turns_max = 1,
                                         .grow_min = 64,
                                         .grow_max = 300,
                                         .out_min = 30,
                                         .out_max = 200,
                                         .start_max_s = 180};
    static const struct kind OTHER = {.name = "other",
                                      .turns_min = 1,
                                      .turns_max = 1,
                                      .grow_min = 1000,
                                      .grow_max = 5000,
                                      .out_min = 30,
                                      .out_max = 200,
                                      .start_max_s = 180};
    t->timed = true;
    struct prng random;
    prng_seed(&random, o->seed);
    uint64_t seed = o->seed * 1000003;
    for (size_t i = 0; i < AGENTS; i++)
        session(t, &AGENT, i, ++seed, &random);
    for (size_t i = 0; i < CHATS; i++)
        session(t, &CHAT, i, ++seed, &random);
    for (size_t i = 0; i < QUESTIONS; i++)
        session(t, &QUESTION, i, ++seed, &random);
    for (size_t i = 0; i < OTHERS; i++)
        session(t, &OTHER, i, ++seed, &random);
    qsort(t->sessions, t->session_count, sizeof *t->sessions, by_start);
    return 0;
}
