/* The cost of a decision: choose, first byte and finish, by replicas and checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "node/route/decisions.h"
#include "node/route/router.h"
#include "tests/lib/alone.h"

enum { CONVERSATIONS = 64 };

/* Machines are up for long: work that grows with uptime would show. */
static const uint64_t UP_MS = 30ull * 86400 * 1000;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct node_router *make(unsigned replicas, const char *policy, uint64_t now_ms)
{
    struct node_config config = alone_config();
    config.router.policy = policy;
    config.state.index_bytes = 256 << 20; /* far beyond the caches of the processor */
    struct node_router *r = alone_router(&config);
    for (unsigned k = 0; k < replicas; k++) {
        char name[32];
        int len = snprintf(name, sizeof name, "replica-%u:8000", k);
        CHECK(node_router_name(r, slice_of(name, (size_t)len), NODE_ENGINE_VLLM) >= 0);
        node_router_probed(r, k, (struct node_check){.ok = true}, now_ms);
    }
    return r;
}

/* The first half is common to all conversations, as a long system prompt would be. */
static struct chain *prompt_make(unsigned conversation, uint64_t bytes)
{
    struct chain *chain = calloc(1, sizeof *chain);
    CHECK(chain != NULL);
    chain->bytes = bytes;
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        uint32_t blocks = checkpoint_blocks(i);
        if (blocks * 256ull > bytes)
            break;
        uint64_t whose = blocks * 512ull > bytes ? conversation + 1 : 0;
        chain->points[chain->length++] = (struct chain_point){
            .id = hash_mix(whose * 4096 + i), .blocks = blocks, .code = checkpoint_code(i)};
    }
    return chain;
}

/* `kept`: each decision is kept, as a busy router does up to a limit per second. */
static void measure(const char *policy, unsigned replicas, uint64_t bytes, bool kept)
{
    uint64_t now_ms = UP_MS;
    struct node_router *r = make(replicas, policy, now_ms);
    struct node_decisions *decisions = NULL;
    if (kept) {
        CHECK(node_decisions_create(&decisions) == ERR_OK);
        node_router_decisions(r, decisions);
    }
    struct chain *prompts[CONVERSATIONS];
    for (unsigned c = 0; c < CONVERSATIONS; c++)
        prompts[c] = prompt_make(c, bytes);
    unsigned rounds = 4000000 / (100 + prompts[0]->length * 8 + replicas * 8);
    double choose_us = 0, rest_us = 0;
    for (unsigned i = 0; i < rounds; i++) {
        now_ms += 20;
        struct node_request request = {
            .chain = prompts[i % CONVERSATIONS], .body_bytes = bytes, .replica_wanted = -1};
        struct node_decision d;
        struct node_usage usage = {(int64_t)bytes / 4, (int64_t)bytes / 5, 100, {0}};
        double start = now_us();
        CHECK(node_router_place(r, &request, NULL, now_ms, &d) == ERR_OK);
        double chosen = now_us();
        node_router_first_byte(r, d.booking, now_ms + 5);
        if (kept)
            node_decisions_end(decisions, d.number, &(struct node_decision_end){.status = 200},
                               now_ms + 10);
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now_ms + 10);
        rest_us += now_us() - chosen;
        choose_us += chosen - start;
        if (i % 50 == 0)
            node_router_tick(r, now_ms + 10);
    }
    printf("| %-11s%s | %8u | %7llu | %6u | %6.2f us | %6.2f us |\n", policy,
           kept ? ", kept" : "      ", replicas, (unsigned long long)bytes, prompts[0]->length,
           choose_us / rounds, rest_us / rounds);
    fflush(stdout);
    for (unsigned c = 0; c < CONVERSATIONS; c++)
        free(prompts[c]);
    if (kept)
        CHECK(node_decisions_newest(decisions) == rounds);
    alone_destroy(r);
    node_decisions_destroy(decisions);
}

int main(void)
{
    printf("| policy            | replicas | bytes   | points | choose    | the rest  |\n"
           "|---|---|---|---|---|---|\n");
    static const struct {
        unsigned replicas;
        uint64_t bytes;
    } cases[] = {{8, 200},    {8, 1024},  {8, 32768},   {8, 400000},
                 {64, 32768}, {96, 1024}, {96, 400000}, {1000, 400000}};
    measure("round_robin", 8, 1024, false);
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        measure("cache_aware", cases[i].replicas, cases[i].bytes, false);
    measure("cache_aware", 8, 32768, true);
    measure("cache_aware", 1000, 400000, true);
    return 0;
}
