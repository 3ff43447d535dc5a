/* A replica as written in --replica and in files of replicas, and a name as in --replica-dns. */
#include <stdio.h>

#include "base/err.h"
#include "node/replica/local.h"
#include "node/replica/rank.h"
#include "node/settings/options.h"

void node_replica_name_of(const struct node_address *address, char *out)
{
    bool v6 = strchr(address->host, ':') != NULL;
    (void)snprintf(out, NODE_REPLICA_NAME_BYTES, v6 ? "%s[%s]:%u" : "%s%s:%u",
                   address->tls ? "https://" : "", address->host, address->port);
}

/* Cuts the labels off `text` and reads them into `out`. Returns NULL, or the error in them. */
static const char *labels_cut(struct slice *text, struct node_labels *out)
{
    struct slice rest = *text;
    struct slice front = slice_cut(&rest, '#');
    if (front.len == text->len)
        return NULL;
    *text = front;
    return rest.len > 0 ? node_labels_parse(rest, out)
                        : "after # want a label, such as engine=vllm or weight=2";
}

/* Reads the address in `http://HOST:PORT`, without labels. Returns NULL, or the error. */
static const char *url_parse(struct slice url, struct node_address *out)
{
    static const uint16_t http_port = 80, https_port = 443;
    if (node_rank_name_meant(url))
        return "want no rank in a URL: http://HOST:PORT has all its data-parallel ranks, as its "
               "metrics or #ranks=N say";
    if (slice_find(url, '@') < url.len)
        return "want no user and password: http://HOST:PORT alone";
    bool tls = slice_starts_with(url, SLICE("https://"));
    if (!tls && !slice_starts_with(url, SLICE("http://")))
        return "want a URL such as http://10.0.0.1:8000";
    url = slice_skip(url, tls ? strlen("https://") : strlen("http://"));
    if (slice_ends_with(url, SLICE("/")))
        url.len--;
    if (node_address_parse_default(url, tls ? https_port : http_port, out) == 0 && out->port != 0) {
        out->tls = tls;
        return NULL;
    }
    return slice_find(url, '/') < url.len || slice_find(url, '?') < url.len
               ? "want no path: http://HOST:PORT alone"
               : "want a URL such as http://10.0.0.1:8000, its port from 1 to 65535";
}

static const char *replica_parse(struct slice text, struct node_replica_option *out)
{
    struct node_replica_option parsed = {0};
    struct slice url = text;
    const char *wrong_label = labels_cut(&url, &parsed.labels);
    const char *wrong = url_parse(url, &parsed.address);
    if (wrong == NULL)
        wrong = wrong_label;
    if (wrong != NULL)
        return wrong;
    node_replica_name_of(&parsed.address, parsed.name);
    *out = parsed;
    return NULL;
}

int node_replica_parse(struct slice text, struct node_replica_option *out)
{
    return replica_parse(text, out) == NULL ? 0 : ERR_SYNTAX;
}

const char *node_replica_wrong(struct slice text)
{
    struct node_replica_option parsed;
    return replica_parse(text, &parsed);
}

struct slice node_replica_shown(struct slice text)
{
    size_t at = text.len;
    while (at > 0 && text.at[at - 1] != '@')
        at--;
    return at > 0 ? slice_skip(text, at - 1) : text;
}

bool node_replica_is_name(struct slice name)
{
    struct node_address address;
    return node_replica_address(name, &address) == ERR_OK;
}

int node_replica_address(struct slice name, struct node_address *out)
{
    struct node_local_name local;
    bool is_local = node_local_name_parse(name, &local);
    if (local.owner.len > 0 && (!is_local || !node_local_owner_good(local.owner)))
        return ERR_SYNTAX;
    return node_address_parse_replica(local.address, out);
}

const char *node_dns_parse(struct slice text, struct node_dns_option *out)
{
    struct node_dns_option parsed = {.name = text};
    const char *wrong_label = labels_cut(&parsed.name, &parsed.labels);
    bool tls = slice_starts_with(parsed.name, SLICE("https://"));
    if (tls)
        parsed.name = slice_skip(parsed.name, strlen("https://"));
    struct slice name = parsed.name;
    bool srv = slice_starts_with(name, SLICE("_"));
    int err = srv ? node_address_parse_default(name, 0, &parsed.address)
                  : node_address_parse(name, &parsed.address);
    if (srv && (err != 0 || slice_find(name, ':') < name.len))
        return "want no port behind a name of SRV records, such as _http._tcp.engines.internal";
    if (err != 0 || (!srv && parsed.address.port == 0))
        return "want NAME:PORT, such as engines.internal:8000, or the name of SRV records, such as "
               "_http._tcp.engines.internal";
    if (node_host_is_ip(parsed.address.host))
        return "want a name to look up; an address is a replica by itself: "
               "--replica http://HOST:PORT";
    parsed.address.tls = tls;
    if (wrong_label == NULL)
        *out = parsed;
    return wrong_label;
}
