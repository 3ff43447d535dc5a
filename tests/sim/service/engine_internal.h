/* What the files of an engine share: engine.c, ill.c. */
#ifndef TESTS_SIM_SERVICE_ENGINE_INTERNAL_H
#define TESTS_SIM_SERVICE_ENGINE_INTERNAL_H

#include "tests/engine-sim/job.h"
#include "tests/sim/service/service.h"

/* A connection as the carrier has it; kept until the run ends, for events that are about it. */
struct carried {
    struct carried *next;
    struct service_engine *engine;
    struct service_end *end;
    struct sim_conn *conn; /* NULL: freed */
    struct buf pending;
    struct service_attempt *attempt;
    unsigned serial; /* of the request that it serves */
    bool tampered;   /* nothing of this answer goes out any more: */
    struct service_attempt *spoilt;
};

/* One life of an engine. */
struct life {
    struct sim_engine sim; /* first: its server is the carrier's context */
    struct service *service;
    struct service_engine *engine;
    struct carried *carried;
    uint64_t model_len; /* its context length, when it is well */
};

static inline struct life *life_of(const struct service_engine *e)
{
    return e->engine;
}

/* After anything that happened to it: requests that are over, and when it is due. */
void service_engine_settle(struct service_engine *e);

#endif
