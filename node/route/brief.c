/* The replicas in a few words, for callers that read all of them each second. */
#include "node/route/brief.h"

#include <math.h>

#include "base/checkpoint.h"
#include "node/replica/learned.h"
#include "node/route/router_internal.h"

static void put(struct json_writer *w, const char *key, double value)
{
    json_put_double(w, key, (double)(int64_t)(value * 1000 + 0.5) / 1000);
}

struct tokens {
    uint64_t prompt, cached;
};

/* Tokens of answered prompts as the engine reported them, of one replica or (-1) of all in use. */
static struct tokens answered(const struct node_router *r, int replica)
{
    struct tokens sum = {0};
    struct node_answered_row row;
    for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
        if (r->replicas[row.replica].absent || (replica >= 0 && row.replica != (unsigned)replica))
            continue;
        sum.prompt += row.prompt_tokens;
        sum.cached += row.cached_tokens;
    }
    return sum;
}

void node_router_answered(const struct node_router *r, uint64_t *prompt, uint64_t *cached)
{
    struct tokens sum = answered(r, -1);
    *prompt = sum.prompt;
    *cached = sum.cached;
}

void node_router_counts_write(const struct node_router *r, struct json_writer *w)
{
    struct tokens sums[NODE_REPLICAS_MAX] = {0};
    struct node_answered_row row;
    for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
        sums[row.replica].prompt += row.prompt_tokens;
        sums[row.replica].cached += row.cached_tokens;
    }
    json_object_begin(w);
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        uint64_t errors = 0;
        if (k->absent)
            continue;
        for (unsigned e = 0; e < NODE_ERRORS; e++)
            errors += r->slots[i].failed[e];
        json_key_slice(w, node_replica_name(k));
        json_object_begin(w);
        json_put_u64(w, "chosen", r->slots[i].chosen);
        json_put_u64(w, "errors", errors);
        json_put_u64(w, "prompt_tokens", sums[i].prompt);
        json_put_u64(w, "cached_tokens", sums[i].cached);
        json_object_end(w);
    }
    json_object_end(w);
}

static void put_load(struct json_writer *w, const struct node_router *r,
                     const struct node_replica *k, uint64_t now_ms)
{
    struct crdt_load others;
    crdt_reports_load_sum(crdt_state_reports(r->crdt), (unsigned)(k - r->replicas), &others);
    json_put_u64(w, "requests", k->load.requests);
    json_put_u64(w, "requests_of_others", others.requests);
    put(w, "queue_s", node_load_queue_s(r->bookings, &k->load, k->believed.tokens_per_s, now_ms));
    json_put_u64(w, "context_tokens", k->load.context_tokens + others.context_tokens);
}

static void put_cache(struct json_writer *w, const struct node_router *r, unsigned number)
{
    const struct node_replica *k = &r->replicas[number];
    struct tokens told = answered(r, (int)number);
    put(w, "cache_tokens", node_replica_cache_tokens(k, (double)r->config.cache_tokens));
    json_put_bool(w, "cache_size_told", k->told.cache_tokens > 0);
    put(w, "held_tokens", k->belief.present_blocks * node_router_block_tokens(k));
    json_put_cstr(w, "cache_from", node_router_cache_source(r, number));
    json_put_u64(w, "prompt_tokens", told.prompt);
    json_put_u64(w, "cached_tokens", told.cached);
    /* of its cache, by its metrics */
    json_put_double(w, "usage", k->scraped_ms != 0 ? k->scrape.cache_usage : NAN);
}

static void put_replica(struct json_writer *w, const struct node_router *r, unsigned number,
                        uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[number];
    struct node_standing standing = node_router_replica_standing(r, number, now_ms);
    char room[NODE_STANDING_TEXT_BYTES];
    json_object_begin(w);
    json_put_slice(w, "name", node_replica_name(k));
    json_put_cstr(w, "health", node_health_text(node_replica_health(&r->replicas[k->rank.server])));
    json_put_cstr(w, "why", node_standing_word(standing.why));
    json_put_cstr(w, "text", node_standing_text(&standing, room));
    json_put_bool(w, "avoided", standing.avoided);
    json_put_cstr(w, "engine", node_engine_text(k->engine));
    put(w, "weight", k->weight);
    json_put_u64(w, "chosen", r->slots[number].chosen);
    put_load(w, r, k, now_ms);
    put_cache(w, r, number);
    json_key(w, "events");
    node_router_events_write(r, number, now_ms, w);
    json_put_array(w, "models");
    struct slice name;
    for (unsigned at = 0; node_models_next(r->models, k->rank.server, &at, &name);)
        json_slice(w, name);
    json_array_end(w);
    for (unsigned i = 0; i < node_learned_rows_count; i++) {
        if (node_learned_rows[i].metric)
            put(w, node_learned_rows[i].key,
                node_learned_rows[i].value(k) * node_learned_rows[i].unit);
    }
    json_object_end(w);
}

static bool is_well(const struct node_router *r, unsigned number, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[number];
    enum node_health health = node_replica_health(&r->replicas[k->rank.server]);
    struct node_standing standing = node_router_replica_standing(r, number, now_ms);
    return (health == NODE_HEALTH_UP || health == NODE_HEALTH_UNKNOWN) && !standing.avoided &&
           standing.why != NODE_STANDING_ASLEEP;
}

static bool is_shown(const struct node_replica *k)
{
    return !k->absent && k->rank.ranks == 0;
}

struct node_router_brief node_router_brief_write(struct node_router *r, unsigned most,
                                                 uint64_t now_ms, struct json_writer *w)
{
    struct node_router_brief all = {0};
    node_router_beliefs_now(r, now_ms);
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (is_shown(&r->replicas[i])) {
            all.count++;
            all.well += is_well(r, i, now_ms);
        }
    }
    unsigned room_ill = all.count - all.well < most ? all.count - all.well : most;
    unsigned room_well = most - room_ill;
    json_array_begin(w);
    for (unsigned i = 0; i < r->replica_count && room_ill + room_well > 0; i++) {
        if (!is_shown(&r->replicas[i]))
            continue;
        unsigned *room = is_well(r, i, now_ms) ? &room_well : &room_ill;
        if (*room > 0) {
            put_replica(w, r, i, now_ms);
            --*room;
        }
    }
    json_array_end(w);
    return all;
}
