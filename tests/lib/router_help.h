/* A router with replicas and prompts, for the tests of node/route: helpers to make, choose and read
 * back. Functions are static: a test uses some of them. */
#ifndef TESTS_LIB_ROUTER_HELP_H
#define TESTS_LIB_ROUTER_HELP_H

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/route/router.h"
#include "tests/lib/alone.h"
#include "tests/lib/test.h"
#include "tests/lib/world/use.h"

enum { START_MS = 1000000 };

/* A daemon's configuration, except for values on which the tests rely. */
static inline struct node_config config_of(const char *policy)
{
    struct node_config config = alone_config();
    config.router.policy = policy;
    config.state.index_bytes = 16 << 20; /* quick to make and to check */
    config.router.cache_tokens = 100000; /* filled by a few prompts */
    config.router.all_down_refuse = true;
    return config;
}

/* `up` replicas, probed. */
static inline struct node_router *make(const char *policy, unsigned up)
{
    struct node_config config = config_of(policy);
    struct node_router *r = alone_router(&config);
    for (unsigned k = 0; k < up; k++) {
        char name[32];
        int len = snprintf(name, sizeof name, "host-%u:8000", k);
        assert_int_equal(node_router_name(r, slice_of(name, (size_t)len), NODE_ENGINE_VLLM), k);
        node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
    }
    return r;
}

/* A prompt of this number of tokens; prompts with equal seeds share all of the common length. */
static inline struct chain *prompt(uint64_t seed, unsigned tokens)
{
    static struct chain chain;
    world_prompt(&chain, seed, tokens);
    return &chain;
}

static inline struct node_request request_of(const struct chain *chain)
{
    return (struct node_request){
        .chain = chain, .body_bytes = chain ? chain->bytes : 4000, .replica_wanted = -1};
}

static inline struct node_decision choose(struct node_router *r, const struct chain *chain,
                                          uint64_t now_ms)
{
    struct node_request request = request_of(chain);
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, now_ms, &d), ERR_OK);
    return d;
}

static inline void done(struct node_router *r, struct node_decision d, uint64_t now_ms)
{
    node_router_first_byte(r, d.booking, now_ms);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &no_usage, now_ms);
}

static inline void done_with(struct node_router *r, struct node_decision d,
                             const struct node_usage *usage, uint64_t now_ms)
{
    node_router_first_byte(r, d.booking, now_ms);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, usage, now_ms);
}

static inline json_t *explain(struct node_router *r, const struct node_request *request,
                              uint64_t now_ms)
{
    struct buf text = {0};
    assert_int_equal(node_router_explain(r, request, now_ms, &text), ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_non_null(root);
    buf_free(&text);
    return root;
}

static inline double explained(const json_t *root, unsigned candidate, const char *key)
{
    const json_t *row = json_array_get(json_object_get(root, "replicas"), candidate);
    assert_non_null(row);
    return json_number_value(json_object_get(row, key));
}

static inline json_t *replicas_json(struct node_router *r, uint64_t now_ms)
{
    struct buf text = {0};
    assert_int_equal(node_router_replicas_json(r, now_ms, &text), ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_non_null(root);
    buf_free(&text);
    return root;
}

static inline double believed(const json_t *root, unsigned replica, const char *group,
                              const char *key)
{
    const json_t *object = json_object_get(json_array_get(root, replica), group);
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static inline int write_metrics(const struct node_router *r, struct buf *out)
{
    struct prometheus p = prometheus_of(out, "grapevine_");
    node_router_metrics(r, START_MS, &p);
    return prometheus_finish(&p);
}

/* The sum of a metric's series. */
static inline double metric(const struct node_router *r, const char *name)
{
    struct buf text = {0};
    assert_int_equal(write_metrics(r, &text), ERR_OK);
    struct slice rest = buf_slice(&text);
    double sum = 0;
    bool found = false;
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        if (!slice_starts_with(line, slice_of_cstr(name)) ||
            (line.at[strlen(name)] != ' ' && line.at[strlen(name)] != '{'))
            continue;
        char number[64];
        while (memchr(line.at, ' ', line.len))
            (void)slice_cut(&line, ' ');
        assert_true(slice_to_cstr(line, number, sizeof number));
        sum += strtod(number, NULL);
        found = true;
    }
    assert_true(found);
    buf_free(&text);
    return sum;
}

/* Tokens of the prompt believed to be in the first replica's cache. */
static inline double cached(struct node_router *r, const struct chain *chain, uint64_t now_ms)
{
    struct node_request request = request_of(chain);
    json_t *root = explain(r, &request, now_ms);
    double tokens = explained(root, 0, "cached_tokens");
    json_decref(root);
    return tokens;
}

static inline void assert_near(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * fabs(expected) + 1e-9)
        fail_msg("%g is not near %g", actual, expected);
}

#endif
