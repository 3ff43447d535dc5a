#include "node/replica/reject.h"

#include "base/bug.h"
#include "base/hash.h"
#include "base/number.h"
#include "node/replica/health.h"

/* Being rejected twice costs an engine next to nothing, so 20 times that may be risked for one good
 * request. */
static const double worth_own = 0.05;

/* How likely a replica that accepts is at fault: it was set up anew since. */
static const double own_well = 0.001;
/* One of which nothing is known, or by a status that mostly depends on the replica: another key, a
 * model that is not there. */
static const double own_feared = 0.02;
/* One that has been caught, until it accepts something. */
static const double own_caught = 0.5;
/* Tries elsewhere that are remembered. */
static const double tries_horizon = 16;

/* What is believed of a client that nothing is known of rests on those before it: so many of them
 * are remembered, and before there are any this many are taken to have had so many bad requests. */
static const double first_horizon = 64, first_weight = 16, first_bad = 0.01;
/* Requests of one client that are remembered, and how many the others' count as. */
static const double client_horizon = 64, client_weight = 4;
/* A confirmed rejection says more of a client than its requests before: they count half then. */
static const double client_turns = 0.5;

static uint64_t bit(uint8_t kind)
{
    return UINT64_C(1) << (kind % NODE_REJECT_KINDS);
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
    j->doubt_ms = before.doubt_ms;
    j->reported = before.reported;
    j->contradicted = before.contradicted;
    j->confirmed = before.confirmed;
    j->backoffs = before.backoffs;
}

/* --- belief --------------------------------------------------------------------------------- */

static bool is_by_status(unsigned status)
{
    return status == 401 || status == 403 || status == 404;
}

double node_reject_own(const struct node_reject *j, const struct node_rejection *x,
                       const struct node_reject_prior *prior)
{
    if (((j->kinds | j->heard) & bit(x->kind)) != 0)
        return own_caught;
    bool feared = !j->known || (is_by_status(x->status) && !j->agreed);
    double own = number_max(j->own, feared ? own_feared * prior->pays : 0);
    return own / (own + (1 - own) * prior->bad);
}

bool node_reject_is_worth(double own)
{
    return own >= worth_own;
}

void node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                        const struct node_reject_prior *prior)
{
    j->own = node_reject_own(j, x, prior);
}

void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open)
{
    if (open) {
        j->doubt_ms = j->doubts == 0 ? x->rejected_ms : j->doubt_ms;
        j->doubts++;
        j->doubt_kinds |= bit(x->kind);
        return;
    }
    j->doubts -= j->doubts > 0; /* the slot may be another replica's by now */
    if (j->doubts == 0)
        j->doubt_kinds = 0;
}

/* --- evidence ------------------------------------------------------------------------------- */

static uint32_t longer(uint32_t length_ms)
{
    return length_ms == 0 ? NODE_REJECT_BACKOFF_MS : node_backoff_longer(length_ms);
}

static void back_off(struct node_reject *j, uint64_t now_ms)
{
    bool soon = now_ms < j->until_ms + NODE_BACKOFF_FORGET_MS;
    j->length_ms = soon ? longer(j->length_ms) : NODE_REJECT_BACKOFF_MS;
    j->until_ms = now_ms + j->length_ms;
    j->backoffs++;
}

bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms)
{
    uint64_t kind = bit(x->kind);
    bool first = j->kinds == 0, had = (j->kinds & kind) != 0;
    j->contradicted++;
    j->own = own_caught;
    j->agreed = false;
    j->status = x->status;
    bool only_kind = first || j->told == kind || j->worked_ms > j->since_ms;
    /* What was under way when the back-off began is no trial. */
    if (first || x->sent_ms > j->last_ms)
        back_off(j, now_ms);
    j->since_ms = first ? now_ms : j->since_ms;
    j->last_ms = now_ms;
    j->told |= kind;
    j->kinds = only_kind ? j->kinds | kind : UINT64_MAX;
    return !had;
}

void node_reject_confirmed(struct node_reject *j)
{
    j->confirmed++;
    node_reject_agreed(j);
}

void node_reject_agreed(struct node_reject *j)
{
    j->agreed = j->known = true;
    j->own = own_well;
}

bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t sent_ms)
{
    uint64_t k = bit(kind);
    if (sent_ms > j->worked_ms)
        j->worked_ms = sent_ms;
    if (sent_ms < j->last_ms) /* before it was caught */
        return false;
    j->own = own_well;
    j->known = true;
    j->agreed = false;
    if (sent_ms >= j->doubt_ms)
        j->doubt_kinds &= ~k;
    if (j->kinds == 0)
        return false;
    if ((j->told & k) != 0)
        j->kinds = j->told = 0;
    else
        j->kinds = j->told; /* it is about those alone */
    return j->kinds == 0;
}

void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t now_ms)
{
    uint64_t k = bit(kind);
    if (((j->kinds | j->heard) & k) == 0)
        return;
    j->tried_ms = now_ms;
    if ((j->kinds & k) != 0 && now_ms >= j->until_ms)
        j->until_ms = now_ms + NODE_REJECT_BACKOFF_MS; /* unless its end says more */
    if ((j->heard & k) != 0)
        j->heard_ms = now_ms;
}

/* --- avoided -------------------------------------------------------------------------------- */

static bool heeds(const struct node_reject *j, uint64_t kind, uint64_t now_ms)
{
    return (j->heard & kind) != 0 && j->worked_ms < j->heard_ms &&
           now_ms < j->heard_ms + NODE_REJECT_HEED_MS;
}

