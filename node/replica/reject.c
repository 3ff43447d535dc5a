#include "node/replica/reject.h"

#include <stdio.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/number.h"

/* From this believed chance of the replica's fault on, another replica is asked. A rejection costs
 * an engine next to nothing, so 20 useless questions are worth one good request. */
static const double worth_own = 0.05;

/* Chance of the replica's fault if it has accepted requests: the setup may have changed since. */
static const double own_well = 0.001;
/* Chance of the replica's fault if nothing is known of the replica, or if the status mostly depends
 * on the replica: another key, a missing model. */
static const double own_feared = 0.02;
/* Chance of the replica's fault if it accepted no request of this kind since the engine's start,
 * while a peer accepts such requests. A wrongly set up replica looks like this, and so does a
 * replica with only bad requests so far. */
static const double own_unproven = 0.2;
/* Chance of the replica's fault after a contradicted rejection, until the replica accepts
 * something. */
static const double own_caught = 0.5;
/* Number of remembered tries at other replicas. */
static const double tries_horizon = 16;

/* An unknown client is believed to be like earlier clients, by their last first_horizon requests.
 * Before there are any, first_weight requests are assumed, with the share first_bad of bad
 * requests. */
static const double first_horizon = 64, first_weight = 16, first_bad = 0.01;
/* client_horizon: number of remembered requests of a client, or with a prompt. client_weight: the
 * weight, in requests, of the other clients, or of the client's other prompts. */
static const double client_horizon = 64, client_weight = 4;

static uint64_t bit(unsigned kind)
{
    return UINT64_C(1) << (kind % NODE_REJECT_KINDS);
}

/* All kinds of an API, or of any API (-1), with these flags. */
static uint64_t kinds_with(int api, unsigned flags)
{
    uint64_t out = 0;
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++) {
        if ((api < 0 || k / NODE_REJECT_API == (unsigned)api) && (k & flags) == flags)
            out |= bit(k);
    }
    return out;
}

static bool have(uint64_t kinds, int api, unsigned flags)
{
    return (kinds & ~kinds_with(api, flags)) == 0;
}

/* Kinds of the same API that use as much or more: an engine rejecting `kind` rejects them too.
 * Streaming makes no difference to nearly all rejections. */
static uint64_t and_more(unsigned kind)
{
    return kinds_with((int)(kind / NODE_REJECT_API),
                      kind & (NODE_REJECT_TOOLS | NODE_REJECT_MEDIA));
}

void node_reject_init(struct node_reject *j)
{
    *j = (struct node_reject){.own = own_well};
}

void node_reject_renew(struct node_reject *j)
{
    struct node_reject before = *j;
    node_reject_init(j);
    j->doubts = before.doubts;
    j->doubt_kinds = before.doubt_kinds;
    j->contradicted = before.contradicted;
    j->confirmed = before.confirmed;
}

/* Kinds held against the replica by this router, if they apply to this model. */
static uint64_t own_kinds(const struct node_reject *j, uint64_t model)
{
    bool about = j->about == 0 || model == 0 || j->about == model;
    return about ? j->kinds : 0;
}

/* Kinds that other routers report as rejected, except those that this router saw accepted. */
static uint64_t heeded(const struct node_reject *j)
{
    return j->heard & ~j->accepts;
}

static bool holds(const struct node_reject *j, uint8_t kind, uint64_t model)
{
    return ((own_kinds(j, model) | heeded(j)) & bit(kind)) != 0;
}

/* --- belief --------------------------------------------------------------------------------- */

static bool is_by_status(unsigned status)
{
    return status == 401 || status == 403 || status == 404;
}

/* Belief that the replica is at fault. */
static double own_fault(const struct node_reject *j, const struct node_rejection *x,
                        const struct node_reject_prior *prior)
{
    if (holds(j, x->kind, x->model))
        return own_caught;
    bool unproven = prior->peers && !node_reject_proven(j, x->kind);
    bool feared = !j->known || (is_by_status(x->status) && !j->agreed);
    double fear = unproven ? own_unproven : feared ? own_feared : 0;
    double own = number_max(j->own, fear * prior->pays);
    return own / (own + (1 - own) * prior->bad);
}

enum node_reject_guilt node_reject_guilt(const struct node_reject *j,
                                         const struct node_rejection *x,
                                         const struct node_reject_prior *prior)
{
    double own = own_fault(j, x, prior);
    if (holds(j, x->kind, x->model))
        return NODE_REJECT_CAUGHT;
    return own >= own_caught  ? NODE_REJECT_LIKELY
           : own >= worth_own ? NODE_REJECT_WORTH
                              : NODE_REJECT_UNLIKELY;
}

