/* Requests for the models of the engine simulator: prompts of the same family begin alike. */
#ifndef TESTS_LIB_SIM_HELP_H
#define TESTS_LIB_SIM_HELP_H

#include <stdint.h>
#include <stdlib.h>

#include "tests/engine-sim/model.h"

/* A prompt of `tokens` tokens in blocks of 16, and an answer of `output` tokens. */
static inline void request_init(struct sim_request *r, uint64_t family, uint64_t tokens,
                                uint32_t output)
{
    *r = (struct sim_request){.output_seed = family, .output_tokens = output};
    sim_chain_init(&r->chain, 16, 0);
    for (uint64_t i = 0; i < tokens; i++)
        sim_chain_add(&r->chain, (uint32_t)(family * 1000 + i));
}

/* Only after the model has released the request. */
static inline void request_free(struct sim_request *r)
{
    sim_chain_free(&r->chain);
    free(r->blocks);
}

#endif
