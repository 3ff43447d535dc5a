/* The addresses (places) of members: which are stored, in which order they are dialled, and which
 * are passed on.
 *
 * A place is announced by the member itself (the member's word), seen as the source of the member's
 * packets, or announced by another member (a hint). Hints are not passed on. */
#include "base/check.h"
#include "gossip/gossip_internal.h"

enum {
    PLACE_SILENT_SUSPECTS = 2, /* a source silent for 2 * suspect_us may be stale */
    TRIES_STALE = 3,           /* unanswered hellos until a place is dropped, if another place
                                * answered */
    TRIES_WRONG = 16,          /* unanswered hellos added if another router answers there */
    LEARNED_MAX = 3,           /* addresses of this node learned from peers */
    VOTES_MAX = 8,             /* different reported addresses to count */
    LEARN_AGAIN_US = 1000000,
};

bool gossip_address_equal(const struct gossip_address *a, const struct gossip_address *b)
{
    return a->port == b->port && a->family == b->family &&
           memcmp(a->ip, b->ip, a->family == 4 ? 4 : 16) == 0;
}

/* Scope of an address: 1 loopback, 2 link-local; both have another meaning on another machine. 0:
 * any other address. */
static unsigned scope_of(const struct gossip_address *a)
{
    static const uint8_t loopback[16] = {[15] = 1};
    if (a->family == 4)
        return a->ip[0] == 127 ? 1 : a->ip[0] == 169 && a->ip[1] == 254 ? 2 : 0;
    if (memcmp(a->ip, loopback, sizeof loopback) == 0)
        return 1;
    return a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80 ? 2 : 0;
}

bool gossip_place_introduced(const struct gossip_peer *p)
{
    return p->word_epoch == p->incarnation >> 16;
}

static struct gossip_candidate *find(struct gossip_peer *p, const struct gossip_address *at)
{
    for (unsigned i = 0; i < p->places_count; i++)
        if (gossip_address_equal(&p->places[i].place.at, at))
            return &p->places[i];
    return NULL;
}

static void drop(struct gossip_peer *p, struct gossip_candidate *c)
{
    p->places_count--;
    size_t after = (size_t)(&p->places[p->places_count] - c);
    memmove(c, c + 1, after * sizeof *c);
}

/* --- which is likelier ----------------------------------------------------------------------- */

static unsigned kind_rank(const struct gossip_place *place)
{
    switch (place->kind) {
    case GOSSIP_PLACE_ADVERTISED:
        return place->own ? 0 : 3;
    case GOSSIP_PLACE_SOURCE:
        return 1;
    case GOSSIP_PLACE_LEARNED:
        return place->own ? 2 : 4;
    case GOSSIP_PLACE_OBSERVED:
    case GOSSIP_PLACE_YOURS:
        break;
    }
    return 5;
}

/* A place from an earlier epoch counts as having TRIES_STALE more unanswered tries. It is still
 * tried: if a node's clock goes back, the latest epoch looks like an earlier epoch. */
static unsigned tries_of(const struct gossip_peer *p, const struct gossip_candidate *c)
{
    return c->tries + (c->epoch >= p->incarnation >> 16 ? 0 : TRIES_STALE);
}

/* True if the place `a` is to be dialled before `b`: places with fewer unanswered tries come
 * first. */
static bool likelier(const struct gossip_peer *p, const struct gossip_candidate *a,
                     const struct gossip_candidate *b)
{
    unsigned a_tries = tries_of(p, a), b_tries = tries_of(p, b);
    if (a_tries != b_tries)
        return a_tries < b_tries;
    unsigned a_rank = kind_rank(&a->place), b_rank = kind_rank(&b->place);
    if (a_rank != b_rank)
        return a_rank < b_rank;
    return a->place.answered_us > b->place.answered_us;
}

/* True if the place `a` is to be kept rather than `b`: places from the member's current epoch come
 * before places from an earlier epoch. */
