#include "node/proxy/engine/feeds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "node/kv/readers.h"
#include "node/kv/trust.h"
#include "node/proxy/engine/feeds_log.h"
#include "node/proxy/engine/pool.h"
#include "node/replica/replica.h"
#include "node/route/kv_events.h"

enum {
    LOOK_MS = 1000,
    READERS = 2,       /* readers of an engine's events: the first reports, the second stands by */
    FAILED_MS = 10000, /* without a subscription for this long, another router takes over */
    COVERS_MS = 10000, /* a reader that has known the whole cache for this long may go first */
    KEPT_MS = 60000,   /* an engine's address is remembered this long after the connection */
};

struct feeds {
    struct kv_readers *readers;
    uint64_t looked_ms;
    struct feeds_of {
        struct kv_source *sources; /* owned: endpoints as the engine reported them */
        uint16_t count;
        /* Since then all of the cache is known by events; 0: not all is known. */
        uint64_t covers_ms;
        uint64_t well_ms; /* last time the feed was read, or need not be; 0: not checked yet */
        uint8_t reading;  /* last logged enum kv_reading */
        uint8_t trouble;  /* last logged enum feeds_trouble */
        uint64_t heard;   /* number of subscriptions and messages so far */
        uint64_t stored;  /* number of answers with stored blocks, when `heard` last rose */
        bool live;        /* node/route treats the events as live */
        bool held;        /* the engine is connected to this router */
        bool connects;    /* the feed is read over the engine's own connection */
        uint64_t left_ms; /* time at which the engine's connection ended */
        char from[NET_IP_BYTES]; /* IP address of the engine's last connection; "": none yet */
    } of[NODE_REPLICAS_MAX];
};

/* --- endpoints ------------------------------------------------------------------------------ */

struct endpoint {
    char at[KV_ENDPOINT_BYTES], replay[KV_ENDPOINT_BYTES];
    struct slice topic;
    bool connects; /* the engine connects to this router, from `at` */
    bool named;    /* a label gave `at` */
};

/* Writes an endpoint's address. Returns false if the port is invalid. */
static bool write_at(char *out, struct slice host, unsigned port)
{
    bool v6 = slice_find(host, ':') < host.len && host.at[0] != '[';
    out[0] = '\0';
    if (port == 0 || port > UINT16_MAX || host.len == 0)
        return false;
    int len = snprintf(out, KV_ENDPOINT_BYTES, v6 ? "tcp://[%.*s]:%u" : "tcp://%.*s:%u",
                       SLICE_ARG(host), port);
    return len < KV_ENDPOINT_BYTES;
}

/* Returns a rank's source, by position: the ranks of an engine on several machines have their own
 * numbers, which need not begin at 0. NULL: not reported. */
static const struct kv_source *source_of(const struct feeds_of *of, const struct node_rank *rank)
{
    if (!rank->is_one)
        return of->count == 1 ? &of->sources[0] : NULL;
    for (unsigned i = 0; i < of->count; i++) {
        unsigned before = 0;
        for (unsigned j = 0; j < of->count; j++)
            before += of->sources[j].rank < of->sources[i].rank;
        if (before == rank->number)
            return &of->sources[i];
    }
    return NULL;
}

/* Returns the IP address of the engine's HTTP port. Empty: unknown so far. */
static struct slice host_of(const struct proxy *p, unsigned server, char room[NET_IP_BYTES])
{
    const struct pool *pool = &p->engines.pools[server];
    const struct net_actions *net = p->config.net;
    if (pool->proxy == NULL)
        return SLICE("");
    if (net->ip == NULL)
        return slice_of_cstr(pool->address.host);
    if (pool->address_count == 0)
        return SLICE("");
    net->ip(pool->host, pool->address_at, room);
    return slice_of_cstr(room);
}

/* Reads the label with the endpoint. Returns false if there is none. */
static bool named_find(const struct proxy *p, const struct node_replica *k, struct kv_named *out)
{
    struct slice said = node_router_replica(p->config.router, k->rank.server)->said.kv_events;
    if (said.len > 0)
        CHECK(kv_named_parse(said, out) == NULL); /* checked before */
    return said.len > 0;
}

