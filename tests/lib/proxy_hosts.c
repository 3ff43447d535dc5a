#include "tests/lib/proxy_hosts.h"

#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/settings/address.h"

struct world_host {
    struct net_host host;
    struct proxy_world *world;
    unsigned replica;
    bool resolving;
    unsigned count; /* number of addresses known to the proxy */
    unsigned addresses[NET_ADDRESSES_MAX];
};

int proxy_hosts_open(void *context, const struct node_address *address, struct net_host **out,
                     unsigned *count)
{
    struct proxy_world *w = context;
    struct world_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return ERR_NOMEM;
    h->world = w;
    const char *last = strrchr(address->host, '.');
    h->replica = last != NULL ? (unsigned)atoi(last + 1) - 1 : UINT_MAX;
    if (w->strangers)
        h->replica %= WORLD_REPLICAS_MAX;
    CHECK(h->replica < WORLD_REPLICAS_MAX);
    w->hosts[h->replica] = h;
    *out = &h->host;
    h->count = *count = node_host_is_ip(address->host);
    h->addresses[0] = 1;
    return 0;
}

bool proxy_hosts_resolve(struct net_host *host)
{
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
    if (h->world->hosts[h->replica] == h)
        h->world->hosts[h->replica] = NULL;
    free(h);
}

unsigned proxy_hosts_replica(const struct net_host *host)
{
    return CONTAINER_OF(host, const struct world_host, host)->replica;
}

unsigned proxy_hosts_address(const struct net_host *host, unsigned address)
{
    const struct world_host *h = CONTAINER_OF(host, const struct world_host, host);
    CHECK(address < h->count);
    return h->addresses[address];
}

static uint8_t number_before(const struct world_host *h, unsigned address)
{
    unsigned i = 0;
    while (i < h->count && h->addresses[i] != address)
        i++;
    return i < h->count ? (uint8_t)i : NET_ADDRESS_NEW;
}

void proxy_hosts_resolved(struct proxy_world *w, unsigned replica, const unsigned *addresses,
                          unsigned count, bool more)
{
    struct world_host *h = w->hosts[replica];
    if (h == NULL || !h->resolving)
        return;
    CHECK(count <= NET_ADDRESSES_MAX);
    struct net_found found = {.count = count,
                              .err = count == 0 ? ERR_NOT_FOUND : 0,
                              .error = count == 0 ? "no such name" : NULL,
                              .more = more};
    for (unsigned i = 0; i < count; i++)
        found.before[i] = number_before(h, addresses[i]);
    if (count > 0) {
        memcpy(h->addresses, addresses, count * sizeof addresses[0]);
        h->count = count;
    }
    h->resolving = more;
    h->host.resolved(h->host.owner, &found, w->now_ms);
    proxy_world_settle(w);
}
