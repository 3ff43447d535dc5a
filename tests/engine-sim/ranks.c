#include "tests/engine-sim/ranks.h"

#include <string.h>

#include "base/check.h"

void sim_ranks_open(struct sim_ranks *s, const struct sim_model_config *config, unsigned count,
                    enum sim_balance balance)
{
    CHECK(count >= 1 && count <= SIM_RANKS_MAX);
    *s = (struct sim_ranks){.count = count, .balance = balance};
    for (unsigned i = 0; i < count; i++)
        s->models[i] = sim_model_create(config);
}

void sim_ranks_close(struct sim_ranks *s)
{
    for (unsigned i = 0; i < s->count; i++)
        sim_model_destroy(s->models[i]);
    s->count = 0;
}

static uint64_t time_of(const struct sim_ranks *s, unsigned rank, uint64_t now_ns)
{
    return s->stopped_ns[rank] != 0 ? s->stopped_ns[rank] : now_ns;
}

void sim_ranks_stop(struct sim_ranks *s, unsigned rank, uint64_t now_ns)
{
    CHECK(rank < s->count);
    sim_ranks_advance(s, now_ns);
    s->stopped_ns[rank] = now_ns > 0 ? now_ns : 1;
}

void sim_ranks_go_on(struct sim_ranks *s)
{
    memset(s->stopped_ns, 0, sizeof s->stopped_ns);
}

static uint32_t in_flight(const struct sim_model *m)
{
    return sim_model_running(m) + sim_model_waiting(m);
}

static unsigned by_load(struct sim_ranks *s)
{
    unsigned least = 0;
    if (s->balance == SIM_ROUND_ROBIN) {
        least = s->turn;
        s->turn = (s->turn + 1) % s->count;
        return least;
    }
    for (unsigned i = 1; i < s->count; i++)
        if (in_flight(s->models[i]) < in_flight(s->models[least]))
            least = i;
    return least;
}

int sim_ranks_submit(struct sim_ranks *s, struct sim_request *r, int rank, uint64_t now_ns)
{
    CHECK(rank < (int)s->count);
    sim_ranks_advance(s, now_ns);
    r->rank = rank == SIM_RANK_ANY ? by_load(s) : (unsigned)rank;
    return sim_model_submit(s->models[r->rank], r, time_of(s, r->rank, now_ns));
}

void sim_ranks_abort(struct sim_ranks *s, struct sim_request *r, uint64_t now_ns)
{
    sim_model_abort(s->models[r->rank], r, time_of(s, r->rank, now_ns));
}

void sim_ranks_advance(struct sim_ranks *s, uint64_t now_ns)
{
    for (unsigned i = 0; i < s->count; i++)
        sim_model_advance(s->models[i], time_of(s, i, now_ns));
}

uint64_t sim_ranks_next_event_ns(const struct sim_ranks *s)
{
    uint64_t soonest_ns = SIM_NEVER;
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t at_ns = sim_model_next_event_ns(s->models[i]);
        if (at_ns < soonest_ns && s->stopped_ns[i] == 0)
            soonest_ns = at_ns;
    }
    return soonest_ns;
}

struct sim_request *sim_ranks_changed(struct sim_ranks *s)
{
    struct sim_request *r = NULL;
    for (unsigned i = 0; i < s->count && r == NULL; i++)
        r = sim_model_changed(s->models[i]);
    return r;
}

uint32_t sim_ranks_running(const struct sim_ranks *s)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < s->count; i++)
        sum += sim_model_running(s->models[i]);
    return sum;
}

uint32_t sim_ranks_waiting(const struct sim_ranks *s)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < s->count; i++)
        sum += sim_model_waiting(s->models[i]);
    return sum;
}

void sim_counters_add(struct sim_counters *sum, const struct sim_counters *one)
{
    sum->prefix_queries += one->prefix_queries;
    sum->prefix_hits += one->prefix_hits;
    sum->tier_queries += one->tier_queries;
    sum->tier_hits += one->tier_hits;
    sum->prompt_tokens += one->prompt_tokens;
    sum->generation_tokens += one->generation_tokens;
    sum->preemptions += one->preemptions;
    sum->aborted += one->aborted;
    sum->rejected += one->rejected;
    sum->adapter_loads += one->adapter_loads;
    sum->steps += one->steps;
    sum->step_tokens += one->step_tokens;
    for (unsigned i = 0; i < SIM_STEP_BUCKETS; i++)
        sum->step_buckets[i] += one->step_buckets[i];
}

struct sim_counters sim_ranks_counters(const struct sim_ranks *s)
{
    struct sim_counters sum = {0};
    for (unsigned i = 0; i < s->count; i++)
        sim_counters_add(&sum, sim_model_counters(s->models[i]));
    return sum;
}

void sim_ranks_reset(struct sim_ranks *s)
{
    s->turn = 0;
    sim_ranks_go_on(s);
    for (unsigned i = 0; i < s->count; i++)
        sim_model_reset(s->models[i]);
}
