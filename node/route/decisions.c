#include "node/route/decisions.h"

#include <stdlib.h>

#include "base/check.h"
#include "node/route/router_internal.h"

struct row {
    uint16_t replica;
    bool due;
    unsigned era; /* another one: another replica has this index by now */
    uint32_t requests, cached_tokens, tier_tokens;
    float queue_s, uncached_s, displaced_s, decode_s, adapter_s, total_s;
};

/* A text of a client, cut at its limit. */
struct text {
    uint8_t len;
    bool cut;
};

struct entry {
    uint64_t number; /* 0: free */
    uint64_t change;
    uint64_t at_ms;
    const char *policy;
    enum node_reason reason;
    unsigned attempt;
    unsigned candidates, rows, chosen; /* that one is the row of the choice */
    bool has_costs, adapter, stream;
    float displaced_weight, decode_weight, ttft_s;
    uint32_t prompt_tokens, output_tokens;
    struct text id, model;
    char id_text[NODE_DECISION_ID_BYTES], model_text[NODE_DECISION_NAME_BYTES];
    bool ended;
    bool last; /* of its request, which ended with that result */
    enum node_result result;
    uint64_t ended_ms;
    struct node_decision_end end;
    struct row table[NODE_DECISION_ROWS_MAX];
};

struct node_decisions {
    uint64_t made, newest, change;
    double tokens; /* of a bucket: so many may be kept now */
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

static uint32_t to_u32(uint64_t x)
{
    return x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static struct text copy(struct slice from, char *to, size_t size)
{
    struct text t = {.cut = from.len > size};
    t.len = (uint8_t)(t.cut ? size : from.len);
    if (t.len > 0)
        memcpy(to, from.at, t.len);
    return t;
}

static double worth(const struct node_candidate *c, bool costs)
{
    return costs ? c->cost.total_s : (double)c->requests;
}

/* The cheapest, in order, and the chosen one as the last where it is none of them. Returns how
 * many. */
static unsigned select_rows(const struct node_router *r, unsigned chosen, bool costs, unsigned *out)
{
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

static struct row row_of(const struct node_router *r, const struct node_candidate *c)
{
    return (struct row){
        .replica = (uint16_t)c->replica,
        .due = c->is_due,
        .era = node_router_replica(r, c->replica)->era,
        .requests = to_u32(c->requests),
        .cached_tokens = to_u32(c->cached_tokens),
        .tier_tokens = to_u32(c->tier_tokens),
        .queue_s = (float)c->cost.queue_s,
        .uncached_s = (float)c->cost.uncached_s,
        .displaced_s = (float)c->cost.displaced_s,
        .decode_s = (float)c->cost.decode_s,
        .adapter_s = (float)c->cost.adapter_s,
        .total_s = (float)c->cost.total_s,
    };
}

void node_router_decision_keep(struct node_router *r, const struct node_request *request,
                               const struct node_size *size, unsigned chosen, bool costs,
                               uint64_t now_ms, struct node_decision *out)
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
    unsigned count = select_rows(r, chosen, costs, rows);
    e->number = number;
    e->change = ++d->change;
    e->at_ms = now_ms;
    e->policy = r->policy->name;
    e->reason = out->reason;
    e->attempt = request->attempt;
    e->candidates = r->candidate_count;
    e->rows = count;
    e->has_costs = costs;
    e->adapter = size->adapter != 0;
    e->stream = !request->answer_whole;
    e->displaced_weight = (float)r->config.displaced_weight;
    e->decode_weight = (float)r->config.decode_weight;
    e->ttft_s = (float)out->ttft_s;
    e->prompt_tokens = to_u32(out->prompt_tokens);
    e->output_tokens = (uint32_t)size->output_tokens;
    e->id = copy(request->id, e->id_text, sizeof e->id_text);
    e->model = copy(request->model, e->model_text, sizeof e->model_text);
    e->ended = false;
    e->last = false;
    for (unsigned i = 0; i < count; i++) {
        e->table[i] = row_of(r, &r->candidates[rows[i]]);
        if (rows[i] == chosen)
            e->chosen = i;
    }
    out->number = number;
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

/* Seconds to the microsecond: a float has more digits than it knows. */
static void put_seconds(struct json_writer *w, const char *key, bool known, float value)
{
    json_key(w, key);
    if (known)
        json_double(w, (double)(int64_t)((double)value * 1e6 + 0.5) / 1e6);
    else
        json_nil(w);
}

static void put_weight(struct json_writer *w, const char *key, float value)
{
    json_key(w, key);
    json_double(w, (double)(int64_t)((double)value * 1e4 + 0.5) / 1e4);
}

static void put_text(struct json_writer *w, const char *key, const struct text *t, const char *text)
{
    static const char cut[] = {'\xe2', '\x80', '\xa6'}; /* an ellipsis */
    char whole[NODE_DECISION_NAME_BYTES + sizeof cut];
    _Static_assert((int)NODE_DECISION_ID_BYTES <= (int)NODE_DECISION_NAME_BYTES, "both fit");
    memcpy(whole, text, t->len);
    memcpy(whole + t->len, cut, sizeof cut);
    json_key(w, key);
    json_slice(w, slice_of(whole, t->len + (t->cut ? sizeof cut : 0)));
}

static void put_told(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, key);
    if (value >= 0)
        json_i64(w, value);
    else
        json_nil(w);
}

static void put_name(struct json_writer *w, const struct node_router *r, const char *key,
                     const struct row *row)
{
    bool same = node_router_replica(r, row->replica)->era == row->era;
    json_key(w, key);
    json_slice(w, same ? node_router_replica_name(r, row->replica) : SLICE("(forgotten)"));
}

static void put_row(struct json_writer *w, const struct node_router *r, const struct entry *e,
                    const struct row *row)
{
    json_object_begin(w);
    put_name(w, r, "replica", row);
    json_put_u64(w, "cached_tokens", row->cached_tokens);
    json_put_u64(w, "tier_tokens", row->tier_tokens);
    json_put_u64(w, "requests", row->requests);
    put_seconds(w, "queue_s", e->has_costs, row->queue_s);
    put_seconds(w, "uncached_s", e->has_costs, row->uncached_s);
    put_seconds(w, "displaced_s", e->has_costs, row->displaced_s);
    put_seconds(w, "decode_s", e->has_costs, row->decode_s);
    put_seconds(w, "adapter_s", e->has_costs, row->adapter_s);
    put_seconds(w, "cost_s", e->has_costs, row->total_s);
    json_key(w, "due");
    json_bool(w, e->has_costs && row->due);
    json_object_end(w);
}

const char *node_outcome_text(enum node_outcome outcome)
{
    static const char *const texts[] = {
        [NODE_OUTCOME_OK] = "ok",
        [NODE_OUTCOME_CLIENT_GONE] = "client_gone",
        [NODE_OUTCOME_ENGINE_BUSY] = "engine_busy",
        [NODE_OUTCOME_ENGINE_ERROR] = "engine_error",
        [NODE_OUTCOME_CONNECT_FAILED] = "connect_failed",
        [NODE_OUTCOME_BROKEN] = "broken",
        [NODE_OUTCOME_IN_DOUBT] = "in_doubt",
        [NODE_OUTCOME_SLOW] = "slow",
        [NODE_OUTCOME_STALLED] = "stalled",
        [NODE_OUTCOME_NOT_SENT] = "not_sent",
        [NODE_OUTCOME_REJECTED] = "rejected",
    };
    CHECK((unsigned)outcome < ARRAY_LEN(texts));
    return texts[outcome];
}

/* null while it is under way. */
static void put_outcome(struct json_writer *w, const struct entry *e)
{
    json_key(w, "outcome");
    if (!e->ended) {
        json_nil(w);
        return;
    }
    const struct node_decision_end *end = &e->end;
    json_object_begin(w);
    json_key(w, "end");
    json_cstr(w, node_outcome_text(end->outcome));
    json_key(w, "result");
    json_cstr(w, e->last ? node_result_text(e->result) : "retried");
    put_told(w, "status", end->status != 0 ? (int64_t)end->status : -1);
    put_told(w, "ttft_ms",
             e->stream && end->first_token_ms >= e->at_ms
                 ? (int64_t)(end->first_token_ms - e->at_ms)
                 : -1);
    json_put_u64(w, "ms", e->ended_ms - e->at_ms);
    put_told(w, "prompt_tokens", end->prompt_tokens);
    put_told(w, "cached_tokens", end->cached_tokens);
    put_told(w, "completion_tokens", end->completion_tokens);
    json_object_end(w);
}

static void put_entry(struct json_writer *w, const struct node_router *r, const struct entry *e,
                      uint64_t now_ms, uint64_t unix_ms)
{
    const struct row *chosen = &e->table[e->chosen];
    json_object_begin(w);
    json_put_u64(w, "id", e->number);
    json_put_u64(w, "change", e->change);
    json_put_u64(w, "time_ms", unix_ms - (now_ms - e->at_ms));
    put_text(w, "request", &e->id, e->id_text);
    json_put_u64(w, "attempt", e->attempt);
    put_text(w, "model", &e->model, e->model_text);
    json_key(w, "stream");
    json_bool(w, e->stream);
    json_key(w, "policy");
    json_cstr(w, e->policy);
    put_name(w, r, "choice", chosen);
    json_key(w, "why");
    json_cstr(w, node_reason_text(e->reason));
    json_put_u64(w, "prompt_tokens", e->prompt_tokens);
    json_put_u64(w, "cached_tokens", chosen->cached_tokens);
    json_put_u64(w, "output_tokens", e->output_tokens);
    json_key(w, "adapter");
    json_bool(w, e->adapter);
    put_seconds(w, "ttft_s", e->ttft_s > 0, e->ttft_s);
    put_weight(w, "displaced_weight", e->displaced_weight);
    put_weight(w, "decode_weight", e->decode_weight);
    json_put_u64(w, "candidates", e->candidates);
    json_key(w, "replicas");
    json_array_begin(w);
    for (unsigned i = 0; i < e->rows; i++)
        put_row(w, r, e, &e->table[i]);
    json_array_end(w);
    put_outcome(w, e);
    json_object_end(w);
}

static uint64_t oldest(const struct node_decisions *d)
{
    return d->newest >= NODE_DECISIONS_MAX ? d->newest - NODE_DECISIONS_MAX + 1 : 1;
}

static const struct entry *wanted(const struct node_decisions *d, uint64_t number,
                                  const struct node_decisions_query *q)
{
    const struct entry *e = entry_at(d, number);
    return e && (!q->ended || e->ended) ? e : NULL;
}

/* The wanted one with the least change beyond that; NULL: there is none. */
static const struct entry *next_change(const struct node_decisions *d,
                                       const struct node_decisions_query *q, uint64_t change)
{
    const struct entry *found = NULL;
    for (uint64_t n = oldest(d); n <= d->newest; n++) {
        const struct entry *e = wanted(d, n, q);
        if (e && e->change > change && (!found || e->change < found->change))
            found = e;
    }
    return found;
}

/* The number with which the query begins. */
static uint64_t begin(const struct node_decisions *d, const struct node_decisions_query *q)
{
    uint64_t first = oldest(d), from = d->newest + 1;
    if (q->order == NODE_DECISIONS_ONE)
        return q->beyond;
    if (q->order == NODE_DECISIONS_AFTER)
        return q->beyond >= first ? q->beyond + 1 : first;
    for (unsigned left = q->count; left > 0 && from > first;)
        left -= wanted(d, --from, q) != NULL;
    return from;
}

uint64_t node_decisions_write(const struct node_decisions *d, const struct node_router *r,
                              const struct node_decisions_query *q, uint64_t now_ms,
                              uint64_t unix_ms, struct json_writer *w)
{
    bool changes = q->order == NODE_DECISIONS_CHANGES;
    uint64_t change = changes ? q->beyond : d->change;
    uint64_t number = changes ? 0 : begin(d, q);
    uint64_t last = q->order == NODE_DECISIONS_ONE ? q->beyond : d->newest;
    json_array_begin(w);
    for (unsigned left = q->count; left > 0;) {
        const struct entry *e = changes          ? next_change(d, q, change)
                                : number <= last ? wanted(d, number++, q)
                                                 : NULL;
        if (e) {
            put_entry(w, r, e, now_ms, unix_ms);
            change = changes ? e->change : change;
            left--;
        } else if (changes || number > last) {
            break;
        }
    }
    json_array_end(w);
    return change;
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
        CHECK(e->number >= oldest(d) && e->change <= d->change);
        CHECK(e->rows > 0 && e->rows <= NODE_DECISION_ROWS_MAX && e->chosen < e->rows);
    }
}
