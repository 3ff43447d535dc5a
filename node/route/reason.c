#include "node/route/reason.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "node/route/policy.h"

/* Each reason's name, and the phrase for it if no figures are needed. */
static const struct {
    const char *name, *phrase;
} texts[NODE_REASONS] = {
    [NODE_REASON_LOAD] = {"load",
                          "the router read no prompt: this replica had the fewest requests"},
    [NODE_REASON_MAKER] = {"maker", "made the stored response that the request continues"},
    [NODE_REASON_ONLY] = {"only", "no other replica could be chosen"},
    [NODE_REASON_COLD] = {"cold", NULL},
    [NODE_REASON_CACHED] = {"cached", NULL},
    [NODE_REASON_CHEAPER] = {"cheaper", NULL},
    [NODE_REASON_DUE] =
        {"due", "slow, but nothing waits there, and it got less work than its speed allows"},
    [NODE_REASON_PLAIN] = {"plain", "routed by plain-policy, for shadow mode or the control group"},
};

const char *node_reason_text(enum node_reason reason)
{
    return texts[reason].name;
}

bool node_reason_parse(struct slice text, enum node_reason *out)
{
    for (unsigned i = 0; i < NODE_REASONS; i++) {
        if (!slice_equal(text, slice_of_cstr(texts[i].name)))
            continue;
        *out = (enum node_reason)i;
        return true;
    }
    return false;
}

enum node_reason node_reason_of(const struct node_candidate *candidates, unsigned count,
                                unsigned chosen)
{
    uint64_t most = 0;
    if (count == 1)
        return NODE_REASON_ONLY;
    if (candidates[chosen].is_due)
        return NODE_REASON_DUE;
    for (unsigned i = 0; i < count; i++) {
        if (candidates[i].cached_tokens > most)
            most = candidates[i].cached_tokens;
    }
    if (most == 0)
        return NODE_REASON_COLD;
    return candidates[chosen].cached_tokens == most ? NODE_REASON_CACHED : NODE_REASON_CHEAPER;
}

/* --- words ----------------------------------------------------------------------------------- */

struct words {
    char *at;
    size_t len;
};

static void put(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct words *w, const char *format, ...)
{
    va_list arguments;
    size_t room = NODE_REASON_WORDS_BYTES - w->len;
    va_start(arguments, format);
    int n = vsnprintf(w->at + w->len, room, format, arguments);
    va_end(arguments);
    w->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Appends the term that makes replica `a` dearer than `b`, as a statement about `a`. */
static void put_dearer(struct words *w, const struct node_reason_facts *f,
                       const struct node_candidate *a, const struct node_candidate *b)
{
    const struct node_cost *x = &a->cost, *y = &b->cost;
    const double more[] = {
        x->queue_s - y->queue_s,
        x->uncached_s - y->uncached_s,
        f->displaced_weight * (x->displaced_s - y->displaced_s),
        x->adapter_s - y->adapter_s,
    };
    static const char *const said[ARRAY_LEN(more) + 1] = {
        "more prompts wait there",
        "more of the prompt would be computed there",
        "the prompt would evict there what others need",
        "the adapter would be loaded there",
        "more answers are running there", /* the rest of the difference */
    };
    double rest = x->total_s - y->total_s;
    unsigned most = 0;
    for (unsigned i = 0; i < ARRAY_LEN(more); i++) {
        rest -= more[i];
        most = more[i] > more[most] ? i : most;
    }
    double by = more[most];
    if (rest > by) {
        most = ARRAY_LEN(more);
        by = rest;
    }
    if (f->has_costs && by > 0)
        put(w, "%s (+%.3f s)", said[most], by);
    else
        put(w, "costs about the same");
}

static void put_cached(struct words *w, const struct node_reason_facts *f)
{
    const struct node_candidate *most = f->most.candidate;
    put(w, "holds %" PRIu64 " of %" PRIu64 " prompt tokens; ", f->chosen.candidate->cached_tokens,
        f->prompt_tokens);
    if (most == NULL || most->cached_tokens == 0) {
        put(w, "no other holds any");
    } else if (most->cached_tokens < f->chosen.candidate->cached_tokens) {
        put(w, "%.*s is next with %" PRIu64, SLICE_ARG(f->most.name), most->cached_tokens);
    } else {
        put(w, "%.*s holds as much, but ", SLICE_ARG(f->most.name));
        put_dearer(w, f, most, f->chosen.candidate);
    }
}

static void put_cheaper(struct words *w, const struct node_reason_facts *f)
{
    put(w, "holds %" PRIu64 " of %" PRIu64 " prompt tokens; ", f->chosen.candidate->cached_tokens,
        f->prompt_tokens);
    if (f->most.candidate == NULL) {
        put(w, "another holds more and is busier");
        return;
    }
    put(w, "%.*s holds %" PRIu64 ", but ", SLICE_ARG(f->most.name),
        f->most.candidate->cached_tokens);
    put_dearer(w, f, f->most.candidate, f->chosen.candidate);
}

static void put_cold(struct words *w, const struct node_reason_facts *f)
{
    put(w, "no replica holds any of %" PRIu64 " prompt tokens", f->prompt_tokens);
    if (!f->has_costs || f->next.candidate == NULL)
        return;
    put(w, "; costs %.3f s here, %.3f s at %.*s", f->chosen.candidate->cost.total_s,
        f->next.candidate->cost.total_s, SLICE_ARG(f->next.name));
}

const char *node_reason_words(const struct node_reason_facts *f, char out[NODE_REASON_WORDS_BYTES])
{
    struct words w = {.at = out};
    CHECK(f->reason < NODE_REASONS);
    out[0] = '\0';
    if (f->attempt > 1)
        put(&w, "attempt %u: ", f->attempt);
    if (texts[f->reason].phrase != NULL)
        put(&w, "%s", texts[f->reason].phrase);
    else if (f->reason == NODE_REASON_CACHED)
        put_cached(&w, f);
    else if (f->reason == NODE_REASON_CHEAPER)
        put_cheaper(&w, f);
    else
        put_cold(&w, f);
    return out;
}
