/* The replicas: shown, drained, added and removed. A new replica goes to all routers at once, so
 * this router checks the replica's health first. A router in place of an engine is refused; a
 * silent replica is accepted, as at the start. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "node/admin/admin_internal.h"
#include "node/proxy/engine/fetch.h"
#include "node/proxy/own/control.h"

void admin_replicas(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    int err = node_router_replicas_json(a->config.router, proxy_now_ms(a->proxy), &out);
    admin_answer_json(x, err, &out);
}

void admin_queue(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    proxy_queue_write(a->proxy, &w);
    admin_answer_json(x, json_writer_finish(&w), &out);
}

static bool is_removed(const void *router, struct slice name)
{
    return node_router_replica_removed(router, name);
}

void admin_sources(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    discover_sources_write(a->config.discover, proxy_now_ms(a->proxy), is_removed, a->config.router,
                           &w);
    admin_answer_json(x, json_writer_finish(&w), &out);
}

/* Begins the answer to a completed change. Contains the replica's name, which the caller may have
 * spelled otherwise. More fields may follow until done_end(). */
static struct json_writer done_begin(struct buf *out, const char *name)
{
    buf_init(out, 0);
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_bool(&w, "ok", true);
    json_put_cstr(&w, "replica", name);
    return w;
}

static void done_end(struct exchange *x, struct json_writer *w, struct buf *out)
{
    json_object_end(w);
    admin_answer_json(x, json_writer_finish(w), out);
}

/* Writes why a replica still drains after an undrain: a source says so, or no source lists the
 * replica any more. */
static void write_drained_by(struct admin *a, struct json_writer *w, struct slice name)
{
    const struct discover *d = a->config.discover;
    bool listed = false;
    for (unsigned i = 0; i < discover_source_count(d); i++)
        listed = listed || discover_lists(d, i, name);
    json_key(w, "drained_by");
    if (listed)
        discover_names_write(d, name, w);
    else
        json_cstr(w, "no source lists it any more");
}

/* Writes the reason if the replica gets no requests after an undrain: it is down, or asleep. */
static void write_still_out(struct admin *a, struct json_writer *w, unsigned replica)
{
    char room[NODE_STANDING_TEXT_BYTES];
    struct node_standing s =
        node_router_replica_standing(a->config.router, replica, proxy_now_ms(a->proxy));
    if (s.why != NODE_STANDING_WELL && s.why <= NODE_STANDING_ASLEEP)
        json_put_cstr(w, "still_out", node_standing_text(&s, room));
}

static void set_draining(struct admin *a, struct exchange *x, const struct http_head *head,
                         bool draining)
{
    struct node_replica_option wanted;
    if (!admin_read_replica(a, x, head, &wanted, true))
        return;
    int replica = node_router_replica_find(a->config.router, slice_of_cstr(wanted.name));
    bool used = replica >= 0 && node_router_replica_present(a->config.router, (unsigned)replica);
    bool elsewhere =
        replica >= 0 && node_router_only_at(a->config.router, (unsigned)replica).len > 0;
    if (!used && !elsewhere) {
        admin_answer_no_replica(x, wanted.name);
        return;
    }
    node_router_replica_drain(a->config.router, (unsigned)replica, draining);
    struct admin_who who;
    admin_who(a, x, head, &who);
    log_event(a->config.log, LOG_INFO, "replica_drain", LOG_CSTR("replica", wanted.name),
              LOG_CSTR("wish", draining ? "drained" : "undrained"), LOG_CSTR("from", who.from),
              LOG_CSTR("token", who.token));
    bool drains =
        node_router_rank(a->config.router, (unsigned)replica) < 0 &&
        node_router_replica_health(a->config.router, (unsigned)replica) == NODE_HEALTH_DRAINING;
    struct buf out;
    struct json_writer w = done_begin(&out, wanted.name);
    if (!draining && drains)
        write_drained_by(a, &w, slice_of_cstr(wanted.name));
    else if (!draining)
        write_still_out(a, &w, (unsigned)replica);
    done_end(x, &w, &out);
}

void admin_drain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    set_draining(a, x, head, true);
}

void admin_undrain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    set_draining(a, x, head, false);
}