static bool worthier(const struct gossip_peer *p, const struct gossip_candidate *a,
                     const struct gossip_candidate *b)
{
    uint64_t epoch = p->incarnation >> 16;
    if ((a->epoch >= epoch) != (b->epoch >= epoch))
        return a->epoch >= epoch;
    return likelier(p, a, b);
}

static bool reachable(const struct gossip *g, const struct gossip_address *at)
{
    return at->family == 4 || !g->config.ipv4_only;
}

const struct gossip_candidate *gossip_place_best(const struct gossip *g,
                                                 const struct gossip_peer *p)
{
    const struct gossip_candidate *best = NULL;
    for (unsigned i = 0; i < p->places_count; i++) {
        const struct gossip_candidate *c = &p->places[i];
        if (reachable(g, &c->place.at) && (best == NULL || likelier(p, c, best)))
            best = c;
    }
    return best;
}

unsigned gossip_place_list(const struct gossip_peer *p, struct gossip_place out[GOSSIP_PLACES_MAX])
{
    struct gossip_candidate order[GOSSIP_PLACES_MAX];
    for (unsigned i = 0; i < p->places_count; i++) {
        unsigned at = i;
        for (; at > 0 && likelier(p, &p->places[i], &order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = p->places[i];
    }
    for (unsigned i = 0; i < p->places_count; i++) {
        out[i] = order[i].place;
        if (gossip_address_equal(&out[i].at, &p->source))
            out[i].answered_us = p->heard_us;
    }
    return p->places_count;
}

/* --- storing --------------------------------------------------------------------------------- */

/* Returns the place with this address, added if unknown; NULL: the list is full of worthier
 * places. */
static struct gossip_candidate *put(struct gossip_peer *p, const struct gossip_place *place,
                                    uint64_t epoch)
{
    struct gossip_candidate *c = find(p, &place->at);
    if (c != NULL) {
        c->epoch = epoch > c->epoch ? epoch : c->epoch;
        return c;
    }
    struct gossip_candidate made = {.place = *place, .epoch = epoch};
    /* The new place is tried next, but only once before the others get their turn. */
    for (unsigned i = 0; i < p->places_count; i++)
        if (i == 0 || p->places[i].tries < made.tries + 1)
            made.tries = p->places[i].tries > 0 ? p->places[i].tries - 1 : 0;
    if (p->places_count == GOSSIP_PLACES_MAX) {
        struct gossip_candidate *last = NULL;
        for (unsigned i = 0; i < p->places_count; i++) {
            bool in_use = gossip_address_equal(&p->places[i].place.at, &p->source);
            if (!in_use && (last == NULL || worthier(p, last, &p->places[i])))
                last = &p->places[i];
        }
        if (last == NULL || worthier(p, last, &made))
            return NULL;
        drop(p, last);
    }
    p->places[p->places_count] = made;
    return &p->places[p->places_count++];
}

bool gossip_place_hint(struct gossip_peer *p, const struct gossip_frame_place *said, uint64_t epoch)
{
    const struct gossip_candidate *known = find(p, &said->at);
    bool news = known == NULL || known->epoch < epoch;
    const struct gossip_place place = {.at = said->at, .kind = said->kind};
    return put(p, &place, epoch) != NULL && news;
}

void gossip_place_word(struct gossip_peer *p, const struct gossip_frame_member *said)
{
    uint64_t epoch = said->incarnation >> 16;
    p->word_epoch = epoch;
    for (unsigned i = 0; i < p->places_count; i++)
        p->places[i].spoken = false;
    for (unsigned i = 0; i < said->count; i++) {
        const struct gossip_frame_place *s = &said->places[i];
        if (s->kind != GOSSIP_PLACE_ADVERTISED && s->kind != GOSSIP_PLACE_LEARNED)
            continue;
        const struct gossip_place place = {.at = s->at, .kind = s->kind, .own = true};
        struct gossip_candidate *c = put(p, &place, epoch);
        if (c == NULL)
            continue;
        c->place.kind = s->kind;
        c->place.own = c->spoken = true;
    }
    for (unsigned i = p->places_count; i-- > 0;) {
        struct gossip_candidate *c = &p->places[i];
        bool in_use = gossip_address_equal(&c->place.at, &p->source);
        if (in_use)
            c->epoch = epoch;
        if (c->spoken)
            continue;
        if (in_use)
            c->place = (struct gossip_place){.at = c->place.at,
                                             .kind = GOSSIP_PLACE_SOURCE,
                                             .answered_us = c->place.answered_us};
        else if (c->place.own || c->epoch < epoch)
            drop(p, c); /* no longer reported by the member, or from an earlier epoch */
    }
}

void gossip_place_answered(const struct gossip *g, struct gossip_peer *p,
                           const struct gossip_address *at)
{
    const struct gossip_place place = {.at = *at, .kind = GOSSIP_PLACE_SOURCE};
    struct gossip_candidate *c = put(p, &place, p->incarnation >> 16);
    if (c == NULL)
        return;
    c->tries = 0;
    c->place.answered_us = g->now_us;
    for (unsigned i = p->places_count; i-- > 0;) {
        struct gossip_candidate *other = &p->places[i];
        if (!other->place.own && other->tries >= TRIES_STALE)
            drop(p, other);
    }
}

void gossip_place_dialled(struct gossip_peer *p, const struct gossip_address *at)
{
    struct gossip_candidate *c = find(p, at);
    p->dialled = *at;
    if (c != NULL)
        c->tries++;
}

void gossip_place_wrong(struct gossip *g, struct gossip_peer *p)
{
    struct gossip_candidate *c = find(p, &p->dialled);
    if (c == NULL)
        return;
    if (c->place.own)
        c->tries += TRIES_WRONG; /* kept, because the member would report it again */
    else
        drop(p, c);
    const struct gossip_candidate *next = gossip_place_best(g, p);
    if (next == NULL || next->tries >= TRIES_WRONG || p->session.sending != 0)
        return;
    p->dial_us = g->now_us; /* the next place need not wait for an answer from here */
    gossip_tick_by(g, g->now_us);
}

bool gossip_place_advertised(const struct gossip_peer *p, const struct gossip_address *at)
{
    for (unsigned i = 0; i < p->places_count; i++)
        if (p->places[i].place.own && p->places[i].place.kind == GOSSIP_PLACE_ADVERTISED &&
            gossip_address_equal(&p->places[i].place.at, at))
            return true;
    return false;
}

/* --- passing on ------------------------------------------------------------------------------ */

/* True if several routers answer at the address. Then the address belongs to none of them, even if
 * packets seem to come from there. */
static bool is_shared(const struct gossip *g, const struct gossip_address *at)
{
    for (unsigned i = 0; i < g->seeds_count; i++)
        if (g->seeds[i].shared && gossip_address_equal(&g->seeds[i].at, at))
            return true;
    return false;
}

/* True if another router has answered there: the address is not this node's. */
static bool is_others(const struct gossip *g, const struct gossip_address *at)
{
    for (unsigned i = 0; i < g->seeds_count; i++)
        if (g->seeds[i].node != 0 && g->seeds[i].node != g->self->node &&
            gossip_address_equal(&g->seeds[i].at, at))
            return true;
    return is_shared(g, at);
}

static void add(struct gossip_frame_member *entry, const struct gossip_peer *to,
                enum gossip_place_kind kind, const struct gossip_address *at)
{
    unsigned scope = scope_of(at);
    if (at->port == 0 || (scope != 0 && scope != scope_of(&to->source)))
        return;
    for (unsigned i = 0; i < entry->count; i++)
        if (gossip_address_equal(&entry->places[i].at, at))
            return;
    entry->places[entry->count++] = (struct gossip_frame_place){.kind = kind, .at = *at};
}

void gossip_place_entry(const struct gossip *g, const struct gossip_peer *to,
                        const struct gossip_peer *p, struct gossip_frame_member *entry)
{
    entry->count = 0;
    if (!p->self && !gossip_place_introduced(p))
        return; /* the peer's places may be from an earlier epoch */
    for (unsigned i = 0; i < p->places_count; i++)
        if (p->places[i].place.own)
            add(entry, to, p->places[i].place.kind, &p->places[i].place.at);
    if (p->self && !is_shared(g, &to->source))
        add(entry, to, GOSSIP_PLACE_YOURS, &to->source);
    else if (p->session.sending != 0 && !is_shared(g, &p->source) &&
             g->now_us < gossip_peer_quiet_us(g, p) + PLACE_SILENT_SUSPECTS * g->config.suspect_us)
        add(entry, to, GOSSIP_PLACE_OBSERVED, &p->source);
}

/* --- this node's addresses -------------------------------------------------------------------- */

struct vote {
    struct gossip_address at;
    unsigned count;
};

static unsigned count_votes(const struct gossip *g, struct vote votes[VOTES_MAX])
{
    unsigned count = 0;
    for (unsigned i = 0; i < g->listed; i++) {
        const struct gossip_peer *p = g->order[i];
        if (!gossip_peer_open(p) || p->yours.port == 0 || is_others(g, &p->yours) ||
            gossip_place_advertised(g->self, &p->yours))
            continue;
        unsigned at = 0;
        while (at < count && !gossip_address_equal(&votes[at].at, &p->yours))
            at++;
        if (at == VOTES_MAX)
            continue;
        if (at == count)
            votes[count++] = (struct vote){.at = p->yours};
        /* An address with this node's configured port wins: a port changed by NAT is useful to few
         * peers. */
        votes[at].count += p->yours.port == g->config.port ? GOSSIP_MEMBERS_MAX : 1;
    }
    return count;
}

/* Takes out the address seen by most peers; port 0: none is left. */
static struct gossip_address take_most(struct vote *votes, unsigned count)
{
    struct gossip_address at = {0};
    unsigned most = 0;
    for (unsigned i = 1; i < count; i++)
        most = votes[i].count > votes[most].count ? i : most;
    if (count > 0 && votes[most].count > 0)
        at = votes[most].at;
    if (count > 0)
        votes[most].count = 0;
    return at;
}

bool gossip_place_learn(struct gossip *g)
{
    if (!g->learn || g->now_us < g->learn_us)
        return false;
    g->learn = false;
    g->learn_us = g->now_us + LEARN_AGAIN_US;
    struct vote votes[VOTES_MAX];
    unsigned count = count_votes(g, votes);
    struct gossip_peer *self = g->self;
    bool changed = false;
    for (unsigned i = 0; i < self->places_count; i++)
        self->places[i].spoken = self->places[i].place.kind == GOSSIP_PLACE_ADVERTISED;
    for (unsigned i = 0; i < LEARNED_MAX; i++) {
        struct gossip_place place = {.kind = GOSSIP_PLACE_LEARNED, .own = true};
        place.at = take_most(votes, count);
        if (place.at.port == 0)
            break;
        changed = changed || find(self, &place.at) == NULL;
        struct gossip_candidate *c = put(self, &place, g->epoch);
        if (c != NULL)
            c->spoken = true;
    }
    for (unsigned i = self->places_count; i-- > 0 && count > 0;) {
        if (self->places[i].spoken)
            continue;
        drop(self, &self->places[i]);
        changed = true;
    }
    return changed;
}

void gossip_place_yours(struct gossip *g, struct gossip_peer *p,
                        const struct gossip_frame_member *said)
{
    for (unsigned i = 0; i < said->count; i++) {
        if (said->places[i].kind != GOSSIP_PLACE_YOURS ||
            gossip_address_equal(&said->places[i].at, &p->yours))
            continue;
        p->yours = said->places[i].at;
        g->learn = true;
        gossip_tick_by(g, g->now_us > g->learn_us ? g->now_us : g->learn_us);
    }
}

void gossip_places_check(const struct gossip_peer *p)
{
    CHECK(p->places_count <= GOSSIP_PLACES_MAX);
    for (unsigned i = 0; i < p->places_count; i++) {
        CHECK(p->places[i].place.at.port != 0);
        for (unsigned j = 0; j < i; j++)
            CHECK(!gossip_address_equal(&p->places[i].place.at, &p->places[j].place.at));
    }
}
