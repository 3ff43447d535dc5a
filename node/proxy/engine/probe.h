/* The names by which probes, and probed routers, identify themselves. */
#ifndef NODE_PROXY_ENGINE_PROBE_H
#define NODE_PROXY_ENGINE_PROBE_H

/* The User-Agent of probes, and the header field by which a probed router names itself in the
 * answer. The field has the router's pseudonym in Via, a space, and any name in the cluster. */
#define PROBE_USER_AGENT  "grapevine"
#define PROBE_ROUTER_NAME "x-grapevine-router"

#endif
