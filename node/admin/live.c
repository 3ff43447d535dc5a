#include "node/admin/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/version.h"
#include "gossip/limits.h"
#include "node/admin/figures.h"
#include "node/admin/together.h"
#include "node/cluster/digests.h"
#include "node/route/brief.h"

/* Leaves a fifth of the admin port's connections to probes and gvctl. */
static unsigned viewers_max(const struct admin *a)
{
    unsigned most = proxy_admin_connections_max(a->proxy) / 5 * 4;
    return most < LIVE_VIEWERS_MAX ? most : LIVE_VIEWERS_MAX;
}

struct viewer {
    struct exchange *x; /* NULL: free */
    struct admin_live *live;
};

enum agree {
    AGREE_UNKNOWN,
    AGREE_ALONE,
    AGREE_EQUAL,
    AGREE_MOVING,
    AGREE_JOINING,
    AGREE_SILENT,
    AGREE_INCOMPARABLE,
    AGREE_DIFFER
};

/* The routers' agreement: whether all have the same state. */
struct agreement {
    bool asking;
    enum agree state;
    uint64_t since_ms; /* Unix time */
    uint64_t asked_ms, equal_ms;
    unsigned differ;
    unsigned differed; /* number of answers with differences since the last without any */
    struct buf nodes;  /* JSON: the routers' reports in short; empty: not known yet */
};

struct admin_live {
    struct admin *admin;
    struct viewer viewers[LIVE_VIEWERS_MAX];
    unsigned count;
    uint64_t looked_ms, snapped_ms, frame;
    uint64_t decision, event_change; /* the last decision and event shown */
    uint64_t shown[LIVE_SHOWN];      /* numbers of decisions still under way; 0: free */
    unsigned shown_at;
    struct node_brief_reader replicas;
    struct agreement agreement;
    struct admin_figures figures;
    struct admin_together together;
    struct buf text;
};

/* --- agreement of the routers ----------------------------------------------------------------- */

static const char *agree_text(enum agree state)
{
    static const char *const texts[] = {
        [AGREE_UNKNOWN] = "unknown", [AGREE_ALONE] = "alone",
        [AGREE_EQUAL] = "equal",     [AGREE_MOVING] = "moving",
        [AGREE_JOINING] = "joining", [AGREE_SILENT] = "silent",
        [AGREE_DIFFER] = "differ",   [AGREE_INCOMPARABLE] = "incomparable",
    };
    return texts[state];
}

/* True for a change of state that restarts `since_ms`. Changes on the way between routers do not
 * restart the time since which the routers agree. */
static bool is_change(enum agree before, enum agree now)
{
    bool same = (before == AGREE_EQUAL && now == AGREE_MOVING) ||
                (before == AGREE_MOVING && now == AGREE_EQUAL);
    return before != now && !same;
}

/* Before the first equal answer, a single answer with differences says nothing: updates may be on
 * the way. */
static enum agree judge(const struct agreement *a, bool silent, uint64_t now_ms)
{
    if (a->differ == 0)
        return AGREE_EQUAL;
    if (silent)
        return AGREE_SILENT;
    if ((a->differ & NODE_DIGESTS_JOINING) != 0)
        return AGREE_JOINING;
    if (a->equal_ms != 0 && now_ms < a->equal_ms + LIVE_MOVING_MS)
        return AGREE_MOVING;
    if (a->equal_ms == 0 && a->differed < 2)
        return AGREE_UNKNOWN;
    return (a->differ & NODE_DIGESTS_INCOMPARABLE) != 0 ? AGREE_INCOMPARABLE : AGREE_DIFFER;
}

static void settle(struct admin_live *live, enum agree state)
{
    struct agreement *a = &live->agreement;
    if (a->since_ms == 0 || is_change(a->state, state))
        a->since_ms = admin_unix_ms(live->admin);
    a->state = state;
}

