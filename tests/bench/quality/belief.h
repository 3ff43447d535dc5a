/* Checks routers' beliefs: checkpoints of prompts against the engines' caches.
 *
 * Another tree follows each engine's events without delay. If this tree is unsure of a checkpoint,
 * no router can know better; the checkpoint does not count as right, whatever the router
 * believes. */
#ifndef TESTS_BENCH_QUALITY_BELIEF_H
#define TESTS_BENCH_QUALITY_BELIEF_H

#include "tests/bench/quality/play.h"

struct beliefs;

struct beliefs *beliefs_open(const struct play *p);
void beliefs_close(struct beliefs *b);
/* Returns the number of blocks stored. */
uint64_t beliefs_message(struct beliefs *b, unsigned engine, struct slice payload);
/* Before the prompt is sent: asks the router for the beliefs about all engines now. */
void beliefs_ask(struct node_router *r, const struct node_request *request, uint64_t now_ms);
/* Compares the beliefs about an engine, in the router's slot for it, with the truth. */
void beliefs_look(struct beliefs *b, const struct flight *f, unsigned engine,
                  const struct node_router *r, unsigned slot, struct events_seen *out);

#endif
