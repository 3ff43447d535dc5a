/* The Host of a request to a replica (RFC 9110, section 7.2). A server (an ingress, a platform's
 * front end) may have several sites at an address, and selects by Host. So Host is the authority of
 * the replica's URL, as for probes and TLS. If the setting host-header or the replica's label says
 * so, the client's own Host is used. Each attempt may go to another replica, so the head is changed
 * before each attempt. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/bug.h"
#include "http/forward.h"

void exchange_host_note(struct exchange *x, struct slice host)
{
    if (host.len > sizeof x->host) /* not a host name: DNS allows 253 bytes */
        return;
    memcpy(x->host, host.at, host.len);
    x->host_len = (uint16_t)host.len;
}

static bool is_clients(const struct exchange *x)
{
    const struct proxy *p = x->proxy;
    enum node_host_header said =
        node_router_replica(p->config.router, x->now.decision.server)->said.host_header;
    if (said == NODE_HOST_NOT_SAID)
        said = p->config.options->host_header == 0 ? NODE_HOST_REPLICA : NODE_HOST_CLIENT;
    return (said == NODE_HOST_CLIENT || BUG(HOST_OF_CLIENT)) && x->host_len > 0;
}

/* Returns the Host of the replica's URL. Empty: the replica has no open pool, and nothing can be
 * sent there. */
static struct slice authority(const struct exchange *x)
{
    const struct pool *pool = &x->proxy->engines.pools[x->now.decision.server];
    return pool->authority != NULL ? slice_of_cstr(pool->authority) : slice_of("", 0);
}

int exchange_host_name(struct exchange *x)
{
    struct slice host = is_clients(x) ? slice_of(x->host, x->host_len) : authority(x);
    struct buf *head = x->asking ? &x->question.head : &x->request.head;
    return host.len == 0 ? ERR_OK : http_forward_host_set(head, host);
}

struct slice exchange_host_location(const struct exchange *x, const struct http_head *head)
{
    static const struct slice schemes[] = {SLICE("http://"), SLICE("https://")};
    struct slice none = slice_of("", 0), to = http_head_get(head, HTTP_LOCATION);
    struct slice own = authority(x);
    if (head->status / 100 != 3 || own.len == 0 || is_clients(x))
        return none;
    for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        struct slice scheme = schemes[i];
        size_t front = scheme.len + own.len;
        if (to.len > front && slice_equal_nocase(slice_of(to.at, scheme.len), scheme) &&
            slice_equal_nocase(slice_of(to.at + scheme.len, own.len), own) && to.at[front] == '/' &&
            !(to.len > front + 1 && to.at[front + 1] == '/')) /* "//x" would name a host */
            return slice_skip(to, front);
    }
    return none;
}