/* Bytes of a router's report: the name, and five digests of 16 digits with their names. */
enum { NODE_BYTES_MAX = GOSSIP_NAME_MAX + 200 };
_Static_assert(GOSSIP_ROUTERS_MAX *NODE_BYTES_MAX <= LIVE_NODES_BYTES_MAX,
               "without whom they hear there is room for all");

/* Writes the routers' reports to a->nodes, and sets the number of silent routers. Returns false if
 * there is no room. The lists of heard routers (`hears`) grow with the square of the members, so
 * they are left out first. */
static bool write_nodes(struct agreement *a, struct slice nodes, bool hears, unsigned *silent)
{
    buf_clear(&a->nodes);
    struct json_writer w = json_writer_of(&a->nodes);
    bool good = node_digests_brief_write(nodes, hears, silent, &w);
    return json_writer_finish(&w) == 0 && good;
}

static void on_digests(void *context, struct slice nodes)
{
    struct admin_live *live = context;
    struct agreement *a = &live->agreement;
    uint64_t now_ms = proxy_now_ms(live->admin->proxy);
    a->asking = false;
    if (nodes.len == 0)
        return;
    admin_hearing(live->admin, nodes);
    a->differ = node_digests_differ(nodes);
    a->differed = a->differ == 0 ? 0 : a->differed + 1;
    admin_saw_digests(live->admin, a->differ == 0);
    if (a->differ == 0)
        a->equal_ms = now_ms;
    unsigned silent;
    bool all = write_nodes(a, nodes, true, &silent) || write_nodes(a, nodes, false, &silent);
    if (!all)
        buf_clear(&a->nodes);
    settle(live, judge(a, silent > 0, now_ms));
}

static void ask_digests(struct admin_live *live, uint64_t now_ms)
{
    struct agreement *a = &live->agreement;
    struct node_replication *n = live->admin->config.replication;
    if (n == NULL) {
        settle(live, AGREE_ALONE);
        return;
    }
    /* The number of calls a second is equal for any number of routers. Changes on the way between
     * routers get more time: a question right after each second's reports would never find all
     * routers equal. */
    uint64_t every_ms = LIVE_EVERY_MS * (1 + node_router_others(live->admin->config.router) / 8);
    if (a->state == AGREE_MOVING)
        every_ms += LIVE_SHIFT_MS;
    if (a->asking || now_ms < a->asked_ms + every_ms)
        return;
    if (a->asked_ms != 0 && now_ms > a->asked_ms + LIVE_MOVING_MS) { /* no viewer for long */
        a->since_ms = 0;
        a->equal_ms = 0;
        a->differed = 0;
    }
    a->asked_ms = now_ms;
    a->asking = true;
    /* The answer may come before the call returns. */
    if (node_replication_ask(n, NODE_CALL_DIGESTS, slice_of("", 0), LIVE_ASK_TIMEOUT_US,
                             admin_now_us(live->admin, n), on_digests, live) != 0)
        a->asking = false;
}

static void put_agreement(struct admin_live *live, struct json_writer *w)
{
    const struct agreement *a = &live->agreement;
    json_key(w, "agreement");
    json_object_begin(w);
    json_put_cstr(w, "state", agree_text(a->state));
    json_put_u64(w, "since_ms", a->since_ms);
    json_key(w, "differ");
    node_digests_differ_write(a->differ, w);
    json_key(w, "nodes");
    json_raw(w, a->nodes.len > 0 ? buf_slice(&a->nodes) : SLICE("{}"));
    json_object_end(w);
}

/* --- snapshots -------------------------------------------------------------------------------- */

static void put_router(struct admin_live *live, struct json_writer *w)
{
    struct admin *a = live->admin;
    const struct node_options *o = a->config.options;
    struct node_replication *n = a->config.replication;
    const char *why = proxy_not_ready(a->proxy);
    json_key(w, "router");
    json_object_begin(w);
    json_put_cstr(w, "name", a->config.name);
    json_put_cstr(w, "version", version_text);
    json_put_cstr(w, "policy", node_policy_names[o->policy]);
    json_put_u64(w, "since_ms", a->since_ms);
    json_put_bool(w, "ready", why == NULL);
    json_put_cstr(w, "why", why);
    json_put_cstr(w, "alone",
                  n != NULL ? node_replication_alone(n, node_replication_now_us(n)) : NULL);
    json_put_cstr(w, "admin_host", o->admin_listen.host);
    json_put_bool(w, "loopback_only", node_host_is_loopback(o->admin_listen.host));
    json_put_bool(w, "reading_token", a->config.read_token != NULL);
    json_put_u64(w, "viewers", live->count);
    json_object_end(w);
}

