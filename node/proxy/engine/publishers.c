#include "node/proxy/engine/publishers.h"

#include <stdlib.h>

#include "base/check.h"
#include "node/kv/zmtp.h"
#include "node/proxy/engine/feeds.h"
#include "node/proxy/engine/pool.h"
#include "node/replica/replica.h"

enum { LOOK_MS = 1000, NOBODY = -1 };

/* Reasons for the router to close a connection. */
#define ENDS(X)                                                                                    \
    X(LIMIT, "limit")                                                                              \
    X(PROTOCOL, "protocol")                                                                        \
    X(SIZE, "size")                                                                                \
    X(MEMORY, "memory")                                                                            \
    X(HANDSHAKE, "handshake")                                                                      \
    X(TOPIC, "topic")                                                                              \
    X(WRITE, "write")

/* Reasons to drop a message, with the log's text and advice. */
#define DROPS(X)                                                                                   \
    X(TOPIC, "topic", "no replica has this topic",                                                 \
      "give the engine's replica the label kv-events=listen?topic=TEXT with the engine's topic")   \
    X(ADDRESS, "address", "no replica has this address",                                           \
      "set a topic at the engine, and the label kv-events=listen?topic=TEXT at its replica")       \
    X(SEVERAL, "several", "several replicas match",                                                \
      "a topic of its own at each engine, and the label kv-events=listen?topic=TEXT")              \
    X(RANKS, "ranks",                                                                              \
      "the replica has data-parallel ranks, and one connection cannot tell them "                  \
      "apart",                                                                                     \
      "set an endpoint with a wildcard at the engine: the router then connects to each rank")      \
    X(TAKEN, "taken", "the router already reads another connection for this replica",              \
      "a topic of its own at each engine, and the label kv-events=listen?topic=TEXT")              \
    X(UNREAD, "unread", NULL, NULL) /* kv-events=off, no room, or read from another port */        \
    X(ODD, "odd", NULL, NULL)

#define X_END(name, text)                   END_##name,
#define X_DROP(name, text, what, want)      DROP_##name,
#define X_END_TEXT(name, text)              text,
#define X_DROP_TEXT(name, text, what, want) {text, what, want},
enum end { ENDS(X_END) END_COUNT, END_BY_PEER = END_COUNT };
enum drop { DROPS(X_DROP) DROP_COUNT, DROP_NOT = DROP_COUNT };

static const char *const end_texts[] = {ENDS(X_END_TEXT)};
static const struct {
    const char *text, *what, *want;
} drop_texts[] = {DROPS(X_DROP_TEXT)};

struct publisher {
    struct proxy *proxy;
    struct net_stream *stream;
    unsigned number;
    struct kv_zmtp zmtp;
    char from[NET_IP_BYTES];
    char topic[KV_TOPIC_MAX]; /* the first message's topic, which all others must have */
    uint8_t topic_len;
    bool began; /* reading has begun, after this router has joined the cluster */
    bool spoke; /* a message has set `topic` */
    bool paused, closing;
    bool logged;    /* the log has the reason why messages are dropped */
    enum drop drop; /* the reason why `slot` is NOBODY */
    int slot;       /* the replica's number, or NOBODY */
    uint64_t began_ms;
    uint64_t looked_ms; /* last search for the replica; 0: a search is due */
    uint64_t bytes;     /* bytes received in this second */
};

struct publishers {
    struct publisher *all[PUBLISHERS_MAX]; /* connections; NULL: a free place */
    unsigned count;
    size_t memory;
    uint64_t second_ms, logged_ms;
    uint64_t full_logged_ms,
        full_logged; /* time of the last log line about refused connections, and
                                             their count then */
    uint64_t accepted, paused, ends[END_COUNT], drops[DROP_COUNT];
};

/* --- the end --------------------------------------------------------------------------------- */

/* Gives up the replica: another connection's messages for the replica may now be read. */
static void release(struct publisher *c)
{
    struct publishers *ps = c->proxy->engines.publishers;
    if (c->slot == NOBODY)
        return;
    feeds_held(c->proxy, (unsigned)c->slot, NULL);
    c->slot = NOBODY;
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++) {
        if (ps->all[i] != NULL)
            ps->all[i]->looked_ms = 0;
    }
}

