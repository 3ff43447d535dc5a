/* HOST:PORT as settings and replicas write it, and what the text of a host shows by itself: names
 * are not looked up here.
 */
#ifndef NODE_SETTINGS_ADDRESS_H
#define NODE_SETTINGS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum { NODE_HOST_BYTES = 256 }; /* with the NUL; a DNS name has at most 253 */

struct node_address {
    char host[NODE_HOST_BYTES]; /* a name or an IP address, IPv6 without its brackets */
    uint16_t port;              /* 0: the kernel chooses */
    bool tls;                   /* of a replica: TLS is spoken there */
};

/* "HOST:PORT", "[::1]:80". ERR_SYNTAX. */
MUST_USE int node_address_parse(struct slice text, struct node_address *out);
/* The name of a replica: "HOST:PORT", or "https://HOST:PORT" where TLS is spoken. ERR_SYNTAX, for a
 * port 0 too. */
MUST_USE int node_address_parse_replica(struct slice name, struct node_address *out);
/* As the first where the port may be left out: then it is `port_default`; -1: it may not. */
MUST_USE int node_address_parse_default(struct slice text, int port_default,
                                        struct node_address *out);

/* As that, and an IPv6 address without a port may stand without brackets: as Kubernetes writes a
 * pod's. */
MUST_USE int node_address_parse_bare(struct slice text, uint16_t port_default,
                                     struct node_address *out);

/* An IP address, not a name. */
bool node_host_is_ip(const char *host);
/* 0.0.0.0, ::, 0:0:0::0 and the like: a place to listen at. */
bool node_host_is_any(const char *host);
/* 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104 (IPv4-mapped), or the name localhost: this machine. */
bool node_host_is_loopback(const char *host);

/* Whether a connection to `to` ends at the socket that listens at `listen`, judged by their texts:
 * the same host, or this machine by any of its names (localhost, 0.0.0.0, a loopback address) if
 * `listen` covers it. Port 0 reaches nothing. */
bool node_address_reaches(const struct node_address *to, const struct node_address *listen);

#endif
