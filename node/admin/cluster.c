/* Calls to several routers: members, convergence, and the choice as each router sees it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "node/admin/admin_internal.h"
#include "node/cluster/digests.h"
#include "node/route/request.h"

/* Returns the replication, or NULL after answering that this router runs alone. */
static struct node_replication *replication_of(struct admin *a, struct exchange *x)
{
    if (a->config.replication == NULL)
        exchange_answer_error(x, 409, slice_of("", 0),
                              "This router runs alone: it has neither gossip-listen nor join.");
    return a->config.replication;
}

uint64_t admin_now_us(const struct admin *a, const struct node_replication *n)
{
    uint64_t event_us = proxy_now_ms(a->proxy) * 1000, known_us = node_replication_now_us(n);
    return event_us > known_us ? event_us : known_us;
}

void admin_members(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct node_replication *n = replication_of(a, x);
    if (n == NULL)
        return;
    struct buf members = {0};
    struct buf stats = {0};
    struct buf out = {0};
    uint64_t now = admin_now_us(a, n);
    int err = node_replication_members_json(n, now, &members);
    if (err == 0)
        err = node_replication_stats_json(n, now, &stats);
    if (err == 0) {
        struct json_writer w = json_writer_of(&out);
        json_object_begin(&w);
        json_put_cstr(&w, "self", a->config.name);
        json_put_bool(&w, "ready", node_replication_ready(n));
        const char *alone = node_replication_alone(n, now);
        json_put_cstr(&w, "alone", alone);
        json_key(&w, "members");
        json_raw(&w, buf_slice(&members));
        json_key(&w, "stats");
        json_raw(&w, buf_slice(&stats));
        json_object_end(&w);
        err = json_writer_finish(&w);
    }
    buf_free(&members);
    buf_free(&stats);
    admin_answer_json(x, err, &out);
}

/* --- questions to all routers ----------------------------------------------------------------- */

struct admin_ask {
    struct admin_ask *next; /* in the list admin->asks */
    struct admin *admin;
    struct exchange *x; /* NULL: the client is gone */
    uint8_t kind;
    admin_answer_writer *write;
    struct buf not_asked; /* JSON: the dead and departed routers */
};

static void ask_free(struct admin_ask *ask)
{
    buf_free(&ask->not_asked);
    free(ask);
}

static void unlink_ask(struct admin_ask *ask)
{
    struct admin_ask **link = &ask->admin->asks;
    while (*link != ask) {
        CHECK(*link != NULL);
        link = &(*link)->next;
    }
    *link = ask->next;
}

static void on_forget(void *context)
{
    struct admin_ask *ask = context;
    ask->x = NULL; /* the routers' answers still come */
}

void admin_asks_free(struct admin *a)
{
    while (a->asks != NULL) {
        struct admin_ask *ask = a->asks;
        a->asks = ask->next;
        ask_free(ask);
    }
}

void admin_saw_digests(struct admin *a, bool equal)
{
    uint64_t now_ms = admin_unix_ms(a);
    if (equal)
        a->agreed = (struct admin_agreed){.equal_ms = now_ms};
    else if (a->agreed.not_since_ms == 0)
        a->agreed.not_since_ms = now_ms;
}

static int write_answers(struct admin *a, const struct admin_ask *ask, struct slice nodes,
                         struct buf *out)
{
    if (nodes.len == 0)
        return ERR_NOMEM;
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_cstr(&w, "self", a->config.name);
    if (ask->kind == NODE_CALL_DIGESTS) {
        unsigned differ = node_digests_differ(nodes);
        admin_saw_digests(a, differ == 0);
        json_put_bool(&w, "equal", differ == 0);
        json_key(&w, "differ");
        node_digests_differ_write(differ, &w);
        json_put_bool(&w, "joining", (differ & NODE_DIGESTS_JOINING) != 0);
        json_put_bool(&w, "comparable", (differ & NODE_DIGESTS_INCOMPARABLE) == 0);
        json_put_u64(&w, "now_ms", admin_unix_ms(ask->admin));
        json_put_u64(&w, "equal_ms", ask->admin->agreed.equal_ms);
        json_put_u64(&w, "not_since_ms", ask->admin->agreed.not_since_ms);
    }
    json_key(&w, "nodes");
    json_raw(&w, nodes);
    json_key(&w, "not_asked");
    json_raw(&w, buf_slice(&ask->not_asked));
    json_object_end(&w);
    return json_writer_finish(&w);
}

static void on_answers(void *context, struct slice nodes)
{
    struct admin_ask *ask = context;
    struct exchange *x = ask->x;
    unlink_ask(ask);
    if (ask->kind == NODE_CALL_DIGESTS)
        admin_hearing(ask->admin, nodes);
    if (x != NULL) {
        struct buf out = {0};
        int err = ask->write(ask->admin, ask, nodes, &out);
        admin_answer_json(x, err, &out);
    }
    ask_free(ask);
}

