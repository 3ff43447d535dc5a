#include "crdt/learned.h"

#include <math.h>

#include "crdt/limits.h"

/* A field has MOVED if it differs from the reported value by more than this share. */
static const double grain = 0.02;

void crdt_learned_write(struct wire_writer *w, const struct crdt_learned *l)
{
#define WRITE(width, name, when) wire_write_varint(w, l->name);
    CRDT_LEARNED_FIELDS(WRITE)
    if (FUTURE) {
        FUTURE_LEARNED_FIELDS(WRITE)
    }
#undef WRITE
}

static uint64_t read_u64(struct wire_reader *r)
{
    return wire_read_field(r, CRDT_NUMBER_MAX);
}

static uint32_t read_u32(struct wire_reader *r)
{
    return (uint32_t)wire_read_field(r, UINT32_MAX);
}

void crdt_learned_read(struct wire_reader *r, struct crdt_learned *out)
{
#define READ(width, name, when) out->name = read_##width(r);
    CRDT_LEARNED_FIELDS(READ)
    if (FUTURE) {
        FUTURE_LEARNED_FIELDS(READ)
    }
#undef READ
}

void crdt_learned_copy(struct crdt_learned *out, const struct crdt_learned *in)
{
#define COPY(width, name, when) out->name = in->name;
    CRDT_LEARNED_FIELDS(COPY)
    FUTURE_LEARNED_FIELDS(COPY)
#undef COPY
}

static bool moved_CHANGED(uint64_t before, uint64_t now)
{
    return before != now;
}

static bool moved_MOVED(uint64_t before, uint64_t now)
{
    return fabs((double)now - (double)before) > grain * (double)before;
}

static bool moved_DOUBLED(uint64_t before, uint64_t now)
{
    return now > 2 * before;
}

static bool moved_ALONG(uint64_t before, uint64_t now)
{
    (void)before;
    (void)now;
    return false;
}

bool crdt_learned_moved(const struct crdt_learned *reported, const struct crdt_learned *now)
{
#define MOVED(width, name, when) || moved_##when(reported->name, now->name)
    return false CRDT_LEARNED_FIELDS(MOVED) FUTURE_LEARNED_FIELDS(MOVED);
#undef MOVED
}