bool feeds_joins(const struct proxy *p)
{
    return p->config.replication != NULL && !node_replication_ready(p->config.replication);
}

static bool is_off(const struct proxy *p)
{
    return p->engines.feeds == NULL || feeds_joins(p) ||
           p->config.options->kv_events == NODE_KV_EVENTS_OFF;
}

static bool is_off_at(const struct proxy *p, unsigned slot)
{
    struct kv_named named = {.off = false};
    return is_off(p) ||
           (named_find(p, node_router_replica(p->config.router, slot), &named) && named.off);
}

/* Finds the endpoint of a connecting engine. `named` has the topic and the replay port. */
static bool connection_find(const struct proxy *p, unsigned slot, const struct kv_named *named,
                            struct endpoint *out)
{
    const struct feeds_of *of = &p->engines.feeds->of[slot];
    char room[NET_IP_BYTES];
    if (of->from[0] == '\0' || (!of->held && p->now_ms >= of->left_ms + KEPT_MS))
        return false;
    out->connects = true;
    out->topic = named->topic;
    (void)write_at(out->replay, host_of(p, slot, room), named->replay_port);
    return slice_to_cstr(slice_of_cstr(of->from), out->at, sizeof out->at);
}

static bool endpoint_find(const struct proxy *p, const struct node_replica *k, struct endpoint *out)
{
    unsigned server = k->rank.server, rank = k->rank.is_one ? k->rank.number : 0;
    struct kv_named named = {.connects = true};
    bool is_named = named_find(p, k, &named);
    if (is_named && named.off)
        return false;
    if (is_named && named.connects)
        return !k->rank.is_one && connection_find(p, server, &named, out);
    if (is_named) {
        out->topic = named.topic;
        out->named = true;
        bool replays = named.replay_port > 0;
        (void)write_at(out->replay, named.host, replays ? named.replay_port + rank : 0);
        return write_at(out->at, named.host, named.port + rank);
    }
    const struct kv_source *source = source_of(&p->engines.feeds->of[server], &k->rank);
    if (source == NULL)
        return !k->rank.is_one && connection_find(p, server, &named, out);
    char room[NET_IP_BYTES];
    struct slice host = host_of(p, server, room);
    out->topic = slice_of_cstr(source->topic);
    (void)write_at(out->replay, host, source->replay_port);
    return write_at(out->at, host, source->port);
}

/* --- turns ---------------------------------------------------------------------------------- */

static enum kv_role role_of(const struct proxy *p, unsigned slot, bool connects)
{
    const struct node_replica *k = node_router_replica(p->config.router, slot);
    const struct node_replica *server = node_router_process(p->config.router, slot);
    bool stands_for_ranks = !k->rank.is_one && k->rank.ranks > 0;
    if (k->absent || stands_for_ranks || p->engines.pools[k->rank.server].proxy == NULL)
        return KV_ROLE_NONE;
    if (server->health == NODE_HEALTH_DOWN)
        return kv_readers_reading(p->engines.feeds->readers, slot) != KV_READING_NOT
                   ? KV_ROLE_STANDS_BY
                   : KV_ROLE_NONE;
    bool up = server->health == NODE_HEALTH_UP, held = p->engines.feeds->of[slot].held;
    if (connects) /* the engine publishes only here, and may begin before the replica counts as
                     up */
        return held && up && k->turn_events.ahead == 0 ? KV_ROLE_SPEAKS : KV_ROLE_STANDS_BY;
    if (!up || k->turn_events.ahead >= READERS)
        return KV_ROLE_NONE;
    return k->turn_events.ahead == 0 ? KV_ROLE_SPEAKS : KV_ROLE_STANDS_BY;
}

bool feeds_ask(const struct proxy *p, unsigned replica)
{
    const struct node_replica *k = node_router_replica(p->config.router, replica);
    return !is_off(p) && k->health == NODE_HEALTH_UP && k->turn_events.ahead < READERS &&
           k->said.kv_events.len == 0;
}

