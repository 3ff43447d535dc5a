/* The history of decisions, figures and events: /decisions, /figures and /events. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json_write.h"
#include "base/wire.h"
#include "node/admin/admin_internal.h"
#include "node/admin/figures.h"
#include "node/admin/live.h"
#include "node/proxy/engine/shortage.h"

enum { COUNT_DEFAULT = 32 };

/* Reads a whole number from the query. Returns false if the parameter is present but no number. */
static bool read_number(const struct http_head *head, const char *name, bool *given, uint64_t *out)
{
    char text[24];
    char *end;
    bool whole = admin_query(head, slice_of_cstr(name), text, sizeof text);
    *given = text[0] != '\0';
    if (!whole || (*given && strspn(text, "0123456789") != strlen(text)))
        return false;
    if (*given)
        *out = strtoull(text, &end, 10);
    return true;
}

/* Reads ?n=, ended=, and at most one of after=, changed= and id=. Returns false after answering
 * with the error. */
static bool read_query(struct exchange *x, const struct http_head *head, unsigned max,
                       struct node_decisions_query *q)
{
    static const struct {
        const char *name;
        enum node_decisions_order order;
    } orders[] = {{"after", NODE_DECISIONS_AFTER},
                  {"changed", NODE_DECISIONS_CHANGES},
                  {"id", NODE_DECISIONS_ONE}};
    uint64_t count = COUNT_DEFAULT, ended = 0;
    bool given;
    const char *wrong = NULL;
    unsigned orders_given = 0;
    *q = (struct node_decisions_query){.order = NODE_DECISIONS_LAST};
    if (!read_number(head, "n", &given, &count) || count == 0 || count > max)
        wrong = "n";
    if (!read_number(head, "ended", &given, &ended) || ended > 1)
        wrong = "ended";
    for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
        if (!read_number(head, orders[i].name, &given, &q->beyond))
            wrong = orders[i].name;
        q->order = given ? orders[i].order : q->order;
        orders_given += given;
    }
    q->count = (unsigned)count;
    q->ended = ended == 1;
    if (wrong == NULL && orders_given <= 1)
        return true;
    exchange_answer_error(x, 400, slice_of_cstr(wrong != NULL ? wrong : "after"),
                          "Want n=1 to %u, ended=0 or 1, and at most one of after=ID, "
                          "changed=CHANGE and id=ID, in whole numbers.",
                          max);
    return false;
}

/* Texts that a query for decisions borrows. */
struct filters {
    char model[NODE_DECISION_NAME_BYTES * 2], replica[NODE_REPLICA_NAME_BYTES];
};

/* Reads ?failed=, slow_ms=, reason=, model= and replica=. Returns false after answering 400. */
static bool read_filters(struct exchange *x, const struct http_head *head, struct filters *f,
                         struct node_decisions_query *q)
{
    char reason[16];
    uint64_t failed = 0;
    bool given;
    const char *wrong = NULL;
    if (!read_number(head, "failed", &given, &failed) || failed > 1)
        wrong = "failed";
    if (!read_number(head, "slow_ms", &given, &q->slow_ms))
        wrong = "slow_ms";
    if (!admin_query(head, SLICE("model"), f->model, sizeof f->model))
        wrong = "model";
    if (!admin_query(head, SLICE("replica"), f->replica, sizeof f->replica))
        wrong = "replica";
    bool whole = admin_query(head, SLICE("reason"), reason, sizeof reason);
    q->has_reason = admin_query_has(head, SLICE("reason"));
    if (q->has_reason && (!whole || !node_reason_parse(slice_of_cstr(reason), &q->reason)))
        wrong = "reason";
    q->failed = failed == 1;
    q->model = slice_of_cstr(f->model);
    q->replica = slice_of_cstr(f->replica);
    if (wrong == NULL)
        return true;
    exchange_answer_error(x, 400, slice_of_cstr(wrong),
                          "Want failed=0 or 1, slow_ms= a whole number, model= and replica= names, "
                          "and reason=load, maker, only, cold, cached, cheaper, due or plain.");
    return false;
}

/* Writes this router's name and start time. After a restart, decisions and events are numbered
 * anew. */
static void put_who(const struct admin *a, struct json_writer *w)
{
    json_put_cstr(w, "router", a->config.name);
    json_put_u64(w, "since_ms", a->since_ms);
    json_put_u64(w, "now_ms", admin_unix_ms(a));
}

void admin_decisions(struct admin *a, struct exchange *x, const struct http_head *head)
{
    const struct node_decisions *d = a->config.decisions;
    struct node_decisions_query q;
    struct filters filters;
    struct buf out = {0};
    if (!read_query(x, head, NODE_DECISIONS_MAX, &q) || !read_filters(x, head, &filters, &q))
        return;
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    put_who(a, &w);
    json_put_u64(&w, "made", node_decisions_made(d));
    json_put_u64(&w, "newest", node_decisions_newest(d));
    json_key(&w, "decisions");
    uint64_t told =
        node_decisions_write(d, a->config.router, &q, proxy_now_ms(a->proxy), admin_unix_ms(a), &w);
    json_put_u64(&w, "changed", told);
    json_object_end(&w);
    admin_answer_json(x, json_writer_finish(&w), &out);
}

