/* Failures on demand and a look inside, for tests. Only with --control. */
#include <jansson.h>

#include "base/check.h"
#include "tests/engine-sim/job.h"

void sim_fail_end(struct sim_engine *e)
{
    e->fail_until_ns = UINT64_MAX;
    e->fail = (struct sim_fail){.mode = SIM_FAIL_NONE};
    if (e->dead)
        return;
    sim_server_listen(&e->server, true);
    sim_ranks_go_on(&e->ranks);
    sim_engine_rate(e, 1);
}

void sim_fail_begin(struct sim_engine *e, const struct sim_fail *fail, uint64_t for_ms)
{
    sim_fail_end(e);
    e->fail = *fail;
    if (for_ms > 0)
        e->fail_until_ns = sim_clock_ns(e) + for_ms * 1000000;
    if (fail->mode == SIM_FAIL_REFUSE) {
        sim_server_listen(&e->server, false);
        sim_server_close_idle(&e->server);
    }
    if (fail->mode == SIM_FAIL_STUCK && fail->rank != SIM_RANK_ANY) {
        sim_engine_rate(e, 1); /* the process's published figures stay */
        sim_ranks_stop(&e->ranks, (unsigned)fail->rank, sim_now_ns(e));
        return;
    }
    if (fail->mode == SIM_FAIL_STUCK || fail->mode == SIM_FAIL_SLEEP)
        sim_engine_rate(e, 0);
    if (fail->mode == SIM_FAIL_CRAWL)
        sim_engine_rate(e, fail->factor < 1 ? 1 : 1 / fail->factor);
    if (fail->mode == SIM_FAIL_DIE)
        sim_engine_die(e);
    if (fail->mode == SIM_FAIL_ABORT)
        sim_engine_abort(e);
    if (fail->mode == SIM_FAIL_FORGET)
        sim_published_forget(e);
    if (fail->mode == SIM_FAIL_PAUSE)
        e->pause_ns = for_ms * 1000000;
    bool at_once = fail->mode == SIM_FAIL_PAUSE || fail->mode == SIM_FAIL_FORGET;
    if (at_once && fail->probes == SIM_HEALTH_AS_FAIL)
        sim_fail_end(e);
}

/* True for failures of requests; others hit the engine as a whole. */
static bool of_requests(enum sim_fail_mode mode)
{
    return mode != SIM_FAIL_NONE && mode != SIM_FAIL_REFUSE && mode != SIM_FAIL_STUCK &&
           mode != SIM_FAIL_SLEEP && mode != SIM_FAIL_CRAWL && mode != SIM_FAIL_DIE &&
           mode != SIM_FAIL_ABORT && mode != SIM_FAIL_POISON && mode != SIM_FAIL_PAUSE &&
           mode != SIM_FAIL_FORGET && mode != SIM_FAIL_CONTEXT;
}

struct sim_fail sim_fail_take(struct sim_engine *e)
{
    struct sim_fail fail = e->fail;
    if (!of_requests(fail.mode))
        return (struct sim_fail){.mode = SIM_FAIL_NONE};
    if (e->fail.count != UINT64_MAX && --e->fail.count == 0)
        sim_fail_end(e);
    return fail;
}

static uint64_t member(const json_t *object, const char *name, uint64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) && json_integer_value(value) >= 0
               ? (uint64_t)json_integer_value(value)
               : otherwise;
}

/* The index of a name in a list; the list's length if missing. */
static unsigned index_of(const char *name, const char *const *names, unsigned count)
{
    unsigned i = 0;
    while (i < count && (name == NULL || strcmp(name, names[i]) != 0))
        i++;
    return i;
}

