/* Watches every replica: its health, its metrics, its models.
 *
 * Each replica has one probe at a time, on a separate connection; a second probe may run during a
 * wait. Health is probed every health-interval (for SGLang every fifth time, because the check
 * costs a token, and /ping each second). Metrics follow every scrape-interval. Models are probed as
 * soon as the replica comes up, and every ten seconds. The health of a down replica is probed
 * several times a second for a minute, and for as long as all replicas are down.
 *
 * A health check that times out does not count if any bytes came from the replica meanwhile. If a
 * router answers the probe, the replica gets no requests, because they would go in a circle.
 *
 * Probes carry the API key of replica-api-key-file, if set; /health carries the key only after a
 * refusal. The log reports each change of a replica's refusal of probes (401, 403) once. */
#ifndef NODE_PROXY_ENGINE_PROBER_H
#define NODE_PROXY_ENGINE_PROBER_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

/* Begins to probe all replicas of proxy->engines.pools. ERR_NOMEM. */
MUST_USE int prober_start(struct proxy *proxy);
/* A replica appeared (with an open pool), or left. Both may be called again. */
void prober_begin(struct proxy *proxy, unsigned replica);
void prober_end(struct proxy *proxy, unsigned replica);
/* Begins due probes. Called by each tick. */
void prober_tick(struct proxy *proxy);
void prober_stop(struct proxy *proxy);

/* Asks for a sign of life soon: the metrics, even if other routers read them for this one.
 * `health`: also SGLang's health check, which costs a token. */
void prober_ask(struct proxy *proxy, unsigned replica, bool health);
/* The replica has other ranks than believed: probes all sources of their number, at most once a
 * second. */
void prober_ask_ranks(struct proxy *proxy, unsigned replica);
/* The model list may have changed: asks for it now, but at most four times a second. */
void prober_ask_models(struct proxy *proxy, unsigned replica);
/* The context length may have changed: as prober_ask_models(), and probes any other source of
 * it. */
void prober_ask_context(struct proxy *proxy, unsigned replica);
/* Asks all accessible replicas that are up for their lists, in the same way. Replicas that refused
 * connections lately get a health check, and list their models if they are back. Returns false if
 * no list will come. Otherwise proxy->exchanges.lists_due is set after all lists have come. */
bool prober_look(struct proxy *proxy);
/* The replica closed a connection sooner than a server does on idleness, so the process may be
 * another. Asks for the health and the models, but at most once a second. */
void prober_hung_up(struct proxy *proxy, unsigned replica);
/* The port refused a request, so the next answer may come from another engine. The replica is
 * avoided until its models are listed. */
void prober_process_gone(struct proxy *proxy, unsigned replica);
/* Asks for the health, by a probe without cost for the engine. */
void prober_ask_health(struct proxy *proxy, unsigned replica);
/* Returns since when a probe has been waiting for an answer; 0: none. `any_ms`: of probes that any
 * live server answers at once; `health_ms`: of a health check. */
void prober_waits(const struct proxy *proxy, unsigned replica, uint64_t *any_ms,
                  uint64_t *health_ms);

/* Returns the last readable answer to /v1/models; empty: none, or the replica refuses now. */
struct slice prober_models(const struct proxy *proxy, unsigned replica);

/* Returns a new number whenever any prober_models() may have changed. */
uint64_t prober_models_version(const struct proxy *proxy);

/* Returns true if an up replica was asked for models: it listed them, refused, has no such path, or
 * did not answer in time. */
bool prober_models_asked(const struct proxy *proxy);

/* An answer showed the engine's type (AUTO: it did not). */
void prober_engine_found(struct proxy *proxy, unsigned replica, enum node_engine engine);

#endif
