#include "node/kv/words.h"

#include "base/check.h"

/* Maps have field names; `extra_key` is SGLang's, in the format "dynamo". */
static const struct {
    const char *name;
    enum kv_field field;
} fields[] = {
    {"type", KV_FIELD_TYPE},
    {"block_hashes", KV_FIELD_HASHES},
    {"parent_block_hash", KV_FIELD_PARENT},
    {"token_ids", KV_FIELD_TOKENS},
    {"block_size", KV_FIELD_BLOCK_SIZE},
    {"lora_id", KV_FIELD_LORA_ID},
    {"medium", KV_FIELD_MEDIUM},
    {"lora_name", KV_FIELD_LORA_NAME},
    {"extra_keys", KV_FIELD_EXTRA_KEYS},
    {"group_idx", KV_FIELD_GROUP},
    {"kv_cache_spec_kind", KV_FIELD_KIND},
    {"kv_cache_spec_sliding_window", KV_FIELD_WINDOW},
    {"locality", KV_FIELD_LOCALITY},
    {"session_id", KV_FIELD_SESSION},
    {"cache_salt", KV_FIELD_SALT},
    {"extra_key", KV_FIELD_SALT},
};

/* Arrays have the fields in the order in which vLLM declares them. */
static const enum kv_field stored_fields[] = {
    KV_FIELD_TYPE,       KV_FIELD_HASHES,  KV_FIELD_PARENT, KV_FIELD_TOKENS,
    KV_FIELD_BLOCK_SIZE, KV_FIELD_LORA_ID, KV_FIELD_MEDIUM, KV_FIELD_LORA_NAME,
    KV_FIELD_EXTRA_KEYS, KV_FIELD_GROUP,   KV_FIELD_KIND,   KV_FIELD_WINDOW,
};
static const enum kv_field removed_fields[] = {KV_FIELD_TYPE, KV_FIELD_HASHES, KV_FIELD_MEDIUM,
                                               KV_FIELD_GROUP};

enum kv_medium kv_medium_of(struct slice name)
{
    if (name.len == 0 || slice_equal(name, SLICE("GPU")))
        return KV_GPU;
    if (slice_equal_nocase(name, SLICE("CPU")) || slice_equal(name, SLICE("CPU_PINNED")))
        return KV_HOST;
    static const char *const disks[] = {"DISK", "STORAGE", "FS", "OBJ", "EXTERNAL"};
    for (unsigned i = 0; i < ARRAY_LEN(disks); i++) {
        if (slice_equal(name, slice_of_cstr(disks[i])))
            return KV_DISK;
    }
    return KV_OTHER;
}

enum kv_kind kv_kind_of(struct slice name)
{
    if (name.len == 0 || slice_equal(name, SLICE("full_attention")) ||
        slice_equal(name, SLICE("mla_attention")) ||
        slice_equal(name, SLICE("sink_full_attention")))
        return KV_ATTENTION;
    if (slice_starts_with(name, SLICE("sliding_window")) ||
        slice_equal(name, SLICE("chunked_local_attention")))
        return KV_WINDOW;
    return slice_equal(name, SLICE("mamba")) ? KV_STATE : KV_IGNORED;
}

enum kv_tag kv_tag_of(struct slice name)
{
    if (slice_equal(name, SLICE("BlockStored")))
        return KV_TAG_STORED;
    if (slice_equal(name, SLICE("BlockRemoved")))
        return KV_TAG_REMOVED;
    return slice_equal(name, SLICE("AllBlocksCleared")) ? KV_TAG_CLEARED : KV_TAG_NONE;
}

enum kv_field kv_field_named(struct slice name)
{
    for (unsigned i = 0; i < ARRAY_LEN(fields); i++) {
        if (slice_equal(name, slice_of_cstr(fields[i].name)))
            return fields[i].field;
    }
    return KV_FIELD_NONE;
}

enum kv_field kv_field_at(enum kv_tag tag, uint32_t number)
{
    if (number == 0)
        return KV_FIELD_TYPE;
    if (tag == KV_TAG_STORED && number < ARRAY_LEN(stored_fields))
        return stored_fields[number];
    if (tag == KV_TAG_REMOVED && number < ARRAY_LEN(removed_fields))
        return removed_fields[number];
    return KV_FIELD_NONE;
}
