#include "node/route/share.h"

#include "base/check.h"
#include "base/err.h"
#include "node/replica/learned.h"
#include "node/route/request.h"
#include "node/route/router_internal.h"

void node_router_names(struct node_router *r, const struct node_replication *names)
{
    r->names = names;
}

/* --- telling -------------------------------------------------------------------------------- */

/* The health to report. An address at which a router answers is reported as down; the other routers
 * find out themselves. A rank has the health of the address. A replica with '@' in the name is
 * reported as down, because older builds without ranks or local names must not use such names. */
static enum node_health health_told(const struct node_replica *k)
{
    bool other_kind = slice_find(node_replica_name(k), '@') < k->name_len && !k->absent;
    return k->health == NODE_HEALTH_ROUTER || other_kind ? NODE_HEALTH_DOWN : k->health;
}

static void tell_replica(struct node_router *r, unsigned slot, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[slot];
    struct node_slot *s = &r->slots[slot];
    s->told.breaker = node_breaker_report(k, now_ms);
    s->told.rejects = node_reject_report(&k->reject, now_ms);
    s->told.still = node_signs_report(&k->signs);
    if (s->told.breaker != 0 || s->told.rejects != 0)
        node_replica_set_add(&r->backing_off, slot);
    if (k->load.head != NODE_BOOKING_NONE)
        node_replica_set_add(&r->lined, slot);
    struct crdt_load load = {
        .requests = k->load.requests,
        .prefill_tokens = k->load.prefill_tokens,
        .context_tokens = k->load.context_tokens,
        .decoding_tokens = k->load.decoding_tokens,
        .adapter = k->load.requests > 0 ? s->adapter_last : 0,
        .adapter_uses = s->adapter_uses,
    };
    struct crdt_sight sight = {
        .configured = node_router_is_ours(r, slot) && !k->vanishing,
        .health = (uint8_t)health_told(k),
        .engine = (uint8_t)k->engine,
        .asleep = k->asleep,
        .breaker = s->told.breaker,
        .cured = k->breaker.cured,
        .rejects = s->told.rejects,
        .rejects_with = s->told.rejects != 0 ? (uint16_t)k->reject.status : 0,
        .still = s->told.still,
    };
    crdt_state_load(r->crdt, slot, &load);
    crdt_state_sight(r->crdt, slot, &sight);
}

static void tell_learned(struct node_router *r, uint64_t now_ms)
{
    if (now_ms < r->learned_ms + NODE_LEARNED_INTERVAL_MS)
        return;
    r->learned_ms = now_ms;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        struct crdt_learned learned = node_replica_report(k);
        node_scraped_report(k, now_ms, &learned);
        learned.events_reads = r->slots[slot].events.reads;
        if (r->slots[slot].events.live) {
            learned.events_rkey = k->rkey;
            learned.events_floor = node_router_events_floor(r, slot);
        }
        if (!crdt_learned_moved(&r->slots[slot].told.learned, &learned))
            continue;
        r->slots[slot].told.learned = learned;
        crdt_state_learned(r->crdt, slot, &learned);
    }
}

/* Prompts of answers without a stream leave the queue by time, so the reported load falls without
 * an event. */
static void lines_advance(struct node_router *r, uint64_t now_ms)
{
    const unsigned count = r->replica_count;
    for (unsigned slot = 0; (slot = node_replica_set_next(&r->lined, slot, count)) < count;
         slot++) {
        struct node_replica *k = &r->replicas[slot];
        node_router_load_advance(r, k, now_ms);
        if (k->load.head == NODE_BOOKING_NONE)
            node_replica_set_remove(&r->lined, slot);
    }
}

/* Marks the replicas with a back-off that ended by time for the next report. Then a trial is
 * due. */
static void backoffs_end(struct node_router *r, uint64_t now_ms)
{
    struct node_replica_set *set = &r->backing_off;
    const unsigned count = r->replica_count;
    for (unsigned slot = 0; (slot = node_replica_set_next(set, slot, count)) < count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        uint8_t now = node_breaker_report(k, now_ms);
        uint64_t rejects = node_reject_report(&k->reject, now_ms);
        if (now != r->slots[slot].told.breaker || rejects != r->slots[slot].told.rejects)
            node_router_touch(r, slot);
        if (now == 0 && rejects == 0)
            node_replica_set_remove(set, slot);
    }
}

