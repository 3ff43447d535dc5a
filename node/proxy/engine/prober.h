/* Probes the health, metrics and models of every replica.
 *
 * Each replica gets a single probe at a time, on a connection without client requests. A second
 * probe may run while the first waits long. Health is probed every health-interval. For SGLang the
 * health check costs a token, so the interval is five times as long, and /ping is probed each
 * second. Metrics are probed every scrape-interval, and models as soon as the replica comes up and
 * every ten seconds. The health of a down replica is probed several times a second for a minute,
 * and for as long as all replicas are down.
 *
 * A health check's timeout does not count if any bytes came from the replica meanwhile. If a router
 * answers a probe, the replica gets no requests, because they would go in a circle.
 *
 * Probes carry the API key of replica-api-key-file, if set. A probe of /health carries the key only
 * after a refusal. When a replica begins or ceases to refuse probes (401, 403), the log says so. */
#ifndef NODE_PROXY_ENGINE_PROBER_H
#define NODE_PROXY_ENGINE_PROBER_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

/* Begins to probe all replicas of proxy->engines.pools. ERR_NOMEM. */
MUST_USE int prober_start(struct proxy *proxy);
/* Begin and end the probes of a replica. The replica's pool must be open. Repeated calls have no
 * effect. */
void prober_begin(struct proxy *proxy, unsigned replica);
void prober_end(struct proxy *proxy, unsigned replica);
/* Begins due probes. Called by each tick. */
void prober_tick(struct proxy *proxy);
void prober_stop(struct proxy *proxy);

/* Asks for a sign of life soon: reads the metrics, even on another router's turn. `health`: also
 * makes SGLang's health check, which costs a token. */
void prober_ask(struct proxy *proxy, unsigned replica, bool health);
/* Called if the replica's number of data-parallel ranks differs from the believed number. Probes
 * all sources of the number, at most once a second. */
void prober_ask_ranks(struct proxy *proxy, unsigned replica);
/* Asks for the model list now, because the list may have changed; at most four times a second. */
void prober_ask_models(struct proxy *proxy, unsigned replica);
/* As prober_ask_models(), because the context length may have changed. Also probes any other source
 * of the context length. */
void prober_ask_context(struct proxy *proxy, unsigned replica);
/* Calls prober_ask_models() for all replicas that are up and do not refuse to list models. Returns
 * false if no list will come. Otherwise replicas that lately refused connections get a health
 * check, and list their models if up again. After all lists have come, proxy->exchanges.lists_due
 * is set. */
bool prober_look(struct proxy *proxy);
/* Called if the replica closed a connection earlier than servers close idle ones. So another
 * process may answer now. Probes the health and the models, at most once a second. */
void prober_hung_up(struct proxy *proxy, unsigned replica);
/* Called if the port refused a request's connection: the next answer may come from another engine.
 * Requests avoid the replica until the models are listed. */
void prober_process_gone(struct proxy *proxy, unsigned replica);
/* Probes the health soon, at no cost for the engine. */
void prober_ask_health(struct proxy *proxy, unsigned replica);
/* Sets the times since which probes have been waiting for an answer; 0: none waits. `*any_ms` is
 * for probes that any live server answers at once, `*health_ms` for the health check. */
void prober_waits(const struct proxy *proxy, unsigned replica, uint64_t *any_ms,
                  uint64_t *health_ms);

/* Returns the last valid answer to /v1/models. Empty: there is none, or the replica now refuses to
 * list models. */
struct slice prober_models(const struct proxy *proxy, unsigned replica);

/* Returns a version number. It rises when the result of prober_models() may have changed for any
 * replica. */
uint64_t prober_models_version(const struct proxy *proxy);

/* Returns true if a live replica was asked for models: it listed them, refused, had no such path,
 * or did not answer in time. */
bool prober_models_asked(const struct proxy *proxy);

/* Notes the engine's type, as shown by an answer; NODE_ENGINE_AUTO: not shown. */
void prober_engine_found(struct proxy *proxy, unsigned replica, enum node_engine engine);

#endif