void feeds_told(struct proxy *p, unsigned replica, const struct kv_source *sources, unsigned count)
{
    if (p->engines.feeds == NULL)
        return;
    struct feeds_of *of = &p->engines.feeds->of[replica];
    size_t bytes = count * sizeof *sources;
    struct kv_source *own = count > 0 ? malloc(bytes) : NULL;
    if (count > 0 && own == NULL)
        return; /* asked again later */
    if (count > 0)
        memcpy(own, sources, bytes);
    free(of->sources);
    of->sources = own;
    of->count = (uint16_t)count;
}

void feeds_forget(struct proxy *p, unsigned replica)
{
    feeds_told(p, replica, NULL, 0);
    if (p->engines.feeds == NULL)
        return;
    p->engines.feeds->of[replica].from[0] = '\0';
    kv_readers_trust_anew(p->engines.feeds->readers, replica);
}

/* --- the tick ------------------------------------------------------------------------------- */

static double blocks_of(const struct node_replica *k)
{
    const struct node_scrape *s = &k->scrape;
    return s->cache_tokens > 0 && s->block_tokens > 0 ? s->cache_tokens / s->block_tokens : 0;
}

/* Returns true if another router has taken the feed over, so nothing is lost. */
static bool others_read(const struct proxy *p, unsigned slot)
{
    const struct node_replica *k = node_router_replica(p->config.router, slot);
    return !is_off_at(p, slot) && !k->absent && k->turn_events.ahead >= READERS;
}

static void log_change(const struct proxy *p, unsigned slot)
{
    struct feeds *f = p->engines.feeds;
    enum kv_reading now = kv_readers_reading(f->readers, slot), before = f->of[slot].reading;
    bool was_live = before == KV_READING_LIVE;
    if (now == before)
        return;
    f->of[slot].reading = (uint8_t)now;
    bool unusable = now == KV_READING_BLOCK_SIZE || now == KV_READING_SILENT_TIER;
    if (now != KV_READING_LIVE && !was_live && now != KV_READING_CONTRADICTS && !unusable)
        return;
    if (now == KV_READING_NOT && others_read(p, slot))
        return;
    struct endpoint from = {.at = ""};
    (void)endpoint_find(p, node_router_replica(p->config.router, slot), &from);
    feeds_log_reading(p, slot, now, from.at);
}

/* Tells node/route if the feed's events are live, because this reader reports them. */
static void tell_router(const struct proxy *p, unsigned slot)
{
    struct feeds *f = p->engines.feeds;
    bool live = kv_readers_speak(f->readers, slot);
    if (live != f->of[slot].live)
        node_router_events_live(p->config.router, slot, live);
    f->of[slot].live = live;
}

/* Returns true if this reader should go before the others. A reporting reader keeps the turn, so
 * that two equal readers do not alternate. */
static bool goes_ahead(const struct proxy *p, unsigned slot, bool speaks)
{
    struct feeds_of *of = &p->engines.feeds->of[slot];
    if (!kv_readers_cover(p->engines.feeds->readers, slot, p->now_ms))
        of->covers_ms = 0;
    else if (of->covers_ms == 0)
        of->covers_ms = p->now_ms;
    return of->covers_ms > 0 && (speaks || p->now_ms >= of->covers_ms + COVERS_MS);
}

/* Returns this router's part in the order of readers. If this router has been without a
 * subscription for long, the next router moves up, while this one keeps trying. If the engine
 * connects, the router with the connection goes first; otherwise a router that knows the whole
 * cache. */
static enum node_reads reads_of(const struct proxy *p, unsigned slot, enum kv_role role)
{
    struct feeds_of *of = &p->engines.feeds->of[slot];
    enum kv_reading reading = kv_readers_reading(p->engines.feeds->readers, slot);
    struct kv_named named = {.connects = false};
    (void)named_find(p, node_router_replica(p->config.router, slot), &named);
    if (of->connects || named.connects)
        return of->held && reading != KV_READING_NOT ? NODE_READS_AHEAD : NODE_READS_NOT;
    bool up = node_router_process(p->config.router, slot)->health == NODE_HEALTH_UP;
    if (of->well_ms == 0 || role == KV_ROLE_NONE || !up ||
        (reading != KV_READING_NOT && reading != KV_READING_AWAY))
        of->well_ms = p->now_ms;
    bool ahead = goes_ahead(p, slot, role == KV_ROLE_SPEAKS);
    if (p->now_ms >= of->well_ms + FAILED_MS)
        return NODE_READS_NOT;
    return ahead ? NODE_READS_AHEAD : NODE_READS_TURN;
}

