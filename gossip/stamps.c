#include "gossip/stamps.h"

#include <stddef.h>

#include "base/err.h"

static struct gossip_stamps_entry *entry_find(struct gossip_stamps *s, uint64_t node)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->at[i].node == node)
            return &s->at[i];
    return NULL;
}

static struct gossip_stamps_entry *entry_new(struct gossip_stamps *s)
{
    if (s->count < GOSSIP_STAMPS_MAX)
        return &s->at[s->count++];
    struct gossip_stamps_entry *oldest = &s->at[0];
    for (unsigned i = 1; i < s->count; i++)
        if (s->at[i].taken < oldest->taken)
            oldest = &s->at[i];
    return oldest;
}

int gossip_stamps_take(struct gossip_stamps *s, uint64_t node, uint64_t stamp, bool met,
                       uint64_t now_us)
{
    struct gossip_stamps_entry *entry = entry_find(s, node);
    struct gossip_stamps_entry next = {.node = node, .first = stamp, .met = met};
    if (entry != NULL) {
        next.met = met || entry->met;
        bool waited = !next.met && now_us - entry->taken_us >= GOSSIP_STAMPS_EARLIER_US;
        bool earlier = waited && stamp < entry->first;
        bool had = entry->old_first <= stamp && stamp <= entry->old_stamp;
        if (had || (stamp <= entry->stamp && !earlier))
            return ERR_STALE;
        next.first = earlier ? stamp : entry->first;
        next.old_first = earlier ? entry->first : entry->old_first;
        next.old_stamp = earlier ? entry->stamp : entry->old_stamp;
    } else {
        entry = entry_new(s);
    }
    next.stamp = stamp;
    next.taken = s->taken++;
    next.taken_us = now_us;
    *entry = next;
    return ERR_OK;
}

void gossip_stamps_met(struct gossip_stamps *s, uint64_t node)
{
    struct gossip_stamps_entry *entry = entry_find(s, node);
    if (entry != NULL)
        entry->met = true;
}

void gossip_stamps_forgotten(struct gossip_stamps *s, uint64_t node)
{
    struct gossip_stamps_entry *entry = entry_find(s, node);
    if (entry != NULL)
        entry->met = false;
}

uint64_t gossip_stamp_next(uint64_t last, uint64_t epoch_ms)
{
    uint64_t first = epoch_ms * 1000;
    return first > last ? first : last + 1;
}
