#include "node/replica/reject.h"

#include <stdio.h>

#include "base/bug.h"
#include "base/check.h"
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
/* One that has accepted no such request since its start, while a peer does: what is set up wrongly
 * looks like this, and so does one that only bad requests came to so far. */
static const double own_unproven = 0.2;
/* One that has been caught, until it accepts something. */
static const double own_caught = 0.5;
/* Tries elsewhere that are remembered. */
static const double tries_horizon = 16;

/* What is believed of a client that nothing is known of rests on those before it: so many of them
 * are remembered, and before there are any this many are taken to have had so many bad requests. */
static const double first_horizon = 64, first_weight = 16, first_bad = 0.01;
/* Requests of one client, or with one prompt, that are remembered, and how many those of the other
 * clients, or of the client's other prompts, count as. */
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

/* What is held against it of requests for that model. */
static uint64_t own_kinds(const struct node_reject *j, uint64_t model)
{
    bool about = j->about == 0 || model == 0 || j->about == model;
    return about ? j->kinds : 0;
}

/* --- belief --------------------------------------------------------------------------------- */

static bool is_by_status(unsigned status)
{
    return status == 401 || status == 403 || status == 404;
}

double node_reject_own(const struct node_reject *j, const struct node_rejection *x,
                       const struct node_reject_prior *prior)
{
    if (node_reject_holds_for(j, x->kind, x->model))
        return own_caught;
    bool unproven = prior->peers && !node_reject_proven(j, x->kind);
    bool feared = !j->known || (is_by_status(x->status) && !j->agreed);
    double fear = unproven ? own_unproven : feared ? own_feared : 0;
    double own = number_max(j->own, fear * prior->pays);
    return own / (own + (1 - own) * prior->bad);
}

bool node_reject_is_worth(double own)
{
    return own >= worth_own;
}

bool node_reject_is_likely(double own)
{
    return own >= own_caught;
}

void node_reject_passed(struct node_reject *j, const struct node_rejection *x,
                        const struct node_reject_prior *prior)
{
    /* That peers accept such requests is no news the next time. */
    struct node_reject_prior alone = *prior;
    alone.peers = false;
    j->own = node_reject_own(j, x, &alone);
}

/* Kinds of the same API that ask for as much or for more: an engine that rejects the one rejects
 * them as well. Whether it is streamed makes no difference to nearly all that is rejected. */
static uint64_t and_more(uint8_t kind)
{
    const unsigned more = NODE_REJECT_TOOLS | NODE_REJECT_MEDIA;
    uint64_t out = 0;
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++) {
        if (k / NODE_REJECT_API == kind / NODE_REJECT_API && (kind & more & ~k) == 0)
            out |= bit((uint8_t)k);
    }
    return out;
}

void node_reject_doubt(struct node_reject *j, const struct node_rejection *x, bool open)
{
    if (open) {
        j->doubt_ms = j->doubts == 0 ? x->rejected_ms : j->doubt_ms;
        j->doubts++;
        j->doubt_kinds |= and_more(x->kind);
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

/* What all kinds in `set` have in common, and all kinds that have it: one API, tools or media. */
struct common {
    int api; /* -1: there are several */
    bool tools, media, stream;
};

static struct common common_of(uint64_t set)
{
    struct common c = {.api = -2, .tools = true, .media = true, .stream = true};
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++) {
        int api = (int)(k / NODE_REJECT_API);
        if ((set >> k & 1) == 0)
            continue;
        c.api = c.api == -2 || c.api == api ? api : -1;
        c.tools = c.tools && (k & NODE_REJECT_TOOLS) != 0;
        c.media = c.media && (k & NODE_REJECT_MEDIA) != 0;
        c.stream = c.stream && (k & NODE_REJECT_STREAM) != 0;
    }
    return c;
}

static uint64_t all_with(unsigned flag)
{
    uint64_t out = 0;
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++)
        out |= (k & flag) != 0 ? bit((uint8_t)k) : 0;
    return out;
}

/* Whether they are more than one of them and what follows of it. */
static bool are_several(uint64_t told)
{
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++) {
        if ((told >> k & 1) != 0 && (told & ~and_more((uint8_t)k)) == 0)
            return false;
    }
    return told != 0;
}

/* The kinds that are taken to be rejected by those that were, and by those that worked since. */
static uint64_t held_by(uint64_t told, uint64_t worked)
{
    struct common c = common_of(told);
    const uint64_t groups[] = {
        UINT64_MAX, c.api >= 0 ? and_more((uint8_t)(c.api * NODE_REJECT_API)) : 0,
        c.tools ? all_with(NODE_REJECT_TOOLS) : 0, c.media ? all_with(NODE_REJECT_MEDIA) : 0};
    uint64_t out = 0;
    for (unsigned i = 0; i < ARRAY_LEN(groups) && are_several(told); i++) {
        if (groups[i] != 0 && (groups[i] & worked) == 0)
            return groups[i];
    }
    for (unsigned k = 0; k < NODE_REJECT_KINDS; k++)
        out |= (told >> k & 1) != 0 ? and_more((uint8_t)k) : 0;
    return out & ~worked;
}

