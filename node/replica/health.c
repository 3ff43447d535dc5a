#include "node/replica/health.h"

#include "base/bug.h"
#include "base/number.h"
#include "node/replica/replica.h"

/* A prompt explains silence for this multiple of the learned time, because long prompts are slower.
 * A rate without samples counts only up to prefill_rate_unproven. */
static const double prefill_margin = 4, prefill_rate_unproven = 1000; /* tokens a second */
/* Number of decode steps that may pass without a sign of life. */
static const double steps_margin = 10;
/* A replica whose stall does not end is tried again after this time. */
static const uint64_t stall_max_ms = 30000;

void node_backoff_set(struct node_backoff *b, unsigned level, uint32_t first_ms, uint64_t now_ms)
{
    b->level = (uint8_t)(level < NODE_BACKOFF_LEVELS ? level : NODE_BACKOFF_LEVELS);
    uint32_t length_ms = first_ms << (b->level - 1);
    b->until_ms = now_ms + (length_ms < NODE_BACKOFF_MAX_MS ? length_ms : NODE_BACKOFF_MAX_MS);
    b->trial = true;
}

void node_backoff_again(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms)
{
    bool soon = now_ms <= b->until_ms + NODE_BACKOFF_FORGET_MS;
    node_backoff_set(b, soon ? b->level + 1U : 1, first_ms, now_ms);
}

void node_backoff_begin(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms)
{
    if (now_ms >= b->until_ms)
        node_backoff_again(b, first_ms, now_ms);
}

/* --- signs ---------------------------------------------------------------------------------- */

static void stall_over(struct node_signs *s)
{
    s->starved = s->stall == NODE_STALL_STARVED;
    s->stall = NODE_STALL_NONE;
    s->quiet = false;
}

void node_signs_moved(struct node_signs *s, uint64_t now_ms)
{
    s->moved_ms = now_ms;
    s->still_ms = 0;
    s->proven = true;
    s->warned = false;
    node_signs_worked(s, now_ms);
    bool on_trial = s->stall == NODE_STALL_NONE && s->stalls.trial && !s->starved;
    if (!on_trial && (s->stall == NODE_STALL_NONE || s->stall == NODE_STALL_STARVED))
        return;
    stall_over(s);
    s->stalls.until_ms = 0;
    s->stalls.trial = false;
}

void node_signs_worked(struct node_signs *s, uint64_t now_ms)
{
    s->worked_ms = now_ms > s->worked_ms ? now_ms : s->worked_ms;
}

static bool grew(double before, double now)
{
    return now >= 0 && before >= 0 && now != before;
}

bool node_signs_scraped(struct node_signs *s, const struct node_scrape *before,
                        const struct node_scrape *now, bool restarted, uint64_t now_ms)
{
    if (restarted) { /* the hung process is gone */
        *s = (struct node_signs){.leaving = s->leaving,
                                 .stalls_total = s->stalls_total,
                                 .down_ms = s->down_ms,
                                 .heard_waits = s->heard_waits,
                                 .heard_found = s->heard_found};
        s->moved_ms = s->worked_ms = now_ms;
    }
    bool works = node_work_take(&s->work, &now->work);
    s->proven |= now->generation_tokens > 0; /* a token was counted, for any client */
    if (restarted)
        return true;
    bool counts = now->generation_tokens >= 0 || now->prompt_tokens >= 0 ||
                  now->prefix_queries >= 0 || node_work_tells_steps(&now->work);
    if (before == NULL || !counts)
        return false;
    /* Other routers' figures may have only these counters. */
    works = works || grew(before->generation_tokens, now->generation_tokens) ||
            grew(before->prompt_tokens, now->prompt_tokens) ||
            grew(before->prefix_queries, now->prefix_queries);
    if (works)
        node_signs_moved(s, now_ms);
    else
        s->still_ms = now_ms;
    return works;
}

void node_signs_answering(struct node_signs *s, uint64_t now_ms)
{
    node_signs_moved(s, now_ms);
    s->stalls.trial = s->found = false;
    s->first_ms = now_ms;
}

bool node_signs_are_moving(const struct node_signs *s, uint64_t now_ms)
{
    return s->worked_ms != 0 && now_ms < s->worked_ms + NODE_MOVES_MS;
}

/* --- judgement ------------------------------------------------------------------------------ */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t passed(uint64_t since_ms, uint64_t now_ms)
{
    return since_ms != 0 && now_ms > since_ms ? now_ms - since_ms : 0;
}

/* Time for which the engine may work without a sign of life. Only the sum of other routers' prompts
 * is known; it covers their longest prompt. */
static uint64_t explained_ms(const struct node_replica *k, const struct node_watched *w)
{
    double rate = k->believed.tokens_per_s;
    if (k->shown.rate.samples == 0)
        rate = number_min(rate, prefill_rate_unproven * prefill_margin);
    double tokens = (double)w->prefill_tokens_max + (double)k->load.remote.prefill_tokens;
    double context = (double)k->load.context_tokens + (double)k->load.remote.context_tokens;
    double step_s = node_believed_step_s(&k->believed, context);
    double s = prefill_margin * tokens / rate + steps_margin * step_s;
    return (uint64_t)(s * 1000);
}

