#include "node/route/decisions.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/check.h"
#include "node/route/router_internal.h"

struct row {
    unsigned era; /* a different era: another replica has the index now */
    struct node_candidate candidate;
};

static const char cut_mark[] = {'\xe2', '\x80', '\xa6'}; /* an ellipsis */

/* A client's text, cut at the limit. After cut text, cut_mark follows. */
struct text {
    size_t len;
    char at[NODE_DECISION_NAME_BYTES + sizeof cut_mark];
};
_Static_assert((int)NODE_DECISION_ID_BYTES <= (int)NODE_DECISION_NAME_BYTES, "both fit");

struct entry {
    uint64_t number; /* 0: free */
    uint64_t change;
    uint64_t at_ms;
    const char *policy;
    enum node_reason reason;
    unsigned attempt;
    unsigned candidates, rows, chosen; /* `chosen` is the choice's row */
    bool has_costs, adapter, stream, fell_back;
    double displaced_weight, decode_weight, ttft_s;
    uint64_t prompt_tokens, cached_tokens, output_tokens;
    struct text id, model, alias;
    bool ended;
    bool last; /* this was the request's last attempt, and `result` is the request's result */
    enum node_result result;
    uint64_t ended_ms;
    struct node_decision_end end;
    struct row table[NODE_DECISION_ROWS_MAX];
    bool shadowed; /* in shadow mode, the router's own policy would have chosen `own` */
    unsigned own, own_era;
};

struct node_decisions {
    uint64_t made, newest, change;
    double tokens; /* token bucket: number of entries that may be kept now */
    uint64_t filled_ms;
    struct entry ring[NODE_DECISIONS_MAX];
};

int node_decisions_create(struct node_decisions **out)
{
    struct node_decisions *d = calloc(1, sizeof *d);
    if (!d)
        return ERR_NOMEM;
    d->tokens = NODE_DECISIONS_BURST;
    *out = d;
    return ERR_OK;
}

void node_decisions_destroy(struct node_decisions *d)
{
    free(d);
}

void node_router_decisions(struct node_router *r, struct node_decisions *d)
{
    r->decisions_kept = d;
}

static struct entry *entry_at(const struct node_decisions *d, uint64_t number)
{
    struct entry *e = (struct entry *)&d->ring[number % NODE_DECISIONS_MAX];
    return number != 0 && e->number == number ? e : NULL;
}

/* --- keeping one ----------------------------------------------------------------------------- */

static bool may_keep(struct node_decisions *d, unsigned attempt, uint64_t now_ms)
{
    if (now_ms > d->filled_ms) {
        d->tokens += (double)(now_ms - d->filled_ms) * NODE_DECISIONS_PER_S / 1000;
        if (d->tokens > NODE_DECISIONS_BURST)
            d->tokens = NODE_DECISIONS_BURST;
        d->filled_ms = now_ms;
    }
    if (d->tokens >= 1) {
        d->tokens -= 1;
        return true;
    }
    return attempt > 1;
}

static struct text copy(struct slice from, size_t most)
{
    struct text t = {.len = from.len < most ? from.len : most};
    if (t.len > 0)
        memcpy(t.at, from.at, t.len);
    if (from.len > most) {
        memcpy(t.at + t.len, cut_mark, sizeof cut_mark);
        t.len += sizeof cut_mark;
    }
    return t;
}

static double worth(const struct node_candidate *c, bool costs)
{
    return costs ? c->cost.total_s : (double)c->requests;
}

/* Selects the cheapest candidates, in order. The chosen replica takes the last place if not among
 * them. Returns the number of candidates selected. */
