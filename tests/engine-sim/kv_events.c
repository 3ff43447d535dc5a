#include "tests/engine-sim/kv_events.h"

#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "base/check.h"

enum { SIM_KV_WINDOW = 1024 };

/* The form of a release. */
struct form {
    const char *name;
    unsigned stored, removed; /* elements of an event's array; 0: events are maps */
    bool has_rank;            /* a batch contains the rank */
    bool is_signed;           /* hashes are signed */
    bool by_page;             /* an event for each block */
    bool is_sglang;
    bool has_topic; /* replayed messages have a topic */
};

static const struct form forms[] = {
    {"vllm-0.9", 6, 2, false, true, false, false, false},
    {"vllm-0.10", 7, 3, true, false, false, false, false},
    {"vllm-0.14", 8, 3, true, false, false, false, false},
    {"vllm-0.17", 9, 3, true, false, false, false, false},
    {"vllm-0.20", 10, 4, true, false, false, false, false},
    {"vllm-0.22", 12, 4, true, false, false, false, false},
    {"vllm-0.24", 0, 0, true, false, false, false, false},
    {"vllm-0.25", 0, 0, true, false, false, false, true},
    {"sglang-0.5", 7, 3, true, true, true, true, false},
    {"sglang-0.5.15", 0, 0, true, true, false, true, true},
};

struct sim_kv_events {
    const struct form *form;
    unsigned rank;
    bool bytes;
    bool mute;
    unsigned groups;
    unsigned count;
    struct buf events;
    msgpack_packer p;
    struct sim_model_watch watch;
};

static int append(void *context, const char *bytes, size_t len)
{
    CHECK(buf_append(context, bytes, len) == ERR_OK);
    return 0;
}

static void text(msgpack_packer *p, const char *t)
{
    msgpack_pack_str(p, strlen(t));
    msgpack_pack_str_body(p, t, strlen(t));
}

/* True if an event has the field: an array of this length if longer than `place`, a map always.
 * Writes the key of a map. */
static bool field(struct sim_kv_events *k, const char *name, unsigned place, unsigned length)
{
    if (length == 0)
        text(&k->p, name);
    return length == 0 || place < length;
}

static void begin(struct sim_kv_events *k, const char *tag, unsigned length, unsigned fields)
{
    k->count++;
    if (length == 0)
        msgpack_pack_map(&k->p, fields);
    else
        msgpack_pack_array(&k->p, length);
    (void)field(k, "type", 0, length);
    text(&k->p, tag);
}

