#include "node/route/poison.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_write.h"
#include "node/route/router_internal.h"

/* Requests of a hash that break at a replica within this time count as a single death. */
enum { SAME_DEATH_S = 30 };

static const struct crdt_poison *table(const struct node_router *r)
{
    return crdt_state_poison(r->crdt);
}

bool node_poison_any(const struct node_router *r)
{
    return table(r)->count > 0;
}

unsigned node_poison_count(const struct node_router *r)
{
    unsigned count = 0;
    const struct crdt_poison *t = table(r);
    for (unsigned i = 0; i < t->count; i++)
        count += t->row[i].level >= CRDT_POISON_SURE;
    return count;
}

static enum node_poison level_of(const struct crdt_poison_row *row)
{
    if (row == NULL || row->level == CRDT_POISON_FORGIVEN)
        return NODE_POISON_NONE;
    return row->level == CRDT_POISON_SUSPECT ? NODE_POISON_SUSPECT : NODE_POISON_SURE;
}

enum node_poison node_poison_of(const struct node_router *r, uint64_t hash)
{
    return level_of(crdt_poison_find(table(r), hash));
}

/* Sets the request's level in the shared state, for all routers. Without room for a row (256
 * requests were poison within the hour), the request is not stored. */
static void set(struct node_router *r, uint64_t hash, enum crdt_poison_level level, int replica)
{
    uint32_t ttl = level == CRDT_POISON_SURE ? CRDT_POISON_TTL_S : CRDT_SUSPECT_TTL_S;
    DISCARD(crdt_state_poisoned(r->crdt, hash, level, replica, ttl));
}

static uint64_t key_of(const struct node_router *r, unsigned replica)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    return crdt_registry_has(registry, replica) ? crdt_registry_at(registry, replica)->key : 0;
}

/* True if the row already counts this death: of the same replica, at most SAME_DEATH_S ago. */
static bool same_death(const struct node_router *r, const struct crdt_poison_row *row,
                       unsigned replica)
{
    return row->last == key_of(r, replica) &&
           row->until + SAME_DEATH_S > table(r)->now_s + CRDT_SUSPECT_TTL_S;
}

enum node_poison node_poison_died(struct node_router *r, uint64_t hash, unsigned replica,
                                  bool second)
{
    const struct crdt_poison_row *row = crdt_poison_find(table(r), hash);
    enum node_poison level = level_of(row);
    if (!second && level == NODE_POISON_SUSPECT && same_death(r, row, replica))
        return level;
    second = second || level != NODE_POISON_NONE;
    set(r, hash, second ? CRDT_POISON_SURE : CRDT_POISON_SUSPECT, (int)replica);
    return second ? NODE_POISON_SURE : NODE_POISON_SUSPECT;
}

void node_poison_names(struct node_router *r, uint64_t hash, unsigned earlier, unsigned replica)
{
    const struct crdt_poison_row *row = crdt_poison_find(table(r), hash);
    uint64_t key = key_of(r, earlier);
    if (level_of(row) == NODE_POISON_NONE || key == 0 || row->last == key || row->before == key)
        return;
    enum crdt_poison_level level = row->level;
    set(r, hash, level, (int)earlier);
    set(r, hash, level, (int)replica); /* the last replica stays the last */
}

static struct slice name_by_key(const struct node_router *r, uint64_t key)
{
    int slot = key != 0 ? crdt_registry_by_key(crdt_state_registry(r->crdt), key) : -1;
    return slot >= 0 ? node_router_replica_name(r, (unsigned)slot) : slice_of("", 0);
}

void node_poison_names_text(const struct node_router *r, uint64_t hash,
                            char out[NODE_POISON_NAMES_BYTES])
{
    const struct crdt_poison_row *row = crdt_poison_find(table(r), hash);
    struct slice before = slice_of("", 0), last = slice_of("", 0);
    if (level_of(row) != NODE_POISON_NONE) {
        before = name_by_key(r, row->before);
        last = name_by_key(r, row->last);
    }
    (void)snprintf(out, NODE_POISON_NAMES_BYTES, "%.*s%s%.*s", SLICE_ARG(before),
                   before.len > 0 && last.len > 0 ? "," : "", SLICE_ARG(last));
}

void node_poison_cleared(struct node_router *r, uint64_t hash)
{
    if (node_poison_of(r, hash) == NODE_POISON_SUSPECT)
        set(r, hash, CRDT_POISON_FORGIVEN, -1);
}

int node_poison_forget(struct node_router *r, uint64_t hash)
{
    if (node_poison_of(r, hash) == NODE_POISON_NONE)
        return ERR_NOT_FOUND;
    set(r, hash, CRDT_POISON_FORGIVEN, -1);
    return 0;
}

void node_poison_refused(struct node_router *r, uint64_t hash)
{
    crdt_state_poison_refused(r->crdt, hash);
}

/* --- showing -------------------------------------------------------------------------------- */

static void put_replica(struct json_writer *w, const struct node_router *r, uint64_t key)
{
    struct slice name = name_by_key(r, key);
    if (name.len > 0)
        json_slice(w, name);
}

static void put_row(struct json_writer *w, const struct node_router *r,
                    const struct crdt_poison_row *row)
{
    char hash[17];
    bool sure = level_of(row) == NODE_POISON_SURE;
    uint32_t ttl = sure ? CRDT_POISON_TTL_S : CRDT_SUSPECT_TTL_S;
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, row->hash);
    json_object_begin(w);
    json_put_cstr(w, "hash", hash);
    json_put_cstr(w, "state", sure ? "poison" : "suspect");
    json_key(w, "seconds_ago");
    uint32_t since = row->until > ttl ? row->until - ttl : 0;
    uint32_t now = table(r)->now_s;
    json_u64(w, now > since ? now - since : 0);
    json_put_u64(w, "seconds_left", row->until > now ? row->until - now : 0);
    json_put_array(w, "replicas");
    put_replica(w, r, row->before);
    put_replica(w, r, row->last);
    json_array_end(w);
    json_put_u64(w, "refused", row->refused);
    json_object_end(w);
}

int node_poison_json(const struct node_router *r, struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    const struct crdt_poison *t = table(r);
    json_array_begin(&w);
    for (unsigned i = 0; i < t->count; i++) {
        if (level_of(&t->row[i]) != NODE_POISON_NONE)
            put_row(&w, r, &t->row[i]);
    }
    json_array_end(&w);
    return json_writer_finish(&w);
}