void admin_hearing(struct admin *a, struct slice nodes)
{
    const struct node_replication *n = a->config.replication;
    unsigned before = a->hearing.count;
    if (n == NULL || nodes.len == 0)
        return;
    admin_hearing_take(&a->hearing, n, nodes, admin_now_us(a, n), proxy_now_ms(a->proxy));
    if (a->hearing.count != before)
        a->watched_ms = 0; /* look at once, so that viewers see the change soon */
}

int admin_ask_write(struct admin *a, struct exchange *x, enum node_call_kind kind,
                    struct slice request, uint64_t timeout_us, admin_answer_writer *write)
{
    struct node_replication *n = a->config.replication;
    struct admin_ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL)
        return ERR_NOMEM;
    *ask = (struct admin_ask){
        .next = a->asks, .admin = a, .x = x, .kind = (uint8_t)kind, .write = write};
    a->asks = ask;
    /* The answer may come before the call returns, if this router is the only member. */
    exchange_wait(x, on_forget, ask);
    uint64_t now = admin_now_us(a, n);
    int err = node_replication_not_asked_json(n, now, &ask->not_asked);
    if (err == 0)
        err = node_replication_ask(n, (uint8_t)kind, request, timeout_us, now, on_answers, ask);
    if (err == 0)
        return 0;
    exchange_wait(x, NULL, NULL);
    unlink_ask(ask);
    ask_free(ask);
    return err;
}

void admin_ask_all(struct admin *a, struct exchange *x, enum node_call_kind kind,
                   struct slice request, uint64_t timeout_us)
{
    int err = admin_ask_write(a, x, kind, request, timeout_us, write_answers);
    if (err == ERR_NOMEM)
        exchange_answer_error(x, 500, slice_of("", 0), "out of memory");
    else if (err == ERR_FULL)
        exchange_answer_error(x, 503, slice_of("", 0),
                              "Too many such calls are in progress: try again.");
    else if (err != 0)
        exchange_answer_error(x, err == ERR_LIMIT ? 413 : 500, slice_of("", 0),
                              "The other routers cannot be asked: %s.", err_text(err));
}

void admin_convergence(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    if (replication_of(a, x) != NULL)
        admin_ask_all(a, x, NODE_CALL_DIGESTS, slice_of("", 0), ADMIN_ASK_TIMEOUT_US);
}

void admin_member_forget(struct admin *a, struct exchange *x, const struct http_head *head)
{
    char name[GOSSIP_NAME_MAX + 1];
    struct node_replication *n = replication_of(a, x);
    if (n == NULL)
        return;
    if (!admin_query(head, SLICE("member"), name, sizeof name) || name[0] == '\0') {
        exchange_answer_error(x, 400, SLICE("member"),
                              "Want ?member= with a name of gvctl members (GET /members).");
        return;
    }
    if (!node_replication_forget(n, slice_of_cstr(name))) {
        exchange_answer_error(x, 404, SLICE("member"),
                              "No router \"%s\" is dead or has left; gvctl members (GET /members) "
                              "lists them. A live router cannot be forgotten: stop it first.",
                              name);
        return;
    }
    struct admin_who who;
    admin_who(a, x, head, &who);
    log_event(a->config.log, LOG_INFO, "member_forgotten", LOG_CSTR("member", name),
              LOG_CSTR("from", who.from), LOG_CSTR("token", who.token));
    admin_ask_all(a, x, NODE_CALL_FORGET, slice_of_cstr(name), ADMIN_ASK_TIMEOUT_US);
}

static void explain_all(struct admin *a, struct exchange *x, const struct http_head *head)
{
    struct node_request request;
    if (replication_of(a, x) == NULL || !admin_describe(x, head, &request))
        return;
    struct buf packed = {0};
    int err = node_request_pack(&request, &packed);
    if (err == 0)
        admin_ask_all(a, x, NODE_CALL_EXPLAIN, buf_slice(&packed), ADMIN_ASK_TIMEOUT_US);
    else
        exchange_answer_error(x, err == ERR_LIMIT ? 413 : 500, slice_of("", 0),
                              "The request cannot be passed to the other routers: "
                              "%s.",
                              err_text(err));
    buf_free(&packed);
}

void admin_explain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    char all[8];
    if (admin_query(head, SLICE("all"), all, sizeof all) && strcmp(all, "1") == 0) {
        explain_all(a, x, head);
        return;
    }
    struct node_request request;
    if (!admin_describe(x, head, &request))
        return;
    struct buf out = {0};
    int err = node_router_explain(a->config.router, &request, proxy_now_ms(a->proxy), &out);
    admin_answer_json(x, err, &out);
}
