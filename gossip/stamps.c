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
    met = met || (entry != NULL && entry->met);
    bool holds = entry != NULL && (met || now_us - entry->taken_us < GOSSIP_STAMPS_FORGET_US);
    if (holds && stamp <= entry->stamp)
        return ERR_STALE;
    if (entry == NULL)
        entry = entry_new(s);
    *entry = (struct gossip_stamps_entry){
        .node = node, .stamp = stamp, .taken = s->taken++, .taken_us = now_us, .met = met};
    return ERR_OK;
}

void gossip_stamps_met(struct gossip_stamps *s, uint64_t node)
{
    struct gossip_stamps_entry *entry = entry_find(s, node);
    if (entry != NULL)
        entry->met = true;
}

uint64_t gossip_stamp_next(uint64_t last, uint64_t epoch_ms)
{
    uint64_t first = epoch_ms * 1000;
    return first > last ? first : last + 1;
}
