#include "node/io/names.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/shell.h"
#include "node/io/tls.h"
#include "node/settings/address.h"

struct name {
    struct net_host host; /* first: what the proxy sees */
    struct shell *shell;
    struct node_address address;
    struct tls_host *tls; /* NULL: none is spoken there */
    uv_getaddrinfo_t request;
    bool resolving;
    bool closed;
    unsigned used;
    struct sockaddr_storage found[NET_ADDRESSES_MAX];
};

static struct name *of(struct net_host *host)
{
    return CONTAINER_OF(host, struct name, host);
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
    struct sockaddr_in *v4 = (struct sockaddr_in *)&n->found[0];
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&n->found[0];
    *count = uv_ip4_addr(address->host, address->port, v4) == 0 ||
             uv_ip6_addr(address->host, address->port, v6) == 0;
    *out = &n->host;
    return 0;
}

/* Takes the addresses over; `*at` is the one in use, if it is among them. */
static unsigned keep(struct name *n, const struct addrinfo *found, unsigned *at)
{
    struct sockaddr_storage used = n->found[n->used];
    unsigned count = 0;
    *at = 0;
    memset(n->found, 0, sizeof n->found);
    for (const struct addrinfo *a = found; a != NULL && count < NET_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof used)
            continue;
        memcpy(&n->found[count], a->ai_addr, a->ai_addrlen);
        if (memcmp(&n->found[count], &used, sizeof used) == 0)
            *at = count;
        count++;
    }
    return count;
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct name *n = CONTAINER_OF(request, struct name, request);
    n->resolving = false;
    unsigned at = 0;
    unsigned count = status == 0 && found != NULL ? keep(n, found, &at) : 0;
    const char *error = status == UV_ECANCELED ? NULL
                        : status != 0          ? uv_strerror(status)
                                               : "no address";
    if (found != NULL)
        uv_freeaddrinfo(found);
    if (n->closed)
        free(n);
    else
        n->host.resolved(n->host.owner, count, at, error, shell_now_ms(n->shell));
}

bool names_resolve(struct net_host *host, unsigned used)
{
    struct name *n = of(host);
    CHECK(!n->resolving && used < NET_ADDRESSES_MAX);
    char port[8];
    (void)snprintf(port, sizeof port, "%u", n->address.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    n->used = used;
    n->resolving = uv_getaddrinfo(n->shell->loop, &n->request, on_resolved, n->address.host, port,
                                  &hints) == 0;
    return n->resolving;
}

void names_close(struct net_host *host)
{
    struct name *n = of(host);
    n->closed = true;
    tls_host_free(n->tls);
    n->tls = NULL;
    if (n->resolving)
        (void)uv_cancel((uv_req_t *)&n->request);
    else
        free(n);
}

const struct sockaddr *names_address(const struct net_host *host, unsigned address)
{
    const struct name *n = CONTAINER_OF(host, const struct name, host);
    return (const struct sockaddr *)&n->found[address];
}

struct tls_host *names_tls(const struct net_host *host)
{
    return CONTAINER_OF(host, const struct name, host)->tls;
}
