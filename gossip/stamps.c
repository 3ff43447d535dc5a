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

int gossip_stamps_take(struct gossip_stamps *s, uint64_t node, uint64_t stamp)
{
    struct gossip_stamps_entry *entry = entry_find(s, node);
    if (entry != NULL && stamp <= entry->stamp)
        return ERR_STALE;
    if (entry == NULL)
        entry = entry_new(s);
    *entry = (struct gossip_stamps_entry){.node = node, .stamp = stamp, .taken = s->taken++};
    return ERR_OK;
}

uint64_t gossip_stamp_next(uint64_t last, uint64_t epoch_ms)
{
    uint64_t first = epoch_ms * 1000;
    return first > last ? first : last + 1;
}