/* --- feeds without messages ----------------------------------------------------------------- */

static uint64_t stored_since(const struct proxy *p, unsigned slot)
{
    return node_router_events_stored(p->config.router, slot) - p->engines.feeds->of[slot].stored;
}

static void note_heard(const struct proxy *p, unsigned slot)
{
    struct feeds_of *of = &p->engines.feeds->of[slot];
    struct kv_reading_row row;
    bool stands =
        kv_readers_row(p->engines.feeds->readers, slot, &row) && row.reading != KV_READING_AWAY;
    uint64_t heard = stands ? row.connects + row.stats.feed.live : 0;
    if (stands && heard == of->heard)
        return;
    of->heard = heard;
    of->stored = node_router_events_stored(p->config.router, slot);
}

/* Returns the trouble of a feed that this router should read. A feed is silent if no message came
 * while KV_TALLY_MEMORY answers stored blocks. */
static enum feeds_trouble trouble_of(const struct proxy *p, unsigned slot)
{
    const struct feeds_of *of = &p->engines.feeds->of[slot];
    if (of->connects || node_router_process(p->config.router, slot)->health != NODE_HEALTH_UP)
        return FEEDS_TROUBLE_NONE;
    switch (kv_readers_reading(p->engines.feeds->readers, slot)) {
    case KV_READING_NOT:
        return FEEDS_TROUBLE_NONE;
    case KV_READING_AWAY:
        return p->now_ms < of->well_ms + FAILED_MS ? FEEDS_TROUBLE_NONE : FEEDS_TROUBLE_UNREACHABLE;
    default:
        return stored_since(p, slot) < KV_TALLY_MEMORY ? FEEDS_TROUBLE_NONE : FEEDS_TROUBLE_SILENT;
    }
}

/* Logs a change of the feed's trouble. If the feed was not live meanwhile, log_change() logs the
 * end. */
static void log_trouble(const struct proxy *p, unsigned slot, const struct endpoint *from)
{
    struct feeds_of *of = &p->engines.feeds->of[slot];
    enum feeds_trouble now = trouble_of(p, slot);
    enum kv_reading reading = kv_readers_reading(p->engines.feeds->readers, slot);
    struct kv_named named;
    if (now == of->trouble)
        return;
    of->trouble = (uint8_t)now;
    if (now != FEEDS_TROUBLE_NONE)
        feeds_log_trouble(p, slot, now, from->at, from->topic,
                          named_find(p, node_router_replica(p->config.router, slot), &named),
                          stored_since(p, slot));
    else if (reading == KV_READING_LIVE && of->reading == KV_READING_LIVE)
        feeds_log_reading(p, slot, KV_READING_LIVE, from->at);
}

/* --- the check of each second --------------------------------------------------------------- */

/* Tells the reader that the engine is connected, if the connection is older than the feed. */
static void connect_held(const struct proxy *p, unsigned slot)
{
    struct kv_readers *readers = p->engines.feeds->readers;
    bool away = kv_readers_reading(readers, slot) == KV_READING_AWAY;
    const struct feeds_of *of = &p->engines.feeds->of[slot];
    if (of->connects && of->held && away)
        kv_readers_connected(readers, (unsigned)kv_readers_feed(readers, slot), p->now_ms);
}