static void hash(struct sim_kv_events *k, uint64_t name)
{
    unsigned char digest[32] = {0x5a};
    if (!k->bytes) {
        if (k->form->is_signed)
            msgpack_pack_int64(&k->p, (int64_t)name);
        else
            msgpack_pack_uint64(&k->p, name);
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        digest[31 - i] = (unsigned char)(name >> 8 * i);
    msgpack_pack_bin(&k->p, sizeof digest);
    msgpack_pack_bin_body(&k->p, digest, sizeof digest);
}

static void text_or_nil(msgpack_packer *p, const char *t)
{
    if (*t == '\0')
        msgpack_pack_nil(p);
    else
        text(p, t);
}

/* vLLM's: the adapter of each block, and the salt of a prompt's first block. */
static void extra_keys(struct sim_kv_events *k, const struct sim_chain *c, size_t from, size_t to)
{
    unsigned adapter = *c->adapter != '\0';
    msgpack_pack_array(&k->p, to - from);
    for (size_t i = from; i < to; i++) {
        unsigned salt = i == 0 && *c->salt != '\0';
        if (adapter + salt == 0)
            msgpack_pack_nil(&k->p);
        else
            msgpack_pack_array(&k->p, adapter + salt);
        if (adapter > 0)
            text(&k->p, c->adapter);
        if (salt > 0)
            text(&k->p, c->salt);
    }
}

static void stored_run(struct sim_kv_events *k, const struct sim_chain *c, size_t from, size_t to,
                       unsigned group)
{
    unsigned n = k->form->stored;
    bool salted = *c->salt != '\0', has_extra = salted || *c->adapter != '\0';
    begin(k, "BlockStored", n, k->form->is_sglang ? 7 + salted : 10 + has_extra + (group > 0));
    (void)field(k, "block_hashes", 1, n);
    msgpack_pack_array(&k->p, to - from);
    for (size_t i = from; i < to; i++)
        hash(k, c->blocks[i]);
    (void)field(k, "parent_block_hash", 2, n);
    if (from > 0)
        hash(k, c->blocks[from - 1]);
    else
        msgpack_pack_nil(&k->p);
    (void)field(k, "token_ids", 3, n);
    msgpack_pack_array(&k->p, (to - from) * c->block_tokens);
    for (size_t i = from * c->block_tokens; i < to * c->block_tokens; i++)
        msgpack_pack_uint32(&k->p, c->ids[i]);
    (void)field(k, "block_size", 4, n);
    msgpack_pack_uint32(&k->p, c->block_tokens);
    (void)field(k, "lora_id", 5, n);
    if (*c->adapter != '\0' && !k->form->is_sglang)
        msgpack_pack_int(&k->p, 1); /* this engine's alone */
    else
        msgpack_pack_nil(&k->p);
    if (field(k, "medium", 6, n))
        text(&k->p, "GPU");
    if (k->form->is_sglang) {
        if (salted && n == 0 && field(k, "cache_salt", 0, n))
            text(&k->p, c->salt);
        return;
    }
    if (field(k, "lora_name", 7, n))
        text_or_nil(&k->p, c->adapter);
    if (has_extra && field(k, "extra_keys", 8, n)) /* without extra keys a map omits the field */
        extra_keys(k, c, from, to);
    else if (n > 8)
        msgpack_pack_nil(&k->p);
    if (field(k, "group_idx", 9, n))
        msgpack_pack_unsigned_int(&k->p, group);
    if (field(k, "kv_cache_spec_kind", 10, n))
        text(&k->p, group == 0 ? "full_attention" : "sliding_window");
    if (group > 0 && field(k, "kv_cache_spec_sliding_window", 11, n))
        msgpack_pack_int(&k->p, SIM_KV_WINDOW);
    else if (n > 11)
        msgpack_pack_nil(&k->p);
}

static void on_stored(void *context, const struct sim_chain *chain, size_t from, size_t to)
{
    struct sim_kv_events *k = context;
    CHECK(chain->keeps_ids && from < to && to <= chain->block_count);
    if (k->mute)
        return;
    for (unsigned group = 0; group < k->groups && !k->form->by_page; group++)
        stored_run(k, chain, from, to, group);
    for (size_t i = from; i < to && k->form->by_page; i++)
        stored_run(k, chain, i, i + 1, 0);
}

static void removed_one(struct sim_kv_events *k, uint64_t name, unsigned group)
{
    unsigned n = k->form->removed;
    begin(k, "BlockRemoved", n, k->form->is_sglang ? 3 : 4);
    (void)field(k, "block_hashes", 1, n);
    msgpack_pack_array(&k->p, 1);
    hash(k, name);
    if (field(k, "medium", 2, n))
        text(&k->p, "GPU");
    if (!k->form->is_sglang && field(k, "group_idx", 3, n))
        msgpack_pack_unsigned_int(&k->p, group);
}

static void on_removed(void *context, uint64_t name)
{
    struct sim_kv_events *k = context;
    for (unsigned group = 0; group < k->groups && !k->mute; group++)
        removed_one(k, name, group);
}

static void on_cleared(void *context)
{
    struct sim_kv_events *k = context;
    if (k->mute)
        return;
    begin(k, "AllBlocksCleared", k->form->stored == 0 ? 0 : 1, 1);
}

static const struct form *form_of(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(forms); i++)
        if (strcmp(name, forms[i].name) == 0)
            return &forms[i];
    return NULL;
}

enum sim_kv_of sim_kv_form(const char *form)
{
    const struct form *f = form_of(form);
    if (f == NULL)
        return SIM_KV_NONE;
    return f->is_sglang ? SIM_KV_SGLANG : SIM_KV_VLLM;
}

bool sim_kv_form_has_topic(const char *form)
{
    const struct form *f = form_of(form);
    return f != NULL && f->has_topic;
}

struct sim_kv_events *sim_kv_events_create(const char *form, unsigned rank, bool bytes)
{
    const struct form *f = form_of(form);
    struct sim_kv_events *k = f == NULL ? NULL : calloc(1, sizeof *k);
    CHECK(f == NULL || k != NULL);
    if (k == NULL)
        return NULL;
    k->form = f;
    k->rank = rank;
    k->groups = 1;
    k->bytes = bytes && !f->is_signed;
    msgpack_packer_init(&k->p, &k->events, append);
    k->watch = (struct sim_model_watch){on_stored, on_removed, on_cleared, k};
    return k;
}

void sim_kv_events_groups(struct sim_kv_events *k, unsigned groups)
{
    CHECK(groups > 0 && !k->form->by_page);
    k->groups = groups;
}

void sim_kv_events_destroy(struct sim_kv_events *k)
{
    if (k == NULL)
        return;
    buf_free(&k->events);
    free(k);
}

const struct sim_model_watch *sim_kv_events_watch(const struct sim_kv_events *k)
{
    return &k->watch;
}

bool sim_kv_events_take(struct sim_kv_events *k, double unix_s, struct buf *payload)
{
    msgpack_packer p;
    if (k->count == 0)
        return false;
    msgpack_packer_init(&p, payload, append);
    msgpack_pack_array(&p, k->form->has_rank ? 3 : 2);
    msgpack_pack_double(&p, unix_s);
    msgpack_pack_array(&p, k->count);
    CHECK(buf_append_slice(payload, buf_slice(&k->events)) == ERR_OK);
    if (k->form->has_rank)
        msgpack_pack_unsigned_int(&p, k->rank);
    sim_kv_events_forget(k);
    return true;
}

void sim_kv_events_forget(struct sim_kv_events *k)
{
    buf_clear(&k->events);
    k->count = 0;
}

void sim_kv_events_mute(struct sim_kv_events *k, bool mute)
{
    k->mute = mute;
}
