#include "node/proxy/own/local.h"

#include "base/check.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/own/control.h"
#include "node/proxy/own/models.h"

const char *proxy_not_ready(const struct proxy *p)
{
    const struct node_replication *replication = p->config.replication;
    if (p->draining)
        return "draining";
    if (replication != NULL && !node_replication_ready(replication))
        return "joining: the state of the other routers is not copied yet";
    if (!node_router_ready(p->config.router))
        return "no replica is up";
    /* A client waiting for readiness next asks for the models, or requests a completion. */
    return prober_models_asked(p) ? NULL : "no replica has been asked for its models yet";
}

static void answer_health(struct exchange *x)
{
    const char *why = proxy_not_ready(x->proxy);
    if (why == NULL)
        exchange_answer(x, 200, slice_of("", 0), slice_of("", 0), NULL, 0);
    else
        exchange_answer_error(x, 503, slice_of("", 0), "The router is not ready: %s.", why);
}

void local_answer(struct exchange *x)
{
    struct proxy *p = x->proxy;
    /* Not proxy->head, because answers may be written there while this head is in use. */
    struct http_head *head = &p->local_head;
    int err = http_request_parse(head, x->request.head.at, x->request.head.len, &p->limits);
    CHECK(err == 0); /* parsed before */
    if (x->client->port != PROXY_PORT_CLIENT) {
        p->config.admin(p->config.admin_context, x, head);
        return;
    }
    struct http_route route = http_path_lookup(head->path, head->method);
    switch (route.kind) {
    case HTTP_PATH_HEALTH:
        answer_health(x);
        return;
    case HTTP_PATH_MODELS:
        models_answer(x, head, slice_of("", 0), false);
        return;
    case HTTP_PATH_MODEL_ONE:
        models_answer(x, head, route.id, true);
        return;
    case HTTP_PATH_CONTROL:
        control_answer(x, head);
        return;
    case HTTP_PATH_ROOT: /* shows a stranger only that the router runs; not a health check */
        exchange_answer(x, 200, SLICE("text/plain"), SLICE("Grapevine is running.\n"), NULL, 0);
        return;
    case HTTP_PATH_SERVER: {
        struct http_line allow = {SLICE("allow"), SLICE("GET, HEAD, POST, OPTIONS")};
        exchange_answer(x, 204, slice_of("", 0), slice_of("", 0), &allow, 1);
        return;
    }
    default:
        CHECK_UNREACHABLE();
    }
}
