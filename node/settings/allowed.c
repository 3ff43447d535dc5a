#include "node/settings/allowed.h"

#include "base/ip.h"
#include "gossip/limits.h"
#include "node/discover/kubernetes.h"
#include "node/settings/options.h"
#include "node/settings/statuses.h"

/* True for a field name as in RFC 9110, section 5.1 (a token), of at most 128 bytes. */
static bool is_header_name(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return value.len > 0 && value.len <= 128;
}

const char *node_allowed_header_names_not(struct slice value)
{
    unsigned count = 0;
    do {
        if (!is_header_name(slice_trim(slice_cut(&value, ','))) ||
            ++count > NODE_SESSION_HEADERS_MAX)
            return "want names of headers, such as x-session-id, separated by commas; 16 at most";
    } while (value.len > 0);
    return NULL;
}

/* True for scheme://host[:port], as browsers write an origin: no path, not even a slash (RFC 6454,
 * 6.2). */
static bool is_origin(struct slice one)
{
    static const struct slice between = SLICE("://");
    const char *at = memmem(one.at, one.len, between.at, between.len);
    if (at == NULL || at == one.at || one.len > 255)
        return false;
    struct slice host = slice_skip(one, (size_t)(at - one.at) + between.len);
    for (size_t i = 0; i < host.len; i++) {
        if (host.at[i] <= ' ' || host.at[i] > '~' || strchr("/?#@*\\", host.at[i]) != NULL)
            return false;
    }
    return host.len > 0;
}

const char *node_allowed_origins_not(struct slice value)
{
    if (value.len == 0 || slice_equal(value, SLICE("*")) || slice_equal(value, SLICE("off")))
        return NULL;
    while (value.len > 0) {
        if (!is_origin(slice_trim(slice_cut(&value, ','))))
            return "want *, off, or origins such as https://chat.example.com, without a path, "
                   "separated by commas";
    }
    return NULL;
}

const char *node_allowed_replica_dns_not(struct slice value)
{
    struct node_dns_option parsed;
    return node_dns_parse(value, &parsed);
}

const char *node_allowed_replica_kubernetes_not(struct slice value)
{
    struct discover_service parsed;
    return discover_service_parse(value, &parsed);
}

const char *node_allowed_dns_server_not(struct slice value)
{
    struct node_address parsed;
    if (node_address_parse_default(value, NODE_DNS_PORT, &parsed) == 0 && parsed.port != 0 &&
        node_host_is_ip(parsed.host))
        return NULL;
    return "want the IP address of a DNS server, such as 10.0.0.10 or [fd00::10]:53";
}

const char *node_allowed_net_not(struct slice value)
{
    struct ip_net parsed;
    if (ip_net_parse(value, &parsed))
        return NULL;
    return "want an IP address or a network, such as 10.0.0.7 or 10.0.0.0/8";
}

const char *node_allowed_path_not(struct slice value)
{
    return value.len > 0 ? NULL : "want the name of a file";
}

const char *node_allowed_address_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || node_address_parse(value, &parsed) == 0)
        return NULL;
    return "want HOST:PORT, such as 0.0.0.0:7490 or [::]:7490";
}

/* As node_allowed_address_not(), except for the example: a private address, because engines connect
 * to this port without authentication. */
const char *node_allowed_events_listen_not(struct slice value)
{
    return node_allowed_address_not(value) == NULL ? NULL : "want HOST:PORT, such as 10.0.0.5:5557";
}

/* Refuses an address to which other routers cannot send: port 0, or all addresses (0.0.0.0, ::). */
const char *node_allowed_advertise_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || (node_address_parse(value, &parsed) == 0 && parsed.port != 0 &&
                           !node_host_is_any(parsed.host)))
        return NULL;
    return "want HOST:PORT where the other routers reach this one, such as 10.0.0.7:7490";
}

const char *node_allowed_admin_advertise_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || (node_address_parse_bare(value, 1, &parsed) == 0 && parsed.port != 0 &&
                           !node_host_is_any(parsed.host)))
        return NULL;
    return "want HOST or HOST:PORT where the admin port is reached, such as 10.0.0.7";
}

const char *node_allowed_join_not(struct slice value)
{
    struct node_address parsed;
    if (node_address_parse_default(value, NODE_GOSSIP_PORT, &parsed) == 0 && parsed.port != 0)
        return NULL;
    return "want HOST or HOST:PORT, such as routers.internal or 10.0.0.7:7490";
}

/* Refuses a name that is unfit for logs, metrics and tables. */
const char *node_allowed_node_name_not(struct slice value)
{
    const char *wrong = "want 1 to 128 letters, digits or any of . _ : - [ ] @";
    _Static_assert((int)GOSSIP_NAME_MAX == 128, "the text names it");
    if (value.len > GOSSIP_NAME_MAX)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("._:-[]@", c) == NULL))
            return wrong;
    }
    return NULL;
}

const char *node_allowed_statuses_not(struct slice value)
{
    struct node_statuses parsed;
    return node_statuses_parse(value, &parsed);
}

const char *node_allowed_tls_name_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 ||
        (slice_find(value, ':') == value.len && node_address_parse_default(value, 0, &parsed) == 0))
        return NULL;
    return "want a name without a port, such as engines.internal";
}

/* Refuses all but URLs for libcurl. A user or a password is refused because it would end up in
 * logs. */
const char *node_allowed_trace_endpoint_not(struct slice value)
{
    struct slice rest = value;
    if (slice_starts_with(value, SLICE("http://")))
        rest = slice_skip(value, 7);
    else if (slice_starts_with(value, SLICE("https://")))
        rest = slice_skip(value, 8);
    bool good = value.len == 0 || (rest.len < value.len && rest.len > 0 && rest.at[0] != '/' &&
                                   rest.at[0] != ':' && value.len < 1024);
    for (size_t i = 0; i < rest.len; i++)
        good = good && rest.at[i] > ' ' && rest.at[i] <= '~' &&
               strchr("@?#\"<>\\^`{|}", rest.at[i]) == NULL;
    return good ? NULL : "want http://HOST:PORT or https://HOST:PORT, with a path or without";
}