/* Multiple of watchdog_ms if the evidence is weak: an engine's first tokens may need kernels to be
 * compiled; a lone request may wait for a grammar. */
enum { LONG = 3 };

/* Multiple of watchdog_ms required by the evidence. */
static unsigned counters_margin(const struct node_replica *k, const struct node_watched *w,
                                bool health_late)
{
    enum { SOME = 2, FEW = 2 };
    const struct node_signs *s = &k->signs;
    if (!s->proven && !s->stalls.trial)
        return LONG;
    bool sglang = k->engine == NODE_ENGINE_SGLANG;
    bool coarse = sglang && !node_signs_tells_steps(k);
    bool at_work = !sglang && k->scrape.running > 0;
    if (at_work || health_late || w->streaming > 0 || s->stalls.trial || s->warned)
        return 1;
    if (w->plain_long > 0 && !coarse && k->scrape.running >= 0)
        return 1;
    unsigned waiting_long = w->waiting_long + s->heard_waits;
    return waiting_long > FEW ? (coarse ? SOME : 1) : waiting_long == FEW ? SOME : LONG;
}

/* True if the metrics show fewer requests than all routers have there, and an empty queue. */
static bool not_there(const struct node_replica *k, const struct node_watched *w)
{
    enum { FEW = 2 };
    double ours = (double)w->waiting + (double)w->streaming + (double)k->load.remote.requests;
    return k->engine == NODE_ENGINE_VLLM && w->waiting_long + k->signs.heard_waits > FEW &&
           k->scrape.waiting == 0 && k->scrape.running >= 0 && k->scrape.running + FEW < ours;
}

/* True if not a byte came for `ms`, though the router could send probes. */
static bool is_silent(const struct node_watched *w, uint64_t ms, uint64_t now_ms)
{
    return passed(later(later(w->heard_ms, w->since_ms), w->unasked_ms), now_ms) >= ms &&
           passed(w->asked_ms, now_ms) >= ms / 2;
}

/* True if no token came or was counted for `times` times `ms`, beyond the explained time. */
static bool is_still(const struct node_replica *k, const struct node_watched *w, uint64_t ms,
                     unsigned times, uint64_t now_ms)
{
    uint64_t moved = later(later(k->signs.moved_ms, w->token_ms), w->since_ms);
    return k->signs.still_ms >= moved + ms / 2 &&
           passed(moved, now_ms) >= explained_ms(k, w) + ms * times;
}

enum node_stall node_signs_judge(const struct node_replica *k, const struct node_watched *w,
                                 uint64_t watchdog_ms, uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    if (w->waiting + w->streaming == 0 || watchdog_ms == 0)
        return NODE_STALL_NONE;
    if (is_silent(w, watchdog_ms, now_ms))
        return NODE_STALL_SILENT;
    bool health_hangs = passed(w->health_asked_ms, now_ms) >= watchdog_ms;
    bool fresh = k->scraped_ms != 0 && passed(k->scraped_ms, now_ms) < watchdog_ms;
    bool health_late = passed(w->health_asked_ms, now_ms) >= watchdog_ms * 2 / 3;
    if (fresh && is_still(k, w, watchdog_ms, counters_margin(k, w, health_late), now_ms))
        return NODE_STALL_COUNTERS;
    uint64_t starved_ms = explained_ms(k, w) + watchdog_ms * (s->proven ? 1 : LONG);
    bool starved = w->waiting_long > 0 && w->waiting_long + s->heard_waits > 1 &&
                   passed(later(s->first_ms, w->since_ms), now_ms) >= starved_ms;
    bool queued = fresh && k->scrape.waiting > 0;
    if (starved && ((health_hangs && !queued) || (fresh && not_there(k, w))))
        return NODE_STALL_STARVED;
    return NODE_STALL_NONE;
}

/* True if the requests under way got no byte for a third of watchdog_ms, or, if they are several,
 * no token for a third of watchdog_ms plus the explained time. */
static bool is_quiet(const struct node_replica *k, const struct node_watched *w,
                     uint64_t watchdog_ms, uint64_t now_ms)
{
    unsigned wanted = w->waiting + w->streaming;
    if (wanted == 0 || watchdog_ms == 0)
        return false;
    return is_silent(w, watchdog_ms / 3, now_ms) ||
           (wanted > 1 && is_still(k, w, watchdog_ms / 3, 1, now_ms));
}

/* True if a request may try the stalled replica. The replica must have sent a byte since the stall
 * began. Unless the stall was silence, the back-off must also be over. The engine must then be
 * idle, have moved or report no load, or the stall must be older than stall_max_ms. */
