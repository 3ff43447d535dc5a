/* KV events over HTTP: the addresses where ranks publish, and faults on demand. */
#include <jansson.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"

void sim_kv_init(struct sim_engine *e)
{
    const struct sim_options *o = &e->options;
    bool answers = o->kv_replay != SIM_NO_PORT;
    if (o->kv_events == NULL)
        return;
    struct sim_kv_config config = {
        .form = o->kv_events,
        .topic = o->kv_topic,
        .bytes = o->kv_bytes,
        .first = (unsigned)o->data_parallel_start,
        .kept = o->kv_kept,
        .port = (unsigned)(o->kv_port == 0 ? 0 : o->kv_port + o->data_parallel_start),
        .answers_again = answers,
        .connect = o->kv_connect,
    };
    if (answers && o->kv_replay != 0)
        config.again = (unsigned)(o->kv_replay + o->data_parallel_start);
    e->kv = sim_publisher_create(&config, &e->ranks);
    CHECK(e->kv != NULL);
    sim_kv_step(e, false);
}

void sim_kv_step(struct sim_engine *e, bool idle)
{
    if (e->kv != NULL)
        sim_publisher_step(e->kv, e->server.carrier->unix_s(&e->server), idle);
}

void sim_kv_sources(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    struct buf out = {.at = NULL};
    (void)body;
    if (e->kv == NULL) {
        sim_http_answer(c, 404, SIM_JSON, SLICE("{\"detail\":\"Not Found\"}"), NULL);
        return;
    }
    const struct sim_kv_config *kv = sim_publisher_config(e->kv);
    for (unsigned i = 0; i < e->ranks.count; i++) {
        sim_put(&out, "%s\"%u\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",",
                i == 0 ? "{" : ",", kv->first + i);
        if (kv->connect != NULL)
            sim_put(&out, "\"endpoint\":\"%s\"", kv->connect);
        else
            sim_put(&out, "\"endpoint\":\"tcp://*:%u\"", kv->port + i);
        sim_put(&out, ",\"replay_endpoint\":");
        if (kv->answers_again)
            sim_put(&out, "\"tcp://*:%u\"", kv->again + i);
        else
            sim_put(&out, "null");
        sim_put(&out, ",\"buffer_steps\":%lu,\"hwm\":100000,\"max_queue_size\":100000,\"topic\":",
                kv->kept);
        sim_put_json(&out, slice_of_cstr(kv->topic));
        sim_put(&out, "}");
    }
    sim_put(&out, "}");
    sim_answer_json(c, 200, &out);
    buf_free(&out);
}

/* Releases up to 0.5.14 do not report the port for replays. */
void sim_put_kv_events(const struct sim_engine *e, struct buf *out)
{
    if (e->kv == NULL) {
        sim_put(out, "null");
        return;
    }
    const struct sim_kv_config *kv = sim_publisher_config(e->kv);
    sim_put(out,
            "{\"publisher\":\"zmq\",\"endpoint_host\":\"*\",\"endpoint_port_base\":%u,\"topic\":",
            kv->port);
    sim_put_json(out, slice_of_cstr(kv->topic));
    sim_put(out, ",\"block_size\":%lu,\"dp_size\":%u", e->options.block_tokens, e->ranks.count);
    if (kv->answers_again && sim_kv_form_has_topic(kv->form))
        sim_put(out, ",\"replay_endpoint_port_base\":%u", kv->again);
    sim_put(out, "}");
}

/* --- faults ---------------------------------------------------------------------------------- */

static void fault(struct sim_publisher *p, unsigned rank, const json_t *wish)
{
    const json_t *drop = json_object_get(wish, "drop");
    const json_t *lose = json_object_get(wish, "lose");
    const json_t *number = json_object_get(wish, "number");
    if (drop != NULL)
        sim_publisher_drop(p, rank, (uint64_t)json_integer_value(drop), false);
    if (lose != NULL)
        sim_publisher_drop(p, rank, (uint64_t)json_integer_value(lose), true);
    if (number != NULL)
        sim_publisher_renumber(p, rank, (uint64_t)json_integer_value(number));
    if (json_is_true(json_object_get(wish, "forget")))
        sim_publisher_forget(p, rank);
}

/* For a rank, or for all. */
void sim_control_kv(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    json_t *wish = json_loadb(body.at, body.len, 0, NULL);
    const json_t *rank = json_object_get(wish, "rank");
    const json_t *replay = json_object_get(wish, "replay");
    bool well = e->kv != NULL && json_is_object(wish) &&
                (rank == NULL || (json_is_integer(rank) && json_integer_value(rank) >= 0 &&
                                  json_integer_value(rank) < (json_int_t)e->ranks.count));
    for (unsigned i = 0; well && i < e->ranks.count; i++)
        if (rank == NULL || json_integer_value(rank) == (json_int_t)i)
            fault(e->kv, i, wish);
    if (well && replay != NULL)
        sim_publisher_answer(e->kv, json_is_true(replay));
    if (well && json_is_true(json_object_get(wish, "cut")))
        sim_publisher_cut(e->kv);
    json_decref(wish);
    sim_http_answer(c, well ? 200 : 400, SIM_JSON,
                    well ? SLICE("{\"ok\":true}") : SLICE("{\"error\":\"not understood\"}"), NULL);
}
