#include "node/replica/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"

enum {
    USES = 128,
    PLACES = 4096, /* of checkpoints; a power of two */
    PLACES_FULL = PLACES / 2,
    NO_USE = UINT8_MAX,
};
_Static_assert(USES < NO_USE, "a use has one byte");
_Static_assert(CHAIN_POINTS_MAX * 2 < PLACES_FULL, "one prompt always has room");

struct use {
    uint64_t order; /* 0: free */
    uint32_t stamp;
    uint32_t blocks; /* of the checkpoints that it touched last */
    double more;     /* beyond them: the prompt's end and the answer */
};

struct place {
    uint64_t id; /* 0: free */
    uint8_t use;
    uint8_t code;
    bool fresh; /* its use brought it */
};

struct node_recent {
    uint64_t clock;
    uint32_t stamp;
    unsigned taken; /* places */
    struct use uses[USES];
    struct place places[PLACES];
};

struct node_recent *node_recent_create(void)
{
    return calloc(1, sizeof(struct node_recent));
}

void node_recent_destroy(struct node_recent *r)
{
    free(r);
}

void node_recent_clear(struct node_recent *r)
{
    uint32_t stamp = r->stamp; /* old handles stay without meaning */
    memset(r, 0, sizeof *r);
    r->stamp = stamp;
}

void node_recent_check(const struct node_recent *r)
{
    uint32_t blocks[USES] = {0};
    unsigned taken = 0;
    for (unsigned i = 0; i < PLACES; i++) {
        const struct place *p = &r->places[i];
        if (p->id == 0)
            continue;
        CHECK(p->use < USES && r->uses[p->use].order > 0);
        blocks[p->use] += checkpoint_weight(p->code);
        taken++;
    }
    CHECK(taken == r->taken && taken <= PLACES_FULL);
    for (unsigned i = 0; i < USES; i++)
        CHECK(r->uses[i].order == 0 ? blocks[i] == 0 : r->uses[i].blocks == blocks[i]);
}

/* The place of the checkpoint, or the free one where it would be. */
static unsigned place_of(const struct node_recent *r, uint64_t id)
{
    unsigned at = (unsigned)id & (PLACES - 1);
    while (r->places[at].id != 0 && r->places[at].id != id)
        at = (at + 1) & (PLACES - 1);
    return at;
}

/* --- forgetting ------------------------------------------------------------------------------- */

/* Frees a place, and closes the gap: each other one is found from where its id says on. */
static void place_free(struct node_recent *r, unsigned gap)
{
    r->taken--;
    for (unsigned at = (gap + 1) & (PLACES - 1); r->places[at].id != 0;
         at = (at + 1) & (PLACES - 1)) {
        unsigned home = (unsigned)r->places[at].id & (PLACES - 1);
        if (((at - home) & (PLACES - 1)) < ((at - gap) & (PLACES - 1)))
            continue;
        r->places[gap] = r->places[at];
        gap = at;
    }
    r->places[gap].id = 0;
}

static void places_free(struct node_recent *r, uint64_t order_max)
{
    for (unsigned at = 0; at < PLACES;) {
        const struct place *p = &r->places[at];
        if (p->id != 0 && r->uses[p->use].order <= order_max)
            place_free(r, at);
        else
            at++;
    }
}

/* The older half of the uses goes. */
static void forget_old(struct node_recent *r)
{
    uint64_t oldest = UINT64_MAX;
    for (unsigned i = 0; i < USES; i++) {
        if (r->uses[i].order > 0 && r->uses[i].order < oldest)
            oldest = r->uses[i].order;
    }
    if (oldest == UINT64_MAX)
        return;
    uint64_t limit = oldest + (r->clock - oldest) / 2;
    places_free(r, limit);
    for (unsigned i = 0; i < USES; i++) {
        if (r->uses[i].order > 0 && r->uses[i].order <= limit)
            r->uses[i] = (struct use){0};
    }
}

/* --- uses ------------------------------------------------------------------------------------- */

