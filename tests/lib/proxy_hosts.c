#include "tests/lib/proxy_hosts.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

struct world_host {
    struct net_host host;
    struct proxy_world *world;
    unsigned replica;
    bool resolving;
};

int proxy_hosts_open(void *context, const struct node_address *address, struct net_host **out,
                     unsigned *count)
{
    struct proxy_world *w = context;
    struct world_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return ERR_NOMEM;
    h->world = w;
    h->replica = (unsigned)atoi(strrchr(address->host, '.') + 1) - 1;
    CHECK(h->replica < WORLD_REPLICAS_MAX);
    w->hosts[h->replica] = h;
    *out = &h->host;
    *count = strncmp(address->host, "engine", 6) != 0;
    return 0;
}

bool proxy_hosts_resolve(struct net_host *host, unsigned used)
{
    (void)used;
    struct world_host *h = CONTAINER_OF(host, struct world_host, host);
    CHECK(!h->resolving);
    h->resolving = true;
    if (h->world->traced)
        CHECK(buf_printf(&h->world->trace, "look up %u\n", h->replica + 1) == 0);
    return true;
}

void proxy_hosts_close(struct net_host *host)
{
    struct world_host *h = CONTAINER_OF(host, struct world_host, host);
    h->world->hosts[h->replica] = NULL;
    free(h);
}

unsigned proxy_hosts_replica(const struct net_host *host)
{
    return CONTAINER_OF(host, const struct world_host, host)->replica;
}

void proxy_hosts_resolved(struct proxy_world *w, unsigned replica, unsigned count)
{
    struct world_host *h = w->hosts[replica];
    if (h == NULL || !h->resolving)
        return;
    h->resolving = false;
    h->host.resolved(h->host.owner, count, 0, count == 0 ? "no such name" : NULL, w->now_ms);
    proxy_world_settle(w);
}
