/* Shared by the files of node/access. */
#ifndef NODE_ACCESS_ACCESS_INTERNAL_H
#define NODE_ACCESS_ACCESS_INTERNAL_H

#include "node/access/access.h"

struct access {
    struct access_table *table; /* NULL: no key yet */
    int64_t ahead_ms;
    bool refused;      /* the present file is unusable; the table is of an earlier file */
    unsigned shown;    /* number of names in metrics */
    unsigned rows;     /* number of rows of other routers' counts */
    bool news;         /* the use of some key is to be published */
    unsigned cursor;   /* where the next scan for news begins */
    uint64_t again_ms; /* when all active keys are published again */
};

static inline uint64_t access_cluster_ms(const struct access *a, uint64_t now_ms)
{
    return now_ms + (uint64_t)a->ahead_ms;
}

#endif