static void end(struct publisher *c, enum end why)
{
    struct publishers *ps = c->proxy->engines.publishers;
    if (c->closing)
        return;
    if (why != END_BY_PEER)
        ps->ends[why]++;
    c->closing = true;
    release(c);
    ps->memory -= kv_zmtp_held(&c->zmtp);
    kv_zmtp_free(&c->zmtp);
    c->proxy->config.net->close(c->stream, why != END_BY_PEER);
}

static void on_closed(void *owner)
{
    struct publisher *c = owner;
    struct publishers *ps = c->proxy->engines.publishers;
    if (c->number < PUBLISHERS_MAX) {
        ps->all[c->number] = NULL;
        ps->count--;
    }
    free(c);
}

static void on_ended(void *owner, int err, uint64_t now_ms)
{
    struct publisher *c = owner;
    (void)err;
    c->proxy->now_ms = now_ms;
    end(c, END_BY_PEER);
}

/* --- the replica of a connection ------------------------------------------------------------ */

/* Returns the address as replicas' addresses are written: without a zone, and an IPv4-mapped IPv6
 * address as IPv4. */
static struct slice plain(const char *ip)
{
    struct slice s = slice_of_cstr(ip);
    struct slice rest = slice_skip(s, strlen("::ffff:"));
    if (slice_starts_with(s, SLICE("::ffff:")) && slice_find(rest, '.') < rest.len)
        return rest;
    return slice_cut(&s, '%');
}

static bool has_address(const struct proxy *p, unsigned slot, struct slice from)
{
    const struct pool *pool = &p->engines.pools[slot];
    const struct net_actions *net = p->config.net;
    char ip[NET_IP_BYTES];
    if (net->ip == NULL)
        return slice_equal(slice_of_cstr(pool->address.host), from);
    for (unsigned i = 0; i < pool->address_count; i++) {
        net->ip(pool->host, i, ip);
        if (slice_equal(plain(ip), from))
            return true;
    }
    return false;
}

static bool fits(const struct publisher *c, unsigned slot)
{
    const struct proxy *p = c->proxy;
    const struct node_replica *k = node_router_replica(p->config.router, slot);
    struct slice topic = slice_of(c->topic, c->topic_len), said = k->said.kv_events;
    struct kv_named named = {.connects = true};
    if (k->absent || k->rank.is_one || p->engines.pools[slot].proxy == NULL)
        return false;
    if (said.len > 0)
        CHECK(kv_named_parse(said, &named) == NULL); /* checked before */
    /* A replica with kv-events=off matches, but the messages are not read. */
    return (named.connects || named.off) && slice_equal(named.topic, topic) &&
           (topic.len > 0 || has_address(p, slot, plain(c->from)));
}

static bool is_off_at(const struct node_router *r, unsigned slot)
{
    return slice_equal(node_router_replica(r, slot)->said.kv_events, SLICE("off"));
}

static bool is_taken(const struct publisher *c, int slot)
{
    const struct publishers *ps = c->proxy->engines.publishers;
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++) {
        if (ps->all[i] != NULL && ps->all[i] != c && ps->all[i]->slot == slot)
            return true;
    }
    return false;
}

/* Returns the only replica that fits the connection, even if the replica's events are not read;
 * NOBODY: none or several fit. `*drop`: the reason to drop the messages, or DROP_NOT. */
static int find(const struct publisher *c, enum drop *drop)
{
    const struct node_router *r = c->proxy->config.router;
    unsigned count = node_router_replica_count(r), found = 0;
    int slot = NOBODY;
    for (unsigned i = 0; i < count; i++) {
        if (!fits(c, i))
            continue;
        found++;
        slot = (int)i;
    }
    if (found == 0)
        *drop = c->topic_len > 0 ? DROP_TOPIC : DROP_ADDRESS;
    else if (found > 1)
        *drop = DROP_SEVERAL;
    else if (is_off_at(r, (unsigned)slot))
        *drop = DROP_UNREAD;
    else if (node_router_replica(r, (unsigned)slot)->rank.ranks > 0)
        *drop = DROP_RANKS;
    else
        *drop = is_taken(c, slot) ? DROP_TAKEN : DROP_NOT;
    return found == 1 ? slot : NOBODY;
}