static void on_collect(void *context, uint64_t now_ms)
{
    struct node_router *r = context;
    lines_advance(r, now_ms);
    backoffs_end(r, now_ms);
    const struct node_replica_set touched = r->touched;
    const unsigned count = r->replica_count;
    r->touched = (struct node_replica_set){0};
    for (unsigned slot = 0; (slot = node_replica_set_next(&touched, slot, count)) < count; slot++)
        tell_replica(r, slot, now_ms);
    tell_learned(r, now_ms);
}

/* --- taking in ------------------------------------------------------------------------------ */

static void on_joined(void *context)
{
    struct node_router *r = context;
    node_router_apart_follow(r);
    if (r->registry_taken != crdt_registry_version(crdt_state_registry(r->crdt)))
        node_router_presence_update(r);
    node_router_starts_take(r);
    node_router_adapters_joined(r);
}

/* Report of the last router that named or used the replica: nothing, a report without this replica,
 * or use. */
enum word { WORD_NOTHING, WORD_REPORTS, WORD_USES };

/* The other routers' reports about a replica. */
struct heard {
    const struct node_router *r;
    unsigned slot;
    uint64_t rank;  /* this router's rank in the order at the replica */
    uint64_t last;  /* the last known router that named or used the replica */
    uint64_t namer; /* a router that names the replica; 0: none */
    uint64_t user;  /* a router that uses the replica; 0: none */
    enum word last_word;
    unsigned up, down;
    enum node_engine engine;
    struct node_heard learned;
    struct node_breaker_heard breaker;
    struct node_reject_heard reject;
    unsigned waits;   /* other routers' requests that wait for a token at the replica */
    bool found_still; /* some router found the replica stalled */
    uint32_t events_floor;
    bool events; /* some router reports that the replica's events are live */
    struct node_turn turn, turn_events;
    struct {
        const struct crdt_learned *learned; /* NULL: no router reports a scrape */
        uint64_t router, rank;
        bool asleep;
    } scraper; /* the first router in the order that reports a scrape */
};

/* The order of the routers at a replica, for tasks that one router does for all. All routers have
 * the same order. */
static uint64_t rank_of(const struct node_router *r, unsigned slot, uint64_t router)
{
    return node_turn_rank(r->replicas[slot].name_hash, router);
}

/* Adds another router to the order of routers that read the replica's events. Routers with
 * NODE_READS_AHEAD go first. */
static void add_reader(struct heard *h, bool up, const struct crdt_learned *learned, uint64_t rank)
{
    bool goes_ahead = learned && learned->events_reads >= NODE_READS_AHEAD;
    bool self_does = h->r->slots[h->slot].events.reads >= NODE_READS_AHEAD;
    uint64_t self = goes_ahead == self_does ? h->rank : self_does ? UINT64_MAX : 0;
    node_turn_add(&h->turn_events, up && learned && learned->events_reads, rank, self);
}

static bool hear(void *context, uint64_t router, const struct crdt_load *load,
                 const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    (void)load;
    struct heard *h = context;
    if (router == h->r->common->self)
        return true;
    uint64_t rank = rank_of(h->r, h->slot, router);
    if (sight) {
        bool uses = sight->health != NODE_HEALTH_UNKNOWN; /* an absent replica has no health */
        h->namer = sight->configured ? router : h->namer;
        h->user = uses ? router : h->user;
        if (router == h->last)
            h->last_word = uses ? WORD_USES : WORD_REPORTS;
        h->up += sight->health == NODE_HEALTH_UP && !sight->asleep;
        h->down += sight->health == NODE_HEALTH_DOWN || sight->asleep;
        node_breaker_heard_add(&h->breaker, sight->breaker, sight->cured, uses && rank > h->rank);
        node_reject_heard_add(&h->reject, sight->rejects, sight->rejects_with,
                              uses && rank > h->rank);
        h->waits += sight->still & NODE_STILL_WAITS;
        h->found_still = h->found_still || (sight->still & NODE_STILL_FOUND) != 0;
        bool up = sight->health == NODE_HEALTH_UP;
        node_turn_add(&h->turn, up, rank, h->rank);
        add_reader(h, up, learned, rank);
        if (sight->engine <= NODE_ENGINE_OTHER && h->engine == NODE_ENGINE_AUTO)
            h->engine = (enum node_engine)sight->engine;
    }
    if (learned) {
        node_heard_add(&h->learned, learned);
        if (learned->events_rkey == h->learned.rkey) {
            h->events = true;
            h->events_floor = learned->events_floor;
        }
    }
    if (learned && learned->scrapes != 0 && (!h->scraper.learned || rank > h->scraper.rank)) {
        h->scraper.learned = learned;
        h->scraper.router = router;
        h->scraper.rank = rank;
        h->scraper.asleep = sight && sight->asleep;
    }
    return true;
}

