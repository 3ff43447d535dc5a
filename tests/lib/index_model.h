/* A naive model of the prefix index (crdt/index.h). A tape of bytes drives model and index in
 * parallel: random bytes in the unit test, the fuzzer's bytes in the fuzz target.
 *
 * The model is an array with a generation for every key of a small world. After every step the
 * index is checked, and the answers are compared. If memory is tight, the model cannot predict
 * refusals and evictions. But a refusal must change nothing, and the index reports an eviction as a
 * floor, so even then the two must agree exactly. */
#ifndef TESTS_LIB_INDEX_MODEL_H
#define TESTS_LIB_INDEX_MODEL_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "crdt/counts.h"
#include "crdt/index.h"
#include "crdt/spans.h"

enum { MODEL_IDS = 24, MODEL_CODES = 2, MODEL_REPLICAS = 100 };

struct tape {
    const uint8_t *at;
    size_t left;
};

static uint32_t tape_byte(struct tape *t)
{
    if (t->left == 0)
        return 0;
    t->left--;
    return *t->at++;
}

static uint32_t tape_below(struct tape *t, uint32_t below)
{
    return below <= 256 ? tape_byte(t) % below : (tape_byte(t) << 8 | tape_byte(t)) % below;
}

struct model {
    uint32_t replicas;
    uint32_t ttl;
    uint32_t now;
    uint32_t floor;
    bool tight; /* memory may run out */
    bool replicated;
    uint32_t rkeys; /* names given to caches so far */
    uint64_t refused;
    uint64_t stale;
    uint64_t future;
    bool held[MODEL_IDS][MODEL_CODES][MODEL_REPLICAS];
    uint32_t generation[MODEL_IDS][MODEL_CODES][MODEL_REPLICAS];
};

static uint64_t model_id(unsigned id)
{
    /* Some ids share the lower 32 bits, some the upper 16: only all 48 distinguish them. */
    uint64_t x = hash_mix(id / 2 + 1) & 0xffffffffffff;
    return id % 2 == 0 ? x : (id % 4 == 1 ? x ^ UINT64_C(1) << 47 : x ^ 1);
}

static uint8_t model_code(unsigned id, unsigned code)
{
    return (uint8_t)((id + code * 7) % 32);
}

static bool model_alive(const struct model *m, unsigned id, unsigned code, unsigned replica)
{
    return m->held[id][code][replica] && m->generation[id][code][replica] >= m->floor;
}

static void model_observe(struct model *m, struct crdt_index *x, unsigned id, unsigned code,
                          unsigned replica, uint32_t generation)
{
    uint32_t *known = &m->generation[id][code][replica];
    bool alive = model_alive(m, id, code, replica);
    int got = crdt_index_observe(x, model_id(id), replica, model_code(id, code), generation);
    if (generation < m->floor) {
        CHECK(got == ERR_STALE);
        m->stale++;
    } else if (generation > m->now + 1) {
        CHECK(got == ERR_RANGE);
        m->future++;
    } else if (alive && *known >= generation) {
        CHECK(got == 0);
    } else if (got == 1) {
        m->held[id][code][replica] = true;
        *known = generation;
    } else {
        CHECK(m->tight);
        CHECK(got == ERR_FULL || (got == ERR_STALE && generation < crdt_index_floor(x)));
        *(got == ERR_FULL ? &m->refused : &m->stale) += 1;
    }
    CHECK(crdt_index_floor(x) == m->floor || m->tight);
    m->floor = crdt_index_floor(x);
}

