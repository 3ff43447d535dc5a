/* What the files of this room share. */
#ifndef NODE_ACCESS_ACCESS_INTERNAL_H
#define NODE_ACCESS_ACCESS_INTERNAL_H

#include "node/access/access.h"

struct access {
    struct access_table *table; /* NULL: no key yet */
    int64_t ahead_ms;
    bool refused;      /* the file that is there now is not this table */
    unsigned shown;    /* names in metrics, of all times */
    unsigned rows;     /* of other routers */
    bool news;         /* some key has news */
    unsigned cursor;   /* where the next look for news begins */
    uint64_t again_ms; /* when all that is active is news again */
};

static inline uint64_t access_cluster_ms(const struct access *a, uint64_t now_ms)
{
    return now_ms + (uint64_t)a->ahead_ms;
}

#endif
