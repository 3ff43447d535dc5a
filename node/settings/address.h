/* HOST:PORT as written in settings and replicas, and the kinds of hosts (IP address, loopback, all
 * addresses) as far as the text shows them. Names are not resolved here. */
#ifndef NODE_SETTINGS_ADDRESS_H
#define NODE_SETTINGS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum { NODE_HOST_BYTES = 256 }; /* with the NUL; a DNS name has at most 253 */

struct node_address {
    char host[NODE_HOST_BYTES]; /* a name or an IP address, IPv6 without brackets */
    uint16_t port;              /* 0: the kernel chooses */
    bool tls;                   /* connections to this replica use TLS */
};

/* Parses "HOST:PORT" or "[::1]:80". ERR_SYNTAX. */
MUST_USE int node_address_parse(struct slice text, struct node_address *out);
/* Parses the name of a replica: "HOST:PORT", or "https://HOST:PORT" with TLS. ERR_SYNTAX, also for
 * port 0. */
MUST_USE int node_address_parse_replica(struct slice name, struct node_address *out);
/* Parses HOST:PORT or HOST. A missing port becomes `port_default`, or is an error if that is -1.
 * ERR_SYNTAX. */
MUST_USE int node_address_parse_default(struct slice text, int port_default,
                                        struct node_address *out);

/* As node_address_parse_default(), but an IPv6 address without a port may lack brackets: Kubernetes
 * writes pod addresses so. */
MUST_USE int node_address_parse_bare(struct slice text, uint16_t port_default,
                                     struct node_address *out);

/* True for an IP address; false for a name. */
bool node_host_is_ip(const char *host);
/* True for 0.0.0.0, ::, 0:0:0::0 and the like: an address to listen on. */
bool node_host_is_any(const char *host);
/* True for 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104 (IPv4-mapped) and the name localhost: this
 * machine. */
bool node_host_is_loopback(const char *host);

/* True if a connection to `to` ends at the socket listening on `listen`, judged by their texts.
 * Either the host is the same, or `to` is this machine (localhost, 0.0.0.0, a loopback address) and
 * `listen` covers it. Port 0 reaches nothing. */
bool node_address_reaches(const struct node_address *to, const struct node_address *listen);

#endif