static void log_drop(struct publisher *c, int slot)
{
    struct proxy *p = c->proxy;
    struct publishers *ps = p->engines.publishers;
    const char *what = drop_texts[c->drop].what;
    bool lately = ps->logged_ms > 0 && p->now_ms < ps->logged_ms + PUBLISHERS_LOG_MS;
    if (c->logged || lately || what == NULL)
        return;
    c->logged = true;
    ps->logged_ms = p->now_ms;
    struct slice name = SLICE("");
    if (slot != NOBODY)
        name = node_router_replica_name(p->config.router, (unsigned)slot);
    log_event(p->config.log, LOG_WARN, "kv_events_dropped", LOG_CSTR("from", c->from),
              LOG_STR("topic", slice_of(c->topic, c->topic_len)), LOG_STR("replica", name),
              LOG_CSTR("reason", what), LOG_CSTR("want", drop_texts[c->drop].want));
}

static void look(struct publisher *c)
{
    struct proxy *p = c->proxy;
    if (c->looked_ms > 0 && p->now_ms < c->looked_ms + LOOK_MS)
        return;
    int slot = find(c, &c->drop);
    int own = c->drop == DROP_NOT ? slot : NOBODY;
    if (own != c->slot)
        release(c);
    c->looked_ms = p->now_ms;
    if (own == NOBODY) {
        log_drop(c, slot);
    } else if (c->slot == NOBODY) {
        c->slot = own;
        c->logged = false;
        feeds_held(p, (unsigned)own, c->from);
    }
}

/* --- input ---------------------------------------------------------------------------------- */

static void send(struct publisher *c, struct slice bytes)
{
    ptrdiff_t sent = c->proxy->config.net->write(c->stream, &bytes, 1);
    if (sent != (ptrdiff_t)bytes.len)
        end(c, END_WRITE); /* the peer does not read even this */
}

/* Returns true if the topic is printable. No label has a topic with control bytes, and the log must
 * not have any. */
static bool is_text(struct slice topic)
{
    for (size_t i = 0; i < topic.len; i++) {
        if ((unsigned char)topic.at[i] < ' ' || topic.at[i] == '\x7f')
            return false;
    }
    return true;
}

static void on_message(struct publisher *c)
{
    struct proxy *p = c->proxy;
    struct slice topic = kv_zmtp_topic(&c->zmtp);
    if (!is_text(topic)) {
        p->engines.publishers->drops[DROP_ODD]++;
        return;
    }
    if (!c->spoke && topic.len > 0)
        memcpy(c->topic, topic.at, topic.len);
    if (!c->spoke)
        c->topic_len = (uint8_t)topic.len;
    c->spoke = true;
    if (!slice_equal(topic, slice_of(c->topic, c->topic_len))) {
        end(c, END_TOPIC);
        return;
    }
    look(c);
    enum drop drop = c->drop;
    if (c->slot != NOBODY)
        drop = feeds_live(p, (unsigned)c->slot, kv_zmtp_number(&c->zmtp), kv_zmtp_payload(&c->zmtp))
                   ? DROP_NOT
                   : DROP_UNREAD;
    if (drop != DROP_NOT)
        p->engines.publishers->drops[drop]++;
}

/* Returns the connection with the most memory. Some connection must use memory. */
static struct publisher *largest(const struct publishers *ps)
{
    struct publisher *found = NULL;
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++) {
        struct publisher *c = ps->all[i];
        bool open = c != NULL && !c->closing;
        if (open && (found == NULL || kv_zmtp_held(&c->zmtp) > kv_zmtp_held(&found->zmtp)))
            found = c;
    }
    CHECK(found != NULL);
    return found;
}