static unsigned select_rows(const struct node_router *r, unsigned chosen, unsigned *out)
{
    bool costs = r->has_costs;
    unsigned count = 0;
    bool has_chosen = false;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        double value = worth(&r->candidates[i], costs);
        if (count == NODE_DECISION_ROWS_MAX &&
            value >= worth(&r->candidates[out[count - 1]], costs))
            continue;
        unsigned at = count < NODE_DECISION_ROWS_MAX ? count++ : count - 1;
        for (; at > 0 && worth(&r->candidates[out[at - 1]], costs) > value; at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
    for (unsigned i = 0; i < count; i++)
        has_chosen |= out[i] == chosen;
    if (!has_chosen)
        out[count - 1] = chosen;
    return count;
}

void node_router_decision_keep(struct node_router *r, const struct node_request *request,
                               const struct node_size *size, const struct node_policy *policy,
                               unsigned chosen, uint64_t now_ms, struct node_decision *out)
{
    struct node_decisions *d = r->decisions_kept;
    if (!d)
        return;
    d->made++;
    if (!may_keep(d, request->attempt, now_ms))
        return;
    uint64_t number = ++d->newest;
    struct entry *e = &d->ring[number % NODE_DECISIONS_MAX];
    unsigned rows[NODE_DECISION_ROWS_MAX];
    unsigned count = select_rows(r, chosen, rows);
    e->number = number;
    e->change = ++d->change;
    e->at_ms = now_ms;
    e->policy = policy->name;
    e->reason = out->reason;
    e->attempt = request->attempt;
    e->candidates = r->candidate_count;
    e->rows = count;
    e->has_costs = r->has_costs;
    e->adapter = size->adapter != 0;
    e->stream = !request->answer_whole;
    e->displaced_weight = r->config.displaced_weight;
    e->decode_weight = r->config.decode_weight;
    e->ttft_s = out->ttft_s;
    e->prompt_tokens = out->prompt_tokens;
    e->cached_tokens = out->cached_tokens;
    e->output_tokens = (uint64_t)size->output_tokens;
    e->id = copy(request->id, NODE_DECISION_ID_BYTES);
    e->model = copy(request->model, NODE_DECISION_NAME_BYTES);
    e->alias = copy(request->alias, NODE_DECISION_NAME_BYTES);
    e->fell_back = request->fell_back;
    e->ended = e->shadowed = false;
    e->last = false;
    for (unsigned i = 0; i < count; i++) {
        const struct node_candidate *c = &r->candidates[rows[i]];
        e->table[i] = (struct row){node_router_replica(r, c->replica)->era, *c};
        if (rows[i] == chosen)
            e->chosen = i;
    }
    out->number = number;
}

void node_router_decision_shadow(struct node_router *r, uint64_t number, unsigned own)
{
    struct entry *e = r->decisions_kept ? entry_at(r->decisions_kept, number) : NULL;
    if (!e)
        return;
    e->shadowed = true;
    e->own = own;
    e->own_era = node_router_replica(r, own)->era;
}

void node_decisions_end(struct node_decisions *d, uint64_t number,
                        const struct node_decision_end *end, uint64_t now_ms)
{
    struct entry *e = d ? entry_at(d, number) : NULL;
    if (!e || e->ended)
        return;
    e->ended = true;
    e->ended_ms = now_ms;
    e->end = *end;
    e->change = ++d->change;
}

void node_decisions_result(struct node_decisions *d, uint64_t number, enum node_result result)
{
    struct entry *e = d ? entry_at(d, number) : NULL;
    if (!e || !e->ended || e->last)
        return;
    e->last = true;
    e->result = result;
    e->change = ++d->change;
}

uint64_t node_decisions_newest(const struct node_decisions *d)
{
    return d->newest;
}

uint64_t node_decisions_made(const struct node_decisions *d)
{
    return d->made;
}

bool node_decisions_ended(const struct node_decisions *d, uint64_t number)
{
    const struct entry *e = entry_at(d, number);
    return e && e->ended;
}

/* --- showing them ---------------------------------------------------------------------------- */

/* Rounded to the microsecond. */
static double rounded(double seconds)
{
    return (double)(int64_t)(seconds * 1e6 + 0.5) / 1e6;
}

void node_candidate_write(const struct node_candidate *c, bool costs, bool all,
                          struct json_writer *w)
{
    static const struct {
        const char *key;
        size_t offset;
        bool detail;
    } figures[] = {
#define FIGURE(key, member, detail) {key, offsetof(struct node_candidate, member), detail}
        FIGURE("queue_s", cost.queue_s, false),
        FIGURE("uncached_s", cost.uncached_s, false),
        FIGURE("displaced_s", cost.displaced_s, false),
        FIGURE("decode_s", cost.decode_s, false),
        FIGURE("adapter_s", cost.adapter_s, false),
        FIGURE("cost_s", cost.total_s, false),
        FIGURE("beyond_s", beyond_s, true),
        FIGURE("times_slower", times_slower, true),
        FIGURE("followers", meets.followers, true),
    };
    json_put_u64(w, "cached_tokens", c->cached_tokens);
    json_put_u64(w, "tier_tokens", c->tier_tokens);
    json_put_u64(w, "requests", c->requests);
    for (unsigned i = 0; i < ARRAY_LEN(figures); i++) {
        double value = *(const double *)((const char *)c + figures[i].offset);
        if (all)
            json_put_double(w, figures[i].key, value);
        else if (!figures[i].detail) /* NaN is written as null */
            json_put_double(w, figures[i].key, costs ? rounded(value) : NAN);
    }
    json_put_bool(w, "due", costs && c->is_due);
}

static void put_told(struct json_writer *w, const char *key, int64_t value)
{
    json_put_known(w, key, value >= 0, (uint64_t)value);
}

static struct slice name_at(const struct node_router *r, unsigned replica, unsigned era)
{
    return node_router_replica(r, replica)->era == era ? node_router_replica_name(r, replica)
                                                       : SLICE("(forgotten)");
}

static struct slice name_of(const struct node_router *r, const struct row *row)
{
    return name_at(r, row->candidate.replica, row->era);
}

/* Writes the outcome; null while the attempt is under way. */
static void put_outcome(struct json_writer *w, const struct entry *e)
{
    const struct node_decision_end *end = &e->end;
    if (!e->ended) {
        json_put_known(w, "outcome", false, 0);
        return;
    }
    json_put_object(w, "outcome");
    json_put_cstr(w, "end", node_outcome_text(end->outcome));
    json_put_cstr(w, "result", e->last ? node_result_text(e->result) : "retried");
    json_put_known(w, "status", end->status != 0, end->status);
    json_put_known(w, "ttft_ms", e->stream && end->first_token_ms >= e->at_ms,
                   end->first_token_ms - e->at_ms);
    json_put_u64(w, "ms", e->ended_ms - e->at_ms);
    put_told(w, "prompt_tokens", end->prompt_tokens);
    put_told(w, "cached_tokens", end->cached_tokens);
    put_told(w, "completion_tokens", end->completion_tokens);
    json_object_end(w);
}

/* A row other than the chosen replica's: with `cheapest` the cheapest replica's, otherwise that of
 * the replica with most of the prompt cached. */
static struct node_reason_row other_row(const struct node_router *r, const struct entry *e,
                                        bool cheapest)
{
    const struct row *found = NULL;
    for (unsigned i = 0; i < e->rows; i++) {
        const struct row *row = &e->table[i];
        bool better =
            !found || (cheapest ? worth(&row->candidate, e->has_costs) <
                                      worth(&found->candidate, e->has_costs)
                                : row->candidate.cached_tokens > found->candidate.cached_tokens);
        if (i != e->chosen && better)
            found = row;
    }
    return found ? (struct node_reason_row){&found->candidate, name_of(r, found)}
                 : (struct node_reason_row){NULL, slice_of("", 0)};
}

static void put_why_text(struct json_writer *w, const struct node_router *r, const struct entry *e)
{
    char words[NODE_REASON_WORDS_BYTES];
    const struct row *chosen = &e->table[e->chosen];
    struct node_reason_facts facts = {
        .reason = e->reason,
        .attempt = e->attempt,
        .prompt_tokens = e->prompt_tokens,
        .has_costs = e->has_costs,
        .displaced_weight = e->displaced_weight,
        .chosen = {&chosen->candidate, name_of(r, chosen)},
        .most = other_row(r, e, false),
        .next = other_row(r, e, true),
    };
    json_put_cstr(w, "why_text", node_reason_words(&facts, words));
}

static void put_entry(struct json_writer *w, const struct node_router *r, const struct entry *e,
                      uint64_t now_ms, uint64_t unix_ms)
{
    const struct row *chosen = &e->table[e->chosen];
    json_object_begin(w);
    json_put_u64(w, "id", e->number);
    json_put_u64(w, "change", e->change);
    json_put_u64(w, "time_ms", unix_ms - (now_ms - e->at_ms));
    json_put_slice(w, "request", slice_of(e->id.at, e->id.len));
    json_put_u64(w, "attempt", e->attempt);
    json_put_slice(w, "model", slice_of(e->model.at, e->model.len));
    json_put_slice(w, "alias", slice_of(e->alias.at, e->alias.len));
    json_put_bool(w, "fallback", e->fell_back);
    json_put_bool(w, "stream", e->stream);
    json_put_cstr(w, "policy", e->policy);
    json_put_slice(w, "choice", name_of(r, chosen));
    json_put_cstr(w, "why", node_reason_text(e->reason));
    put_why_text(w, r, e);
    json_put_slice(w, "shadow_choice", /* empty: no shadow mode, or a retry */
                   e->shadowed ? name_at(r, e->own, e->own_era) : slice_of("", 0));
    json_put_u64(w, "prompt_tokens", e->prompt_tokens);
    json_put_u64(w, "cached_tokens", e->cached_tokens);
    json_put_u64(w, "output_tokens", e->output_tokens);
    json_put_bool(w, "adapter", e->adapter);
    json_put_double(w, "ttft_s", e->ttft_s > 0 ? rounded(e->ttft_s) : NAN);
    json_put_double(w, "displaced_weight", e->displaced_weight);
    json_put_double(w, "decode_weight", e->decode_weight);
    json_put_u64(w, "candidates", e->candidates);
    json_put_array(w, "replicas");
    for (unsigned i = 0; i < e->rows; i++) {
        json_object_begin(w);
        json_put_slice(w, "replica", name_of(r, &e->table[i]));
        node_candidate_write(&e->table[i].candidate, e->has_costs, false, w);
        json_object_end(w);
    }
    json_array_end(w);
    put_outcome(w, e);
    json_object_end(w);
}

static uint64_t place(const struct entry *e, const struct node_decisions_query *q)
{
    return q->order == NODE_DECISIONS_CHANGES ? e->change : e->number;
}

static bool is_named(const struct text *t, struct slice name, size_t most)
{
    struct text wanted = copy(name, most);
    return slice_equal(slice_of(t->at, t->len), slice_of(wanted.at, wanted.len));
}

/* True if the attempt failed, and the client was not the reason. A retried attempt counts as
 * failed. The 429 of a full engine is a 4xx, but no fault of the client. */
static bool has_failed(const struct entry *e)
{
    bool by_client = e->end.outcome == NODE_OUTCOME_CLIENT_GONE;
    bool busy = e->end.outcome == NODE_OUTCOME_ENGINE_BUSY;
    return e->ended && (e->last ? busy || node_result_failed(e->result)
                                : e->end.outcome != NODE_OUTCOME_OK && !by_client);
}

/* The time until the first token, or until a whole answer without a stream. During the wait, the
 * time so far. */
static uint64_t waited_ms(const struct entry *e, uint64_t now_ms)
{
    uint64_t until_ms = e->ended ? e->ended_ms : now_ms;
    if (e->ended && e->stream && e->end.first_token_ms >= e->at_ms)
        until_ms = e->end.first_token_ms;
    return until_ms > e->at_ms ? until_ms - e->at_ms : 0;
}

static bool matches(const struct entry *e, const struct node_router *r,
                    const struct node_decisions_query *q, uint64_t now_ms)
{
    if (e->number == 0 || (q->ended && !e->ended) || (q->failed && !has_failed(e)))
        return false;
    if (q->has_reason && e->reason != q->reason)
        return false;
    if (q->slow_ms > 0 && waited_ms(e, now_ms) <= q->slow_ms)
        return false;
    if (q->replica.len > 0 && !slice_equal(name_of(r, &e->table[e->chosen]), q->replica))
        return false;
    return q->model.len == 0 || is_named(&e->model, q->model, NODE_DECISION_NAME_BYTES) ||
           is_named(&e->alias, q->model, NODE_DECISION_NAME_BYTES);
}

/* The matching entry with the lowest place beyond `beyond`; NULL: none. The query's order says if
 * places are numbers or changes. */
static const struct entry *next(const struct node_decisions *d, const struct node_router *r,
                                const struct node_decisions_query *q, uint64_t beyond,
                                uint64_t now_ms)
{
    const struct entry *found = NULL;
    for (const struct entry *e = d->ring; e < d->ring + NODE_DECISIONS_MAX; e++) {
        bool nearer = place(e, q) > beyond && (!found || place(e, q) < place(found, q));
        if (nearer && matches(e, r, q, now_ms))
            found = e;
    }
    return found;
}

/* The number beyond which the last q->count matching entries are, or all matching entries if there
 * are fewer. */
static uint64_t last_beyond(const struct node_decisions *d, const struct node_router *r,
                            const struct node_decisions_query *q, uint64_t now_ms)
{
    uint64_t beyond = d->newest;
    for (unsigned left = q->count; left > 0 && entry_at(d, beyond); beyond--)
        left -= matches(entry_at(d, beyond), r, q, now_ms);
    return beyond;
}

uint64_t node_decisions_write(const struct node_decisions *d, const struct node_router *r,
                              const struct node_decisions_query *q, uint64_t now_ms,
                              uint64_t unix_ms, struct json_writer *w)
{
    bool one = q->order == NODE_DECISIONS_ONE;
    uint64_t beyond =
        q->order == NODE_DECISIONS_LAST ? last_beyond(d, r, q, now_ms) : q->beyond - one;
    const struct entry *e;
    json_array_begin(w);
    for (unsigned left = q->count; left > 0 && (e = next(d, r, q, beyond, now_ms)) != NULL;
         left--) {
        if (one && e->number != q->beyond)
            break;
        put_entry(w, r, e, now_ms, unix_ms);
        beyond = place(e, q);
    }
    json_array_end(w);
    return q->order == NODE_DECISIONS_CHANGES ? beyond : d->change;
}

void node_decisions_end_write(const struct node_decisions *d, uint64_t number,
                              struct json_writer *w)
{
    const struct entry *e = entry_at(d, number);
    json_object_begin(w);
    json_put_u64(w, "id", number);
    if (e)
        put_outcome(w, e);
    json_object_end(w);
}

void node_decisions_check(const struct node_decisions *d)
{
    CHECK(d->newest <= d->made && d->newest <= d->change);
    for (unsigned i = 0; i < NODE_DECISIONS_MAX; i++) {
        const struct entry *e = &d->ring[i];
        if (e->number == 0)
            continue;
        CHECK(e->number % NODE_DECISIONS_MAX == i && e->number <= d->newest);
        CHECK(e->number + NODE_DECISIONS_MAX > d->newest && e->change <= d->change);
        CHECK(e->rows > 0 && e->rows <= NODE_DECISION_ROWS_MAX && e->chosen < e->rows);
    }
}