static const char *const modes[] = {
    [SIM_FAIL_NONE] = "none",
    [SIM_FAIL_REFUSE] = "refuse",
    [SIM_FAIL_HANG] = "hang",
    [SIM_FAIL_RESET] = "reset_mid_stream",
    [SIM_FAIL_500] = "status_500",
    [SIM_FAIL_503] = "status_503",
    [SIM_FAIL_SLOW] = "slow",
    [SIM_FAIL_429] = "status_429",
    [SIM_FAIL_DRAINING] = "draining",
    [SIM_FAIL_FULL] = "full",
    [SIM_FAIL_STUCK] = "stuck",
    [SIM_FAIL_SLEEP] = "sleep",
    [SIM_FAIL_CRAWL] = "crawl",
    [SIM_FAIL_ERROR] = "error",
    [SIM_FAIL_END] = "end",
    [SIM_FAIL_GARBAGE] = "garbage",
    [SIM_FAIL_DIE] = "die",
    [SIM_FAIL_POISON] = "poison",
    [SIM_FAIL_ABORT] = "abort",
    [SIM_FAIL_SILENT] = "silent",
    [SIM_FAIL_PAUSE] = "pause",
    [SIM_FAIL_FORGET] = "forget",
    [SIM_FAIL_CONTEXT] = "context",
    [SIM_FAIL_401] = "status_401",
    [SIM_FAIL_403] = "status_403",
    [SIM_FAIL_404] = "status_404",
    [SIM_FAIL_422] = "status_422",
    [SIM_FAIL_NO_TEMPLATE] = "no_template",
    [SIM_FAIL_NO_TOOL_PARSER] = "no_tool_parser",
    [SIM_FAIL_EARLY] = "early",
    [SIM_FAIL_INTERIM] = "interim",
};

static const char *const healths[] = {
    [SIM_HEALTH_AS_FAIL] = "as_fail", [SIM_HEALTH_OK] = "ok",     [SIM_HEALTH_503] = "503",
    [SIM_HEALTH_SLOW] = "slow",       [SIM_HEALTH_HANG] = "hang",
};

/* Reads a failure to set; false if not understood. */
static bool wish_read(const json_t *wish, struct sim_fail *fail, uint64_t *for_ms)
{
    const json_t *probes = json_object_get(wish, "health");
    const char *poison = json_string_value(json_object_get(wish, "text"));
    unsigned mode =
        index_of(json_string_value(json_object_get(wish, "mode")), modes, ARRAY_LEN(modes));
    unsigned health = json_is_string(probes)
                          ? index_of(json_string_value(probes), healths, ARRAY_LEN(healths))
                          : SIM_HEALTH_AS_FAIL;
    *for_ms = member(wish, "for_ms", 0);
    if (mode == ARRAY_LEN(modes) || health == ARRAY_LEN(healths) ||
        (mode == SIM_FAIL_REFUSE && *for_ms == 0) || (mode == SIM_FAIL_POISON && poison == NULL) ||
        (mode == SIM_FAIL_PAUSE && *for_ms == 0) ||
        (mode == SIM_FAIL_CONTEXT && member(wish, "tokens", 0) < 2))
        return false;
    *fail = (struct sim_fail){
        .mode = (enum sim_fail_mode)mode,
        .after_chunks = member(wish, "after_chunks", mode == SIM_FAIL_RESET ? 1 : 0),
        .count = member(wish, "count", UINT64_MAX),
        .rank = (int)member(wish, "rank", UINT64_MAX),
        .delay_ms = member(wish, "delay_ms", 1000),
        .factor = (double)member(wish, "factor", 10),
        .tokens = member(wish, "tokens", 0),
        .status = (unsigned)member(wish, "status", 503),
        .health = json_is_true(probes),
        .probes = (enum sim_health)health,
        .health_delay_ms = member(wish, "health_delay_ms", 10000),
    };
    return poison == NULL ||
           slice_to_cstr(slice_of_cstr(poison), fail->poison, sizeof fail->poison);
}

void sim_control_fail(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    json_t *wish = json_loadb(body.at, body.len, 0, NULL);
    struct sim_fail fail;
    uint64_t for_ms = 0;
    bool understood = wish_read(wish, &fail, &for_ms);
    json_decref(wish);
    if (!understood || fail.rank >= (int)e->ranks.count) {
        sim_http_answer(c, 400, SIM_JSON,
                        SLICE("{\"error\":\"unknown mode, or without what it needs\"}"), NULL);
        return;
    }
    c->keep_alive &= fail.mode != SIM_FAIL_REFUSE;
    sim_http_answer(c, 200, SIM_JSON, SLICE("{\"ok\":true}"), NULL);
    sim_fail_begin(e, &fail, for_ms);
}

void sim_control_restart(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    sim_engine_anew(e, c);
    c->keep_alive = false;
    sim_http_answer(c, 200, SIM_JSON, SLICE("{\"ok\":true}"), NULL);
}

struct stats {
    struct sim_counters counters;
    struct sim_tally tally;
    uint32_t running, waiting;
    uint32_t blocks, blocks_used, blocks_named;
};