double node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                          const struct node_reject_prior *prior)
{
    double own = own_fault(j, x, prior);
    /* Next time, a peer accepting such requests is no new evidence. */
    struct node_reject_prior alone = *prior;
    alone.peers = false;
    j->own = own_fault(j, x, &alone);
    return own;
}

void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open)
{
    if (open) {
        j->doubts++;
        j->doubt_kinds |= and_more(x->kind);
        return;
    }
    j->doubts -= j->doubts > 0; /* the slot may be another replica's by now */
    if (j->doubts == 0)
        j->doubt_kinds = 0;
}

/* --- evidence ------------------------------------------------------------------------------- */

/* The kinds assumed to be rejected, given the rejected kinds `told` and the kinds that have
 * `worked` since. Two rejected kinds, neither of which implies the other, stand for the widest
 * group in which no kind worked. */
static uint64_t held_by(uint64_t told, uint64_t worked)
{
    bool several = told != 0;
    uint64_t out = 0;
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++) {
        if ((told & bit(k)) == 0)
            continue;
        out |= and_more(k);
        several = several && (told & ~and_more(k)) != 0;
    }
    if (!several)
        return out & ~worked;
    const struct {
        int api;
        unsigned flags;
    } groups[] = {{-1, 0},
                  {__builtin_ctzll(told) / NODE_REJECT_API, 0},
                  {-1, NODE_REJECT_TOOLS},
                  {-1, NODE_REJECT_MEDIA}};
    for (unsigned i = 0; i < ARRAY_LEN(groups); i++) {
        uint64_t group = kinds_with(groups[i].api, groups[i].flags);
        if (have(told, groups[i].api, groups[i].flags) && (group & worked) == 0)
            return group;
    }
    return out & ~worked;
}

bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms)
{
    uint64_t kind = bit(x->kind);
    bool first = j->kinds == 0, had = holds(j, x->kind, x->model);
    j->contradicted++;
    j->own = own_caught;
    j->agreed = false;
    if (first && had) /* another router found out before, and tries the replica for all */
        return false;
    j->status = x->status;
    /* Only a failed trial shows that the replica is not fixed. */
    if (first || (j->tried_ms != 0 && x->sent_ms >= j->tried_ms)) {
        node_backoff_again(&j->backoff, NODE_REJECT_BACKOFF_MS, now_ms);
        j->tried_ms = 0;
    }
    if (first) {
        j->since_ms = now_ms;
        j->accepts = j->heard != 0 ? j->accepts : 0;
    }
    j->about = first || j->about == x->model ? x->model : 0;
    j->last_ms = now_ms;
    j->told |= kind;
    j->accepts &= ~kind;
    j->kinds = held_by(j->told, j->accepts);
    return !had;
}

void node_reject_agreed(struct node_reject *j)
{
    j->agreed = j->known = true;
    j->own = own_well;
}

bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t sent_ms)
{
    uint64_t k = bit(kind);
    bool other = j->kinds != 0 && own_kinds(j, model) == 0;
    bool told = !other && (j->told & k) != 0;
    if (sent_ms < (told ? j->last_ms : j->since_ms)) /* before the contradiction */
        return false;
    j->own = own_well;
    j->known = true;
    j->agreed = false;
    if (other) /* says nothing of a kind held for another model */
        return false;
    j->doubt_kinds &= ~k;
    if (j->heard == 0 || sent_ms >= j->heard_ms)
        j->accepts |= k;
    if (j->kinds == 0)
        return false;
    if (told)
        j->kinds = j->told = j->tried_ms = 0;
    else
        j->kinds = held_by(j->told, j->accepts);
    return j->kinds == 0;
}

void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t now_ms)
{
    if ((own_kinds(j, model) & bit(kind)) != 0 && now_ms >= j->backoff.until_ms) {
        j->backoff.until_ms = now_ms + NODE_REJECT_BACKOFF_MS; /* until the trial's result is
                                                                * known */
        j->tried_ms = now_ms;
    }
    if ((j->heard & bit(kind)) != 0)
        j->heard_ms = now_ms;
}

/* --- avoided -------------------------------------------------------------------------------- */

