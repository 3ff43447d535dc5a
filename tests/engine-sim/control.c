/* Failures on demand and a look inside, for tests. Only with --control. */
#include <jansson.h>

#include "base/check.h"
#include "tests/engine-sim/job.h"

void sim_fail_end(struct sim_engine *e)
{
    e->fail_until_ns = UINT64_MAX;
    e->fail = (struct sim_fail){.mode = SIM_FAIL_NONE};
    sim_server_listen(&e->server, true);
}

void sim_fail_begin(struct sim_engine *e, const struct sim_fail *fail, uint64_t for_ms)
{
    sim_fail_end(e);
    e->fail = *fail;
    if (for_ms > 0)
        e->fail_until_ns = sim_clock_ns(e) + for_ms * 1000000;
    if (fail->mode != SIM_FAIL_REFUSE)
        return;
    sim_server_listen(&e->server, false);
    sim_server_close_idle(&e->server);
}

struct sim_fail sim_fail_take(struct sim_engine *e)
{
    struct sim_fail fail = e->fail;
    if (fail.mode == SIM_FAIL_NONE || fail.mode == SIM_FAIL_REFUSE)
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

void sim_control_fail(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    static const char *const modes[] = {
        [SIM_FAIL_NONE] = "none",      [SIM_FAIL_REFUSE] = "refuse",
        [SIM_FAIL_HANG] = "hang",      [SIM_FAIL_RESET] = "reset_mid_stream",
        [SIM_FAIL_500] = "status_500", [SIM_FAIL_503] = "status_503",
        [SIM_FAIL_SLOW] = "slow",
    };
    json_t *wish = json_loadb(body.at, body.len, 0, NULL);
    const char *name = json_string_value(json_object_get(wish, "mode"));
    unsigned mode = 0;
    while (mode < ARRAY_LEN(modes) && (name == NULL || strcmp(name, modes[mode]) != 0))
        mode++;
    uint64_t for_ms = member(wish, "for_ms", 0);
    if (mode == ARRAY_LEN(modes) || (mode == SIM_FAIL_REFUSE && for_ms == 0)) {
        sim_http_answer(c, 400, SIM_JSON,
                        SLICE("{\"error\":\"unknown mode, or refuse without for_ms\"}"), NULL);
        json_decref(wish);
        return;
    }
    const struct sim_fail fail = {
        .mode = (enum sim_fail_mode)mode,
        .after_chunks = member(wish, "after_chunks", mode == SIM_FAIL_RESET ? 1 : 0),
        .count = member(wish, "count", UINT64_MAX),
        .delay_ms = member(wish, "delay_ms", 1000),
        .health = json_is_true(json_object_get(wish, "health")),
    };
    json_decref(wish);
    c->keep_alive &= mode != SIM_FAIL_REFUSE;
    sim_http_answer(c, 200, SIM_JSON, SLICE("{\"ok\":true}"), NULL);
    sim_fail_begin(e, &fail, for_ms);
}

void sim_control_restart(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    sim_engine_restart(e, c);
    c->keep_alive = false;
    sim_http_answer(c, 200, SIM_JSON, SLICE("{\"ok\":true}"), NULL);
}

void sim_control_stats(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    const struct sim_cache *cache = sim_model_cache(e->model);
    const struct sim_counters *n = sim_model_counters(e->model);
    struct buf out = {.at = NULL};
    (void)body;
    sim_cache_check(cache);
    sim_put(&out,
            "{\"requests\":%lu,\"prompt_tokens\":%lu,\"cached_tokens\":%lu,"
            "\"generation_tokens\":%lu,\"finished\":%lu,\"aborted\":%lu,\"rejected\":%lu,"
            "\"preemptions\":%lu,\"running\":%u,\"waiting\":%u,",
            e->tally.requests, n->prefix_queries, n->prefix_hits, n->generation_tokens,
            e->tally.finished[0] + e->tally.finished[1], e->tally.aborted, n->rejected,
            n->preemptions, sim_model_running(e->model), sim_model_waiting(e->model));
    sim_put(&out,
            "\"cache_blocks\":%u,\"cache_blocks_used\":%u,\"cache_blocks_named\":%u,"
            "\"block_tokens\":%lu,\"connections\":%u,\"stored_responses\":%u}",
            sim_cache_blocks(cache), sim_cache_used(cache), sim_cache_named(cache),
            e->options.block_tokens, e->server.conn_count, e->stored_count);
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

/* The last request for output as it came: {"method","target","headers":[[name,value]...],"body"}.
 */
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
    sim_put(&out, "}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}