static void take(struct publisher *c, struct slice *in)
{
    struct publishers *ps = c->proxy->engines.publishers;
    ps->memory -= kv_zmtp_held(&c->zmtp);
    int event = kv_zmtp_take(&c->zmtp, in);
    ps->memory += kv_zmtp_held(&c->zmtp);
    if (event < 0)
        end(c, event == ERR_LIMIT ? END_SIZE : event == ERR_NOMEM ? END_MEMORY : END_PROTOCOL);
    else if (event == KV_ZMTP_REPLY)
        send(c, c->zmtp.reply);
    else if (event == KV_ZMTP_MESSAGE)
        on_message(c);
    else if (event == KV_ZMTP_ODD)
        ps->drops[DROP_ODD]++;
    while (ps->memory > PUBLISHERS_MEMORY_MAX)
        end(largest(ps), END_MEMORY);
}

static void on_received(void *owner, struct slice bytes, uint64_t now_ms)
{
    struct publisher *c = owner;
    struct proxy *p = c->proxy;
    p->now_ms = now_ms;
    c->bytes += bytes.len;
    while (bytes.len > 0 && !c->closing)
        take(c, &bytes);
    if (c->closing || c->bytes < PUBLISHERS_BYTES_S)
        return;
    c->paused = true;
    p->engines.publishers->paused++;
    p->config.net->read(c->stream, false);
}

/* --- life ----------------------------------------------------------------------------------- */

static void begin(struct publisher *c)
{
    c->began = true;
    c->began_ms = c->proxy->now_ms;
    c->proxy->config.net->read(c->stream, true);
    send(c, kv_zmtp_greeting());
}

/* Logs a connection refused because PUBLISHERS_MAX are open. */
static void log_full(struct proxy *p, const char *from)
{
    struct publishers *ps = p->engines.publishers;
    uint64_t refused = ps->ends[END_LIMIT] - ps->full_logged;
    if (ps->full_logged_ms > 0 && p->now_ms < ps->full_logged_ms + PUBLISHERS_LOG_MS)
        return;
    ps->full_logged_ms = p->now_ms;
    ps->full_logged += refused;
    log_event(p->config.log, LOG_WARN, "kv_events_full", LOG_CSTR("from", from),
              LOG_UINT("limit", PUBLISHERS_MAX), LOG_UINT("refused", refused),
              LOG_CSTR("want", "set kv-events-listen to an address that only engines reach, with "
                               "one connection from each engine"));
}

int publishers_accept(struct proxy *p, struct net_stream *stream, const char *peer)
{
    static const struct net_events events = {
        .received = on_received, .ended = on_ended, .closed = on_closed};
    struct publishers *ps = p->engines.publishers;
    struct publisher *c = ps != NULL ? calloc(1, sizeof *c) : NULL;
    if (c == NULL)
        return ERR_NOMEM;
    c->proxy = p;
    c->stream = stream;
    c->slot = NOBODY;
    kv_zmtp_begin(&c->zmtp);
    (void)slice_to_cstr(slice_of_cstr(peer), c->from, sizeof c->from);
    stream->events = &events;
    stream->owner = c;
    ps->accepted++;
    while (c->number < PUBLISHERS_MAX && ps->all[c->number] != NULL)
        c->number++;
    if (c->number == PUBLISHERS_MAX) {
        end(c, END_LIMIT);
        log_full(p, c->from);
        return ERR_OK;
    }
    ps->all[c->number] = c;
    ps->count++;
    if (!feeds_joins(p))
        begin(c);
    return ERR_OK;
}

static void tick(struct publisher *c, bool joins, bool second)
{
    struct proxy *p = c->proxy;
    if (!c->began && !joins)
        begin(c);
    if (c->closing || !c->began)
        return;
    if (!kv_zmtp_is_ready(&c->zmtp) && p->now_ms >= c->began_ms + PUBLISHERS_HANDSHAKE_MS) {
        end(c, END_HANDSHAKE);
        return;
    }
    if (!second)
        return;
    c->bytes = 0;
    if (c->paused)
        p->config.net->read(c->stream, true);
    c->paused = false;
}

void publishers_tick(struct proxy *p)
{
    struct publishers *ps = p->engines.publishers;
    if (ps == NULL || ps->count == 0)
        return;
    bool second = p->now_ms >= ps->second_ms + 1000, joins = feeds_joins(p);
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++) {
        if (ps->all[i] != NULL && !ps->all[i]->closing)
            tick(ps->all[i], joins, second);
    }
    ps->second_ms = second ? p->now_ms : ps->second_ms;
}

