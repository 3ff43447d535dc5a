/* Where a request that may be poison is placed, and those that wait for it.
 *
 * A suspect of a dead core wants a replica to itself. While there is none it waits, and the
 * quietest is kept for it: others are placed elsewhere, and wait too where there is nothing else.
 * Both waits are short. While it has no token, its replica is kept for it. No more than queue-max
 * wait so and in the queue together: beyond, a suspect is refused, and others share the replica
 * that is kept.
 *
 * attempt.c takes a request out of the list with suspect_next(), chooses again, and may put it
 * back.
 */
#ifndef NODE_PROXY_EXCHANGE_SUSPECT_WAIT_H
#define NODE_PROXY_EXCHANGE_SUSPECT_WAIT_H

#include "node/proxy/exchange/exchange.h"

enum {
    SUSPECT_WAIT_MS = 4000,   /* a suspect, for a replica to itself */
    SUSPECT_OPEN_MS = 9500,   /* since it came, at most: its client has waited for the death too */
    SUSPECT_OTHERS_MS = 3000, /* what finds only replicas that are kept */
    SUSPECT_KEEP_MS = 5000,   /* a replica, for a suspect that is there and has no token */
    SUSPECT_PAUSE_MS = 30000, /* after one was kept in vain, none is kept where others would wait */
};

/* Whether it may wait, here or in the queue: those that wait in both are within queue-max. */
bool suspect_has_place(const struct exchange *x);
/* What the choice has to know of it. */
void suspect_describe(const struct exchange *x, struct node_request *out);
/* It was placed: its replica is kept for it. */
void suspect_placed(struct exchange *x);
/* No replica with the company that it wants is there now; `soon`: one may be. `key` is the same for
 * those that the same replicas can serve. False: it has waited long enough, or too many wait, and
 * it is to be refused (suspect_refused()). */
bool suspect_wait(struct exchange *x, const struct node_request *request, uint64_t key, bool soon);
/* Whether it would wait. */
bool suspect_may_wait(const struct exchange *x, bool soon);
/* Its booking ends, or its first token came: its replica is kept no longer. */
void suspect_left(struct exchange *x);
/* It ends: it waits no longer. */
void suspect_gone(struct exchange *x);

/* All that wait are looked at again; called before suspect_next(). False: there is no need. */
bool suspect_due(struct proxy *p);
/* The next one to be looked at; NULL: that were all. What waits for the same as one that was looked
 * at in vain is passed over. */
struct exchange *suspect_next(struct proxy *p);

/* Those that wait, for operators: how many, and the one that waits longest (NULL: none); `alone`:
 * for a replica to itself. */
unsigned suspect_waiting(const struct proxy *p, bool alone, const struct exchange **longest);

#endif
