/* Shared by the files of an engine: engine.c, ill.c, odd.c. */
#ifndef TESTS_SIM_SERVICE_ENGINE_INTERNAL_H
#define TESTS_SIM_SERVICE_ENGINE_INTERNAL_H

#include "tests/engine-sim/job.h"
#include "tests/sim/service/service.h"

/* The carrier's view of a connection; kept until the run ends, for events that refer to it. */
struct carried {
    struct carried *next;
    struct service_engine *engine;
    struct service_end *end;
    struct sim_conn *conn; /* NULL: freed */
    struct buf pending;
    struct service_attempt *attempt;
    unsigned serial; /* number of the request in service */
    bool of_client;  /* the last request was a client's, not a probe */
    bool tampered;   /* nothing more of this answer is sent */
    struct service_attempt *spoilt;
};

/* An engine's life, from start to end of the process. */
struct life {
    struct sim_engine sim; /* first: its server is the carrier's context */
    struct service *service;
    struct service_engine *engine;
    struct carried *carried;
    uint64_t model_len; /* context length when well */
};

static inline struct life *life_of(const struct service_engine *e)
{
    return e->engine;
}

/* A request reached the engine; the answer ended. */
void service_attempt_begin(struct life *l, struct carried *k);
void service_attempt_end(struct service *s, struct service_attempt *a, bool whole);
/* Plans an event of a connection; void (NULL) if another request is in service by then. */
void service_carried_later(struct carried *k, uint64_t us,
                           void (*happen)(void *, struct world_event *));
struct carried *service_carried_of(struct service *s, const struct world_event *event);
/* Sends waiting bytes, as far as there is room. */
void service_pending_go(struct carried *k);

/* --- odd.c ------------------------------------------------------------------------------------ */

/* Sets the idle time of a new life. */
void service_odd_life(struct life *l);
/* True: the request is answered, or left open, otherwise than a well engine would. */
bool service_odd_answer(struct carried *k, struct slice path);
/* More of a request has come. */
void service_odd_received(struct carried *k);
/* The connection is about to close in order. */
void service_odd_closing(struct carried *k, const struct sim_conn *c);

/* Called after any event of the engine: ends requests that are over, and plans the engine's next
 * event. */
void service_engine_settle(struct service_engine *e);

#endif
