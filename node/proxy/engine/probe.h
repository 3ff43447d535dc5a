/* The names of probes, and of probed routers. */
#ifndef NODE_PROXY_ENGINE_PROBE_H
#define NODE_PROXY_ENGINE_PROBE_H

/* The User-Agent of probes, and the field that names a probed router in its answer: its pseudonym
 * in Via, a space, and its name in the cluster, if any. */
#define PROBE_USER_AGENT  "grapevine"
#define PROBE_ROUTER_NAME "x-grapevine-router"

#endif
