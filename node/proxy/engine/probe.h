/* How probes, and routers that are probed, name themselves. */
#ifndef NODE_PROXY_ENGINE_PROBE_H
#define NODE_PROXY_ENGINE_PROBE_H

/* The User-Agent of probes, and the field by which a router that is probed names itself in its
 * answer: its pseudonym in Via, a space, and its name in the cluster if it has one. */
#define PROBE_USER_AGENT  "grapevine"
#define PROBE_ROUTER_NAME "x-grapevine-router"

#endif