bool node_reject_avoids(const struct node_reject *j, uint8_t kind, bool again, uint64_t now_ms)
{
    uint64_t k = bit(kind);
    bool own = (j->kinds & k) != 0;
    if ((j->doubt_kinds & k) != 0 || heeds(j, k, now_ms))
        return true;
    return own && (now_ms < j->until_ms || !again);
}

bool node_reject_avoids_any(const struct node_reject *j, uint64_t now_ms)
{
    return (j->kinds != 0 && now_ms < j->until_ms) || heeds(j, j->heard, now_ms);
}

bool node_reject_paces(const struct node_reject *j, uint64_t now_ms)
{
    return j->tried_ms != 0 && now_ms < j->tried_ms + NODE_REJECT_PACE_MS;
}

uint64_t node_reject_since(const struct node_reject *j)
{
    if (j->kinds != 0)
        return j->since_ms;
    return j->heard != 0 ? j->heard_ms : j->doubt_ms;
}

/* --- other routers -------------------------------------------------------------------------- */

uint64_t node_reject_report(const struct node_reject *j, uint64_t now_ms)
{
    bool over = now_ms >= j->until_ms + NODE_REJECT_BACKOFF_MS;
    return over && !BUG(REJECTS_REPORTED) ? 0 : j->kinds;
}

void node_reject_heard_add(struct node_reject_heard *h, uint64_t kinds, bool ahead)
{
    h->kinds |= kinds;
    h->ahead |= ahead ? kinds : 0;
}

void node_reject_hear(struct node_reject *j, const struct node_reject_heard *h, uint64_t now_ms)
{
    if (h->kinds == 0 || (j->heard & h->kinds) != h->kinds)
        j->heard_ms = h->kinds != 0 ? now_ms : 0;
    j->heard = h->kinds;
    /* One tries it for all. How long the back-off was is kept: again is worse. */
    if (j->kinds != 0 && (j->kinds & ~h->ahead) == 0) {
        j->kinds = j->told = 0;
        j->heard_ms = now_ms;
    }
}

/* --- clients --------------------------------------------------------------------------------- */

static const struct node_reject_client *row_of(const struct node_reject_clients *c, uint64_t id)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct node_reject_client *row = &c->rows[(id >> (16 * i)) % NODE_REJECT_CLIENTS_MAX];
        if (row->id == id)
            return row;
    }
    return NULL;
}

static struct node_reject_client *row_make(struct node_reject_clients *c, uint64_t id)
{
    struct node_reject_client *a = &c->rows[id % NODE_REJECT_CLIENTS_MAX];
    struct node_reject_client *b = &c->rows[(id >> 16) % NODE_REJECT_CLIENTS_MAX];
    struct node_reject_client *row = b->at < a->at ? b : a;
    c->count += row->at == 0;
    *row = (struct node_reject_client){.id = id};
    return row;
}

static double bad_of_first(const struct node_reject_clients *c)
{
    return (first_bad * first_weight + c->first_rejected) /
           (first_weight + c->first_rejected + c->first_accepted);
}

struct node_reject_prior node_reject_prior_of(const struct node_reject_clients *c, uint64_t id)
{
    const struct node_reject_client *row = id != 0 ? row_of(c, id) : NULL;
    struct node_reject_prior out = {.bad = bad_of_first(c),
                                    .pays = (1 + c->contradicted) /
                                            (1 + c->contradicted + c->confirmed)};
    if (row != NULL)
        out.bad = (out.bad * client_weight + (double)row->rejected) /
                  (client_weight + (double)row->rejected + (double)row->accepted);
    return out;
}

void node_reject_tried(struct node_reject_clients *c, bool contradicted)
{
    const double fade = 1 - 1 / tries_horizon;
    c->contradicted = c->contradicted * fade + contradicted;
    c->confirmed = c->confirmed * fade + !contradicted;
}

static void first_add(struct node_reject_clients *c, double rejected, double accepted)
{
    const double fade = 1 - 1 / first_horizon;
    c->first_rejected = c->first_rejected * fade + rejected;
    c->first_accepted = c->first_accepted * fade + accepted;
}

static void client_add(struct node_reject_client *row, double rejected, double accepted)
{
    const double fade = 1 - 1 / client_horizon;
    row->rejected = (float)((double)row->rejected * fade + rejected);
    row->accepted = (float)((double)row->accepted * fade + accepted);
}

void node_reject_client_accepted(struct node_reject_clients *c, uint64_t id)
{
    struct node_reject_client *row =
        c->count > 0 && id != 0 ? (struct node_reject_client *)row_of(c, id) : NULL;
    if (row != NULL)
        client_add(row, 0, 1);
    else
        first_add(c, 0, 1);
}

static void client_rejected(struct node_reject_clients *c, uint64_t id, double weight,
                            bool confirmed)
{
    struct node_reject_client *row = id != 0 ? (struct node_reject_client *)row_of(c, id) : NULL;
    if (row == NULL)
        first_add(c, weight, 1 - weight);
    if (id == 0)
        return;
    row = row != NULL ? row : row_make(c, id);
    row->at = ++c->clock;
    if (confirmed)
        row->accepted = (float)((double)row->accepted * client_turns);
    client_add(row, weight, 1 - weight);
}

void node_reject_client_confirmed(struct node_reject_clients *c, uint64_t id)
{
    client_rejected(c, id, 1, true);
}

void node_reject_client_passed(struct node_reject_clients *c, uint64_t id, double own)
{
    if (!node_reject_is_worth(own))
        client_rejected(c, id, 1 - own, false);
}
