/* Shared by the tests of the seam: routers with sessions to each other, and checks of their
 * messages. */
#ifndef TESTS_LIB_WORLD_LOOK_H
#define TESTS_LIB_WORLD_LOOK_H

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/lib/world/use.h"

enum { S = 1000000, MS = 1000 };

/* Starts routers with sessions to each other, and the same replicas in different orders. */
static inline void start(struct world *c, unsigned count, unsigned replicas)
{
    world_open(c, count, 1);
    for (unsigned i = 0; i < count; i++) {
        world_start(c, i);
        world_run(c, 100 * MS);
    }
    world_settle(c);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < replicas; k++) {
            char name[32];
            (void)snprintf(name, sizeof name, "replica-%u:8000", (k + i) % replicas);
            (void)world_replica(c, i, name);
        }
    }
    world_run(c, 500 * MS);
}

static inline struct slice name_at(struct world *c, unsigned node, unsigned replica)
{
    return node_router_replica_name(c->nodes[node].node->router, replica);
}

/* True if the router uses a replica with this name; checks that the shell was notified. */
static inline bool has(struct world *c, unsigned node, const char *name)
{
    int slot = node_router_replica_find(c->nodes[node].node->router, slice_of_cstr(name));
    return slot >= 0 && node_router_replica_present(c->nodes[node].node->router, (unsigned)slot);
}

static inline bool told(struct world *c, unsigned node, const char *name)
{
    int slot = node_router_replica_find(c->nodes[node].node->router, slice_of_cstr(name));
    return slot >= 0 && c->nodes[node].has[slot];
}

static inline json_t *replica_json(struct world *c, unsigned node, const char *name)
{
    struct buf text = {0};
    assert_int_equal(node_router_replicas_json(c->nodes[node].node->router, world_ms(c), &text), 0);
    json_t *rows = json_loadb(text.at, text.len, 0, NULL);
    buf_free(&text);
    assert_non_null(rows);
    json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            found = json_incref(row);
    }
    json_decref(rows);
    return found;
}

static inline double number_of(struct world *c, unsigned node, const char *replica,
                               const char *group, const char *key)
{
    json_t *row = replica_json(c, node, replica);
    assert_non_null(row);
    const json_t *value = json_object_get(json_object_get(row, group), key);
    assert_true(json_is_number(value));
    double number = json_number_value(value);
    json_decref(row);
    return number;
}

static inline json_t *stats(struct world *c, unsigned node)
{
    struct buf text = {0};
    assert_int_equal(
        node_replication_stats_json(c->nodes[node].node->replication, c->now_us, &text), 0);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    buf_free(&text);
    assert_non_null(root);
    return root;
}

static inline double stat_of(struct world *c, unsigned node, const char *group, const char *key)
{
    json_t *root = stats(c, node);
    const json_t *value = json_object_get(json_object_get(root, group), key);
    assert_true(json_is_number(value));
    double number = json_number_value(value);
    json_decref(root);
    return number;
}

static inline uint64_t cached(struct world *c, unsigned node, uint64_t seed)
{
    struct chain chain;
    world_prompt(&chain, seed, 8000);
    struct node_request request = {.chain = &chain, .replica_wanted = -1};
    struct buf text = {0};
    assert_int_equal(node_router_explain(c->nodes[node].node->router, &request, world_ms(c), &text),
                     0);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    buf_free(&text);
    assert_non_null(root);
    const json_t *row = json_array_get(json_object_get(root, "replicas"), 0);
    uint64_t tokens = (uint64_t)json_integer_value(json_object_get(row, "cached_tokens"));
    json_decref(root);
    return tokens;
}

static inline void say(struct world *c, unsigned node, uint64_t seed)
{
    struct chain chain;
    world_prompt(&chain, seed, 8000);
    world_finish(c, node, world_choose(c, node, &chain), &no_usage);
    world_run(c, 50 * MS);
}

/* Metrics of replica-0, from a process with this start time. */
static inline void scrape(struct world *c, unsigned node, double started_s, double queries)
{
    struct node_router *r = c->nodes[node].node->router;
    int slot = node_router_replica_find(r, SLICE("replica-0:8000"));
    struct node_scrape s = node_scrape_unknown;
    s.start_time_s = started_s;
    s.prefix_queries = queries;
    s.prefix_hits = 0;
    s.running = s.waiting = 0;
    (void)node_router_scraped(r, (unsigned)slot, &s, world_ms(c));
    node_replication_run(c->nodes[node].node->replication, c->now_us);
}

#endif
