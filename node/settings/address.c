#include "node/settings/address.h"

#include <string.h>

#include "base/err.h"
#include "base/ip.h"

/* --- HOST:PORT ------------------------------------------------------------------------------ */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool host_ok(struct slice host, bool bracketed)
{
    if (host.len == 0 || host.len >= NODE_HOST_BYTES - 2)
        return false;
    if (bracketed && slice_find(host, ':') == host.len)
        return false; /* written back, this host would have no brackets */
    for (size_t i = 0; i < host.len; i++) {
        char c = host.at[i];
        bool ok =
            is_alnum(c) || c == '.' || (bracketed ? c == ':' || c == '%' : c == '-' || c == '_');
        if (!ok)
            return false;
    }
    return true;
}

int node_address_parse_default(struct slice text, int port_default, struct node_address *out)
{
    struct slice host;
    struct slice rest;
    bool bracketed = text.len > 0 && text.at[0] == '[';
    if (bracketed) {
        size_t end = slice_find(text, ']');
        if (end == text.len)
            return ERR_SYNTAX;
        host = slice_of(text.at + 1, end - 1);
        rest = slice_skip(text, end + 1);
    } else {
        size_t end = slice_find(text, ':');
        host = slice_of(text.at, end);
        rest = slice_skip(text, end);
    }
    if (!host_ok(host, bracketed))
        return ERR_SYNTAX;
    uint64_t port = 0;
    if (rest.len == 0 && port_default >= 0) {
        port = (uint64_t)port_default;
    } else if (rest.len == 0 || rest.at[0] != ':' ||
               slice_to_u64(slice_skip(rest, 1), &port) != 0 || port > UINT16_MAX) {
        return ERR_SYNTAX;
    }
    (void)slice_to_cstr(host, out->host, sizeof out->host);
    out->port = (uint16_t)port;
    out->tls = false;
    return 0;
}

int node_address_parse(struct slice text, struct node_address *out)
{
    return node_address_parse_default(text, -1, out);
}

int node_address_parse_replica(struct slice name, struct node_address *out)
{
    bool tls = slice_starts_with(name, SLICE("https://"));
    int err =
        node_address_parse_default(tls ? slice_skip(name, strlen("https://")) : name, -1, out);
    if (err == 0)
        out->tls = tls;
    return err == 0 && out->port == 0 ? ERR_SYNTAX : err;
}

int node_address_parse_bare(struct slice text, uint16_t port_default, struct node_address *out)
{
    char host[NODE_HOST_BYTES];
    if (!slice_to_cstr(text, host, sizeof host) || !node_host_is_ip(host))
        return node_address_parse_default(text, port_default, out);
    *out = (struct node_address){.port = port_default};
    (void)slice_to_cstr(text, out->host, sizeof out->host);
    return 0;
}

/* --- kinds of hosts --------------------------------------------------------------------------- */

static bool is_localhost(const char *host)
{
    struct slice name = slice_of_cstr(host);
    if (slice_ends_with(name, SLICE(".")))
        name.len--;
    return slice_equal_nocase(name, SLICE("localhost"));
}

bool node_host_is_ip(const char *host)
{
    uint8_t ip[IP_BYTES];
    return ip_parse(host, ip);
}

bool node_host_is_any(const char *host)
{
    static const uint8_t zero[IP_BYTES];
    uint8_t ip[IP_BYTES];
    return ip_parse(host, ip) &&
           (ip_is_v4(ip) ? memcmp(ip + 12, zero, 4) == 0 : memcmp(ip, zero, IP_BYTES) == 0);
}

bool node_host_is_loopback(const char *host)
{
    static const uint8_t one[IP_BYTES] = {[IP_BYTES - 1] = 1};
    uint8_t ip[IP_BYTES];
    if (!ip_parse(host, ip))
        return is_localhost(host);
    return ip_is_v4(ip) ? ip[12] == 127 : memcmp(ip, one, IP_BYTES) == 0;
}

/* Finds the address where a connection to `host` ends: a connection to "all addresses" (0.0.0.0)
 * reaches the loopback address. Returns false for a name other than localhost. */
static bool read_end(const char *host, uint8_t out[IP_BYTES])
{
    if (is_localhost(host))
        return ip_parse("127.0.0.1", out);
    if (!ip_parse(host, out))
        return false;
    return !node_host_is_any(host) || ip_parse(ip_is_v4(out) ? "127.0.0.1" : "::1", out);
}

bool node_address_reaches(const struct node_address *to, const struct node_address *listen)
{
    if (to->port == 0 || to->port != listen->port)
        return false;
    if (slice_equal_nocase(slice_of_cstr(to->host), slice_of_cstr(listen->host)))
        return true;
    uint8_t end[IP_BYTES], ear[IP_BYTES];
    if (!read_end(to->host, end) || !read_end(listen->host, ear))
        return false;
    bool here = node_host_is_loopback(to->host) || node_host_is_any(to->host);
    if (node_host_is_any(listen->host)) /* [::] accepts IPv4 too, 0.0.0.0 only IPv4 */
        return here && (!ip_is_v4(ear) || ip_is_v4(end));
    bool by_name = is_localhost(to->host) || is_localhost(listen->host); /* 127.0.0.1 or ::1 */
    return memcmp(end, ear, IP_BYTES) == 0 ||
           (by_name && here && node_host_is_loopback(listen->host));
}
