#include "node/proxy/engine/pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/err.h"
#include "node/proxy/engine/shortage.h"

/* Takes over a look-up's addresses. The address in use stays in use if the name still has it. */
static void take_addresses(struct pool *pool, unsigned count, const uint8_t *before)
{
    uint32_t ids[NET_ADDRESSES_MAX];
    unsigned at = 0;
    for (unsigned i = 0; i < count; i++) {
        bool known = before[i] < pool->address_count;
        ids[i] = known ? pool->address_ids[before[i]] : ++pool->address_last_id;
        if (known && before[i] == pool->address_at)
            at = i;
    }
    memcpy(pool->address_ids, ids, count * sizeof ids[0]);
    pool->address_count = count;
    pool->address_at = at;
}

static void on_resolved(void *owner, const struct net_found *found, uint64_t now_ms)
{
    struct pool *pool = owner;
    pool->proxy->now_ms = now_ms;
    pool->resolving = found->more;
    pool->resolved_ms = now_ms;
    if (found->count > 0) {
        take_addresses(pool, found->count, found->before);
    } else if (pool->address_count == 0) {
        char replica[NODE_HOST_BYTES + 16]; /* the address, as the replica may have no name yet */
        (void)snprintf(replica, sizeof replica, "%s%s:%u", pool->address.tls ? "https://" : "",
                       pool->address.host, pool->address.port);
        pool->unresolved = found->err;
        log_event(pool->proxy->config.log, LOG_WARN, "replica_unresolved",
                  LOG_CSTR("replica", replica), LOG_CSTR("host", pool->address.host),
                  LOG_CSTR("error", found->error));
    }
}

/* Returns the Host field. TLS uses the same host, so a server with several names sees the same name
 * in both. The scheme's default port is left out, because some proxies compare Host with a bare
 * name. NULL: no memory. */
static char *authority_of(const struct node_address *address, const char *tls_name)
{
    const char *host = address->tls && tls_name[0] != '\0' ? tls_name : address->host;
    bool v6 = strchr(host, ':') != NULL;
    char port[8] = "";
    if (address->port != (address->tls ? 443 : 80))
        (void)snprintf(port, sizeof port, ":%u", address->port);
    size_t size = strlen(host) + sizeof port + 3;
    char *text = malloc(size);
    if (text != NULL)
        (void)snprintf(text, size, v6 ? "[%s]%s" : "%s%s", host, port);
    return text;
}

int pool_open(struct pool *pool, struct proxy *p, const struct node_address *address)
{
    *pool = (struct pool){.proxy = p, .address = *address};
    const struct net_actions *net = p->config.net;
    pool->authority = authority_of(address, p->config.options->replica_tls_name);
    int err = pool->authority == NULL
                  ? ERR_NOMEM
                  : net->open_host(net->context, address, &pool->host, &pool->address_count);
    if (err != 0) {
        free(pool->authority);
        pool->authority = NULL;
        pool->proxy = NULL;
        return err;
    }
    pool->host->resolved = on_resolved;
    pool->host->owner = pool;
    pool->is_name = pool->address_count == 0;
    pool->unresolved = ERR_TIMEOUT;
    if (!pool->is_name)
        take_addresses(pool, 1, (const uint8_t[]){NET_ADDRESS_NEW});
    pool_resolve(pool, 0);
    return 0;
}

void pool_close(struct pool *pool)
{
    if (pool->proxy != NULL) {
        shortage_none(pool);
        pool->proxy->config.net->close_host(pool->host);
    }
    free(pool->authority);
    pool->authority = NULL;
    pool->proxy = NULL;
}

void pool_resolve(struct pool *pool, uint64_t age_ms)
{
    uint64_t now = pool->proxy->now_ms;
    if (!pool->is_name || pool->resolving ||
        (pool->resolved_ms != 0 && now - pool->resolved_ms < age_ms))
        return;
    pool->resolving = pool->proxy->config.net->resolve(pool->host);
}

int pool_connect(struct pool *pool, struct net_stream **stream)
{
    if (pool->address_count == 0)
        return ERR_UNREACHABLE;
    const struct net_actions *net = pool->proxy->config.net;
    int err = net->connect(net->context, pool->host, pool->address_at, stream);
    if (net_is_shortage(err))
        shortage_met(pool, err);
    else if (err == 0)
        shortage_none(pool);
    return err;
}

bool pool_has_address(const struct pool *pool, uint32_t address)
{
    unsigned i = 0;
    while (i < pool->address_count && pool->address_ids[i] != address)
        i++;
    return i < pool->address_count || BUG(OLD_ADDRESS_USED);
}

void pool_address_failed(struct pool *pool, uint32_t address)
{
    if (pool->address_count > 0 && address == pool_address(pool))
        pool->address_at = (pool->address_at + 1) % pool->address_count;
}

void pool_answered(struct pool *pool, uint64_t ms)
{
    uint64_t least = ms > 0 ? ms : 1; /* 0 means no answer */
    uint64_t kept = least < POOL_ANSWER_MS_MAX ? least : POOL_ANSWER_MS_MAX;
    pool->answered_ms[pool->answered_at] = (uint16_t)kept;
    pool->answered_at = (pool->answered_at + 1) % POOL_ANSWERS;
}

uint64_t pool_round_trip_ms(const struct pool *pool)
{
    uint64_t least = 0;
    for (unsigned i = 0; i < POOL_ANSWERS; i++) {
        uint64_t ms = pool->answered_ms[i];
        if (ms > 0 && (least == 0 || ms < least))
            least = ms;
    }
    return least;
}
