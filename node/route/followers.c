#include "node/route/followers.h"

#include <stddef.h>

static unsigned row_of(uint64_t prefix_id, unsigned choice)
{
    return (unsigned)(prefix_id % NODE_FOLLOWERS_ROWS) ^ choice;
}

static uint64_t last_ms(const struct node_followers_row *row)
{
    return row->count > 0 ? row->at_ms[(row->count - 1) % NODE_FOLLOWERS_MAX] : 0;
}

static const struct node_followers_row *find(const struct node_followers *f, uint64_t prefix_id)
{
    for (unsigned choice = 0; choice < 2; choice++) {
        const struct node_followers_row *row = &f->rows[row_of(prefix_id, choice)];
        if (row->prefix_id == prefix_id && row->count > 0)
            return row;
    }
    return NULL;
}

void node_followers_note(struct node_followers *f, uint64_t prefix_id, uint64_t now_ms)
{
    const struct node_followers_row *found = find(f, prefix_id);
    struct node_followers_row *row = &f->rows[row_of(prefix_id, 0)];
    struct node_followers_row *other = &f->rows[row_of(prefix_id, 1)];
    if (found == other || (found == NULL && last_ms(other) < last_ms(row)))
        row = other;
    if (found == NULL)
        *row = (struct node_followers_row){.prefix_id = prefix_id};
    row->at_ms[row->count++ % NODE_FOLLOWERS_MAX] = now_ms;
}

unsigned node_followers_within(const struct node_followers *f, uint64_t prefix_id, double within_ms,
                               uint64_t now_ms)
{
    const struct node_followers_row *row = find(f, prefix_id);
    uint64_t since_ms = within_ms < (double)now_ms ? now_ms - (uint64_t)within_ms : 0;
    unsigned count = 0;
    for (unsigned i = 0; row != NULL && i < NODE_FOLLOWERS_MAX && i < row->count; i++)
        count += row->at_ms[i] >= since_ms;
    return count;
}
