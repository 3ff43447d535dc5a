/* An engine's schedulers behind a single address: each data-parallel rank has a scheduler with a
 * separate queue, batch and cache (model.h). Pure. An engine without ranks has 1 scheduler.
 *
 * The owner drives them like a single model. Each request is pinned to a rank (by a header), or the
 * engine chooses the rank by load, without looking at caches. */
#ifndef TESTS_ENGINE_SIM_RANKS_H
#define TESTS_ENGINE_SIM_RANKS_H

#include "tests/engine-sim/model.h"

enum { SIM_RANKS_MAX = 64, SIM_RANK_ANY = -1 };

enum sim_balance {
    SIM_LEAST_IN_FLIGHT, /* vLLM; the first of equal ranks */
    SIM_ROUND_ROBIN,     /* SGLang; pinned requests do not count */
};

struct sim_ranks {
    unsigned count;
    enum sim_balance balance;
    uint64_t stopped_ns[SIM_RANKS_MAX]; /* since when the rank stands still; 0: the rank runs */
    unsigned turn;                      /* next rank in a round robin */
    struct sim_model *models[SIM_RANKS_MAX];
};

/* `config` is each rank's; 1 <= count <= SIM_RANKS_MAX. */
void sim_ranks_open(struct sim_ranks *s, const struct sim_model_config *config, unsigned count,
                    enum sim_balance balance);
/* All requests must be done or aborted. */
void sim_ranks_close(struct sim_ranks *s);

/* As sim_model_submit(), to `rank` (< count), or to a rank chosen by load (SIM_RANK_ANY). Sets
 * r->rank, also after a refusal. */
int sim_ranks_submit(struct sim_ranks *s, struct sim_request *r, int rank, uint64_t now_ns);
void sim_ranks_abort(struct sim_ranks *s, struct sim_request *r, uint64_t now_ns);
void sim_ranks_advance(struct sim_ranks *s, uint64_t now_ns);
uint64_t sim_ranks_next_event_ns(const struct sim_ranks *s);
struct sim_request *sim_ranks_changed(struct sim_ranks *s);

/* Stops a rank, or resumes all. */
void sim_ranks_stop(struct sim_ranks *s, unsigned rank, uint64_t now_ns);
void sim_ranks_go_on(struct sim_ranks *s);

/* Sum over all ranks. */
uint32_t sim_ranks_running(const struct sim_ranks *s);
uint32_t sim_ranks_waiting(const struct sim_ranks *s);
struct sim_counters sim_ranks_counters(const struct sim_ranks *s);
void sim_counters_add(struct sim_counters *sum, const struct sim_counters *one);

/* As after a restart of the process, which all ranks share. */
void sim_ranks_reset(struct sim_ranks *s);

#endif