static int put_members(struct admin_live *live, struct json_writer *w)
{
    struct node_replication *n = live->admin->config.replication;
    struct buf members = {0};
    int err = 0;
    json_key(w, "members");
    if (n == NULL) {
        json_nil(w);
        return 0;
    }
    err = node_replication_members_brief_json(n, node_replication_now_us(n), &members);
    json_raw(w, err == 0 ? buf_slice(&members) : SLICE("null"));
    buf_free(&members);
    return err;
}

/* Writes the fields of a snapshot into an open JSON object. `first`: the viewer's first
 * snapshot. */
static int put_snapshot(struct admin_live *live, bool first, uint64_t now_ms, struct json_writer *w)
{
    struct admin *a = live->admin;
    json_put_u64(w, "frame", live->frame);
    json_put_u64(w, "now_ms", admin_unix_ms(a));
    put_router(live, w);
    int err = put_members(live, w);
    put_agreement(live, w);
    json_put_object(w, "attention");
    admin_attention_write(&a->attention, w);
    json_object_end(w);
    admin_together_write(&live->together, w);
    json_key(w, "figures");
    admin_figures_last_write(&live->figures, w);
    json_key(w, "minute");
    admin_figures_minute_write(&live->figures, w);
    json_put_u64(w, "made", node_decisions_made(a->config.decisions));
    if (first)
        node_router_brief_write(a->config.router, LIVE_HELLO_REPLICAS, now_ms, w);
    else
        node_router_brief_next_write(a->config.router, &live->replicas, LIVE_REPLICAS_MAX, now_ms,
                                     w);
    uint64_t prompt_tokens, cached_tokens;
    node_router_answered(a->config.router, &prompt_tokens, &cached_tokens);
    json_key(w, "answered");
    json_object_begin(w);
    json_put_u64(w, "prompt_tokens", prompt_tokens);
    json_put_u64(w, "cached_tokens", cached_tokens);
    json_object_end(w);
    return err;
}

/* Begins an event and the event's data; text_end() ends both. */
static struct json_writer text_begin(struct admin_live *live, const char *event)
{
    buf_clear(&live->text);
    int err = buf_printf(&live->text, "event: %s\ndata: ", event);
    struct json_writer w = json_writer_of(&live->text);
    w.err = err;
    json_object_begin(&w);
    return w;
}

static bool text_end(struct admin_live *live, struct json_writer *w, int err)
{
    json_object_end(w);
    int finished = json_writer_finish(w);
    err = err != 0 ? err : finished;
    return err == 0 && buf_append_cstr(&live->text, "\n\n") == 0;
}

static void send_all(struct admin_live *live)
{
    for (unsigned i = 0; i < LIVE_VIEWERS_MAX; i++) {
        if (live->viewers[i].x != NULL)
            (void)exchange_endless_write(live->viewers[i].x, buf_slice(&live->text));
    }
}

static void send_snapshot(struct admin_live *live, uint64_t now_ms)
{
    live->frame++;
    struct json_writer w = text_begin(live, "snap");
    int err = put_snapshot(live, false, now_ms, &w);
    if (text_end(live, &w, err))
        send_all(live);
}

/* --- news ------------------------------------------------------------------------------------- */

static void shown_add(struct admin_live *live, uint64_t number)
{
    for (unsigned i = 0; i < LIVE_SHOWN; i++) {
        if (live->shown[i] == number)
            return;
    }
    live->shown[live->shown_at++ % LIVE_SHOWN] = number;
}