bool node_reject_contradicted(struct node_reject *j, const struct node_rejection *x,
                              uint64_t now_ms)
{
    uint64_t kind = bit(x->kind);
    bool first = j->kinds == 0, had = node_reject_holds_for(j, x->kind, x->model);
    j->contradicted++;
    j->own = own_caught;
    j->agreed = false;
    j->proven = 0;
    if (first && had) /* another router found out before, and tries it for all */
        return false;
    j->status = x->status;
    /* Only a trial says that it is not mended. */
    if (first || (j->tried_ms != 0 && x->sent_ms >= j->tried_ms)) {
        back_off(j, now_ms);
        j->tried_ms = 0;
    }
    if (first) {
        j->since_ms = now_ms;
        j->passed = 0;
        j->worked = j->heard != 0 ? j->worked : 0;
    }
    j->about = first || j->about == x->model ? x->model : 0;
    j->last_ms = now_ms;
    j->told |= kind;
    j->worked &= ~kind;
    j->kinds = held_by(j->told, j->worked);
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

bool node_reject_accepted(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t sent_ms)
{
    uint64_t k = bit(kind);
    bool other = j->kinds != 0 && own_kinds(j, model) == 0;
    bool told = !other && (j->told & k) != 0;
    if (sent_ms < (told ? j->last_ms : j->since_ms)) /* before it was caught */
        return false;
    j->own = own_well;
    j->known = true;
    j->agreed = false;
    if (other) /* of what is held for one model it says nothing */
        return false;
    j->proven |= k;
    if (sent_ms >= j->doubt_ms)
        j->doubt_kinds &= ~k;
    if (j->heard == 0 || sent_ms >= j->heard_ms)
        j->worked |= k;
    if (j->kinds == 0)
        return false;
    if (told)
        j->kinds = j->told = j->tried_ms = 0;
    else
        j->kinds = held_by(j->told, j->worked);
    return j->kinds == 0;
}

void node_reject_sent(struct node_reject *j, uint8_t kind, uint64_t model, uint64_t now_ms)
{
    if (!node_reject_concerns(j, kind, model))
        return;
    j->passed = 0;
    if ((own_kinds(j, model) & bit(kind)) != 0 && now_ms >= j->until_ms) {
        j->until_ms = now_ms + NODE_REJECT_BACKOFF_MS; /* unless its end says more */
        j->tried_ms = now_ms;
    }
    if ((j->heard & bit(kind)) != 0)
        j->heard_ms = now_ms;
}

void node_reject_passed_over(struct node_reject *j)
{
    j->passed += j->passed < UINT32_MAX;
}

/* --- avoided -------------------------------------------------------------------------------- */

/* Its own eyes saw that such a request is accepted. */
static uint64_t heeded(const struct node_reject *j)
{
    return j->heard & ~j->worked;
}

bool node_reject_avoids(const struct node_reject *j, uint8_t kind, uint64_t model, bool again,
                        uint64_t now_ms)
{
    uint64_t k = bit(kind);
    bool own = (own_kinds(j, model) & k) != 0;
    bool heeds = (heeded(j) & k) != 0 && now_ms < j->heard_ms + NODE_REJECT_HEED_MS;
    if ((j->doubt_kinds & k) != 0 || heeds)
        return true;
    return own && (now_ms < j->until_ms || !again);
}

bool node_reject_avoids_any(const struct node_reject *j, uint64_t now_ms)
{
    return (j->kinds != 0 && now_ms < j->until_ms) ||
           (heeded(j) != 0 && now_ms < j->heard_ms + NODE_REJECT_HEED_MS);
}

bool node_reject_concerns(const struct node_reject *j, uint8_t kind, uint64_t model)
{
    return ((own_kinds(j, model) | heeded(j) | j->doubt_kinds) & bit(kind)) != 0;
}

bool node_reject_holds_for(const struct node_reject *j, uint8_t kind, uint64_t model)
{
    return ((own_kinds(j, model) | heeded(j)) & bit(kind)) != 0;
}

bool node_reject_proven(const struct node_reject *j, uint8_t kind)
{
    return (j->proven & bit(kind)) != 0;
}

bool node_reject_holds(const struct node_reject *j)
{
    return node_reject_kinds(j) != 0;
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
    bool over = now_ms >= j->until_ms + NODE_REJECT_BACKOFF_MS;
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
    j->worked &= j->kinds == 0 && j->heard == 0 ? 0 : ~news;
    j->proven &= ~news;
    j->heard = h->kinds;
    j->heard_status = h->status;
    /* One tries it for all. How long the back-off was is kept: again is worse. */
    if (j->kinds != 0 && (j->kinds & ~h->ahead) == 0) {
        j->kinds = j->told = j->tried_ms = 0;
        j->heard_ms = now_ms;
    }
}

/* --- in words -------------------------------------------------------------------------------- */

static const char *what_is_wrong(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return "where its peers accept the key";
    case 404:
        return "where its peers have the model";
    default:
        return "that its peers accept";
    }
}

