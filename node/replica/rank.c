#include "node/replica/rank.h"

#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"

bool node_rank_name_parse(struct slice name, struct node_rank_name *out)
{
    struct slice rest = name;
    struct slice address = slice_cut(&rest, '@');
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
    struct slice address = slice_cut(&name, '@');
    return address.len > 0 && slice_to_u64(name, &number) == ERR_OK;
}

struct slice node_rank_name_write(struct slice address, unsigned rank,
                                  char out[NODE_RANK_NAME_BYTES])
{
    CHECK(address.len <= NODE_NAME_MAX && rank < NODE_RANKS_MAX);
    int len = snprintf(out, NODE_RANK_NAME_BYTES, "%.*s@%u", (int)address.len, address.at, rank);
    return slice_of(out, (size_t)len);
}
