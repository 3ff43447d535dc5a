/* How probes, and routers that are probed, name themselves. */
#ifndef NODE_PROXY_PROBE_H
#define NODE_PROXY_PROBE_H

/* Probes call themselves so, and routers that are probed name themselves in their answers: the
 * pseudonym that they have in Via, a space, and their name in the cluster if they have one. */
#define PROBE_USER_AGENT  "grapevine"
#define PROBE_ROUTER_NAME "x-grapevine-router"

#endif
