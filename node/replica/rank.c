#include "node/replica/rank.h"

#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"

/* A router's name may stand before the rank (node/replica/local.h). All of it where there is no
 * @. */
static struct slice before_last_at(struct slice name)
{
    for (size_t at = name.len; at > 0; at--)
        if (name.at[at - 1] == '@')
            return slice_of(name.at, at - 1);
    return name;
}

bool node_rank_name_parse(struct slice name, struct node_rank_name *out)
{
    struct slice address = before_last_at(name);
    struct slice rest = slice_skip(name, address.len < name.len ? address.len + 1 : name.len);
    uint64_t rank;
    bool written_so = rest.len == 1 || (rest.len == 2 && rest.at[0] != '0');
    if (address.len == 0 || !written_so || slice_to_u64(rest, &rank) != ERR_OK ||
        rank >= NODE_RANKS_MAX)
        return false;
    *out = (struct node_rank_name){.address = address, .rank = (unsigned)rank};
    return true;
}

bool node_rank_name_meant(struct slice name)
{
    uint64_t number;
    struct slice address = before_last_at(name);
    return address.len > 0 && address.len < name.len &&
           slice_to_u64(slice_skip(name, address.len + 1), &number) == ERR_OK;
}

struct slice node_rank_name_write(struct slice address, unsigned rank,
                                  char out[NODE_RANK_NAME_BYTES])
{
    CHECK(address.len <= NODE_NAME_MAX && rank < NODE_RANKS_MAX);
    int len = snprintf(out, NODE_RANK_NAME_BYTES, "%.*s@%u", (int)address.len, address.at, rank);
    return slice_of(out, (size_t)len);
}
