/* Prompts in front of which the client puts a line, for the section `leading`. The line is the same
 * each time or not, and the engine shows it to the model or not. */
#ifndef TESTS_BENCH_QUALITY_LEADING_H
#define TESTS_BENCH_QUALITY_LEADING_H

#include "http/prompt.h"
#include "tests/bench/quality/prompt.h"

enum leading {
    LEADING_NONE,     /* no line */
    LEADING_CONSTANT, /* always the same line */
    LEADING_DROPPED,  /* another line each time, which the engine drops */
    LEADING_COUNTED,  /* another line each time, which the engine keeps */
};

/* Puts the prompt of a conversation's turn, with the line, in `out`; segments are not joined yet.
 * `unique`: of the request; `secret`: the routers', borrowed until joined. */
void leading_read(const struct prompt *p, double bytes_per_token, enum leading leading,
                  uint64_t unique, uint64_t conversation, unsigned turn,
                  const struct hash_secret *secret, struct http_prompt *out);

#endif