/* Answers with the result of node_router_replica_wish(). `silent`: reason for the replica's
 * silence; NULL: the replica answers, or was not asked. */
static void answer_wish(struct admin *a, struct exchange *x, const char *name,
                        const struct admin_who *who, enum node_replica_wish wish, int result,
                        const char *silent)
{
    const char *verb = wish == NODE_REPLICA_ADD ? "added" : "removed";
    if (result < 0 && result != ERR_AGAIN && result != ERR_EXISTS) {
        if (result == ERR_NOT_FOUND)
            admin_answer_no_replica(x, name);
        else
            exchange_answer_error(x, result == ERR_FULL ? 409 : 400, SLICE("replica"),
                                  "The replica `%s` cannot be %s: %s.", name, verb,
                                  err_text(result));
        return;
    }
    struct buf out;
    struct json_writer w = done_begin(&out, name);
    if (result >= 0) {
        log_event(a->config.log, LOG_INFO, "replica_wish", LOG_CSTR("replica", name),
                  LOG_CSTR("wish", verb), LOG_CSTR("from", who->from),
                  LOG_CSTR("token", who->token));
        if (silent != NULL) {
            json_put_bool(&w, "answers", false);
            json_put_cstr(&w, "why", silent);
        }
    } else if (result == ERR_AGAIN) {
        log_event(a->config.log, LOG_WARN, "replica_waits", LOG_CSTR("replica", name),
                  LOG_CSTR("from", who->from), LOG_CSTR("token", who->token));
    }
    if (result < 0) {
        json_key(&w, result == ERR_AGAIN ? "waits" : "already");
        json_bool(&w, true);
    }
    done_end(x, &w, &out);
}

void admin_replica_remove(struct admin *a, struct exchange *x, const struct http_head *head)
{
    struct node_replica_option replica;
    if (!admin_read_replica(a, x, head, &replica, false))
        return;
    int result = node_router_replica_wish(a->config.router, slice_of_cstr(replica.name),
                                          NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO);
    struct admin_who who;
    admin_who(a, x, head, &who);
    answer_wish(a, x, replica.name, &who, NODE_REPLICA_REMOVE, result, NULL);
}

/* Empties the cache of a replica (?replica=), of the replicas of a model (?model=), or of all
 * replicas. */
void admin_reset_cache(struct admin *a, struct exchange *x, const struct http_head *head)
{
    struct node_replica_option wanted = {.name = ""};
    char model[NODE_MODEL_ID_MAX + 1];
    struct control_whom whom = {0};
    /* An empty value does not mean all replicas. */
    bool one = admin_query_has(head, SLICE("replica"));
    if (one && !admin_read_replica(a, x, head, &wanted, false))
        return;
    bool named = admin_query(head, SLICE("model"), model, sizeof model) && model[0] != '\0';
    if (!named && admin_query_has(head, SLICE("model"))) {
        exchange_answer_error(x, 400, SLICE("model"), "No model is given: want ?model=NAME.");
        return;
    }
    struct admin_who who;
    admin_who(a, x, head, &who);
    log_event(a->config.log, LOG_INFO, "cache_reset", LOG_CSTR("replica", wanted.name),
              LOG_CSTR("model", model), LOG_CSTR("from", who.from), LOG_CSTR("token", who.token));
    whom.replica = slice_of_cstr(wanted.name);
    whom.model = slice_of_cstr(model);
    control_reset(x, &whom);
}

/* --- adding a replica ------------------------------------------------------------------------- */

struct admin_add {
    struct admin_add *next; /* in the list admin->adds */
    struct admin *admin;
    struct exchange *x;                 /* NULL: answered, or the client is gone */
    struct node_replica_option replica; /* only the label for the engine is used */
    struct admin_who who;
    struct pool pool; /* holds only the address: no request goes there */
    struct fetch fetch;
    uint64_t until_ms;
    bool asked;
};

/* Adds the replica and answers. `silent`: the reason why good health is not confirmed; NULL: health
 * is good. */
