/* Watches every replica: is it healthy, what do its metrics say, which models does it serve.
 *
 * One probe at a time per replica, on a connection of its own; while one waits for its answer a
 * second one is made beside it. Health every health-interval (SGLang's costs the engine a token:
 * every fifth time, and /ping each second), metrics every scrape-interval, models as soon as the
 * replica comes up and every ten seconds. One that is down is asked for its health several times a
 * second for a minute, and for as long as all are down. A health check that got no answer in time
 * does not count if anything came from the replica meanwhile. If a router answers the probe, the
 * replica gets no requests: they would go in a circle.
 *
 * Probes carry the API key of replica-api-key-file, where there is one; /health carries it only to
 * a replica that refused it without. The log says once for each change that a replica refuses
 * probes (401, 403).
 */
#ifndef NODE_PROXY_ENGINE_PROBER_H
#define NODE_PROXY_ENGINE_PROBER_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

/* Begins to probe all replicas of proxy->engines.pools. ERR_NOMEM. */
MUST_USE int prober_start(struct proxy *proxy);
/* A replica appeared (its pool is open) or went. Both may be called again. */
void prober_begin(struct proxy *proxy, unsigned replica);
void prober_end(struct proxy *proxy, unsigned replica);
/* Begins what is due. Called by each tick. */
void prober_tick(struct proxy *proxy);
void prober_stop(struct proxy *proxy);

/* A sign of life is wanted soon: its metrics, also where other routers read them for this one. With
 * `health` SGLang's health check too, which costs it a token. */
void prober_ask(struct proxy *proxy, unsigned replica, bool health);
/* It has other ranks than was believed: whatever tells how many, at most once a second. */
void prober_ask_ranks(struct proxy *proxy, unsigned replica);
/* Its list of models may have changed: it is asked for it now, but not more than four times a
 * second. */
void prober_ask_models(struct proxy *proxy, unsigned replica);
/* So may its context length: as prober_ask_models(), and whatever else tells it. */
void prober_ask_context(struct proxy *proxy, unsigned replica);
/* Asks all replicas that are up and do not refuse for their lists, in the same way, and those
 * whose port refused of late whether they are back: they list their models then. False: no list
 * is to come. Else proxy->exchanges.lists_due is set when all lists have come. */
bool prober_look(struct proxy *proxy);
/* It closed a connection sooner than a server does that is only tired of waiting: its process may
 * be another. It is asked for its health and its models, but not more than once a second. */
void prober_hung_up(struct proxy *proxy, unsigned replica);
/* Its port refused a request: what answers there next may be another engine. It is avoided until it
 * has listed its models. */
void prober_process_gone(struct proxy *proxy, unsigned replica);
/* Its health, by what costs it nothing. */
void prober_ask_health(struct proxy *proxy, unsigned replica);
/* Since when a probe has been waiting for its answer; 0: none does. `any_ms`: of those that a live
 * server answers at once, `health_ms`: of a health check. */
void prober_waits(const struct proxy *proxy, unsigned replica, uint64_t *any_ms,
                  uint64_t *health_ms);

/* The answer of its /v1/models that was understood last; empty: none, or it refuses now. */
struct slice prober_models(const struct proxy *proxy, unsigned replica);

/* Changes whenever prober_models() of any replica may have. */
uint64_t prober_models_version(const struct proxy *proxy);

/* Whether a replica that is up was asked for its models: it listed them, refused, has no such path,
 * or did not answer within the time of a probe. */
bool prober_models_asked(const struct proxy *proxy);

/* An answer showed what kind of engine it is (AUTO: it did not). */
void prober_engine_found(struct proxy *proxy, unsigned replica, enum node_engine engine);

#endif
