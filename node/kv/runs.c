#include "node/kv/runs.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"

enum { NONE = UINT32_MAX };

/* --- tables ---------------------------------------------------------------------------------- */

static uint32_t *place_of(struct kv_runs *r, uint64_t tip)
{
    return &r->by_tip[hash_mix(tip ^ r->salt) % KV_RUNS_MAX];
}

static void tip_unlink(struct kv_runs *r, uint32_t at)
{
    uint32_t *from = place_of(r, r->run[at].tip);
    while (*from != at)
        from = &r->run[*from].by_tip;
    *from = r->run[at].by_tip;
}

static void tip_link(struct kv_runs *r, uint32_t at)
{
    uint32_t *place = place_of(r, r->run[at].tip);
    r->run[at].by_tip = *place;
    *place = at;
}

static void order_unlink(struct kv_runs *r, uint32_t at)
{
    const struct kv_run *run = &r->run[at];
    *(run->newer != NONE ? &r->run[run->newer].older : &r->newest) = run->older;
    *(run->older != NONE ? &r->run[run->older].newer : &r->oldest) = run->newer;
}

/* Inserts a run into the order by last stop, ahead of all runs whose last stop is older. Nearly
 * always the run becomes the newest. */
static void order_link(struct kv_runs *r, uint32_t at)
{
    struct kv_run *run = &r->run[at];
    uint32_t newer = NONE, older = r->newest;
    while (older != NONE && kv_run_last_ms(&r->run[older]) > kv_run_last_ms(run)) {
        newer = older;
        older = r->run[older].older;
    }
    run->newer = newer;
    run->older = older;
    *(newer != NONE ? &r->run[newer].older : &r->newest) = at;
    *(older != NONE ? &r->run[older].newer : &r->oldest) = at;
}

/* --- runs ------------------------------------------------------------------------------------ */

void kv_runs_clear(struct kv_runs *r)
{
    r->count = 0;
    r->newest = r->oldest = NONE;
    memset(r->by_tip, 0xff, sizeof r->by_tip);
}

uint64_t kv_run_last_ms(const struct kv_run *run)
{
    return run->stop[run->stops - 1].at_ms;
}

/* Returns the run ending with this block; of several, the run with the oldest last stop. */
static uint32_t run_at(struct kv_runs *r, uint64_t tip)
{
    uint32_t found = NONE;
    for (uint32_t at = *place_of(r, tip); at != NONE; at = r->run[at].by_tip) {
        if (r->run[at].tip == tip && !r->run[at].taken &&
            (found == NONE || kv_run_last_ms(&r->run[at]) < kv_run_last_ms(&r->run[found])))
            found = at;
    }
    return found;
}

static uint32_t run_make(struct kv_runs *r)
{
    if (r->count < KV_RUNS_MAX)
        return r->count++;
    uint32_t at = r->oldest;
    tip_unlink(r, at);
    order_unlink(r, at);
    return at;
}

void kv_runs_stored(struct kv_runs *r, uint64_t parent, uint32_t begin, uint64_t tip,
                    uint64_t chain, uint32_t end, uint64_t now_ms)
{
    uint32_t at = begin > 0 ? run_at(r, parent) : NONE;
    if (at == NONE) {
        at = run_make(r);
        r->run[at] = (struct kv_run){.begin = begin, .first_ms = now_ms};
    } else {
        tip_unlink(r, at);
        order_unlink(r, at);
    }
    struct kv_run *run = &r->run[at];
    run->tip = tip;
    if (run->stops > 0 && kv_run_last_ms(run) == now_ms)
        run->stops--; /* not a stop: engines may report each block separately */
    if (run->stops == KV_STOPS_MAX)
        memmove(run->stop, run->stop + 1, --run->stops * sizeof run->stop[0]);
    run->stop[run->stops++] = (struct kv_stop){.chain = chain, .at_ms = now_ms, .end = end};
    tip_link(r, at);
    order_link(r, at);
}

void kv_runs_take(struct kv_runs *r, struct kv_run *run, unsigned stop)
{
    struct kv_run rest = *run;
    run->taken = true;
    if (stop + 1 == run->stops)
        return;
    rest.begin = rest.stop[stop].end;
    rest.first_ms = rest.stop[stop + 1].at_ms;
    rest.stops -= (uint8_t)(stop + 1);
    memmove(rest.stop, rest.stop + stop + 1, rest.stops * sizeof rest.stop[0]);
    uint32_t at = run_make(r); /* `run` may be the oldest, and gone now */
    r->run[at] = rest;
    tip_link(r, at);
    order_link(r, at);
}

struct kv_run *kv_runs_newest(struct kv_runs *r)
{
    return r->newest != NONE ? &r->run[r->newest] : NULL;
}

struct kv_run *kv_runs_older(struct kv_runs *r, const struct kv_run *run)
{
    return run->older != NONE ? &r->run[run->older] : NULL;
}

/* --- answers --------------------------------------------------------------------------------- */

/* Returns the index of the answer's first possible stop, given the answer's cached blocks. It is 0
 * if the run began where the cached blocks end, or if their number is unknown. Otherwise it is the
 * index after the stop where the cached blocks end; -1: no such stop. The turns of a conversation
 * are a single run until an answer is found in the run. */
static int first_stop(const struct kv_run *run, const struct kv_told *told, uint32_t block)
{
    if (told->cached_tokens == KV_UNTOLD || run->begin == told->cached_tokens / block)
        return 0;
    for (int i = run->stops - 2; i >= 0; i--) {
        if (run->stop[i].end == told->cached_tokens / block)
            return i + 1;
    }
    return -1;
}

int kv_run_stop(const struct kv_run *run, const struct kv_told *told, uint32_t block)
{
    uint32_t all = told->prompt_tokens + told->output_tokens;
    int first = first_stop(run, told, block);
    if (run->taken || first < 0)
        return -1;
    uint64_t first_ms = first == 0 ? run->first_ms : run->stop[first].at_ms;
    if (first_ms + KV_TOLD_SLACK_MS < told->sent_ms || first_ms > told->ended_ms + KV_TOLD_SLACK_MS)
        return -1;
    for (int i = run->stops - 1; i >= first; i--) {
        const struct kv_stop *stop = &run->stop[i];
        /* The last token is never computed, but engines differ in whether the token's block
         * counts. */
        if ((stop->end == all / block || stop->end == (all - 1) / block) &&
            stop->end >= told->prompt_tokens / block &&
            stop->at_ms <= told->ended_ms + KV_TOLD_SLACK_MS)
            return i;
    }
    return -1;
}