/* "streamed chat requests with tools". */
static void put_kinds(uint64_t kinds, char *room, size_t size)
{
    static const char *const apis[] = {
        [NODE_REJECT_OTHERS] = "other ",           [NODE_REJECT_CHAT] = "chat ",
        [NODE_REJECT_COMPLETIONS] = "completion ", [NODE_REJECT_RESPONSES] = "responses ",
        [NODE_REJECT_MESSAGES] = "messages ",      [NODE_REJECT_GENERATE] = "generate ",
        [NODE_REJECT_PROMPT] = "embedding ",       [NODE_REJECT_MEDIA_API] = "media ",
    };
    struct common c = common_of(kinds);
    (void)snprintf(room, size, "%s%s%srequests%s%s", kinds == UINT64_MAX ? "all " : "",
                   c.stream ? "streamed " : "", c.api >= 0 ? apis[c.api] : "",
                   c.tools ? " with tools" : "",
                   c.media && c.tools ? " and media"
                   : c.media          ? " with media"
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

static const struct node_reject_client *row_of(const struct node_reject_clients *c, uint64_t id)
{
    for (unsigned i = 0; i < 2 && id != 0; i++) {
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

/* One more request, which was accepted but for `rejected` of it. */
static void add(struct node_reject_share *s, double horizon, unsigned sort, double rejected)
{
    const double fade = 1 - 1 / horizon;
    s->seen = (float)((double)s->seen * fade + 1);
    for (unsigned i = 0; i < NODE_REJECT_SORTS; i++)
        s->rejected[i] = (float)((double)s->rejected[i] * fade);
    s->rejected[sort] += (float)rejected;
}

/* What was accepted before counts less. */
static void turn(struct node_reject_share *s)
{
    double rejected = 0;
    for (unsigned i = 0; i < NODE_REJECT_SORTS; i++)
        rejected += (double)s->rejected[i];
    s->seen = (float)(rejected + ((double)s->seen - rejected) * client_turns);
}

void node_reject_client_accepted(struct node_reject_clients *c, struct node_reject_from from)
{
    struct node_reject_client *row = NULL;
    if (c->count > 0) {
        row = (struct node_reject_client *)row_of(c, from.prompt);
        row = row != NULL ? row : (struct node_reject_client *)row_of(c, from.client);
    }
    if (row != NULL)
        add(&row->share, client_horizon, 0, 0);
    else
        add(&c->first, first_horizon, 0, 0);
}

/* One request, rejected with that sort of status, was about something else. */
static void take_back(struct node_reject_share *s, unsigned sort)
{
    float one = s->rejected[sort] < 1 ? s->rejected[sort] : 1;
    s->rejected[sort] -= one;
    s->seen -= one;
}

static void row_rejected(struct node_reject_clients *c, struct node_reject_client *row,
                         unsigned sort, double weight, bool confirmed)
{
    row->at = ++c->clock;
    if (confirmed)
        turn(&row->share);
    add(&row->share, client_horizon, sort, weight);
}

static void client_rejected(struct node_reject_clients *c, struct node_reject_from from,
                            unsigned sort, double weight, bool confirmed)
{
    struct node_reject_client *prompt = (struct node_reject_client *)row_of(c, from.prompt);
    struct node_reject_client *client = (struct node_reject_client *)row_of(c, from.client);
    if (prompt != NULL) {
        row_rejected(c, prompt, sort, weight, confirmed);
        return;
    }
    if (client == NULL)
        add(&c->first, first_horizon, sort, weight);
    if (from.client == 0)
        return;
    client = client != NULL ? client : row_make(c, from.client);
    if (from.prompt == 0 || client->prompt != from.prompt) {
        row_rejected(c, client, sort, weight, confirmed);
        client->prompt = from.prompt;
        return;
    }
    /* It is the prompt, twice now, that is bad. */
    take_back(&client->share, sort);
    prompt = row_make(c, from.prompt);
    row_rejected(c, prompt, sort, weight, confirmed);
    row_rejected(c, prompt, sort, weight, confirmed);
}

void node_reject_client_confirmed(struct node_reject_clients *c, struct node_reject_from from,
                                  unsigned status)
{
    client_rejected(c, from, sort_of(status), 1, true);
}

void node_reject_client_passed(struct node_reject_clients *c, struct node_reject_from from,
                               unsigned status, double own)
{
    if (!node_reject_is_worth(own))
        client_rejected(c, from, sort_of(status), 1 - own, false);
}