/* Writes the last decisions; earlier ones beyond the limit are skipped. */
static void put_decisions(struct admin_live *live, uint64_t now_ms, struct json_writer *w)
{
    const struct node_decisions *d = live->admin->config.decisions;
    uint64_t newest = node_decisions_newest(d), from = live->decision;
    if (newest > from + LIVE_DECISIONS_MAX)
        from = newest - LIVE_DECISIONS_MAX;
    struct node_decisions_query q = {
        .order = NODE_DECISIONS_AFTER, .beyond = from, .count = LIVE_DECISIONS_MAX};
    json_key(w, "decisions");
    (void)node_decisions_write(d, live->admin->config.router, &q, now_ms,
                               admin_unix_ms(live->admin), w);
    for (uint64_t n = from + 1; n <= newest; n++) {
        if (!node_decisions_ended(d, n))
            shown_add(live, n);
    }
    live->decision = newest;
}

static void put_ends(struct admin_live *live, struct json_writer *w)
{
    const struct node_decisions *d = live->admin->config.decisions;
    json_key(w, "ends");
    json_array_begin(w);
    for (unsigned i = 0; i < LIVE_SHOWN; i++) {
        if (live->shown[i] == 0 || !node_decisions_ended(d, live->shown[i]))
            continue;
        node_decisions_end_write(d, live->shown[i], w);
        live->shown[i] = 0;
    }
    json_array_end(w);
}

static bool has_news(const struct admin_live *live)
{
    const struct node_decisions *d = live->admin->config.decisions;
    bool ended = false;
    for (unsigned i = 0; i < LIVE_SHOWN && !ended; i++)
        ended = live->shown[i] != 0 && node_decisions_ended(d, live->shown[i]);
    return ended || node_decisions_newest(d) > live->decision ||
           admin_events_change(live->admin->events) > live->event_change;
}

static void send_news(struct admin_live *live, uint64_t now_ms)
{
    struct node_decisions_query q = {
        .order = NODE_DECISIONS_CHANGES, .beyond = live->event_change, .count = LIVE_EVENTS_MAX};
    struct json_writer w = text_begin(live, "news");
    put_decisions(live, now_ms, &w);
    put_ends(live, &w);
    json_key(&w, "events");
    live->event_change = admin_events_write(live->admin->events, &q, &w);
    if (text_end(live, &w, 0))
        send_all(live);
}

/* --- viewers ---------------------------------------------------------------------------------- */

static bool make_hello(struct admin_live *live, uint64_t now_ms)
{
    struct admin *a = live->admin;
    struct node_decisions_query decisions = {.count = LIVE_HELLO_DECISIONS};
    struct node_decisions_query events = {.count = LIVE_HELLO_EVENTS};
    struct json_writer w = text_begin(live, "hello");
    int err = put_snapshot(live, true, now_ms, &w);
    json_key(&w, "history");
    admin_figures_write(&live->figures, &w);
    json_key(&w, "minutes");
    admin_figures_minutes_write(&live->figures, &w);
    json_key(&w, "decisions");
    (void)node_decisions_write(a->config.decisions, a->config.router, &decisions, now_ms,
                               admin_unix_ms(a), &w);
    json_key(&w, "events");
    (void)admin_events_write(a->events, &events, &w);
    uint64_t newest = node_decisions_newest(a->config.decisions);
    for (uint64_t n = newest; n > 0 && n + LIVE_HELLO_DECISIONS > newest; n--) {
        if (!node_decisions_ended(a->config.decisions, n))
            shown_add(live, n);
    }
    return text_end(live, &w, err);
}

static void on_gone(void *context)
{
    struct viewer *v = context;
    v->x = NULL;
    v->live->count--;
}

/* Prepares for the first viewer after a time without viewers. The hello covers all news until
 * now. */