static struct heard listen(const struct node_router *r, unsigned slot)
{
    const struct node_replica *k = &r->replicas[slot];
    struct heard h = {.r = r,
                      .slot = slot,
                      .rank = rank_of(r, slot, r->common->self),
                      .last = r->slots[slot].naming.router,
                      .learned.rkey = k->rkey};
    crdt_reports_each(crdt_state_reports(r->crdt), slot, hear, &h);
    return h;
}

/* --- names --- */

/* Notes the time since when `so` is true. Returns true if `so` has lasted for `ms`. */
static bool lasts(uint64_t *since_ms, bool so, uint64_t ms, uint64_t now_ms)
{
    if (!so)
        *since_ms = 0;
    else if (*since_ms == 0)
        *since_ms = now_ms > 0 ? now_ms : 1;
    return so && now_ms - *since_ms >= ms;
}

/* NONE --a router uses it--> LENT --the user is silent--> LENDER_AWAY
 *
 *   any state --a router names it--> NAMED --the namer is silent--> AWAY
 *   NAMED, LENT --the namer or user reports without the replica--> LOST
 *   a held name --the namer or user is back without it, or probes fail--> LOST.
 *
 * A name is held until the registry forgets it (crdt/registry.h), if not ended earlier. */
static void take_name(struct node_router *r, unsigned slot, const struct heard *h, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[slot];
    struct node_naming *n = &r->slots[slot].naming;
    bool uses = h->last_word == WORD_USES;
    if (h->namer != 0)
        *n = (struct node_naming){.state = NODE_NAMING_NAMED, .router = h->namer};
    else if (n->state == NODE_NAMING_NONE && h->user != 0)
        *n = (struct node_naming){.state = NODE_NAMING_LENT, .router = h->user};
    else if (n->state == NODE_NAMING_NAMED)
        n->state = h->last_word == WORD_NOTHING ? NODE_NAMING_AWAY : NODE_NAMING_LOST;
    else if (n->state == NODE_NAMING_LENT && !uses)
        n->state = h->last_word == WORD_NOTHING ? NODE_NAMING_LENDER_AWAY : NODE_NAMING_LOST;
    if (!node_naming_held(n))
        return;
    bool lends = uses && n->state != NODE_NAMING_AWAY;
    bool back = !lends && crdt_reports_knows(crdt_state_reports(r->crdt), n->router);
    bool down = k->health == NODE_HEALTH_DOWN || k->health == NODE_HEALTH_ROUTER;
    bool silent = lasts(&n->silent_ms, back, NODE_NAMING_SILENT_MS, now_ms);
    bool failed = lasts(&n->down_ms, down, NODE_NAMING_DOWN_MS, now_ms);
    if (silent || failed)
        n->state = NODE_NAMING_LOST;
    r->names_held = r->names_held || node_naming_held(n);
}

/* A source of this router may have been silent since the start, perhaps because the source's server
 * is down. Then this router does not know the configured names. Until the source answers, the
 * router names replicas that no router would name, and so do all routers that start at that time.
 * So a restart of routers removes no name. */
static void names_adopt(struct node_router *r)
{
    bool pending = r->sources && discover_pending(r->sources);
    if (!pending && !r->adopts)
        return;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        struct node_slot *s = &r->slots[slot];
        struct slice name = node_replica_name(k);
        bool serves = k->health == NODE_HEALTH_UP; /* false for names without an engine, which a
                                                    * router invented */
        if (pending && node_naming_held(&s->naming) && serves && !node_router_is_ours(r, slot)) {
            s->adopted = node_router_name(r, name, NODE_ENGINE_AUTO) >= 0;
            r->adopts = r->adopts || s->adopted;
        } else if (!pending && s->adopted) {
            s->adopted = false;
            if (!discover_listed(r->sources, node_router_source_name(r, name)))
                node_router_unname(r, name);
        }
    }
    r->adopts = r->adopts && pending;
}