void publishers_forget(struct proxy *p, unsigned replica)
{
    struct publishers *ps = p->engines.publishers;
    for (unsigned i = 0; ps != NULL && i < PUBLISHERS_MAX; i++) {
        if (ps->all[i] != NULL && ps->all[i]->slot == (int)replica)
            release(ps->all[i]);
    }
}

void publishers_stop(struct proxy *p)
{
    struct publishers *ps = p->engines.publishers;
    for (unsigned i = 0; ps != NULL && i < PUBLISHERS_MAX; i++) {
        if (ps->all[i] != NULL)
            end(ps->all[i], END_BY_PEER);
    }
}

int publishers_open(struct proxy *p)
{
    if (p->config.kv_readers == NULL)
        return ERR_OK;
    p->engines.publishers = calloc(1, sizeof *p->engines.publishers);
    return p->engines.publishers != NULL ? ERR_OK : ERR_NOMEM;
}

void publishers_close(struct proxy *p)
{
    CHECK(p->engines.publishers == NULL || p->engines.publishers->count == 0);
    free(p->engines.publishers);
    p->engines.publishers = NULL;
}

/* --- metrics -------------------------------------------------------------------------------- */

/* NEW: the handshake is not complete. READY: no message has belonged to a replica yet. READ: the
 * events of a replica are read. */
enum { NEW, READY, READ, STATES };
static const char *const state_texts[STATES] = {[NEW] = "new", [READY] = "ready", [READ] = "read"};

void publishers_metrics(const struct proxy *p, struct prometheus *out)
{
    static const struct publishers none;
    const struct publishers *ps = p->engines.publishers;
    ps = ps != NULL ? ps : &none;
    unsigned states[STATES] = {0};
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++) {
        const struct publisher *c = ps->all[i];
        if (c != NULL)
            states[c->slot != NOBODY ? READ : kv_zmtp_is_ready(&c->zmtp) ? READY : NEW]++;
    }
    const struct prometheus_figure figures[] = {
        {"events_publishers_bytes",
         "Memory for incomplete messages from engines that connect to kv-events-listen.",
         (double)ps->memory},
        {"events_publishers_accepted_total", "Connections to kv-events-listen accepted.",
         (double)ps->accepted},
        {"events_publishers_paused_total", "Pauses of connections to kv-events-listen.",
         (double)ps->paused},
    };
    prometheus_figures(out, figures, ARRAY_LEN(figures));
    prometheus_family(out, "events_publishers",
                      "Connections to kv-events-listen by state: new (handshake), ready (no "
                      "message of a known replica yet), read.");
    for (unsigned i = 0; i < STATES; i++) {
        prometheus_label(out, "state", slice_of_cstr(state_texts[i]));
        prometheus_value(out, states[i]);
    }
    prometheus_family(out, "events_publishers_closed_total",
                      "Connections to kv-events-listen closed by the router.");
    for (unsigned i = 0; i < END_COUNT; i++) {
        prometheus_label(out, "reason", slice_of_cstr(end_texts[i]));
        prometheus_value(out, (double)ps->ends[i]);
    }
    prometheus_family(out, "events_publishers_dropped_total",
                      "Messages to kv-events-listen dropped.");
    for (unsigned i = 0; i < DROP_COUNT; i++) {
        prometheus_label(out, "reason", slice_of_cstr(drop_texts[i].text));
        prometheus_value(out, (double)ps->drops[i]);
    }
}

void publishers_check(const struct proxy *p)
{
    const struct publishers *ps = p->engines.publishers;
    unsigned count = 0;
    size_t memory = 0;
    for (unsigned i = 0; ps != NULL && i < PUBLISHERS_MAX; i++) {
        const struct publisher *c = ps->all[i];
        if (c == NULL)
            continue;
        count++;
        memory += c->closing ? 0 : kv_zmtp_held(&c->zmtp);
        CHECK(c->number == i && (!c->closing || c->slot == NOBODY));
        CHECK(c->slot == NOBODY || !is_taken(c, c->slot));
        CHECK(!c->paused || c->began);
    }
    CHECK(ps == NULL || (count == ps->count && memory == ps->memory));
}
