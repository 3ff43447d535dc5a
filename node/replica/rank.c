#include "node/replica/rank.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/replica.h"

/* The name up to the last '@', or the whole name if there is no '@'. A router's name may come
 * before the rank (node/replica/local.h). */
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

void node_rank_set(struct node_replica *k, int number, unsigned server)
{
    k->rank.is_one = number >= 0;
    k->rank.number = number >= 0 ? (uint8_t)number : 0;
    k->rank.server = (uint16_t)server;
}

void node_ranks_count(struct node_replica *replicas, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        replicas[i].rank.ranks = 0;
        replicas[i].rank.requests_remote = 0;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct node_replica *k = &replicas[i];
        struct node_replica *server = &replicas[k->rank.server];
        if (!k->rank.is_one || server == k)
            continue;
        server->rank.ranks += !k->absent;
        server->rank.requests_remote += k->load.remote.requests;
    }
}

bool node_ranks_inherit(struct node_replica *replicas, unsigned count)
{
    bool moved = false;
    for (unsigned i = 0; i < count; i++) {
        struct node_replica *k = &replicas[i];
        const struct node_replica *server = &replicas[k->rank.server];
        if (server == k)
            continue;
        k->belief.stale |= k->said.cache_tokens != server->said.cache_tokens;
        moved |= k->believed.fleet != server->believed.fleet;
        k->said.cache_tokens = server->said.cache_tokens;
        k->believed.fleet = server->believed.fleet;
        k->weight = server->weight;
        k->turn = server->turn; /* the metrics of all ranks are read at the address */
        k->turn_events = server->turn_events;
        k->engine = server->engine;
    }
    return moved;
}

void node_rank_load_remote(struct node_replica *k, struct node_replica *process,
                           const struct node_remote_load *remote, uint64_t now_ms)
{
    if (process != k)
        process->rank.requests_remote += remote->requests - k->load.remote.requests;
    node_load_remote(&k->load, remote, now_ms);
}
