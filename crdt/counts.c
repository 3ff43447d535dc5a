#include "crdt/counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"

static uint32_t ring_length(uint32_t generations)
{
    uint32_t length = 4;
    while (length < generations)
        length *= 2;
    return length;
}

uint64_t crdt_counts_bytes(uint32_t replicas, uint32_t generations, bool digests)
{
    uint64_t length = ring_length(generations);
    uint64_t digest = digests ? (replicas + 1) * length * sizeof(uint64_t) : 0;
    return digest + replicas * length * 2 * sizeof(uint32_t) + replicas * 2 * sizeof(uint64_t) +
           length * sizeof(uint64_t);
}

int crdt_counts_init(struct crdt_counts *c, uint32_t replicas, uint32_t generations, bool digests)
{
    size_t length = ring_length(generations);
    *c = (struct crdt_counts){.replicas = replicas, .mask = (uint32_t)length - 1};
    c->blocks = calloc(replicas * length, sizeof *c->blocks);
    c->entries = calloc(replicas * length, sizeof *c->entries);
    c->blocks_total = calloc(replicas, sizeof *c->blocks_total);
    c->entries_total = calloc(replicas, sizeof *c->entries_total);
    c->by_generation = calloc(length, sizeof *c->by_generation);
    if (digests) {
        c->digest = calloc(replicas * length, sizeof *c->digest);
        c->digest_by_generation = calloc(length, sizeof *c->digest_by_generation);
    }
    bool complete = !digests || (c->digest != NULL && c->digest_by_generation != NULL);
    if (!complete || c->blocks == NULL || c->entries == NULL || c->blocks_total == NULL ||
        c->entries_total == NULL || c->by_generation == NULL) {
        crdt_counts_free(c);
        return ERR_NOMEM;
    }
    return 0;
}

void crdt_counts_free(struct crdt_counts *c)
{
    free(c->blocks);
    free(c->entries);
    free(c->blocks_total);
    free(c->entries_total);
    free(c->by_generation);
    free(c->digest);
    free(c->digest_by_generation);
    for (unsigned i = 0; i < ARRAY_LEN(c->parts); i++) {
        free(c->parts[i].blocks);
        free(c->parts[i].blocks_total);
    }
    *c = (struct crdt_counts){0};
}

static size_t ring_at(const struct crdt_counts *c, unsigned replica, uint32_t generation)
{
    return (size_t)replica * (c->mask + 1) + (generation & c->mask);
}

int crdt_counts_split(struct crdt_counts *c)
{
    bool complete = true;
    for (unsigned i = 0; i < ARRAY_LEN(c->parts); i++) {
        struct crdt_counts_part *p = &c->parts[i];
        p->blocks = calloc((size_t)c->replicas * (c->mask + 1), sizeof *p->blocks);
        p->blocks_total = calloc(c->replicas, sizeof *p->blocks_total);
        complete &= p->blocks != NULL && p->blocks_total != NULL;
    }
    for (unsigned i = 0; i < ARRAY_LEN(c->parts) && !complete; i++) {
        free(c->parts[i].blocks);
        free(c->parts[i].blocks_total);
        c->parts[i] = (struct crdt_counts_part){0};
    }
    return complete ? 0 : ERR_NOMEM;
}

uint64_t crdt_counts_split_bytes(const struct crdt_counts *c)
{
    const struct crdt_counts_part *p = &c->parts[0];
    uint64_t each = ((uint64_t)c->mask + 1) * sizeof *p->blocks + sizeof *p->blocks_total;
    return p->blocks != NULL ? ARRAY_LEN(c->parts) * c->replicas * each : 0;
}

void crdt_counts_part_add(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, bool apart)
{
    c->parts[apart].blocks[ring_at(c, replica, generation)] += weight;
    c->parts[apart].blocks_total[replica] += weight;
}

bool crdt_counts_fits(const struct crdt_counts *c, unsigned replica, uint32_t generation,
                      uint32_t weight)
{
    return weight <= UINT32_MAX - c->blocks[ring_at(c, replica, generation)];
}

void crdt_counts_add(struct crdt_counts *c, unsigned replica, uint32_t generation, uint32_t weight,
                     uint64_t hash, bool apart)
{
    size_t at = ring_at(c, replica, generation);
    c->blocks[at] += weight;
    c->entries[at]++;
    c->blocks_total[replica] += weight;
    c->entries_total[replica]++;
    c->by_generation[generation & c->mask]++;
    c->live++;
    if (c->parts[apart].blocks != NULL)
        crdt_counts_part_add(c, replica, generation, weight, apart);
    if (c->digest != NULL) {
        c->digest[at] += hash;
        c->digest_by_generation[generation & c->mask] += hash;
    }
}

void crdt_counts_subtract(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, uint64_t hash, bool apart)
{
    size_t at = ring_at(c, replica, generation);
    CHECK(c->entries[at] > 0 && c->blocks[at] >= weight);
    c->blocks[at] -= weight;
    c->entries[at]--;
    c->blocks_total[replica] -= weight;
    c->entries_total[replica]--;
    c->by_generation[generation & c->mask]--;
    c->live--;
    if (c->parts[apart].blocks != NULL) {
        c->parts[apart].blocks[at] -= weight;
        c->parts[apart].blocks_total[replica] -= weight;
    }
    if (c->digest != NULL) {
        c->digest[at] -= hash;
        c->digest_by_generation[generation & c->mask] -= hash;
    }
}

uint64_t crdt_counts_drop_generation(struct crdt_counts *c, uint32_t generation)
{
    uint64_t gone = c->by_generation[generation & c->mask];
    if (gone == 0)
        return 0;
    for (unsigned r = 0; r < c->replicas; r++) {
        size_t at = ring_at(c, r, generation);
        c->blocks_total[r] -= c->blocks[at];
        c->entries_total[r] -= c->entries[at];
        c->blocks[at] = 0;
        c->entries[at] = 0;
        if (c->digest != NULL)
            c->digest[at] = 0;
        for (unsigned i = 0; i < ARRAY_LEN(c->parts) && c->parts[i].blocks != NULL; i++) {
            c->parts[i].blocks_total[r] -= c->parts[i].blocks[at];
            c->parts[i].blocks[at] = 0;
        }
    }
    c->by_generation[generation & c->mask] = 0;
    if (c->digest != NULL)
        c->digest_by_generation[generation & c->mask] = 0;
    c->live -= gone;
    return gone;
}

uint64_t crdt_counts_drop_replica(struct crdt_counts *c, unsigned replica)
{
    uint64_t gone = c->entries_total[replica];
    size_t length = (size_t)c->mask + 1;
    size_t at = ring_at(c, replica, 0);
    for (size_t i = 0; i < length; i++)
        c->by_generation[i] -= c->entries[at + i];
    for (size_t i = 0; c->digest != NULL && i < length; i++)
        c->digest_by_generation[i] -= c->digest[at + i];
    if (c->digest != NULL)
        memset(c->digest + at, 0, length * sizeof *c->digest);
    memset(c->blocks + at, 0, length * sizeof *c->blocks);
    for (unsigned i = 0; i < ARRAY_LEN(c->parts) && c->parts[i].blocks != NULL; i++) {
        memset(c->parts[i].blocks + at, 0, length * sizeof *c->blocks);
        c->parts[i].blocks_total[replica] = 0;
    }
    memset(c->entries + at, 0, length * sizeof *c->entries);
    c->blocks_total[replica] = 0;
    c->entries_total[replica] = 0;
    c->live -= gone;
    return gone;
}