static void look(struct proxy *p, unsigned slot)
{
    bool off = is_off_at(p, slot);
    struct feeds *f = p->engines.feeds;
    struct kv_wanted want = {.role = KV_ROLE_NONE};
    struct endpoint e = {.at = ""};
    const struct node_replica *k = node_router_replica(p->config.router, slot);
    if (!off && endpoint_find(p, k, &e))
        want.role = role_of(p, slot, e.connects);
    if (want.role != KV_ROLE_NONE) {
        want.rkey = k->rkey;
        want.blocks = blocks_of(k);
        want.has_tier = k->scrape.tier_hits > 0;
        want.endpoint = slice_of_cstr(e.at);
        want.replay = slice_of_cstr(e.replay);
        want.topic = e.topic;
        want.connects = e.connects;
        want.named = e.named;
    }
    f->of[slot].connects = want.connects;
    kv_readers_want(f->readers, slot, &want, p->now_ms);
    connect_held(p, slot);
    enum node_reads reads = reads_of(p, slot, want.role);
    node_router_events_reads(p->config.router, slot, off ? NODE_READS_NOT : reads);
    note_heard(p, slot);
    log_trouble(p, slot, &e);
}

void feeds_held(struct proxy *p, unsigned replica, const char *from)
{
    struct feeds *f = p->engines.feeds;
    struct feeds_of *of = &f->of[replica];
    int feed = kv_readers_feed(f->readers, replica);
    of->held = from != NULL;
    if (from == NULL) {
        of->left_ms = p->now_ms;
        if (of->connects && feed >= 0)
            kv_readers_lost(f->readers, (unsigned)feed, p->now_ms);
        return;
    }
    (void)slice_to_cstr(slice_of_cstr(from), of->from, sizeof of->from);
    look(p, replica);
}

bool feeds_live(struct proxy *p, unsigned replica, uint64_t number, struct slice payload)
{
    const struct feeds *f = p->engines.feeds;
    int feed = kv_readers_feed(f->readers, replica);
    if (!f->of[replica].connects || feed < 0)
        return false;
    kv_readers_live(f->readers, (unsigned)feed, number, payload, p->now_ms);
    return true;
}

void feeds_tick(struct proxy *p)
{
    struct feeds *f = p->engines.feeds;
    if (f == NULL)
        return;
    kv_readers_tick(f->readers, p->now_ms);
    unsigned count = node_router_replica_count(p->config.router);
    bool looks = p->now_ms >= f->looked_ms + LOOK_MS;
    for (unsigned slot = 0; looks && slot < count; slot++)
        look(p, slot);
    bool any = looks || kv_readers_stats(f->readers).feeds > 0;
    for (unsigned slot = 0; any && slot < count; slot++) {
        log_change(p, slot);
        tell_router(p, slot);
    }
    f->looked_ms = looks ? p->now_ms : f->looked_ms;
}

/* --- metrics -------------------------------------------------------------------------------- */

struct row {
    const char *name, *help;
    double (*value)(const struct kv_reading_row *r);
};

#define ROWS(X)                                                                                    \
    X(events_read, "1 if the replica's KV-cache events are live at this router.",                  \
      r->reading == KV_READING_LIVE)                                                               \
    X(events_whole, "1 if no event was missed since the engine's start.", r->stats.tree.whole)     \
    X(events_speaks, "1 if this router reports the events to all; 0 on standby.", r->speaks)       \
    X(events_blocks, "Blocks in the replica's cache, by its events.", r->stats.tree.held)          \
    X(events_messages_total, "Event messages read.", r->stats.feed.messages)                       \
    X(events_gaps_total, "Gaps in the numbers of event messages.", r->stats.feed.gaps)             \
    X(events_replays_total, "Requests to replay event messages.", r->stats.feed.replays)           \
    X(events_missed_total, "Losses of event messages.", r->stats.feed.missed)                      \
    X(events_connects_total, "Feeds opened.", r->connects)                                         \
    X(events_malformed_total, "Unreadable event messages.", r->malformed + r->stats.feed.unread)   \
    X(events_shed_total, "Pauses of a feed that took too much CPU time.", r->stats.shed)           \
    X(events_answers_total, "Answers reported to the reader of the events.", r->stats.told)        \
    X(events_tied_total, "Reported answers with blocks found in the cache.", r->stats.tied)        \
    X(events_unmatched_total, "Reported answers without blocks found in the cache.",               \
      r->stats.unmatched)                                                                          \
    X(events_unclear_total, "Reported answers with ambiguous blocks.", r->stats.unclear)           \
    X(events_asked_total, "Reported answers with the prompt's tokens from the engine.",            \
      r->stats.asked)                                                                              \
    X(events_asked_wrong_total, "Reported answers whose tokens prevented a wrong match.",          \
      r->stats.asked_wrong)                                                                        \
    X(events_agreed_total, "Reported answers that confirm the events.", r->stats.agreed)           \
    X(events_contradicted_total, "Reported answers that contradict the events.",                   \
      r->stats.contradicted)                                                                       \
    X(events_disbelieved_total, "Times that the replica's events were no longer believed.",        \
      r->stats.disbelieved)                                                                        \
    X(events_gone_total,                                                                           \
      "Prompt positions that this router told the others are no longer cached.", r->stats.gone)    \
    X(events_present_total, "Prompt positions that this router told the others are cached.",       \
      r->stats.present)