static void model_match(const struct model *m, struct tape *t, const struct crdt_index *x)
{
    static struct chain chain;
    unsigned ids[64];
    unsigned codes[64];
    chain.length = (uint16_t)tape_below(t, 64);
    unsigned first = tape_below(t, MODEL_IDS);
    for (unsigned i = 0; i < chain.length; i++) {
        ids[i] = (first + i) % MODEL_IDS;
        codes[i] = i / MODEL_IDS % MODEL_CODES;
        chain.points[i] = (struct chain_point){
            .id = model_id(ids[i]), .blocks = i + 1, .code = model_code(ids[i], codes[i])};
    }
    uint32_t floors[MODEL_REPLICAS];
    bool with_floors = tape_below(t, 2) == 0;
    for (unsigned r = 0; r < m->replicas; r++)
        floors[r] = with_floors && r % 3 != 0 ? m->now + 2 - r % 6 : 0;
    uint16_t length[MODEL_REPLICAS];
    uint32_t generation[MODEL_REPLICAS];
    unsigned replicas = tape_below(t, m->replicas + 1);
    crdt_index_match(x, &chain, with_floors ? floors : NULL, replicas, length, generation);
    for (unsigned r = 0; r < replicas; r++) {
        unsigned i = chain.length;
        while (i > 0 && !(model_alive(m, ids[i - 1], codes[i - 1], r) &&
                          m->generation[ids[i - 1]][codes[i - 1]][r] >= floors[r]))
            i--;
        CHECK(length[r] == i);
        CHECK(generation[r] == (i == 0 ? 0 : m->generation[ids[i - 1]][codes[i - 1]][r]));
    }
}

static void model_each(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                       uint32_t generation)
{
    (void)id48; /* small tables do not return it */
    (void)weight_code;
    uint64_t *sum = context;
    sum[0]++;
    sum[1] += hash_mix((uint64_t)replica << 32 | generation);
}

/* Checks that the index has exactly the model's entries. */
static void model_compare(const struct model *m, const struct crdt_index *x)
{
    uint64_t expected[2] = {0};
    for (unsigned r = 0; r < m->replicas; r++) {
        uint64_t blocks = 0;
        for (unsigned id = 0; id < MODEL_IDS; id++) {
            for (unsigned c = 0; c < MODEL_CODES; c++) {
                uint32_t generation = 0;
                uint32_t g = m->generation[id][c][r];
                bool alive = model_alive(m, id, c, r);
                int got = crdt_index_get(x, model_id(id), r, model_code(id, c), &generation);
                CHECK(got == (alive ? 0 : ERR_NOT_FOUND));
                if (!alive)
                    continue;
                CHECK(generation == g);
                expected[0]++;
                expected[1] += hash_mix((uint64_t)r << 32 | g);
                blocks += checkpoint_weight(model_code(id, c));
            }
        }
        CHECK(crdt_index_blocks_total(x, r) == blocks);
    }
    uint64_t sum[2] = {0};
    crdt_index_each(x, model_each, sum);
    CHECK(sum[0] == expected[0] && sum[1] == expected[1]);
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    CHECK(stats.entries == expected[0]);
    CHECK(stats.refused == m->refused && stats.stale == m->stale && stats.future == m->future);
    CHECK(crdt_index_floor(x) == m->floor && crdt_index_now(x) == m->now);
}

static void model_advance(struct model *m, struct crdt_index *x, uint32_t now)
{
    crdt_index_advance(x, now);
    if (now > m->now) {
        m->now = now;
        uint32_t floor = now > m->ttl ? now - m->ttl : 0;
        m->floor = floor > m->floor ? floor : m->floor;
    }
}

static void model_forget(struct model *m, struct crdt_index *x, unsigned replica)
{
    crdt_index_forget(x, replica, ++m->rkeys);
    for (unsigned id = 0; id < MODEL_IDS; id++) {
        for (unsigned c = 0; c < MODEL_CODES; c++)
            m->held[id][c][replica] = false;
    }
}

static void model_chain(struct model *m, struct tape *t, struct crdt_index *x)
{
    /* A prompt on a replica with a prefix of others, so that sets arise. */
    unsigned length = 1 + tape_below(t, MODEL_IDS);
    unsigned replica = tape_below(t, m->replicas);
    for (unsigned i = 0; i < length; i++)
        model_observe(m, x, i, 0, replica, m->now);
}

