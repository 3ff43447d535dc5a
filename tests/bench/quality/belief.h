/* Whether routers believe right: checkpoints of prompts against what engines hold.
 *
 * A tree of its own follows each engine's events without delay. Where it is unsure of a checkpoint
 * no router can know better; that does not count as right, whatever the router believes.
 */
#ifndef TESTS_BENCH_QUALITY_BELIEF_H
#define TESTS_BENCH_QUALITY_BELIEF_H

#include "tests/bench/quality/play.h"

struct beliefs;

struct beliefs *beliefs_open(const struct play *p);
void beliefs_close(struct beliefs *b);
/* Returns how many blocks it stored. */
uint64_t beliefs_message(struct beliefs *b, unsigned engine, struct slice payload);
/* Before the prompt is sent: what its router believes of all engines now, */
void beliefs_ask(struct node_router *r, const struct node_request *request, uint64_t now_ms);
/* and of one of them, which is that slot there, against the truth. */
void beliefs_look(struct beliefs *b, const struct flight *f, unsigned engine,
                  const struct node_router *r, unsigned slot, struct events_seen *out);

#endif