static void begin_to_look(struct admin_live *live, uint64_t now_ms)
{
    live->decision = node_decisions_newest(live->admin->config.decisions);
    live->event_change = admin_events_change(live->admin->events);
    memset(live->shown, 0, sizeof live->shown);
    live->looked_ms = live->snapped_ms = now_ms;
    buf_clear(&live->together.nodes); /* out of date: from the last viewer's time */
    ask_digests(live, now_ms);
    admin_together_tick(&live->together, now_ms);
}

void admin_live(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    static const struct http_line lines[] = {{SLICE("Cache-Control"), SLICE("no-store")},
                                             {SLICE("X-Accel-Buffering"), SLICE("no")}};
    struct admin_live *live = a->live;
    uint64_t now_ms = proxy_now_ms(a->proxy);
    unsigned at = 0, most = viewers_max(a);
    while (at < most && live->viewers[at].x != NULL)
        at++;
    if (at == most) {
        exchange_answer_error(x, 503, slice_of("", 0),
                              "%u pages already show this router, which is the limit. Open another "
                              "router's page: all show the same cluster.",
                              most);
        return;
    }
    if (live->count == 0)
        begin_to_look(live, now_ms);
    if (!exchange_endless_begin(x, SLICE("text/event-stream"), lines, ARRAY_LEN(lines)))
        return;
    live->viewers[at] = (struct viewer){.x = x, .live = live};
    live->count++;
    exchange_wait(x, on_gone, &live->viewers[at]);
    if (make_hello(live, now_ms))
        (void)exchange_endless_write(x, buf_slice(&live->text));
}

enum admin_agree admin_live_agree(const struct admin_live *live, uint64_t now_ms)
{
    const struct agreement *a = &live->agreement;
    if (a->asked_ms == 0 || now_ms > a->asked_ms + LIVE_MOVING_MS)
        return LIVE_AGREE_UNKNOWN;
    return a->state == AGREE_DIFFER         ? LIVE_AGREE_DIFFER
           : a->state == AGREE_INCOMPARABLE ? LIVE_AGREE_INCOMPARABLE
           : a->state == AGREE_EQUAL        ? LIVE_AGREE_EQUAL
                                            : LIVE_AGREE_UNKNOWN;
}

const struct admin_figures *admin_live_figures(const struct admin_live *live)
{
    return &live->figures;
}

unsigned admin_live_viewers(const struct admin_live *live)
{
    return live->count;
}

/* --- life ------------------------------------------------------------------------------------- */

int admin_live_create(struct admin_live **out, struct admin *admin)
{
    struct admin_live *live = calloc(1, sizeof *live);
    if (live == NULL)
        return ERR_NOMEM;
    live->admin = admin;
    buf_init(&live->text, LIVE_TEXT_BYTES_MAX);
    buf_init(&live->agreement.nodes, LIVE_NODES_BYTES_MAX);
    admin_together_init(&live->together, admin);
    *out = live;
    return ERR_OK;
}

void admin_live_destroy(struct admin_live *live)
{
    if (live == NULL)
        return;
    buf_free(&live->text);
    buf_free(&live->agreement.nodes);
    admin_together_free(&live->together);
    free(live);
}

void admin_live_tick(struct admin_live *live, uint64_t now_ms)
{
    struct admin *a = live->admin;
    admin_figures_tick(&live->figures, a->proxy, a->config.router, now_ms, admin_unix_ms(a));
    if (live->count == 0)
        return;
    ask_digests(live, now_ms);
    admin_together_tick(&live->together, now_ms);
    if (now_ms < live->looked_ms + LIVE_EVERY_MS)
        return;
    live->looked_ms = now_ms;
    bool happened = admin_events_change(a->events) > live->event_change;
    if (has_news(live))
        send_news(live, now_ms);
    if (!happened && now_ms < live->snapped_ms + 2 * LIVE_EVERY_MS)
        return;
    live->snapped_ms = now_ms;
    send_snapshot(live, now_ms);
}

void admin_live_stop(struct admin_live *live)
{
    for (unsigned i = 0; i < LIVE_VIEWERS_MAX; i++) {
        if (live->viewers[i].x != NULL)
            exchange_endless_end(live->viewers[i].x);
    }
}