static void stats_add(struct stats *sum, const struct sim_engine *e, unsigned rank)
{
    const struct sim_model *m = e->ranks.models[rank];
    const struct sim_cache *cache = sim_model_cache(m);
    const struct sim_tally *tally = &e->tally[rank];
    sim_cache_check(cache);
    sim_counters_add(&sum->counters, sim_model_counters(m));
    sum->tally.requests += tally->requests;
    sum->tally.finished[0] += tally->finished[0];
    sum->tally.finished[1] += tally->finished[1];
    sum->tally.aborted += tally->aborted;
    sum->running += sim_model_running(m);
    sum->waiting += sim_model_waiting(m);
    sum->blocks += sim_cache_blocks(cache);
    sum->blocks_used += sim_cache_used(cache);
    sum->blocks_named += sim_cache_named(cache);
}

static void put_stats(const struct stats *s, uint64_t requests, struct buf *out)
{
    const struct sim_counters *n = &s->counters;
    sim_put(out,
            "\"requests\":%lu,\"prompt_tokens\":%lu,\"cached_tokens\":%lu,"
            "\"generation_tokens\":%lu,\"finished\":%lu,\"aborted\":%lu,\"rejected\":%lu,"
            "\"preemptions\":%lu,\"adapter_loads\":%lu,\"running\":%u,\"waiting\":%u,",
            requests, n->prefix_queries, n->prefix_hits + n->tier_hits, n->generation_tokens,
            s->tally.finished[0] + s->tally.finished[1], s->tally.aborted, n->rejected,
            n->preemptions, n->adapter_loads, s->running, s->waiting);
    sim_put(out, "\"cache_blocks\":%u,\"cache_blocks_used\":%u,\"cache_blocks_named\":%u",
            s->blocks, s->blocks_used, s->blocks_named);
}

/* Sums over all ranks; if there are several, also figures for each. A rank's requests are those
 * sent to this rank. A publisher of KV events reports the number of each rank's next message. */
void sim_control_stats(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct stats all = {.running = 0};
    struct buf out = {.at = NULL};
    unsigned ranks = e->ranks.count;
    (void)body;
    for (unsigned i = 0; i < ranks; i++)
        stats_add(&all, e, i);
    sim_put(&out, "{");
    put_stats(&all, e->requests, &out);
    sim_put(&out, ",\"block_tokens\":%lu,\"connections\":%u,\"stored_responses\":%u",
            e->options.block_tokens, e->server.conn_count, e->stored_count);
    for (unsigned i = 0; ranks > 1 && i < ranks; i++) {
        struct stats one = {.running = 0};
        stats_add(&one, e, i);
        sim_put(&out, i == 0 ? ",\"ranks\":[{" : ",{");
        put_stats(&one, one.tally.requests, &out);
        sim_put(&out, "}");
    }
    if (ranks > 1)
        sim_put(&out, "]");
    for (unsigned i = 0; e->kv != NULL && i < ranks; i++)
        sim_put(&out, "%s%lu%s", i == 0 ? ",\"kv_numbers\":[" : ",", sim_publisher_number(e->kv, i),
                i + 1 == ranks ? "]" : "");
    sim_put(&out, "}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

/* The last request for output as received: {"method","target","headers":[[name,value]...],"body"},
 * and, with several ranks, the "rank" that took the request, null if none. */
void sim_control_last(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    static const struct http_limits limits = {
        .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 16, .fields_max = HTTP_FIELDS_MAX};
    struct http_head head;
    struct buf out = {.at = NULL};
    (void)body;
    if (http_request_parse(&head, e->last_head.at, e->last_head.len, &limits) != 0) {
        sim_http_answer(c, 404, SIM_JSON, SLICE("{\"error\":\"no request yet\"}"), NULL);
        return;
    }
    sim_put(&out, "{\"method\":");
    sim_put_json(&out, head.method_text);
    sim_put(&out, ",\"target\":");
    sim_put_json(&out, head.target);
    sim_put(&out, ",\"headers\":[");
    for (unsigned i = 0; i < head.field_count; i++) {
        sim_put(&out, "%s[", i == 0 ? "" : ",");
        sim_put_json(&out, head.fields[i].name);
        sim_put(&out, ",");
        sim_put_json(&out, head.fields[i].value);
        sim_put(&out, "]");
    }
    sim_put(&out, "],\"body\":");
    sim_put_json(&out, slice_of(e->last_body.at == NULL ? "" : e->last_body.at, e->last_body.len));
    if (e->ranks.count > 1 && e->last_rank == SIM_RANK_ANY)
        sim_put(&out, ",\"rank\":null");
    else if (e->ranks.count > 1)
        sim_put(&out, ",\"rank\":%d", e->last_rank);
    sim_put(&out, "}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}