bool node_reject_avoids(const struct node_reject *j, uint8_t kind, uint64_t model, bool again,
                        uint64_t now_ms)
{
    uint64_t k = bit(kind);
    bool own = (own_kinds(j, model) & k) != 0;
    bool heeds = (heeded(j) & k) != 0 && now_ms < j->heard_ms + NODE_REJECT_HEED_MS;
    if ((j->doubt_kinds & k) != 0 || heeds)
        return true;
    return own && (now_ms < j->backoff.until_ms || !again);
}

bool node_reject_avoids_any(const struct node_reject *j, uint64_t now_ms)
{
    return (j->kinds != 0 && now_ms < j->backoff.until_ms) ||
           (heeded(j) != 0 && now_ms < j->heard_ms + NODE_REJECT_HEED_MS);
}

bool node_reject_proven(const struct node_reject *j, uint8_t kind)
{
    return (j->accepts & bit(kind)) != 0;
}

unsigned node_reject_status(const struct node_reject *j)
{
    return j->kinds != 0 ? j->status : j->heard_status;
}

uint64_t node_reject_kinds(const struct node_reject *j)
{
    return j->kinds | heeded(j);
}

/* --- other routers -------------------------------------------------------------------------- */

uint64_t node_reject_report(const struct node_reject *j, uint64_t now_ms)
{
    bool over = now_ms >= j->backoff.until_ms + NODE_REJECT_BACKOFF_MS;
    return (over || j->about != 0) && !BUG(REJECTS_REPORTED) ? 0 : j->kinds;
}

void node_reject_heard_add(struct node_reject_heard *h, uint64_t kinds, unsigned status, bool ahead)
{
    h->kinds |= kinds;
    h->ahead |= ahead ? kinds : 0;
    if (kinds != 0 && status != 0)
        h->status = status;
}

void node_reject_hear(struct node_reject *j, const struct node_reject_heard *h, uint64_t now_ms)
{
    uint64_t news = h->kinds & ~j->heard;
    if (h->kinds == 0 || news != 0)
        j->heard_ms = h->kinds != 0 ? now_ms : 0;
    if (news != 0)
        j->accepts &= (j->kinds | j->heard) != 0 ? ~news : 0;
    j->heard = h->kinds;
    j->heard_status = h->status;
    /* A router ordered before this router tries the replica for all. The level of the back-off
     * stays, so that the next back-off is longer. */
    if (j->kinds != 0 && (j->kinds & ~h->ahead) == 0) {
        j->kinds = j->told = j->tried_ms = 0;
        j->heard_ms = now_ms;
    }
}

/* --- in words -------------------------------------------------------------------------------- */

static const char *what_is_wrong(unsigned status)
{
    if (status == 401 || status == 403)
        return "where its peers accept the key";
    return status == 404 ? "where its peers have the model" : "that its peers accept";
}

/* Writes the kinds in words, such as "streamed chat requests with tools". */
static void put_kinds(uint64_t kinds, char *room, size_t size)
{
    static const char *const apis[] = {
        [NODE_REJECT_OTHERS] = "other ",           [NODE_REJECT_CHAT] = "chat ",
        [NODE_REJECT_COMPLETIONS] = "completion ", [NODE_REJECT_RESPONSES] = "responses ",
        [NODE_REJECT_MESSAGES] = "messages ",      [NODE_REJECT_GENERATE] = "generate ",
        [NODE_REJECT_PROMPT] = "embedding ",       [NODE_REJECT_MEDIA_API] = "media ",
    };
    int api = __builtin_ctzll(kinds) / NODE_REJECT_API;
    bool tools = have(kinds, -1, NODE_REJECT_TOOLS), media = have(kinds, -1, NODE_REJECT_MEDIA);
    (void)snprintf(room, size, "%s%s%srequests%s%s", kinds == UINT64_MAX ? "all " : "",
                   have(kinds, -1, NODE_REJECT_STREAM) ? "streamed " : "",
                   have(kinds, api, 0) ? apis[api] : "", tools ? " with tools" : "",
                   media && tools ? " and media"
                   : media        ? " with media"
                                  : "");
}

const char *node_reject_text(unsigned status, uint64_t kinds, bool one_model,
                             char room[NODE_REJECT_TEXT_BYTES])
{
    char what[64], code[12] = "4xx";
    put_kinds(kinds, what, sizeof what);
    if (status != 0)
        (void)snprintf(code, sizeof code, "%u", status);
    (void)snprintf(room, NODE_REJECT_TEXT_BYTES, "answers %s to %s%s %s", code, what,
                   one_model ? " for one of its models" : "", what_is_wrong(status));
    return room;
}

