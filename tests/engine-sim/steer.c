/* Paths that steer an engine: vLLM's with VLLM_SERVER_DEV_MODE=1, which reset the cache and put the
 * engine to sleep, and SGLang's flush of the cache. */
#include "tests/engine-sim/job.h"

enum { LEVEL_DISCARDS = 2 }; /* level of /sleep: 0 keeps the cache, 1 the weights, 2 neither */

static bool is_idle(const struct sim_engine *e)
{
    return sim_ranks_running(&e->ranks) + sim_ranks_waiting(&e->ranks) == 0;
}

static void forget(struct sim_engine *e, bool tier)
{
    for (unsigned i = 0; i < e->ranks.count; i++)
        sim_model_forget(e->ranks.models[i], tier);
}

/* The value of a query parameter; empty: missing. */
static struct slice parameter(const struct sim_conn *c, struct slice name)
{
    struct slice rest = c->head.query;
    while (rest.len > 0) {
        struct slice value = slice_cut(&rest, '&');
        if (slice_equal(slice_cut(&value, '='), name))
            return value;
    }
    return slice_of("", 0);
}

/* Fails while a block is in use. */
void sim_reset_prefix_cache(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    bool done = is_idle(e);
    (void)body;
    if (done)
        forget(e, slice_equal(parameter(c, SLICE("reset_external")), SLICE("true")));
    sim_http_answer(c, 200, SIM_JSON,
                    done ? SLICE("{\"success\":true}") : SLICE("{\"success\":false}"), NULL);
}

void sim_flush_cache(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    bool done = is_idle(e);
    (void)body;
    if (done)
        forget(e, true);
    sim_kv_step(e, false);
    sim_http_answer(c, done ? 200 : 400, SIM_TEXT,
                    done ? SLICE("Cache flushed.\nPlease check backend logs for more details.\n")
                         : SLICE("Flush cache failed.\n"),
                    NULL);
}

/* Aborts requests in flight. Later requests wait without an answer, and /health answers 200. */
void sim_sleep(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    uint64_t level;
    (void)body;
    if (slice_to_u64(parameter(c, SLICE("level")), &level) != 0)
        level = 1;
    sim_engine_abort(e);
    if (level > 0)
        forget(e, false);
    sim_http_answer(c, 200, "", SLICE(""), NULL);
    sim_fail_begin(e,
                   &(struct sim_fail){.mode = SIM_FAIL_SLEEP,
                                      .count = UINT64_MAX,
                                      .rank = SIM_RANK_ANY,
                                      .discards = level >= LEVEL_DISCARDS},
                   0);
}

void sim_wake_up(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    sim_http_answer(c, 200, "", SLICE(""), NULL);
    if (e->fail.mode == SIM_FAIL_SLEEP)
        sim_fail_end(e);
    sim_kv_step(e, true); /* a separate batch, unlike a reset's */
}

void sim_is_sleeping(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    (void)body;
    sim_http_answer(c, 200, SIM_JSON,
                    e->fail.mode == SIM_FAIL_SLEEP ? SLICE("{\"is_sleeping\":true}")
                                                   : SLICE("{\"is_sleeping\":false}"),
                    NULL);
}