#define X_VALUE(name, help, what)                                                                  \
    static double value_##name(const struct kv_reading_row *r)                                     \
    {                                                                                              \
        return (double)(what);                                                                     \
    }
ROWS(X_VALUE)
#define X_ROW(name, help, what) {"replica_" #name, help, value_##name},
static const struct row rows[] = {ROWS(X_ROW)};

void feeds_metrics(const struct proxy *p, struct prometheus *out)
{
    const struct feeds *f = p->engines.feeds;
    struct kv_readers_stats s = {0};
    if (f != NULL)
        s = kv_readers_stats(f->readers);
    const struct prometheus_figure figures[] = {
        {"events_feeds", "Open feeds of KV-cache events.", s.feeds},
        {"events_feeds_refused_total",
         "Feeds not opened for lack of memory or file descriptors, or beyond the limit.",
         (double)s.refused},
        {"events_bytes", "Memory for contents of caches.", (double)s.blocks * KV_TREE_BLOCK_BYTES},
        {"events_checkpoints", "Prompt checkpoints with a tracked place in caches.",
         s.paths.points},
        {"events_checkpoints_dropped_total", "Tracked prompt checkpoints dropped for others.",
         (double)s.paths.dropped},
        {"events_orphans_total", "Ignored parts of prompts whose beginning is unknown.",
         (double)s.paths.orphans},
        {"events_asked_total", "Prompts sent with a request for their tokens (kv-ask).",
         (double)p->stats.ids_asked},
        {"events_asked_bytes_total", "Bytes of prompts sent with a request for their tokens.",
         (double)p->stats.ids_asked_bytes},
        {"events_foreign_blocks_total", "Answers of engines with a block size that found no room.",
         (double)s.odd},
    };
    prometheus_figures(out, figures, ARRAY_LEN(figures));
    unsigned count = f != NULL ? node_router_replica_count(p->config.router) : 0;
    for (const struct row *row = rows; row < rows + ARRAY_LEN(rows); row++) {
        prometheus_family(out, row->name, row->help);
        struct kv_reading_row r;
        for (unsigned slot = 0; slot < count; slot++) {
            if (!node_router_replica_present(p->config.router, slot))
                continue;
            if (!kv_readers_row(f->readers, slot, &r))
                r = (struct kv_reading_row){.reading = KV_READING_NOT};
            prometheus_label(out, "replica", node_router_replica_name(p->config.router, slot));
            prometheus_value(out, row->value(&r));
        }
    }
}

/* --- life ----------------------------------------------------------------------------------- */

int feeds_open(struct proxy *p)
{
    if (p->config.kv_readers == NULL)
        return ERR_OK;
    struct feeds *f = calloc(1, sizeof *f);
    if (f == NULL)
        return ERR_NOMEM;
    f->readers = p->config.kv_readers;
    p->engines.feeds = f;
    return ERR_OK;
}

void feeds_close(struct proxy *p)
{
    struct feeds *f = p->engines.feeds;
    for (unsigned i = 0; f != NULL && i < NODE_REPLICAS_MAX; i++)
        free(f->of[i].sources);
    free(f);
    p->engines.feeds = NULL;
}
