/* A run of a case under a chooser, in virtual time.
 *
 *   clients  ask, wait for the answer, think (workload.h)
 *   chooser  picks an engine: a router of Grapevine, a rival, or perfect knowledge (chooser.h)
 *   engines  compute (engine.h), are scraped every 5 s
 *
 * Clients and engines live on simulated nanoseconds, routers on the milliseconds of their world. */
#ifndef TESTS_BENCH_QUALITY_PLAY_H
#define TESTS_BENCH_QUALITY_PLAY_H

#include "base/prng.h"
#include "node/route/shadow.h"
#include "tests/bench/quality/engine.h"
#include "tests/bench/quality/leading.h"
#include "tests/bench/quality/workload.h"
#include "tests/lib/world/use.h"

enum { ENGINES_MAX = 80, ROUTERS_MAX = 16, SCRAPE_S = 5 };

struct quality_case {
    char name[64];
    const struct workload *work;
    unsigned clients; /* of a closed loop */
    unsigned engines, routers;
    /* Each `ranks` consecutive engines are data-parallel ranks behind the same address. 0: each has
     * a separate address. `unpinned`: their process chooses among them, by load. To rivals each
     * rank is an engine. */
    unsigned ranks;
    bool unpinned;
    struct engine_spec specs[ENGINES_MAX];
    double speed; /* factor on the clients' speed of the workload; figures are divided by it */
    double pace;  /* a second factor, to load the engines; figures are not divided by it */
    double bytes_per_token;
    double delay_ms, loss; /* between routers */
    /* An answer is part of the next prompt of the conversation, and the engine has the answer
     * cached. False: no prompt contains any answer. */
    bool answers_return;
    enum leading leading;
    /* Engines publish KV events (engine_spec.publishes), and routers read them; a message takes
     * events_delay_ms. */
    bool events;
    double events_delay_ms;
    unsigned belief_each;                   /* looks at 1 of belief_each prompts (belief.h) */
    double displaced_weight, decode_weight; /* of the routers' rule; 0: their defaults */
    double generation_s;                    /* 0: the default */
    const char *shadow;   /* the routers' shadow mode: the plain policy; NULL: off */
    double control_share; /* of conversations that least_request routes */
    uint64_t seed;
    uint64_t router_seed; /* added to the seed, for the routers alone */
    /* At `replaced_s`, `replaced` engines leave, and as many new, empty engines come. 0: never. */
    unsigned replaced;
    double replaced_s;
};

/* A request on the way. */
struct flight {
    struct sim_request sim;
    const struct ask *ask;
    struct talk *talk;
    unsigned client; /* the flight's client, which asks next */
    unsigned turn;
    unsigned engine, router;
    uint64_t sent_ns, first_ns;
    bool leaves, over;          /* the client's patience still runs; the flight ended before */
    struct flight *prev, *next; /* at the same engine */
    struct chain chain;         /* as routers read it */
    uint64_t *ahead;            /* block names of the prompt and the answer; NULL: sim.chain's */
    struct node_booking booking;
    uint64_t unique;          /* of the request */
    double uncached_believed; /* by a rival, when it was sent */
    double cached_predicted;  /* by a router of Grapevine, when it was sent */
};

struct sample {
    double sent_s, ttft_s, end_s; /* sent_s: since the run began; others: since sending */
    double prompt_tokens, cached_tokens;
    uint32_t engine;
    uint32_t turn;         /* number of the turn in the conversation */
    const struct ask *ask; /* of the workload */
};

/* In a run with KV events: the readers' counts at the end, and the routers' beliefs about
 * checkpoints of prompts at each engine (belief.h). */
struct events_seen {
    unsigned feeds, live, speak; /* subscriptions; live, and speaking, subscriptions */
    uint64_t messages, told, tied, unmatched, unclear, gone, present;
    uint64_t shed, full;
    uint64_t stored; /* blocks, of all engines */
    uint64_t right, unsure, wrong_gone, wrong_held;
    uint64_t certain_wrong; /* the tree of events was sure, and wrong */
    uint64_t under_way;     /* not counted: soon cached */
};

struct outcome {
    struct sample *samples;
    unsigned count, refused, left; /* of requests that routers see */
    double choose_cpu_s;
    double duration_s;
    double computed_s[ENGINES_MAX]; /* of prefill */
    uint64_t adapter_loads;
    double mispredicted_tokens; /* routers of Grapevine: cached or not against the prediction */
    double gossip_bytes;        /* sent by all routers, with headers */
    struct events_seen events;
    struct node_shadow_sums shadow; /* shadow mode or control group, all routers: second half */
};
void outcome_free(struct outcome *o);

struct chooser;

struct play {
    const struct quality_case *setup;
    const struct chooser *chooser;
    void *mind; /* of the chooser */
    struct engine engines[ENGINES_MAX];
    unsigned engine_count;
    uint64_t start_ns, now_ns, next_tick_ns;
    uint64_t uniques;
    double output_mean;
    unsigned next_talk, talking;
    struct world_queue clients; /* times in ns */
    struct prng prng;
    struct outcome *out;
};

/* The caller frees `out`. */
void play(const struct quality_case *setup, const struct chooser *chooser, struct outcome *out);

static inline double play_s(const struct play *p, uint64_t ns)
{
    return (double)(ns - p->start_ns) / 1e9;
}

#endif
