/* The words of KV events: tags, names of fields, media, and kinds of attention. */
#ifndef NODE_KV_WORDS_H
#define NODE_KV_WORDS_H

#include <stdint.h>

#include "base/slice.h"
#include "node/kv/batch.h"

enum kv_field {
    KV_FIELD_NONE,
    KV_FIELD_TYPE,
    KV_FIELD_HASHES,
    KV_FIELD_PARENT,
    KV_FIELD_TOKENS,
    KV_FIELD_BLOCK_SIZE,
    KV_FIELD_LORA_ID,
    KV_FIELD_MEDIUM,
    KV_FIELD_LORA_NAME,
    KV_FIELD_EXTRA_KEYS,
    KV_FIELD_GROUP,
    KV_FIELD_KIND,
    KV_FIELD_WINDOW,
    KV_FIELD_LOCALITY,
    KV_FIELD_SESSION,
    KV_FIELD_SALT,
};

enum kv_tag { KV_TAG_NONE, KV_TAG_STORED, KV_TAG_REMOVED, KV_TAG_CLEARED };

enum kv_tag kv_tag_of(struct slice name);
/* Returns the field of a map with this name. */
enum kv_field kv_field_named(struct slice name);
/* Returns the field at this index of an array; element 0 is the tag. */
enum kv_field kv_field_at(enum kv_tag tag, uint32_t number);
enum kv_medium kv_medium_of(struct slice name);
enum kv_kind kv_kind_of(struct slice name);

#endif