static bool may_be_tried(const struct node_replica *k, const struct node_watched *w,
                         uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    if (w->heard_ms <= s->stalled_ms)
        return false;
    if (s->stall == NODE_STALL_SILENT)
        return true;
    if (now_ms < s->stalls.until_ms)
        return false;
    bool knows = k->scraped_ms > s->stalled_ms && k->scrape.running >= 0;
    bool idle = knows && k->scrape.running + number_max(k->scrape.waiting, 0) == 0;
    return !knows || idle || s->moved_ms > s->stalled_ms || now_ms >= s->stalled_ms + stall_max_ms;
}

/* Changes a starved stall into a stall of all requests. Starvation is noticed before silence and
 * before still counters. */
static void turns_worse(struct node_signs *s, enum node_stall stall, uint64_t now_ms)
{
    if (stall != NODE_STALL_SILENT && stall != NODE_STALL_COUNTERS)
        return;
    s->stall = stall;
    s->stalled_ms = now_ms;
    s->found = stall != NODE_STALL_SILENT;
}

/* Counts this router's tokens as work to report, because other routers may not read the metrics. */
static void note_tokens(struct node_replica *k, uint64_t token_ms)
{
    struct node_signs *s = &k->signs;
    if (token_ms <= s->moved_ms)
        return;
    node_signs_moved(s, token_ms);
    if (token_ms < s->told_ms + NODE_WORK_TELL_MS)
        return;
    s->told_ms = token_ms;
    k->cache.sums.work++;
}

void node_signs_watch(struct node_replica *k, const struct node_watched *w, uint64_t watchdog_ms,
                      uint64_t now_ms)
{
    struct node_signs *s = &k->signs;
    note_tokens(k, w->token_ms);
    bool over = now_ms >= s->stalls.until_ms + NODE_STALL_BACKOFF_MS;
    if (s->stall == NODE_STALL_NONE && over && !BUG(FINDING_KEPT))
        s->found = false; /* this router had no request for a trial: others may try */
    s->waits = (uint8_t)(w->waiting_long < NODE_STILL_WAITS ? w->waiting_long : NODE_STILL_WAITS);
    s->explained_ms = explained_ms(k, w);
    if (s->stall == NODE_STALL_STARVED)
        turns_worse(s, node_signs_judge(k, w, watchdog_ms, now_ms), now_ms);
    if (s->stall != NODE_STALL_NONE) {
        if (may_be_tried(k, w, now_ms) || watchdog_ms == 0) {
            stall_over(s);
            s->stalls.until_ms = now_ms;
        }
        return;
    }
    s->quiet = is_quiet(k, w, watchdog_ms, now_ms);
    enum node_stall stall = node_signs_judge(k, w, watchdog_ms, now_ms);
    if (stall == NODE_STALL_NONE)
        return;
    /* Requests waiting since before the last back-off are no trial: others may try. */
    bool tried = !s->stalls.trial || s->tried_ms >= s->stalls.until_ms;
    s->stall = stall;
    s->stalled_ms = now_ms;
    s->found = stall != NODE_STALL_SILENT && tried;
    s->stalls_total++;
    node_backoff_begin(&s->stalls, NODE_STALL_BACKOFF_MS, now_ms);
}

/* --- between routers ------------------------------------------------------------------------ */

uint8_t node_signs_report(const struct node_signs *s)
{
    bool found = s->found && (s->stall != NODE_STALL_NONE || s->stalls.trial);
    return (uint8_t)(s->waits | (found ? NODE_STILL_FOUND : 0));
}

void node_signs_hear(struct node_signs *s, unsigned waits, bool found, uint64_t now_ms)
{
    s->heard_waits = (uint8_t)(waits < UINT8_MAX ? waits : UINT8_MAX);
    if (s->warned && !found && !node_signs_are_moving(s, now_ms)) {
        s->stalls.trial = true;
        s->starved = false;
    }
    s->warned = found && (s->warned || !s->heard_found);
    s->heard_found = found;
}

/* --- what has begun there ------------------------------------------------------------------- */

bool node_signs_tells_steps(const struct node_replica *k)
{
    return node_work_tells_steps(&k->scrape.work);
}

bool node_signs_lost(const struct node_replica *k, uint64_t since_ms, uint64_t heard_ms,
                     uint64_t stall_cut_ms, uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    uint64_t limit_ms = later(stall_cut_ms, s->explained_ms);
    uint64_t still_ms = later(since_ms, s->worked_ms);
    if (stall_cut_ms == 0 || passed(still_ms, now_ms) < limit_ms)
        return false;
    bool read = node_signs_tells_steps(k) && k->scraped_ms >= still_ms + limit_ms / 2;
    bool mute = passed(later(heard_ms, since_ms), now_ms) >= limit_ms;
    return read || mute || k->absent;
}

const char *node_stall_name(enum node_stall stall)
{
    static const char *const names[] = {[NODE_STALL_NONE] = "",
                                        [NODE_STALL_SILENT] = "silent",
                                        [NODE_STALL_COUNTERS] = "counters",
                                        [NODE_STALL_STARVED] = "starved"};
    return names[stall];
}
