/* The EndpointSlices (discovery.k8s.io/v1) of a Kubernetes service, and the resulting list of
 * replicas.
 *
 * A slice lists endpoints of a single address family, all with the same ports. A service has as
 * many slices as it needs. An endpoint on the move from slice to slice is in both for a moment.
 *
 *   the pod is             conditions                       is listed as
 *   ---------------------  -------------------------------  ------------------------------
 *   starting               ready false, never seen ready    not at all
 *   ready                  ready true, or missing           serving
 *   not ready any more     ready false, was listed before   as before: probes judge
 *   being deleted          terminating true                 draining, if it was listed
 *
 * If a pod has an IPv4 and an IPv6 address, only the IPv4 address counts: IPv6 slices are used if
 * no IPv4 slice has an endpoint. Slices of names (addressType FQDN) are ignored. */
#ifndef NODE_DISCOVER_SLICES_H
#define NODE_DISCOVER_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    DISCOVER_SLICES_MAX = 256,           /* slices of a service */
    DISCOVER_ENDPOINTS_MAX = 8192,       /* endpoints of all slices together, of both families */
    DISCOVER_SLICE_ENDPOINTS_MAX = 1000, /* endpoints of a slice; the API allows no more */
    DISCOVER_SLICE_PORTS_MAX = 100,      /* ports of a slice; the API allows no more */
    DISCOVER_SLICE_NAME_MAX = 253,       /* bytes */
    DISCOVER_PORT_NAME_MAX = 63,         /* bytes */
    DISCOVER_IP_MAX = 45,                /* bytes of an IP address as text */
    DISCOVER_ENDPOINT_BYTES = 64,        /* "https://[IP]:PORT" with the NUL */
    DISCOVER_SLICES_WHY_MAX = 256,
};

enum discover_family { DISCOVER_FAMILY_OTHER, DISCOVER_FAMILY_IPV4, DISCOVER_FAMILY_IPV6 };

struct discover_endpoint {
    char ip[DISCOVER_IP_MAX + 1];
    bool unready;     /* ready is false */
    bool terminating; /* the pod is being deleted */
};

struct discover_port {
    char name[DISCOVER_PORT_NAME_MAX + 1]; /* "": the port has no name */
    uint16_t number;                       /* 0: no number was given */
};

/* A slice, as read and as stored. A stored slice has no more memory than needed. */
struct discover_slice {
    char name[DISCOVER_SLICE_NAME_MAX + 1];
    enum discover_family family;
    unsigned port_count; /* number of TCP ports */
    unsigned endpoint_count;
    struct discover_port *ports;
    struct discover_endpoint *endpoints;
};

/* A service's slices. All zero: empty. */
struct discover_slices {
    struct discover_slice *at[DISCOVER_SLICES_MAX]; /* owned */
    unsigned count;
    unsigned endpoint_count; /* endpoints of all slices */
    bool tls;                /* the service's replicas are listed as https:// */
};

/* Adds a copy, or replaces the slice with the same name. ERR_NOMEM; ERR_LIMIT beyond
 * DISCOVER_SLICES_MAX or DISCOVER_ENDPOINTS_MAX. */
MUST_USE int discover_slices_put(struct discover_slices *s, const struct discover_slice *slice);
void discover_slices_remove(struct discover_slices *s, struct slice name);
void discover_slices_clear(struct discover_slices *s);
void discover_slices_check(const struct discover_slices *s);

/* A list of endpoints: sorted by name, each name once. */
struct discover_endpoint_list {
    struct discover_listed {
        char name[DISCOVER_ENDPOINT_BYTES]; /* "10.0.0.1:8000", "[fd00::1]:8000" */
        bool draining;
    } * at; /* owned */
    unsigned count;
};

/* Lists the replicas in the slices. `port` is a number, the name of a port, or empty: a slice's
 * only TCP port. `list` is the previous list (empty: all zero) and is replaced. After an error
 * `list` is unchanged, and `why` (DISCOVER_SLICES_WHY_MAX bytes) is for people. ERR_NOT_FOUND: no
 * slice with endpoints has such a port, or a slice has several ports and `port` is empty;
 * ERR_NOMEM. */
MUST_USE int discover_slices_list(const struct discover_slices *s, struct slice port,
                                  struct discover_endpoint_list *list, char *why);
void discover_endpoint_list_free(struct discover_endpoint_list *list);

#endif
