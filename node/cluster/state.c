#include "node/cluster/state.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/state.h"

struct node_state {
    struct node_state_config config;
    struct crdt_state_config crdt_config;
    struct crdt_state *crdt;
    struct crdt_index *index; /* the index of `crdt` */
    int64_t cluster_off_ms;   /* cluster time - monotonic time */
    int64_t wall_off_ms;      /* wall clock - monotonic time; 0: unknown */
    uint64_t rewinds;
};

int node_state_create(struct node_state **out, const struct node_state_config *config)
{
    struct node_state *s = calloc(1, sizeof *s);
    if (!s)
        return ERR_NOMEM;
    s->config = *config;
    uint32_t ttl = (config->ttl_ms + config->generation_ms - 1) / config->generation_ms;
    s->crdt_config = (struct crdt_state_config){
        .index = {.bytes_max = config->index_bytes,
                  .replicas_max = config->replicas_max,
                  .ttl_generations = ttl < 1 ? 1 : ttl, /* too large a number is refused later, by
                                                         * crdt/index.h */
                  .generation = (uint32_t)(config->wall_ms / config->generation_ms),
                  .replicated = config->replicated},
        .self = config->self,
        .names_max = config->names_max,
        .names_ttl_s = config->names_ttl_s,
        .is_name = config->is_name,
        .generation_ms = config->generation_ms,
    };
    s->cluster_off_ms = (int64_t)(config->wall_ms - config->now_ms);
    int err = crdt_state_create(&s->crdt, &s->crdt_config);
    if (err != ERR_OK) {
        free(s);
        return err;
    }
    s->index = crdt_state_index(s->crdt);
    *out = s;
    return ERR_OK;
}

void node_state_destroy(struct node_state *s)
{
    if (!s)
        return;
    crdt_state_destroy(s->crdt);
    free(s);
}

void node_state_check(const struct node_state *s)
{
    crdt_state_check(s->crdt);
    CHECK(s->index == crdt_state_index(s->crdt));
}

const struct node_state_config *node_state_config_of(const struct node_state *s)
{
    return &s->config;
}

struct crdt_state *node_state_crdt(const struct node_state *s)
{
    return s->crdt;
}

struct crdt_index *node_state_index(const struct node_state *s)
{
    return s->index;
}

struct node_agreement node_state_agreement(const struct node_state *s)
{
    static const char name[] = "the name of a secret";
    return (struct node_agreement){.generation_ms = s->config.generation_ms,
                                   .ttl_ms = s->config.ttl_ms,
                                   .hash = hash64(&s->config.secret, name, sizeof name),
                                   .id_ranges = crdt_index_id_ranges(s->index)};
}

/* --- cluster time --------------------------------------------------------------------------- */

uint64_t node_state_cluster_ms(const struct node_state *s, uint64_t now_ms)
{
    return now_ms + (uint64_t)s->cluster_off_ms;
}

static uint32_t generation_at(const struct node_state *s, uint64_t now_ms)
{
    return (uint32_t)(node_state_cluster_ms(s, now_ms) / s->config.generation_ms);
}

void node_state_clock(struct node_state *s, uint64_t now_ms)
{
    crdt_state_clock(s->crdt, node_state_cluster_ms(s, now_ms));
}

void node_state_wall(struct node_state *s, uint64_t wall_ms, uint64_t now_ms)
{
    s->wall_off_ms = (int64_t)(wall_ms - now_ms);
}

int64_t node_state_clock_off_ms(const struct node_state *s)
{
    return s->wall_off_ms != 0 ? s->cluster_off_ms - s->wall_off_ms : 0;
}

void node_state_clock_move(struct node_state *s, int64_t by_ms, uint64_t now_ms)
{
    s->cluster_off_ms += by_ms;
    node_state_clock(s, now_ms);
    crdt_state_clock_moved(s->crdt, by_ms);
}

/* --- going back ----------------------------------------------------------------------------- */

/* Copies all but the observations, through a snapshot from a generation beyond all entries. This
 * router's reports stay as last sent, so that later changes count as changes. */
static int copy_without_index(const struct crdt_state *from, struct crdt_state *to)
{
    crdt_state_copy_own(to, from);
    struct crdt_snapshot cursor;
    crdt_snapshot_begin(&cursor, UINT32_MAX);
    struct buf chunk = {0};
    int more;
    do {
        buf_clear(&chunk);
        more = crdt_snapshot_next(from, &cursor, &chunk);
        int err = more > 0 ? crdt_snapshot_apply(to, buf_slice(&chunk)) : ERR_OK;
        if (err < 0)
            more = err;
    } while (more > 0);
    buf_free(&chunk);
    return more;
}

int node_state_rewind(struct node_state *s, int64_t by_ms, uint64_t now_ms)
{
    struct crdt_state_config config = s->crdt_config;
    config.index.generation = generation_at(s, now_ms - (uint64_t)by_ms);
    struct crdt_state *crdt;
    int err = crdt_state_create(&crdt, &config);
    if (err != ERR_OK)
        return err;
    err = copy_without_index(s->crdt, crdt);
    if (err != ERR_OK) {
        crdt_state_destroy(crdt);
        return err;
    }
    crdt_state_copy_future(crdt, s->crdt);
    crdt_state_clock_moved(crdt, -by_ms);
    crdt_state_destroy(s->crdt);
    s->crdt = crdt;
    s->index = crdt_state_index(crdt);
    s->cluster_off_ms -= by_ms;
    s->rewinds++;
    return ERR_OK;
}

uint64_t node_state_rewinds(const struct node_state *s)
{
    return s->rewinds;
}
