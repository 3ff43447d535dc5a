#include "node/proxy/guard/door.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/guard/slow.h"

/* --- connections from balancers ------------------------------------------------------------- */

int door_init(struct proxy *p)
{
    const struct node_options *o = p->config.options;
    struct client_door *d = &p->clients.door;
    d->surplus_max = (unsigned)(o->connections_max / PROXY_SURPLUS_SHARE) + 1;
    d->admin_max = p->config.admin_connections_max > 0 ? p->config.admin_connections_max
                                                       : PROXY_ADMIN_CONNECTIONS_MAX;
    d->balancers = calloc(o->proxy_protocol_from.count + 1, sizeof d->balancers[0]);
    if (d->balancers == NULL)
        return ERR_NOMEM;
    d->balancer_count = o->proxy_protocol_from.count;
    for (unsigned i = 0; i < d->balancer_count; i++)
        CHECK(ip_net_parse(slice_of_cstr(o->proxy_protocol_from.at[i]), &d->balancers[i]));
    if (o->connections_per_client_max == 0)
        return 0;
    return peers_init(&d->peers, o->connections_max, &p->config.secret);
}

void door_free(struct proxy *p)
{
    peers_free(&p->clients.door.peers);
    free(p->clients.door.balancers);
}

static bool sends_header(const struct client *c)
{
    const struct client_door *d = &c->proxy->clients.door;
    uint8_t ip[IP_BYTES];
    if (!c->proxy->config.options->proxy_protocol)
        return false;
    for (unsigned i = 0; i < d->balancer_count; i++) {
        if (ip_parse(c->peer, ip) && ip_net_has(&d->balancers[i], ip))
            return true;
    }
    return d->balancer_count == 0;
}

/* --- incoming connections ------------------------------------------------------------------- */

static void stand(struct client *c, enum client_standing standing)
{
    unsigned *count = c->proxy->clients.door.standing;
    count[c->standing]--;
    count[standing]++;
    c->standing = standing;
}

/* Returns the longest idle connection; NULL: none. Connections idle for less than
 * PROXY_EVICT_IDLE_MS do not count, because a request may be in transit. */
static struct deadline *longest_idle(const struct proxy *p, enum proxy_limit limit)
{
    const struct deadline_queue *idle = &p->limit[limit];
    struct deadline *d = deadline_first(idle);
    bool rests = d != NULL && d->at_ms + PROXY_EVICT_IDLE_MS <= p->now_ms + idle->wait_ms;
    return rests ? d : NULL;
}

/* Closes a connection to admit the newcomer. Members of a crowd go before idle connections, because
 * a distant client is idle for a round trip before the first byte. Returns false if no connection
 * can be closed. */
static bool evict(const struct client *newcomer)
{
    struct proxy *p = newcomer->proxy;
    if (slow_evict(newcomer, true))
        return true;
    struct deadline *d = longest_idle(p, PROXY_CLIENT_IDLE);
    if (d == NULL)
        d = deadline_first(&p->limit[PROXY_CLIENT_LINGER]);
    if (d == NULL)
        return slow_evict(newcomer, false);
    struct client *c = CONTAINER_OF(d, struct client, deadline);
    CHECK(c->standing == CLIENT_IN && c->exchange == NULL);
    p->stats.connections_evicted++;
    client_close(c, false);
    return true;
}

static enum refusal turn_away(struct client *c, enum refusal why)
{
    struct client_door *d = &c->proxy->clients.door;
    if (why == REFUSED_CONNECTIONS)
        c->proxy->stats.connections_refused++;
    else
        c->proxy->stats.client_connections_refused++;
    c->surplus = true;
    if (c->from != NULL) /* a refused connection must not count towards the client's limit */
        peers_leave(&d->peers, c->from);
    c->from = NULL;
    stand(c, CLIENT_SURPLUS);
    return why;
}

static enum refusal identify(struct client *c)
{
    uint64_t most = c->proxy->config.options->connections_per_client_max;
    if (most == 0)
        return REFUSED_NONE;
    c->from = peers_enter(&c->proxy->clients.door.peers, c->peer);
    if (c->from == NULL || c->from->open <= most)
        return REFUSED_NONE;
    return turn_away(c, REFUSED_CLIENT_CONNECTIONS);
}

static enum refusal enter(struct client *c)
{
    struct proxy *p = c->proxy;
    c->awaits_header = sends_header(c);
    enum refusal why = c->awaits_header ? REFUSED_NONE : identify(c);
    if (why != REFUSED_NONE)
        return why;
    if (p->clients.door.standing[CLIENT_IN] >= p->config.options->connections_max &&
        !BUG(CLIENTS_UNLIMITED) && !evict(c))
        return turn_away(c, REFUSED_CONNECTIONS);
    stand(c, CLIENT_IN);
    return REFUSED_NONE;
}

/* Closes a connection to admit a newcomer on the admin port. Only a whole request protects a
 * connection, because a stranger can send single bytes at no cost. Returns false if no connection
 * can be closed. */
static bool evict_admin(struct proxy *p)
{
    static const enum proxy_limit then[] = {PROXY_ADMIN_BODY, PROXY_ADMIN_WRITE, PROXY_ADMIN_IDLE};
    struct deadline *d = longest_idle(p, PROXY_ADMIN_IDLE);
    for (size_t i = 0; d == NULL && i < ARRAY_LEN(then); i++)
        d = deadline_first(&p->limit[then[i]]);
    if (d == NULL)
        return false;
    p->stats.connections_evicted++;
    exchange_drop(CONTAINER_OF(d, struct client, deadline), CLIENT_END_SLOW, false);
    return true;
}

static void enter_admin(struct client *c)
{
    struct proxy *p = c->proxy;
    const struct client_door *d = &p->clients.door;
    if (d->standing[CLIENT_ADMIN] < d->admin_max || evict_admin(p)) {
        stand(c, CLIENT_ADMIN);
        return;
    }
    p->stats.connections_refused++;
    client_close(c, true);
}

/* --- answers at the door -------------------------------------------------------------------- */

/* Answers a refused connection with the reason, unless surplus_max others await such an answer. */
static void judge(struct client *c, enum refusal why)
{
    const struct client_door *d = &c->proxy->clients.door;
    if (why == REFUSED_NONE)
        return;
    if (d->standing[CLIENT_SURPLUS] > d->surplus_max)
        client_close(c, true);
    else
        exchange_refuse_because(c, why);
}

void door_refuse_stranger(struct client *c)
{
    struct proxy *p = c->proxy;
    struct client_door *d = &p->clients.door;
    p->stats.proxy_headers_refused++;
    d->unlogged++;
    if (d->logged_ms == 0 || p->now_ms - d->logged_ms >= PROXY_LOOP_LOG_MS) {
        log_event(
            p->config.log, LOG_WARN, "proxy_header_refused", LOG_CSTR("from", c->peer),
            LOG_UINT("count", d->unlogged),
            LOG_CSTR("want",
                     "enable the PROXY protocol at the balancer, or set proxy-protocol: off"));
        d->logged_ms = p->now_ms;
        d->unlogged = 0;
    }
    client_close(c, true);
}

void door_enter(struct client *c)
{
    if (c->port == PROXY_PORT_CLIENT)
        judge(c, enter(c));
    else
        enter_admin(c);
}

void door_identify(struct client *c)
{
    judge(c, identify(c));
}