/* Writes the problems for an operator to fix. */
static void put_lacks(const struct admin *a, struct json_writer *w)
{
    const struct node_replication *n = a->config.replication;
    json_key(w, "local_shortages");
    json_array_begin(w);
    for (unsigned i = 0; i < NET_SHORTAGES; i++) {
        if (shortage_lasts(a->proxy, (enum net_shortage)i))
            json_cstr(w, net_shortage_name((enum net_shortage)i));
    }
    json_array_end(w);
    json_put_u64(w, "tcp_filtered",
                 n != NULL ? node_replication_filtered(n, node_replication_now_us(n)) : 0);
    json_put_u64(w, "other_cluster_asks",
                 n != NULL && node_replication_knocked(n, node_replication_now_us(n)));
    if (a->config.files != NULL)
        a->config.files(a->config.metrics_context, w);
}

void admin_figures_answer(struct admin *a, struct exchange *x, const struct http_head *head)
{
    uint64_t count = FIGURES_SECONDS;
    bool given;
    struct buf out = {0};
    if (!read_number(head, "n", &given, &count) || count == 0 || count > FIGURES_SECONDS) {
        exchange_answer_error(x, 400, SLICE("n"), "Want n=1 to %d, seconds, a whole number.",
                              FIGURES_SECONDS);
        return;
    }
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    put_who(a, &w);
    json_key(&w, "figures");
    admin_figures_now_write(admin_live_figures(a->live), (unsigned)count, a->proxy,
                            a->config.router, proxy_now_ms(a->proxy), admin_unix_ms(a), &w);
    json_key(&w, "total");
    admin_figures_total_write(a->proxy, a->config.router, a->since_ms, admin_unix_ms(a), &w);
    put_lacks(a, &w);
    json_object_end(&w);
    admin_answer_json(x, json_writer_finish(&w), &out);
}

/* --- events, of this router or of all --------------------------------------------------------- */

enum { EVENTS_REQUEST_BYTES = 2 * WIRE_VARINT_MAX };

_Static_assert(ADMIN_EVENTS_SHARED_BYTES *GOSSIP_ROUTERS_MAX <= NODE_ANSWERS_BYTES_MAX,
               "the events of all routers are one answer");

/* Writes the newest events, with this router's name. */
static int write_recent(const struct admin *a, unsigned count, uint64_t from_ms, struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    put_who(a, &w);
    json_put_u64(&w, "newest", admin_events_newest(a->events));
    json_key(&w, "events");
    admin_events_recent_write(a->events, count, from_ms, &w);
    json_put_u64(&w, "changed", admin_events_change(a->events));
    json_object_end(&w);
    return json_writer_finish(&w);
}

int admin_events_answer(void *admin, struct slice request, struct buf *out)
{
    const struct admin *a = admin;
    struct wire_reader r = wire_reader_of(request.at, request.len);
    unsigned count = (unsigned)wire_read_varint_max(&r, ADMIN_EVENTS_MAX);
    uint64_t within_ms = wire_read_varint(&r), now_ms = admin_unix_ms(a);
    if (r.bad)
        return ERR_SYNTAX;
    uint64_t from_ms = within_ms == 0 || within_ms > now_ms ? 0 : now_ms - within_ms;
    size_t start = out->len;
    int err = write_recent(a, count, from_ms, out);
    while (err == 0 && out->len - start > ADMIN_EVENTS_SHARED_BYTES) {
        out->len = start;
        count /= 2;
        err = write_recent(a, count, from_ms, out);
    }
    return err;
}

/* True if the events of all routers are requested, and this router does not run alone. */
static bool is_for_all(const struct admin *a, const struct http_head *head)
{
    char all[8];
    return a->config.replication != NULL && admin_query(head, SLICE("all"), all, sizeof all) &&
           strcmp(all, "1") == 0;
}

static void events_of_all(struct admin *a, struct exchange *x, const struct http_head *head)
{
    uint64_t count = COUNT_DEFAULT, within_ms = 0;
    bool given;
    if (!read_number(head, "n", &given, &count) || count == 0 || count > ADMIN_EVENTS_MAX ||
        !read_number(head, "within", &given, &within_ms)) {
        exchange_answer_error(x, 400, SLICE("n"),
                              "Want n=1 to %d, of each router, and within=MILLISECONDS, in whole "
                              "numbers.",
                              ADMIN_EVENTS_MAX);
        return;
    }
    uint8_t request[EVENTS_REQUEST_BYTES];
    struct wire_writer w = wire_writer_of(request, sizeof request);
    wire_write_varint(&w, count);
    wire_write_varint(&w, within_ms);
    CHECK(!w.bad);
    admin_ask_all(a, x, NODE_CALL_EVENTS, slice_of((const char *)request, wire_written(&w)),
                  ADMIN_EVENTS_TIMEOUT_US);
}

void admin_happened(struct admin *a, struct exchange *x, const struct http_head *head)
{
    struct node_decisions_query q;
    struct buf out = {0};
    if (is_for_all(a, head)) {
        events_of_all(a, x, head);
        return;
    }
    if (!read_query(x, head, ADMIN_EVENTS_MAX, &q))
        return;
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    put_who(a, &w);
    json_put_u64(&w, "newest", admin_events_newest(a->events));
    json_key(&w, "events");
    uint64_t told = admin_events_write(a->events, &q, &w);
    json_put_u64(&w, "changed", told);
    json_object_end(&w);
    admin_answer_json(x, json_writer_finish(&w), &out);
}
