/* An exact LRU cache of block ids, as the engines that we simulate have one. */
#ifndef TESTS_LIB_LRU_H
#define TESTS_LIB_LRU_H

#include <stdint.h>

enum { LRU_HASH = 1 << 15, LRU_NONE = -1 };

struct lru_block {
    uint32_t id;
    int older, newer, chained;
    double used_s;
};

struct lru {
    int oldest, newest, count, size;
    int hash[LRU_HASH];
    struct lru_block *blocks;
};

/* Room for `size` blocks. Aborts without memory. */
void lru_init(struct lru *c, int size);
void lru_free(struct lru *c);

/* The place of a block, or LRU_NONE. */
int lru_find(const struct lru *c, uint32_t id);

/* Makes it the newest; a block that was not there takes the place of the oldest if it is full. */
void lru_use(struct lru *c, uint32_t id, double now_s);

#endif
