#include "node/route/followers.h"

#include "base/check.h"

static unsigned row_of(uint64_t prefix_id)
{
    return (unsigned)(prefix_id % NODE_FOLLOWERS_ROWS);
}

void node_followers_note(struct node_followers *f, uint64_t prefix_id, uint64_t now_ms)
{
    struct node_followers_row *row = &f->rows[row_of(prefix_id)];
    if (row->prefix_id != prefix_id)
        *row = (struct node_followers_row){.prefix_id = prefix_id};
    row->at_ms[row->count++ % NODE_FOLLOWERS_MAX] = now_ms;
}

unsigned node_followers_within(const struct node_followers *f, uint64_t prefix_id, double within_ms,
                               uint64_t now_ms)
{
    const struct node_followers_row *row = &f->rows[row_of(prefix_id)];
    if (row->prefix_id != prefix_id)
        return 0;
    unsigned count = 0;
    for (unsigned i = 0; i < NODE_FOLLOWERS_MAX && i < row->count; i++)
        count += (double)now_ms - (double)row->at_ms[i] <= within_ms;
    return count;
}
