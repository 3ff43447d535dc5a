/* Prompts in front of which the client puts a line of its own, for the section `leading`: whether
 * it is the same each time, and whether the engine shows it to the model. */
#ifndef TESTS_BENCH_QUALITY_LEADING_H
#define TESTS_BENCH_QUALITY_LEADING_H

#include "http/prompt.h"
#include "tests/bench/quality/prompt.h"

enum leading {
    LEADING_NONE,     /* no line */
    LEADING_CONSTANT, /* always the same one */
    LEADING_DROPPED,  /* another one each time, which the engine drops */
    LEADING_COUNTED,  /* which it does not drop */
};

/* The prompt of a turn of a conversation with its line in `out`, its segments not joined yet.
 * `unique`: of the request; `secret`: the routers', borrowed until it is joined. */
void leading_read(const struct prompt *p, double bytes_per_token, enum leading leading,
                  uint64_t unique, uint64_t conversation, unsigned turn,
                  const struct hash_secret *secret, struct http_prompt *out);

#endif
