#include "node/io/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/lookup.h"
#include "node/io/shell.h"
#include "node/io/tls.h"
#include "node/settings/address.h"

struct name {
    struct net_host host; /* first: the proxy's view */
    struct shell *shell;
    struct node_address address;
    struct tls_host *tls; /* NULL: no TLS */
    struct lookup lookup;
    unsigned count; /* number of addresses passed to the proxy */
    union lookup_address found[NET_ADDRESSES_MAX];
};

static struct name *of(struct net_host *host)
{
    return CONTAINER_OF(host, struct name, host);
}

static bool same(const union lookup_address *a, const union lookup_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    return a->any.sa_family == AF_INET
               ? a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
               : memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
}

/* Returns the index of the address; NET_ADDRESS_NEW: not in the list. */
static uint8_t find(const union lookup_address *list, unsigned count,
                    const union lookup_address *address)
{
    for (unsigned i = 0; i < count; i++) {
        if (same(&list[i], address))
            return (uint8_t)i;
    }
    return NET_ADDRESS_NEW;
}

/* Chooses the addresses for the proxy, at most NET_ADDRESSES_MAX. If there are more, addresses in
 * use stay, because DNS servers rotate the order. */
static void keep(struct name *n, struct net_found *out)
{
    union lookup_address list[NET_ADDRESSES_MAX];
    const union lookup_address *a;
    unsigned known = 0;
    for (unsigned i = 0; i < n->count; i++) {
        for (unsigned k = 0; (a = lookup_at(&n->lookup, k)) != NULL; k++) {
            if (same(a, &n->found[i])) {
                known++;
                break;
            }
        }
    }
    for (unsigned i = 0; (a = lookup_at(&n->lookup, i)) != NULL; i++) {
        uint8_t before = find(n->found, n->count, a);
        bool room = out->count + known < NET_ADDRESSES_MAX;
        if (find(list, out->count, a) != NET_ADDRESS_NEW || (before == NET_ADDRESS_NEW && !room))
            continue;
        known -= before != NET_ADDRESS_NEW;
        out->before[out->count] = before;
        list[out->count++] = *a;
    }
    memcpy(n->found, list, out->count * sizeof list[0]);
    n->count = out->count;
}

static void on_found(struct lookup *l, const char *error, bool more)
{
    struct name *n = CONTAINER_OF(l, struct name, lookup);
    struct net_found found = {.error = error, .more = more};
    if (error == NULL)
        keep(n, &found);
    else
        found.err = lookup_error(l);
    n->host.resolved(n->host.owner, &found, shell_now_ms(n->shell));
}

int names_open(void *context, const struct node_address *address, struct net_host **out,
               unsigned *count)
{
    struct name *n = calloc(1, sizeof *n);
    if (n == NULL)
        return ERR_NOMEM;
    n->shell = context;
    n->address = *address;
    if (address->tls && tls_host_open(n->shell->tls, address, &n->tls) != 0) {
        free(n);
        return ERR_NOMEM;
    }
    lookup_init(&n->lookup, address->port, on_found);
    n->count = *count = uv_ip4_addr(address->host, address->port, &n->found[0].v4) == 0 ||
                        uv_ip6_addr(address->host, address->port, &n->found[0].v6) == 0;
    *out = &n->host;
    return 0;
}

bool names_resolve(struct net_host *host)
{
    struct name *n = of(host);
    return lookup_begin(&n->lookup, n->shell->dns, n->address.host);
}

void names_ip(const struct net_host *host, unsigned address, char out[NET_IP_BYTES])
{
    const union lookup_address *a = &CONTAINER_OF(host, const struct name, host)->found[address];
    bool zoned = a->any.sa_family == AF_INET6 && a->v6.sin6_scope_id != 0;
    CHECK(uv_ip_name(&a->any, out, NET_IP_BYTES) == 0);
    size_t len = strlen(out), rest = NET_IP_BYTES - len - 1;
    if (zoned && uv_if_indextoname(a->v6.sin6_scope_id, out + len + 1, &rest) == 0)
        out[len] = '%';
}

void names_close(struct net_host *host)
{
    struct name *n = of(host);
    tls_host_free(n->tls);
    lookup_end(&n->lookup);
    free(n);
}

const struct sockaddr *names_address(const struct net_host *host, unsigned address)
{
    const struct name *n = CONTAINER_OF(host, const struct name, host);
    return &n->found[address].any;
}

struct tls_host *names_tls(const struct net_host *host)
{
    return CONTAINER_OF(host, const struct name, host)->tls;
}
