#include "node/replica/breaker.h"

#include "node/replica/replica.h"

enum { PHASE_BITS = 2 };

/* --- own ------------------------------------------------------------------------------------ */

static bool runs(const struct node_replica *k, uint64_t now_ms)
{
    return k->trouble.failing.until_ms > now_ms;
}

uint8_t node_breaker_report(const struct node_replica *k, uint64_t now_ms)
{
    unsigned phase = runs(k, now_ms)            ? NODE_BREAKER_OPEN
                     : k->breaker.trying        ? NODE_BREAKER_TRYING
                     : k->trouble.failing.trial ? NODE_BREAKER_DUE
                                                : NODE_BREAKER_CLOSED;
    if (phase == NODE_BREAKER_CLOSED)
        return 0;
    return (uint8_t)(phase | (unsigned)k->trouble.failing.level << PHASE_BITS);
}

/* --- others' -------------------------------------------------------------------------------- */

void node_breaker_heard_add(struct node_breaker_heard *h, uint8_t reported, uint8_t cured,
                            bool before)
{
    enum node_breaker_phase phase = (enum node_breaker_phase)(reported & ((1u << PHASE_BITS) - 1));
    uint8_t level = (uint8_t)(reported >> PHASE_BITS);
    h->phase = phase > h->phase ? phase : h->phase;
    h->level = level > h->level ? level : h->level;
    h->cures += cured;
    h->ahead += before;
}

/* Ends the trial. The back-off's level stays: after a failure soon, the next back-off is longer. */
static void recover(struct node_replica *k)
{
    k->trouble.failing.trial = false;
    k->trouble.error_answers = k->trouble.answer_failures = 0;
}

void node_breaker_hear(struct node_replica *k, const struct node_breaker_heard *h, uint64_t now_ms)
{
    struct node_breaker *b = &k->breaker;
    bool waited = b->heard == NODE_BREAKER_DUE || b->heard == NODE_BREAKER_TRYING;
    bool waits = h->phase == NODE_BREAKER_DUE || h->phase == NODE_BREAKER_TRYING;
    /* A rise of the sum is another router's cure; a fall means that a router left. What this router
     * sees after the cure counts. */
    if (h->cures > b->cures && k->trouble.failing.trial && !runs(k, now_ms) && !b->trying)
        recover(k);
    if (waits && !waited)
        b->due_ms = now_ms;
    if (h->phase == NODE_BREAKER_OPEN && b->heard != NODE_BREAKER_OPEN)
        b->warned_ms = now_ms;
    b->heard = h->phase;
    b->heard_level = h->level;
    b->ahead = h->ahead < NODE_BREAKER_TURNS_MAX ? h->ahead : NODE_BREAKER_TURNS_MAX;
    b->cures = h->cures;
}

static bool within(uint64_t since_ms, uint64_t ms, uint64_t now_ms)
{
    return since_ms != 0 && now_ms < since_ms + ms;
}

/* True if own observations outweigh the others' reports. */
static bool works_here(const struct node_replica *k, uint64_t now_ms)
{
    const struct node_breaker *b = &k->breaker;
    return k->trouble.error_answers == 0 && k->trouble.answer_failures == 0 &&
           !k->trouble.failing.trial &&
           (within(b->worked_ms, NODE_BREAKER_WORKED_MS, now_ms) ||
            within(b->proved_ms, NODE_BREAKER_CURED_MS, now_ms));
}

static bool heeds(const struct node_replica *k, uint64_t now_ms)
{
    return k->breaker.heard != NODE_BREAKER_CLOSED && !works_here(k, now_ms);
}

/* True if a trial is due, after own failures or other routers' reports. */
static bool is_due(const struct node_replica *k, uint64_t now_ms)
{
    return !runs(k, now_ms) && (k->trouble.failing.trial ||
                                (heeds(k, now_ms) && k->breaker.heard != NODE_BREAKER_OPEN));
}

/* Earliest time at which this router could make a trial if it had the first turn. */
static uint64_t due_since(const struct node_replica *k)
{
    uint64_t since_ms = k->breaker.heard != NODE_BREAKER_CLOSED ? k->breaker.due_ms : 0;
    return k->trouble.failing.trial && k->trouble.failing.until_ms > since_ms
               ? k->trouble.failing.until_ms
               : since_ms;
}

bool node_breaker_warned(const struct node_replica *k, uint64_t now_ms)
{
    return within(k->breaker.warned_ms, NODE_BREAKER_WARNED_MS, now_ms) &&
           !within(k->breaker.proved_ms, NODE_BREAKER_CURED_MS, now_ms);
}

bool node_breaker_avoids(const struct node_replica *k, uint64_t now_ms)
{
    const struct node_breaker *b = &k->breaker;
    if (node_breaker_warned(k, now_ms))
        return true;
    if (heeds(k, now_ms) && b->heard >= NODE_BREAKER_TRYING)
        return true;
    if (!is_due(k, now_ms))
        return false;
    return b->trying || now_ms < due_since(k) + (uint64_t)b->ahead * NODE_BREAKER_TURN_MS;
}

/* --- trials --------------------------------------------------------------------------------- */

void node_breaker_sent(struct node_replica *k, uint64_t now_ms)
{
    k->breaker.trying = k->breaker.trying || is_due(k, now_ms);
}

void node_breaker_worked(struct node_replica *k, uint64_t now_ms)
{
    struct node_breaker *b = &k->breaker;
    if (is_due(k, now_ms) || heeds(k, now_ms)) {
        b->cured++;
        b->proved_ms = now_ms;
        recover(k);
    }
    b->trying = false;
    b->worked_ms = now_ms;
}

void node_breaker_ended(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms)
{
    struct node_breaker *b = &k->breaker;
    bool failed = outcome == NODE_OUTCOME_ENGINE_ERROR || outcome == NODE_OUTCOME_BROKEN ||
                  outcome == NODE_OUTCOME_CONNECT_FAILED;
    if (b->trying && failed && !runs(k, now_ms)) { /* a failed trial: all routers back off longer */
        unsigned level =
            k->trouble.failing.level > b->heard_level ? k->trouble.failing.level : b->heard_level;
        node_backoff_set(&k->trouble.failing, level + 1, NODE_BACKOFF_MIN_MS, now_ms);
        k->trouble.broke = false;
    }
    b->trying = false;
}