static unsigned use_free(struct node_recent *r)
{
    for (unsigned i = 0; i < USES; i++) {
        if (r->uses[i].order == 0)
            return i;
    }
    return NO_USE;
}

static void touch(struct node_recent *r, const struct chain_point *point, unsigned use)
{
    if (point->id == 0)
        return;
    struct place *p = &r->places[place_of(r, point->id)];
    uint32_t weight = checkpoint_weight(point->code);
    bool fresh = p->id == 0;
    if (fresh) {
        r->taken++;
    } else {
        struct use *before = &r->uses[p->use];
        before->blocks -= checkpoint_weight(p->code);
        if (before->blocks == 0)
            before->more = 0; /* this prompt goes on from there */
    }
    *p = (struct place){.id = point->id, .use = (uint8_t)use, .code = point->code, .fresh = fresh};
    r->uses[use].blocks += weight;
}

uint32_t node_recent_begin(struct node_recent *r, const struct chain *chain, double more_blocks)
{
    unsigned use = use_free(r);
    while (use == NO_USE || r->taken + chain->length > PLACES_FULL) {
        forget_old(r);
        use = use_free(r);
    }
    r->stamp = (r->stamp + 1) & (UINT32_MAX >> 8);
    r->uses[use] = (struct use){.order = ++r->clock, .stamp = r->stamp, .more = more_blocks};
    for (unsigned i = 0; i < chain->length; i++)
        touch(r, &chain->points[i], use);
    return r->stamp << 8 | use;
}

static struct use *use_of(struct node_recent *r, uint32_t handle)
{
    unsigned i = handle & UINT8_MAX;
    if (i >= USES || r->uses[i].order == 0 || r->uses[i].stamp != handle >> 8)
        return NULL;
    return &r->uses[i];
}

void node_recent_end(struct node_recent *r, uint32_t handle, double answer_blocks)
{
    struct use *use = use_of(r, handle);
    if (use == NULL)
        return;
    use->order = ++r->clock;
    if (use->blocks > 0) /* else another prompt went on from there already */
        use->more += answer_blocks;
}

void node_recent_refuse(struct node_recent *r, uint32_t handle)
{
    struct use *use = use_of(r, handle);
    if (use == NULL)
        return;
    unsigned number = (unsigned)(use - r->uses);
    for (unsigned at = 0; at < PLACES;) {
        const struct place *p = &r->places[at];
        if (p->id == 0 || p->use != number || !p->fresh) {
            at++;
            continue;
        }
        use->blocks -= checkpoint_weight(p->code);
        place_free(r, at);
    }
    use->more = 0;
}

double node_recent_blocks(const struct node_recent *r)
{
    double sum = 0;
    for (unsigned i = 0; i < USES; i++)
        sum += r->uses[i].blocks + r->uses[i].more;
    return sum;
}

/* --- depth ------------------------------------------------------------------------------------ */

static double used_since(const struct node_recent *r, const struct use *use)
{
    double sum = 0;
    for (unsigned i = 0; i < USES; i++) {
        if (r->uses[i].order > use->order)
            sum += r->uses[i].blocks + r->uses[i].more;
    }
    return sum;
}

unsigned node_recent_parts(const struct node_recent *r, const struct chain *chain,
                           struct node_recent_part *parts, unsigned max)
{
    unsigned count = 0, last = NO_USE;
    for (unsigned i = 0; i < chain->length; i++) {
        const struct place *p = &r->places[place_of(r, chain->points[i].id)];
        if (p->id == 0)
            break;
        double weight = checkpoint_weight(p->code);
        if (p->use != last && count == max)
            break;
        if (p->use != last) {
            double from = used_since(r, &r->uses[p->use]);
            /* A prefix stands no deeper than what follows it. */
            parts[count++] = (struct node_recent_part){.from = from, .to = from};
            last = p->use;
        }
        parts[count - 1].to += weight;
        parts[count - 1].end = i + 1;
    }
    return count;
}
