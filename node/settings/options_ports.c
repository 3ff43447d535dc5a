/* The ports on which this router listens: none may conflict with another, and no replica may be
 * this router. */
#include <string.h>

#include "base/check.h"
#include "node/settings/options.h"

bool node_options_gossip(const struct node_options *o, struct node_address *listen)
{
    *listen = (struct node_address){.host = "0.0.0.0", .port = NODE_GOSSIP_PORT};
    bool said = o->gossip_listen[0] != '\0';
    if (said)
        CHECK(node_address_parse(slice_of_cstr(o->gossip_listen), listen) == 0);
    return said || o->join.count > 0;
}

/* True for an IP address outside loopback. A name may resolve to a loopback address: only a
 * connection shows the machine behind a name. */
static bool is_elsewhere(const struct node_address *at)
{
    return node_host_is_ip(at->host) && !node_host_is_loopback(at->host);
}

bool node_options_apart(const struct node_options *o)
{
    struct node_address at;
    bool here = true;
    if (!node_options_gossip(o, &at))
        return false;
    here = node_host_is_any(at.host) || !is_elsewhere(&at);
    if (o->gossip_advertise[0] != '\0') {
        CHECK(node_address_parse(slice_of_cstr(o->gossip_advertise), &at) == 0);
        here = here && !is_elsewhere(&at);
    }
    for (unsigned i = 0; i < o->join.count && here; i++) {
        CHECK(node_address_parse_default(slice_of_cstr(o->join.at[i]), 1, &at) == 0);
        here = !is_elsewhere(&at);
    }
    return !here;
}

enum { PORTS = 5 };

struct port {
    const char *setting;
    bool open;
    struct node_address at;
};

static void list_ports(const struct node_options *o, struct port out[PORTS])
{
    out[0] = (struct port){.setting = "listen", .open = true, .at = o->listen};
    out[1] = (struct port){.setting = "admin-listen", .open = true, .at = o->admin_listen};
    out[2] = (struct port){.setting = "gossip-listen"}; /* uses UDP and TCP */
    out[2].open = node_options_gossip(o, &out[2].at);
    out[3] = (struct port){.setting = "probe-listen", .open = o->probe_listen[0] != '\0'};
    if (out[3].open)
        CHECK(node_address_parse(slice_of_cstr(o->probe_listen), &out[3].at) == 0);
    out[4] = (struct port){.setting = "kv-events-listen", .open = o->kv_events_listen[0] != '\0'};
    if (out[4].open)
        CHECK(node_address_parse(slice_of_cstr(o->kv_events_listen), &out[4].at) == 0);
}

/* True if both are open and need the same port of the same host, or one listens on all
 * addresses. */
static bool is_taken(const struct port *a, const struct port *b)
{
    if (!a->open || !b->open || a->at.port == 0 || a->at.port != b->at.port)
        return false;
    return node_host_is_any(a->at.host) || node_host_is_any(b->at.host) ||
           node_address_reaches(&a->at, &b->at);
}

bool node_options_ports_clash(const struct node_options *o, const char **port, const char **other)
{
    struct port ports[PORTS];
    list_ports(o, ports);
    for (unsigned i = 1; i < PORTS; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!is_taken(&ports[i], &ports[j]))
                continue;
            *port = ports[i].setting;
            *other = ports[j].setting;
            return true;
        }
    }
    return false;
}

const char *node_options_port_at(const struct node_options *o, const struct node_address *to)
{
    struct port ports[PORTS];
    list_ports(o, ports);
    for (unsigned i = 0; i < PORTS; i++) {
        if (ports[i].open && node_address_reaches(to, &ports[i].at))
            return ports[i].setting;
    }
    return NULL;
}
