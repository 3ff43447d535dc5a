#include "node/replica/ruler.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/number.h"
#include "node/replica/constants.h"

struct place {
    struct node_ruler_mark mark[NODE_RULER_WAYS];
    uint32_t next; /* index of the mark to be replaced next */
};

struct node_ruler {
    struct node_ratio repeated; /* share of an answer's tokens repeated by the next prompt */
    struct place places[NODE_RULER_PLACES];
};

int node_ruler_create(struct node_ruler **out)
{
    struct node_ruler *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->repeated = node_ratio_of(1, RULE(OUTPUT), RULE(OUTPUT) * RULE(OUTPUT_ANSWERS));
    *out = r;
    return ERR_OK;
}

void node_ruler_destroy(struct node_ruler *r)
{
    free(r);
}

static struct place *place_of(const struct node_ruler *r, uint64_t id)
{
    return (struct place *)&r->places[hash_mix(id) % NODE_RULER_PLACES];
}

void node_ruler_note(struct node_ruler *r, const struct node_ruler_mark *mark)
{
    struct place *p = place_of(r, mark->id);
    unsigned at = 0;
    while (at < NODE_RULER_WAYS && p->mark[at].id != mark->id)
        at++;
    if (at == NODE_RULER_WAYS)
        at = p->next++ % NODE_RULER_WAYS;
    p->mark[at] = *mark;
}

const struct node_ruler_mark *node_ruler_at(const struct node_ruler *r, uint64_t id)
{
    const struct place *p = place_of(r, id);
    for (unsigned i = 0; id != 0 && i < NODE_RULER_WAYS; i++) {
        if (p->mark[i].id == id)
            return &p->mark[i];
    }
    return NULL;
}

enum { MARK_KEPT = 8 + 3 * 4 };

/* Writes first the ratio of repeated answers, 16 bytes; then the marks. In each place the oldest
 * mark comes first, and is replaced first. */
int node_ruler_keep(const struct node_ruler *r, unsigned *at, struct buf *out)
{
    uint8_t bytes[16 + MARK_KEPT * NODE_RULER_KEPT];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    node_ratio_keep(&r->repeated, &w);
    size_t head = wire_written(&w);
    for (; *at < NODE_RULER_PLACES && wire_room(&w) >= NODE_RULER_WAYS * MARK_KEPT; (*at)++) {
        const struct place *p = &r->places[*at];
        for (unsigned i = 0; i < NODE_RULER_WAYS; i++) {
            const struct node_ruler_mark *m = &p->mark[(p->next + i) % NODE_RULER_WAYS];
            if (m->id == 0)
                continue;
            wire_write_u64(&w, m->id);
            wire_write_u32(&w, m->tail_bytes);
            wire_write_u32(&w, m->tokens);
            wire_write_u32(&w, m->answer);
        }
    }
    CHECK(!w.bad);
    if (wire_written(&w) == head)
        return 0;
    int err = buf_append(out, bytes, wire_written(&w));
    return err == ERR_OK ? 1 : err;
}

void node_ruler_recall(struct node_ruler *r, struct slice kept)
{
    struct wire_reader in = wire_reader_of(kept.at, kept.len);
    if (!node_ratio_recall(&r->repeated, &in))
        return;
    while (wire_left(&in) > 0) {
        struct node_ruler_mark m = {.id = wire_read_u64(&in)};
        m.tail_bytes = wire_read_u32(&in);
        m.tokens = wire_read_u32(&in);
        m.answer = wire_read_u32(&in);
        if (!in.bad && m.id != 0 && node_ruler_at(r, m.id) == NULL)
            node_ruler_note(r, &m);
    }
}

double node_ruler_tokens(const struct node_ruler *r, const struct node_ruler_mark *mark)
{
    /* The last token of an answer is never computed. A prompt repeats most of an answer, or
     * none. */
    bool repeats = node_ratio_value(&r->repeated) > 0.5;
    return mark->tokens + (repeats && mark->answer > 0 ? mark->answer - 1 : 0);
}

void node_ruler_found(struct node_ruler *r, const struct node_ruler_mark *mark, double tokens,
                      double block)
{
    if (mark->answer < 2 || tokens + block <= mark->tokens)
        return; /* the cache lost more than the answer */
    double answer = mark->answer - 1;
    double found = number_max(tokens + block / 2 - mark->tokens, 0);
    node_ratio_add(&r->repeated, number_min(found, answer), answer);
}
