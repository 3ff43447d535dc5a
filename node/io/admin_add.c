/* POST /replicas: what is added goes to all routers at once, so its health is asked first. A router
 * in place of an engine is refused; what does not answer yet is taken, as at the start. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/admin_parts.h"
#include "node/io/fetch.h"
#include "node/io/upstream.h"

struct admin_add {
    struct admin_add *next; /* of shell->adds */
    struct shell *shell;
    struct exchange *x; /* NULL: it is answered, or who asked is gone */
    struct node_replica_option replica;
    struct upstream_pool pool; /* its address alone: no request goes there */
    struct fetch fetch;
    uint64_t until_ms;
    bool asked;
};

/* `silent`: why its health is not known to be good; NULL: it is. */
static void take(struct admin_add *a, const char *silent)
{
    struct exchange *x = a->x;
    a->x = NULL;
    x->adding = NULL;
    int result = node_router_replica_wish(a->shell->router, slice_of_cstr(a->replica.name),
                                          NODE_REPLICA_ADD, a->replica.engine);
    admin_answer_wish(x, a->replica.name, NODE_REPLICA_ADD, result, silent);
}

static void refuse(struct admin_add *a)
{
    struct exchange *x = a->x;
    char who[SHELL_ROUTER_BYTES + 32];
    fetch_router_text(&a->fetch, who, sizeof who);
    a->x = NULL;
    x->adding = NULL;
    log_event(a->shell->log, LOG_WARN, "replica_refused", LOG_CSTR("replica", a->replica.name),
              LOG_CSTR("error", "it is a router"), LOG_CSTR("router", who));
    exchange_answer_error(x, 409, "ConflictError", SLICE("replica"),
                          "`%s` is a Grapevine router (%s), no engine: requests would go in a "
                          "circle. Add the engines behind it instead.",
                          a->replica.name, who);
}

static void on_health(void *context, int err, bool refused, unsigned status, struct slice body)
{
    (void)body;
    struct admin_add *a = context;
    char health[32];
    (void)snprintf(health, sizeof health, "its health is %u", status);
    if (a->x == NULL)
        return;
    if (err == 0 && a->fetch.router[0] != '\0')
        refuse(a);
    else
        take(a, refused             ? "its port refuses connections"
                : err != 0          ? err_text(err)
                : status / 100 == 2 ? NULL
                                    : health);
}

/* Asks once its name is looked up; takes it when time is up. */
static void go_on(struct admin_add *a, uint64_t now)
{
    bool unknown = !a->pool.resolving && a->pool.address_count == 0;
    if (a->x != NULL && unknown)
        take(a, "its name is not known");
    else if (a->x != NULL && now >= a->until_ms)
        take(a, "no answer within two seconds");
    else if (a->x != NULL && !a->asked && !a->pool.resolving) {
        a->asked = true;
        fetch_get(&a->fetch, "/health", (struct slice){0}, false); /* which no engine protects */
    }
}

void admin_replica_add(struct exchange *x, const struct http_head *head)
{
    struct shell *shell = x->shell;
    struct node_replica_option replica;
    if (!admin_read_replica(x, head, &replica))
        return;
    struct admin_add *a = shell->add_count < ADMIN_ADDS_MAX ? calloc(1, sizeof *a) : NULL;
    if (a == NULL) {
        exchange_answer_error(x, 503, "ServiceUnavailableError", slice_of("", 0),
                              "Too many replicas are being added, try again.");
        return;
    }
    uint64_t now = shell_now_ms(shell);
    a->shell = shell;
    a->x = x;
    a->replica = replica;
    a->until_ms = now + ADMIN_ADD_PROBE_MS;
    upstream_pool_init(&a->pool, shell, 0, &a->replica.address);
    fetch_init(&a->fetch, &a->pool, on_health, a);
    a->next = shell->adds;
    shell->adds = a;
    shell->add_count++;
    x->adding = a;
    go_on(a, now);
}

void admin_add_forget(struct exchange *x)
{
    x->adding->x = NULL;
    x->adding = NULL;
}

void admin_adds_tick(struct shell *shell)
{
    struct admin_add **link = &shell->adds;
    while (*link != NULL) {
        struct admin_add *a = *link;
        go_on(a, shell_now_ms(shell));
        if (a->x != NULL || a->pool.resolving) {
            link = &a->next;
            continue;
        }
        *link = a->next;
        shell->add_count--;
        fetch_cancel(&a->fetch);
        free(a);
    }
}

void admin_adds_stop(struct shell *shell)
{
    for (struct admin_add *a = shell->adds; a != NULL; a = a->next) {
        fetch_cancel(&a->fetch);
        if (a->pool.resolving)
            (void)uv_cancel((uv_req_t *)&a->pool.resolver);
    }
}

void admin_adds_free(struct shell *shell)
{
    while (shell->adds != NULL) {
        struct admin_add *a = shell->adds;
        CHECK(a->x == NULL && !a->pool.resolving);
        shell->adds = a->next;
        free(a);
    }
    shell->add_count = 0;
}