/* Held names may expire by time, without an event. */
static void names_expire(struct node_router *r, uint64_t now_ms)
{
    bool gone = false;
    bool held = r->names_held;
    r->names_held = false;
    for (unsigned slot = 0; held && slot < r->replica_count; slot++) {
        const struct node_naming *n = &r->slots[slot].naming;
        if (!node_naming_held(n))
            continue;
        struct heard h = listen(r, slot);
        take_name(r, slot, &h, now_ms);
        gone = gone || !node_naming_in_use(n);
    }
    if (gone)
        node_router_presence_update(r);
}

static void scrape_take(struct node_router *r, struct node_replica *k, const struct heard *h,
                        uint64_t now_ms)
{
    bool was_asleep = k->asleep;
    if (h->scraper.learned &&
        node_scraped_hear(k, h->scraper.router, h->scraper.learned, h->scraper.asleep, now_ms))
        r->slots[h->slot].rkey_scraped = k->rkey;
    if (k->asleep != was_asleep)
        node_router_touch(r, h->slot);
}

static void on_reports(void *context, uint64_t now_ms)
{
    struct node_router *r = context;
    uint64_t version = crdt_reports_version(crdt_state_reports(r->crdt));
    names_adopt(r);
    if (version == r->reports_taken) {
        names_expire(r, now_ms);
        return;
    }
    r->reports_taken = version;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        struct heard h = listen(r, slot);
        take_name(r, slot, &h, now_ms);
        r->slots[slot].events.rkey_heard = h.events ? k->rkey : 0;
        r->slots[slot].events.floor_heard = h.events_floor;
        k->hint = h.up > h.down   ? NODE_HEALTH_UP
                  : h.down > h.up ? NODE_HEALTH_DOWN
                                  : NODE_HEALTH_UNKNOWN;
        if (node_replica_engine_hear(k, h.engine))
            node_router_touch(r, slot);
        if (node_router_wish(r, slot) == CRDT_WISH_REMOVED ||
            (k->absent && !node_naming_in_use(&r->slots[slot].naming)))
            continue; /* the others' last reports are from before the replica left */
        node_breaker_hear(k, &h.breaker, now_ms);
        node_reject_hear(&k->reject, &h.reject, now_ms);
        node_signs_hear(&k->signs, h.waits, h.found_still, now_ms);
        if (!k->rank.is_one) {
            k->turn = h.turn;
            k->turn_events = h.turn_events;
        }
        node_router_others_take(r, slot, now_ms); /* before node_replica_hear(), which uses a factor
                                                   * that includes the reports */
        node_replica_hear(k, &h.learned, now_ms);
        scrape_take(r, k, &h, now_ms);
    }
    r->fleet_stale = true;
    names_adopt(r);
    node_router_presence_update(r);
    node_router_events_follow(r);
}

/* --- stored responses ----------------------------------------------------------------------- */

static uint64_t bind_key(const struct node_router *r, struct slice id)
{
    return hash64(&r->common->secret, id.at, id.len);
}

void node_router_bind(struct node_router *r, struct slice id, unsigned replica)
{
    CHECK(replica < r->replica_count);
    /* If the index is full, the other routers ask the replicas in turn. */
    DISCARD(crdt_state_bind(r->crdt, bind_key(r, id), replica));
}

int node_router_bound(const struct node_router *r, struct slice id)
{
    int slot = crdt_state_bound(r->crdt, bind_key(r, id));
    return slot >= 0 && (unsigned)slot < r->replica_count && !r->replicas[slot].absent ? slot : -1;
}

/* --- going back ----------------------------------------------------------------------------- */

/* Takes in the whole state, and reports everything of this router again, as at the start. */
static void on_rewound(void *context)
{
    struct node_router *r = context;
    node_router_state_take(r);
    node_router_events_hear(r);
    r->registry_taken = r->reports_taken = r->loads_taken = UINT64_MAX;
    r->learned_ms = 0;
    node_router_registry_take(r);
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        node_belief_moved(&r->replicas[slot].belief);
        r->slots[slot].told.learned = (struct crdt_learned){0};
        node_router_touch(r, slot);
    }
}

/* --- explaining to another router ----------------------------------------------------------- */

static int on_explain(void *context, struct slice request, uint64_t now_ms, struct buf *out)
{
    struct node_request_copy copy;
    int err = node_request_unpack(&copy, request);
    return err == ERR_OK ? node_router_explain(context, &copy.request, now_ms, out) : err;
}

struct node_replication_user node_router_replication_user(struct node_router *r)
{
    return (struct node_replication_user){
        .context = r,
        .collect = on_collect,
        .joined = on_joined,
        .reports = on_reports,
        .rewound = on_rewound,
        .explain = on_explain,
    };
}