static void take(struct admin_add *a, const char *silent)
{
    struct exchange *x = a->x;
    a->x = NULL;
    int result = node_router_replica_wish(a->admin->config.router, slice_of_cstr(a->replica.name),
                                          NODE_REPLICA_ADD, a->replica.labels.engine);
    answer_wish(a->admin, x, a->replica.name, &a->who, NODE_REPLICA_ADD, result, silent);
}

static void refuse(struct admin_add *a)
{
    struct exchange *x = a->x;
    char who[PROXY_IDENTITY_BYTES + 32];
    fetch_router_text(&a->fetch, who, sizeof who);
    a->x = NULL;
    log_event(a->admin->config.log, LOG_WARN, "replica_refused",
              LOG_CSTR("replica", a->replica.name), LOG_CSTR("error", "it is a router"),
              LOG_CSTR("router", who), LOG_CSTR("from", a->who.from),
              LOG_CSTR("token", a->who.token));
    exchange_answer_error(x, 409, SLICE("replica"),
                          "`%s` is a Grapevine router (%s), not an engine: requests would go in a "
                          "circle. Add the engines behind it instead.",
                          a->replica.name, who);
}

static void on_health(void *context, int err, bool refused, unsigned status, struct slice body)
{
    (void)body;
    struct admin_add *a = context;
    char health[64];
    (void)snprintf(health, sizeof health, "its health check returned status %u", status);
    if (a->x == NULL)
        return;
    if (err == 0 && a->fetch.router[0] != '\0')
        refuse(a);
    else
        take(a, refused             ? "its port refuses connections"
                : err != 0          ? fetch_error_text(err)
                : status / 100 == 2 ? NULL
                                    : health);
}

/* Asks for the replica's health once the name is resolved. Accepts the replica when time is up. */
static void go_on(struct admin_add *a, uint64_t now)
{
    bool unknown = !a->pool.resolving && a->pool.address_count == 0;
    if (a->x != NULL && unknown)
        take(a, "its name is not known");
    else if (a->x != NULL && now >= a->until_ms)
        take(a, "no answer within two seconds");
    else if (a->x != NULL && !a->asked && a->pool.address_count > 0) {
        a->asked = true;
        fetch_get(&a->fetch, SLICE("/health"), (struct slice){0}, 0); /* which needs no API key */
    }
}

static void on_forget(void *context)
{
    struct admin_add *a = context;
    a->x = NULL;
}

void admin_replica_add(struct admin *admin, struct exchange *x, const struct http_head *head)
{
    struct node_replica_option replica;
    if (!admin_read_replica(admin, x, head, &replica, false))
        return;
    struct admin_add *a = admin->add_count < ADMIN_ADDS_MAX ? calloc(1, sizeof *a) : NULL;
    if (a == NULL || pool_open(&a->pool, admin->proxy, &replica.address) != 0) {
        free(a);
        exchange_answer_error(x, 503, slice_of("", 0),
                              "Too many replicas are being added, try again.");
        return;
    }
    uint64_t now = proxy_now_ms(admin->proxy);
    a->admin = admin;
    a->x = x;
    a->replica = replica;
    admin_who(admin, x, head, &a->who);
    a->until_ms = now + ADMIN_ADD_PROBE_MS;
    fetch_init(&a->fetch, &a->pool, on_health, a);
    a->next = admin->adds;
    admin->adds = a;
    admin->add_count++;
    exchange_wait(x, on_forget, a);
    go_on(a, now);
}

static void end(struct admin_add *a)
{
    if (a->x != NULL)
        exchange_wait(a->x, NULL, NULL);
    fetch_cancel(&a->fetch);
    pool_close(&a->pool);
    free(a);
}

void admin_adds_tick(struct admin *admin)
{
    struct admin_add **link = &admin->adds;
    while (*link != NULL) {
        struct admin_add *a = *link;
        go_on(a, proxy_now_ms(admin->proxy));
        if (a->x != NULL) {
            link = &a->next;
            continue;
        }
        *link = a->next;
        admin->add_count--;
        end(a);
    }
}

void admin_adds_free(struct admin *admin)
{
    while (admin->adds != NULL) {
        struct admin_add *a = admin->adds;
        admin->adds = a->next;
        end(a);
    }
    admin->add_count = 0;
}