/* --- clients --------------------------------------------------------------------------------- */

static struct node_reject_client *row_of(const struct node_reject_clients *c, uint64_t id)
{
    const struct node_reject_client *row = &c->rows[id % NODE_REJECT_CLIENTS_MAX];
    bool known = id != 0 && row->id == id;
    return known ? (struct node_reject_client *)row : NULL; /* as const as the table */
}

static struct node_reject_client *row_make(struct node_reject_clients *c, uint64_t id)
{
    struct node_reject_client *row = &c->rows[id % NODE_REJECT_CLIENTS_MAX];
    c->count += row->id == 0;
    *row = (struct node_reject_client){.id = id};
    return row;
}

static unsigned sort_of(unsigned status)
{
    static const unsigned sorts[NODE_REJECT_SORTS - 1] = {400, 401, 403, 404, 422};
    unsigned i = 0;
    while (i < NODE_REJECT_SORTS - 1 && sorts[i] != status)
        i++;
    return i;
}

static double believed(const struct node_reject_share *s, unsigned sort, double before,
                       double weight)
{
    return (before * weight + (double)s->rejected[sort]) / (weight + (double)s->seen);
}

struct node_reject_prior node_reject_prior_of(const struct node_reject_clients *c,
                                              struct node_reject_from from, unsigned status)
{
    unsigned sort = sort_of(status);
    const struct node_reject_client *client = row_of(c, from.client);
    const struct node_reject_client *prompt = row_of(c, from.prompt);
    struct node_reject_prior out = {.bad = believed(&c->first, sort, first_bad, first_weight),
                                    .pays = (1 + c->contradicted) /
                                            (1 + c->contradicted + c->confirmed)};
    if (client != NULL)
        out.bad = believed(&client->share, sort, out.bad, client_weight);
    if (prompt != NULL)
        out.bad = believed(&prompt->share, sort, out.bad, client_weight);
    return out;
}

void node_reject_tried(struct node_reject_clients *c, bool contradicted)
{
    const double fade = 1 - 1 / tries_horizon;
    c->contradicted = c->contradicted * fade + contradicted;
    c->confirmed = c->confirmed * fade + !contradicted;
}

/* Adds a request; `rejected` is the share that counts as rejected. */
static void add(struct node_reject_share *s, double horizon, unsigned sort, double rejected)
{
    const double fade = 1 - 1 / horizon;
    s->seen = (float)((double)s->seen * fade + 1);
    for (unsigned i = 0; i < NODE_REJECT_SORTS; i++)
        s->rejected[i] = (float)((double)s->rejected[i] * fade);
    s->rejected[sort] += (float)rejected;
}

void node_reject_client_accepted(struct node_reject_clients *c, struct node_reject_from from)
{
    struct node_reject_client *row = c->count > 0 ? row_of(c, from.prompt) : NULL;
    if (row == NULL && c->count > 0)
        row = row_of(c, from.client);
    if (row != NULL)
        add(&row->share, client_horizon, 0, 0);
    else
        add(&c->first, first_horizon, 0, 0);
}

/* Takes back a request with this sort of status: something else was the cause. */
static void take_back(struct node_reject_share *s, unsigned sort)
{
    float one = s->rejected[sort] < 1 ? s->rejected[sort] : 1;
    s->rejected[sort] -= one;
    s->seen -= one;
}

void node_reject_client_rejected(struct node_reject_clients *c, struct node_reject_from from,
                                 unsigned status, double own)
{
    unsigned sort = sort_of(status);
    double weight = 1 - own;
    if (own >= worth_own)
        return;
    struct node_reject_client *prompt = row_of(c, from.prompt);
    struct node_reject_client *client = row_of(c, from.client);
    if (prompt != NULL) {
        add(&prompt->share, client_horizon, sort, weight);
        return;
    }
    if (client == NULL)
        add(&c->first, first_horizon, sort, weight);
    if (from.client == 0)
        return;
    client = client != NULL ? client : row_make(c, from.client);
    if (from.prompt == 0 || client->prompt != from.prompt) {
        add(&client->share, client_horizon, sort, weight);
        client->prompt = from.prompt;
        return;
    }
    /* The prompt was rejected for the second time: the prompt is bad, not the client. */
    take_back(&client->share, sort);
    prompt = row_make(c, from.prompt);
    add(&prompt->share, client_horizon, sort, weight);
    add(&prompt->share, client_horizon, sort, weight);
}
