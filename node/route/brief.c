/* A short table of the replicas, for callers that read the whole table each second. */
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

/* Tokens of answered prompts, as the engine reported them, by slot. */
struct answered {
    struct tokens slots[NODE_REPLICAS_MAX];
};

static void answered_by_slot(const struct node_router *r, struct answered *out)
{
    struct node_answered_row row;
    *out = (struct answered){0};
    for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
        out->slots[row.replica].prompt += row.prompt_tokens;
        out->slots[row.replica].cached += row.cached_tokens;
    }
}

void node_router_answered(const struct node_router *r, uint64_t *prompt, uint64_t *cached)
{
    struct node_answered_row row;
    *prompt = *cached = 0;
    for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
        if (r->replicas[row.replica].absent)
            continue;
        *prompt += row.prompt_tokens;
        *cached += row.cached_tokens;
    }
}

void node_router_counts_write(const struct node_router *r, struct json_writer *w)
{
    struct answered answered;
    answered_by_slot(r, &answered);
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
        json_put_u64(w, "prompt_tokens", answered.slots[i].prompt);
        json_put_u64(w, "cached_tokens", answered.slots[i].cached);
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

static void put_cache(struct json_writer *w, const struct node_router *r, unsigned number,
                      const struct tokens *told)
{
    const struct node_replica *k = &r->replicas[number];
    put(w, "cache_tokens", node_replica_cache_tokens(k, (double)r->config.cache_tokens));
    json_put_bool(w, "cache_size_told", k->told.cache_tokens > 0);
    put(w, "held_tokens", k->belief.present_blocks * node_router_block_tokens(k));
    json_put_cstr(w, "cache_from", node_router_cache_source(r, number));
    json_put_u64(w, "prompt_tokens", told->prompt);
    json_put_u64(w, "cached_tokens", told->cached);
    /* the share of the KV cache in use, from the replica's metrics */
    json_put_double(w, "usage", k->scraped_ms != 0 ? k->scrape.cache_usage : NAN);
}

static void put_replica(struct json_writer *w, const struct node_router *r, unsigned number,
                        const struct answered *answered, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[number];
    struct node_standing standing = node_router_replica_standing(r, number, now_ms);
    char room[NODE_STANDING_TEXT_BYTES];
    json_object_begin(w);
    json_put_u64(w, "slot", number);
    json_put_slice(w, "name", node_replica_name(k));
    json_put_cstr(w, "health", node_health_text(node_replica_health(&r->replicas[k->rank.server])));
    json_put_cstr(w, "why", node_standing_word(standing.why));
    json_put_cstr(w, "text", node_standing_text(&standing, room));
    json_put_bool(w, "avoided", standing.avoided);
    json_put_cstr(w, "engine", node_engine_text(k->engine));
    put(w, "weight", k->weight);
    json_put_u64(w, "chosen", r->slots[number].chosen);
    put_load(w, r, k, now_ms);
    put_cache(w, r, number, &answered->slots[number]);
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

static bool is_shown(const struct node_replica *k)
{
    return !k->absent && k->rank.ranks == 0;
}

/* The standing of a replica as a number. 0: the replica is not shown. Readers with a row of the
 * same number can wait for the replica's next row. Sets `well`: true if the replica is well. */
static uint16_t standing_code(const struct node_router *r, unsigned number, uint64_t now_ms,
                              bool *well)
{
    const struct node_replica *k = &r->replicas[number];
    *well = false;
    if (!is_shown(k))
        return 0;
    enum node_health health = node_replica_health(&r->replicas[k->rank.server]);
    struct node_standing standing = node_router_replica_standing(r, number, now_ms);
    *well = (health == NODE_HEALTH_UP || health == NODE_HEALTH_UNKNOWN) && !standing.avoided &&
            standing.why != NODE_STANDING_ASLEEP;
    return (uint16_t)(1 + 2 * ((unsigned)standing.why * 8 + (unsigned)health) + standing.avoided);
}

struct node_router_brief {
    unsigned count, well;
};

struct codes {
    uint16_t slots[NODE_REPLICAS_MAX];
};

static struct node_router_brief count_all(struct node_router *r, uint64_t now_ms,
                                          struct codes *codes)
{
    struct node_router_brief all = {0};
    node_router_beliefs_now(r, now_ms);
    for (unsigned i = 0; i < r->replica_count; i++) {
        bool well;
        codes->slots[i] = standing_code(r, i, now_ms, &well);
        all.count += codes->slots[i] != 0;
        all.well += well;
    }
    return all;
}

/* Writes the rows of the slots from `from` on, at most `most` rows. Returns the slot after the last
 * slot visited. */
static unsigned put_span(const struct node_router *r, unsigned from, unsigned most,
                         const struct codes *codes, const struct answered *answered,
                         struct node_brief_reader *reader, uint64_t now_ms, struct json_writer *w)
{
    unsigned i = from;
    for (; i < r->replica_count; i++) {
        if (codes->slots[i] != 0 && most == 0)
            break;
        if (codes->slots[i] != 0) {
            put_replica(w, r, i, answered, now_ms);
            most--;
        }
        reader->codes[i] = codes->slots[i];
    }
    return i;
}

static void put_gone(const struct node_router *r, const struct codes *codes,
                     struct node_brief_reader *reader, struct json_writer *w)
{
    json_put_array(w, "replicas_gone");
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (codes->slots[i] != 0 || reader->codes[i] == 0)
            continue;
        json_u64(w, i);
        reader->codes[i] = 0;
    }
    json_array_end(w);
}

static void put_frame(const struct node_router *r, struct node_brief_reader *reader,
                      const struct node_router_brief *all, unsigned from, unsigned to,
                      const struct codes *codes, struct json_writer *w)
{
    json_put_array(w, "replicas_span");
    json_u64(w, from);
    json_u64(w, to);
    json_array_end(w);
    put_gone(r, codes, reader, w);
    json_put_u64(w, "replica_count", all->count);
    json_put_u64(w, "replicas_well", all->well);
}

void node_router_brief_write(struct node_router *r, unsigned most, uint64_t now_ms,
                             struct json_writer *w)
{
    struct node_brief_reader nobody = {0};
    struct answered answered;
    struct codes codes = {0};
    struct node_router_brief all = count_all(r, now_ms, &codes);
    answered_by_slot(r, &answered);
    json_put_array(w, "replicas");
    unsigned to = put_span(r, 0, most, &codes, &answered, &nobody, now_ms, w);
    json_array_end(w);
    put_frame(r, &nobody, &all, 0, to, &codes, w);
}

void node_router_brief_next_write(struct node_router *r, struct node_brief_reader *reader,
                                  unsigned most, uint64_t now_ms, struct json_writer *w)
{
    struct answered answered;
    struct codes codes = {0};
    struct node_router_brief all = count_all(r, now_ms, &codes);
    unsigned from = reader->next < r->replica_count ? reader->next : 0, room = most;
    answered_by_slot(r, &answered);
    json_put_array(w, "replicas");
    for (unsigned i = 0; i < r->replica_count && room > 0 && all.count > most; i++) {
        if (codes.slots[i] == 0 || codes.slots[i] == reader->codes[i])
            continue;
        put_replica(w, r, i, &answered, now_ms);
        reader->codes[i] = codes.slots[i];
        room--;
    }
    if (all.count <= most)
        from = 0;
    unsigned to = put_span(r, from, room, &codes, &answered, reader, now_ms, w);
    json_array_end(w);
    put_frame(r, reader, &all, from, to, &codes, w);
    reader->next = to;
}
