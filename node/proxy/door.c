#include "node/proxy/door.h"

#include <stdlib.h>

#include "base/check.h"

/* --- who speaks for others ----------------------------------------------------------------------
 */

int door_init(struct proxy *p)
{
    const struct node_options *o = p->config.options;
    struct door *d = &p->door;
    d->surplus_max = (unsigned)(o->connections_max / PROXY_SURPLUS_SHARE) + 1;
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
    peers_free(&p->door.peers);
    free(p->door.balancers);
}

static bool sends_header(const struct client *c)
{
    const struct door *d = &c->proxy->door;
    uint8_t ip[IP_BYTES];
    if (!c->proxy->config.options->proxy_protocol)
        return false;
    for (unsigned i = 0; i < d->balancer_count; i++) {
        if (ip_parse(c->peer, ip) && ip_net_has(&d->balancers[i], ip))
            return true;
    }
    return d->balancer_count == 0;
}

/* --- who comes in --------------------------------------------------------------------------------
 */

static void stand(struct client *c, enum client_standing standing)
{
    unsigned *count = c->proxy->door.standing;
    count[c->standing]--;
    count[standing]++;
    c->standing = standing;
}

/* False: there is none to go. */
static bool evict(struct proxy *p)
{
    static const enum proxy_limit order[] = {PROXY_CLIENT_IDLE, PROXY_CLIENT_LINGER};
    struct deadline *d = NULL;
    for (unsigned i = 0; i < ARRAY_LEN(order) && d == NULL; i++)
        d = deadline_first(&p->limit[order[i]]);
    if (d == NULL)
        return false;
    struct client *c = CONTAINER_OF(d, struct client, deadline);
    CHECK(c->standing == CLIENT_IN && c->exchange == NULL);
    p->stats.connections_evicted++;
    client_close(c, false);
    return true;
}

static enum door_verdict turn_away(struct client *c, enum door_verdict why)
{
    struct door *d = &c->proxy->door;
    if (why == DOOR_FULL)
        c->proxy->stats.connections_refused++;
    else
        c->proxy->stats.client_connections_refused++;
    c->surplus = true;
    if (c->from != NULL) /* what is refused does not keep its client out */
        peers_leave(&d->peers, c->from);
    c->from = NULL;
    stand(c, CLIENT_SURPLUS);
    return d->standing[CLIENT_SURPLUS] <= d->surplus_max ? why : DOOR_CROWDED;
}

enum door_verdict door_identify(struct client *c)
{
    uint64_t most = c->proxy->config.options->connections_per_client_max;
    if (most == 0)
        return DOOR_IN;
    c->from = peers_enter(&c->proxy->door.peers, c->peer);
    if (c->from == NULL || c->from->open <= most)
        return DOOR_IN;
    return turn_away(c, DOOR_CLIENT_FULL);
}

enum door_verdict door_enter(struct client *c)
{
    struct proxy *p = c->proxy;
    c->awaits_header = sends_header(c);
    enum door_verdict verdict = c->awaits_header ? DOOR_IN : door_identify(c);
    if (verdict != DOOR_IN)
        return verdict;
    if (p->door.standing[CLIENT_IN] >= p->config.options->connections_max && !evict(p))
        return turn_away(c, DOOR_FULL);
    stand(c, CLIENT_IN);
    return DOOR_IN;
}