static void model_step(struct model *m, struct tape *t, struct crdt_index *x)
{
    uint32_t choice = tape_below(t, 32);
    if (choice < 14) {
        unsigned id = tape_below(t, MODEL_IDS);
        unsigned code = tape_below(t, 8) == 0;
        unsigned replica = tape_below(t, m->replicas);
        uint32_t back = tape_below(t, 16);
        /* Mostly the present generation, at times a future or past one. */
        uint32_t generation = back < 8 ? m->now : m->now + 10 - back;
        model_observe(m, x, id, code, replica, generation);
    } else if (choice < 18) {
        model_chain(m, t, x);
    } else if (choice < 21) {
        unsigned id = tape_below(t, MODEL_IDS); /* an id on many replicas */
        unsigned count = tape_below(t, m->replicas) + 1;
        for (unsigned r = 0; r < count; r++)
            model_observe(m, x, id, 0, r, m->now - r % 2);
    } else if (choice < 24) {
        model_match(m, t, x);
    } else if (choice < 27) {
        model_advance(m, x, m->now + tape_below(t, 4));
    } else if (choice == 27) {
        model_advance(m, x, m->now + tape_below(t, 6000)); /* a jump of the clock */
    } else if (choice == 28) {
        model_forget(m, x, tape_below(t, m->replicas));
    } else if (choice == 29) {
        uint32_t floor = m->now + 3 - tape_below(t, 8);
        crdt_index_floor_raise(x, floor);
        floor = floor > m->now + 1 ? m->now + 1 : floor;
        m->floor = floor > m->floor ? floor : m->floor;
    } else {
        (void)crdt_index_sweep(x, tape_below(t, 2) == 0 ? UINT32_MAX : tape_byte(t));
    }
}

/* The least budget of an index, as a multiple of 128 bytes. */
static uint64_t model_least_bytes(struct crdt_index_config config)
{
    uint64_t below = 0;
    uint64_t enough = UINT64_C(1) << 23;
    while (enough - below > 128) {
        struct crdt_index *x = NULL;
        config.bytes_max = below + (enough - below) / 2;
        if (crdt_index_create(&x, &config) == 0)
            enough = config.bytes_max;
        else
            below = config.bytes_max;
        crdt_index_destroy(x);
    }
    return enough;
}

/* Runs the whole life of an index by the tape. The index is checked about every `check_every`
 * bytes; the last figures go to *stats. */
static void model_run(const uint8_t *bytes, size_t size, unsigned check_every,
                      struct crdt_index_stats *stats)
{
    static struct model m;
    static const uint32_t replicas[] = {100, 5, 24, 64};
    static const uint32_t ttls[] = {8, 3, 60, CRDT_TTL_MAX};
    struct tape t = {bytes, size};
    memset(&m, 0, sizeof m);
    uint32_t first = tape_byte(&t);
    m.replicas = replicas[first % 4];
    m.replicated = first >= 128;
    m.ttl = ttls[tape_below(&t, 4)];
    if (m.ttl == CRDT_TTL_MAX)
        m.replicas = 5; /* few, since a check recounts all rings */
    m.now = 100 + tape_below(&t, 20000);
    m.floor = m.now > m.ttl ? m.now - m.ttl : 0;
    m.tight = tape_below(&t, 2) == 0;
    struct crdt_index *x = NULL;
    struct crdt_index_config config = {.replicas_max = m.replicas,
                                       .ttl_generations = m.ttl,
                                       .generation = m.now,
                                       .replicated = m.replicated};
    if (m.tight) {
        config.bytes_max = model_least_bytes(config) + tape_byte(&t) * 64;
    } else {
        config.bytes_max = (UINT64_C(1) << 17) + m.replicas * (m.ttl + 2) * 16;
        if (m.replicated)
            config.bytes_max += crdt_spans_bytes(m.replicas, m.ttl) +
                                crdt_counts_bytes(m.replicas, m.ttl + 2, true);
    }
    CHECK(crdt_index_create(&x, &config) == 0);
    while (t.left > 0) {
        model_step(&m, &t, x);
        if (t.left % check_every == 0)
            crdt_index_check(x);
        if (t.left % 16 == 0)
            model_compare(&m, x);
    }
    model_compare(&m, x);
    crdt_index_check(x);
    crdt_index_stats(x, stats);
    crdt_index_destroy(x);
}

#endif
