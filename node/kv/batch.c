#define NDEBUG /* drops msgpack-c's assertion that the start is within the payload, which holds
                * here */
#include "node/kv/batch.h"

#include <stdlib.h>
#include <string.h>

#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

#include "base/check.h"
#include "node/kv/digest.h"
#include "node/kv/words.h"

enum { DEPTH_MAX = MSGPACK_EMBED_STACK_SIZE };

/* --- places of values ------------------------------------------------------------------------ */

enum place {
    PLACE_BATCH,
    PLACE_EVENTS,
    PLACE_EVENT,
    PLACE_HASHES,
    PLACE_TOKENS,
    PLACE_TOKEN, /* in a pair of tokens counted as 1: SGLang's speculative decoding */
    PLACE_EXTRAS,
    PLACE_EXTRA, /* in a block's extra keys, at any depth */
    PLACE_SKIP,
};

struct frame {
    enum place place;
    bool is_map, has_key; /* has_key: in a map, the key was read, and the value is next */
    enum kv_field field;  /* in an event: the field to which the next value belongs */
    uint32_t number;      /* index of the next element */
    uint64_t left;        /* values still to come: two per pair of a map */
};

struct numbers {
    uint64_t *at;
    uint32_t count, room;
};

/* The event being read. */
struct reading {
    enum kv_tag tag;
    struct kv_event event;
    struct numbers hashes, digests, extras;
    bool has_tokens; /* the event has token ids */
    uint64_t tokens;
    uint32_t in_block;       /* tokens so far of the present block */
    struct kv_digest digest; /* digest of the present block's tokens so far */
};

struct kv_decoder {
    const struct hash_secret *secret;
    struct numbers sizes; /* block_size of each event, found by the first reading */
    struct reading now;
    struct kv_batch batch;
    bool first;  /* first reading: only sizes are stored, nothing is hashed */
    bool paused; /* msgpack-c stopped after the head of a list of tokens */
    int err;
    unsigned depth;
    struct frame frames[DEPTH_MAX];
    void (*each)(void *context, const struct kv_event *event);
    void (*ahead)(void *context, uint64_t hash); /* may be NULL */
    void *context;
};

/* A value, without the contents of an array or map. */
struct value {
    enum { VALUE_NIL, VALUE_NUMBER, VALUE_BYTES, VALUE_ARRAY, VALUE_MAP, VALUE_OTHER } kind;
    uint64_t number; /* negative numbers as two's complement */
    struct slice bytes;
    uint32_t count; /* number of elements or pairs */
};

static int reserve(struct numbers *list, uint32_t room)
{
    uint64_t *at = list->at;
    if (room > list->room && (at = realloc(at, room * sizeof *at)) == NULL)
        return ERR_NOMEM;
    list->at = at;
    list->room = room > list->room ? room : list->room;
    return ERR_OK;
}

static void append(struct kv_decoder *d, struct numbers *list, uint64_t number, uint32_t max)
{
    if (list->count == max)
        d->err = ERR_LIMIT;
    else if (list->count == list->room)
        d->err = reserve(list, list->room == 0 ? 64 : list->room * 2);
    if (d->err == 0)
        list->at[list->count++] = number;
}

/* --- hashing --------------------------------------------------------------------------------- */

static uint64_t mix(struct kv_decoder *d, uint64_t so_far, uint64_t next)
{
    return kv_digest_mix(d->secret, so_far, next);
}

static uint64_t digest_of(struct kv_decoder *d, const struct value *v)
{
    return v->kind == VALUE_BYTES ? hash64(d->secret, v->bytes.at, v->bytes.len)
                                  : hash_mix(v->number + (uint64_t)v->kind);
}

static void block_ended(struct kv_decoder *d)
{
    struct reading *r = &d->now;
    uint64_t digest = kv_digest_end(&r->digest, d->secret);
    if (r->digests.count < r->digests.room) /* otherwise the tokens do not fit the blocks */
        r->digests.at[r->digests.count++] = digest;
    r->in_block = 0;
}

/* Called when an element of `token_ids` is complete. */
static void token_ended(struct kv_decoder *d)
{
    struct reading *r = &d->now;
    r->tokens++;
    if (!d->first && ++r->in_block == r->event.block_tokens)
        block_ended(d);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Returns a block's hash: an integer as it is, or the last eight bytes of a byte string, as vLLM
 * shortens digests. */
static uint64_t handle_of(const struct value *v)
{
    uint64_t handle = 0;
    if (v->kind != VALUE_BYTES)
        return v->number;
    struct slice last = slice_skip(v->bytes, v->bytes.len > 8 ? v->bytes.len - 8 : 0);
    for (size_t i = 0; i < last.len; i++)
        handle = handle << 8 | (unsigned char)last.at[i];
    return handle;
}

static uint32_t bounded(const struct value *v, uint32_t max, uint32_t instead)
{
    return v->kind == VALUE_NUMBER && v->number <= max ? (uint32_t)v->number : instead;
}

static void event_begin(struct kv_decoder *d)
{
    struct reading *r = &d->now;
    uint32_t number = d->frames[d->depth - 1].number;
    r->tag = KV_TAG_NONE;
    r->event = (struct kv_event){.group = KV_GROUP_NONE};
    if (!d->first)
        r->event.block_tokens = (uint32_t)d->sizes.at[number];
    r->hashes.count = r->digests.count = r->extras.count = 0;
    r->has_tokens = false;
    r->tokens = 0;
    r->in_block = r->digest.waiting = 0;
    r->digest.so_far = 0;
}

/* Returns the digests of the blocks' tokens and extra keys; NULL: tokens do not fill the blocks
 * evenly. */
static const uint64_t *digests_of(struct kv_decoder *d)
{
    struct reading *r = &d->now;
    uint64_t wanted = (uint64_t)r->hashes.count * r->event.block_tokens;
    if (!r->has_tokens || wanted == 0 || r->tokens != wanted ||
        (r->extras.count != 0 && r->extras.count != r->hashes.count))
        return NULL;
    for (uint32_t i = 0; i < r->extras.count; i++) {
        if (r->extras.at[i] != 0)
            r->digests.at[i] = mix(d, r->digests.at[i], r->extras.at[i]);
    }
    return r->digests.at;
}

static void event_ended(struct kv_decoder *d)
{
    struct reading *r = &d->now;
    if (d->first) {
        append(d, &d->sizes, r->event.block_tokens, KV_BATCH_EVENTS_MAX);
        return;
    }
    if (r->tag == KV_TAG_NONE) {
        d->batch.skipped++;
        return;
    }
    r->event.change = r->tag == KV_TAG_STORED    ? KV_STORED
                      : r->tag == KV_TAG_REMOVED ? KV_REMOVED
                                                 : KV_CLEARED;
    r->event.count = r->hashes.count;
    r->event.hashes = r->hashes.at;
    r->event.digests = r->tag == KV_TAG_STORED ? digests_of(d) : NULL;
    d->batch.events++;
    d->each(d->context, &r->event);
}

static void event_field(struct kv_decoder *d, enum kv_field field, const struct value *v)
{
    struct reading *r = &d->now;
    struct kv_event *e = &r->event;
    switch (field) {
    case KV_FIELD_TYPE:
        r->tag = kv_tag_of(v->bytes);
        break;
    case KV_FIELD_PARENT:
        e->has_parent = v->kind == VALUE_NUMBER || v->kind == VALUE_BYTES;
        e->parent = e->has_parent ? handle_of(v) : 0;
        break;
    case KV_FIELD_BLOCK_SIZE:
        e->block_tokens = bounded(v, INT32_MAX, 0);
        break;
    case KV_FIELD_MEDIUM:
        e->medium = kv_medium_of(v->bytes);
        break;
    case KV_FIELD_GROUP:
        e->group = (uint16_t)bounded(v, KV_GROUP_NONE - 1, KV_GROUP_NONE);
        break;
    case KV_FIELD_KIND:
        e->kind = kv_kind_of(v->bytes);
        break;
    case KV_FIELD_WINDOW:
        e->window = bounded(v, INT32_MAX, 0);
        break;
    case KV_FIELD_LOCALITY:
        e->remote = slice_equal(v->bytes, SLICE("REMOTE"));
        break;
    case KV_FIELD_SESSION:
        e->session = v->bytes;
        break;
    case KV_FIELD_LORA_NAME:
    case KV_FIELD_SALT:
        if (v->bytes.len > 0)
            e->space = mix(d, e->space, mix(d, field, digest_of(d, v)));
        break;
    default: /* lora_id differs between engines; lists were handled before */
        break;
    }
}

/* --- the walk -------------------------------------------------------------------------------- */

/* Returns the place of the contents of an array or map which is itself in the frame's place. */
static enum place place_within(struct kv_decoder *d, const struct frame *f, enum kv_field field,
                               const struct value *v)
{
    bool list = v->kind == VALUE_ARRAY;
    switch (f->place) {
    case PLACE_BATCH:
        if (f->number == 1 && !list)
            d->err = ERR_SYNTAX;
        return f->number == 1 ? PLACE_EVENTS : PLACE_SKIP;
    case PLACE_EVENTS:
        event_begin(d);
        return PLACE_EVENT;
    case PLACE_EVENT:
        if (field == KV_FIELD_TOKENS && list)
            d->now.has_tokens = true;
        return !list                          ? PLACE_SKIP
               : field == KV_FIELD_HASHES     ? PLACE_HASHES
               : field == KV_FIELD_TOKENS     ? PLACE_TOKENS
               : field == KV_FIELD_EXTRA_KEYS ? PLACE_EXTRAS
                                              : PLACE_SKIP;
    case PLACE_TOKENS:
        return list ? PLACE_TOKEN : PLACE_SKIP;
    case PLACE_EXTRAS:
    case PLACE_EXTRA:
        return PLACE_EXTRA;
    default:
        return PLACE_SKIP;
    }
}

/* Handles a value without contents. */
static void scalar(struct kv_decoder *d, struct frame *f, enum kv_field field,
                   const struct value *v)
{
    struct reading *r = &d->now;
    switch (f->place) {
    case PLACE_BATCH:
        if (f->number == 1)
            d->err = ERR_SYNTAX;
        else if (f->number == 2)
            d->batch.rank = (int32_t)bounded(v, INT32_MAX, (uint32_t)-1);
        break;
    case PLACE_EVENTS: /* not an event */
        event_begin(d);
        event_ended(d);
        break;
    case PLACE_EVENT:
        event_field(d, field, v);
        break;
    case PLACE_HASHES:
        if (v->kind != VALUE_NUMBER && v->kind != VALUE_BYTES)
            d->err = ERR_SYNTAX;
        else
            append(d, &r->hashes, handle_of(v), KV_EVENT_BLOCKS_MAX);
        if (d->first && d->ahead != NULL && d->err == 0)
            d->ahead(d->context, r->hashes.at[r->hashes.count - 1]);
        break;
    case PLACE_TOKENS:
    case PLACE_TOKEN:
        if (!d->first && r->event.block_tokens > 0)
            kv_digest_token(&r->digest, d->secret, v->number);
        break;
    case PLACE_EXTRAS:
    case PLACE_EXTRA:
        if (!d->first && v->kind != VALUE_NIL && r->extras.count > 0)
            r->extras.at[r->extras.count - 1] =
                mix(d, r->extras.at[r->extras.count - 1], digest_of(d, v));
        break;
    case PLACE_SKIP:
        break;
    }
}

/* Called at the beginning of a value. */
static void value_begins(struct kv_decoder *d, struct frame *f)
{
    if (f->place == PLACE_EXTRAS)
        append(d, &d->now.extras, 0, KV_EVENT_BLOCKS_MAX);
}

/* Called when a value is complete. Ends the containers that end with the value. */
static void value_ended(struct kv_decoder *d)
{
    while (d->depth > 0) {
        struct frame *f = &d->frames[d->depth - 1];
        if (f->place == PLACE_TOKENS)
            token_ended(d);
        f->number += !f->is_map || f->has_key;
        f->has_key = f->is_map && !f->has_key;
        if (--f->left > 0)
            return;
        d->depth--;
        if (f->place == PLACE_EVENT)
            event_ended(d);
    }
}

static int entered(struct kv_decoder *d, const struct value *v, enum place place)
{
    d->frames[d->depth++] =
        (struct frame){.place = place,
                       .is_map = v->kind == VALUE_MAP,
                       .left = (uint64_t)v->count * (v->kind == VALUE_MAP ? 2 : 1)};
    if (v->count == 0) {
        d->depth--;
        if (place == PLACE_EVENT)
            event_ended(d);
        value_ended(d);
    }
    return d->err == 0 ? 0 : -1;
}

/* Handles a value. Returns a negative number to end the reading; then d->err has the reason. */
static int value(struct kv_decoder *d, const struct value *v)
{
    if (d->depth == 0) {
        if (v->kind == VALUE_ARRAY && v->count >= 2)
            return entered(d, v, PLACE_BATCH);
        d->err = ERR_SYNTAX;
        return -1;
    }
    struct frame *f = &d->frames[d->depth - 1];
    bool contains = v->kind == VALUE_ARRAY || v->kind == VALUE_MAP;
    if (f->place == PLACE_EVENT && f->is_map && !f->has_key) {
        f->field = kv_field_named(v->bytes);
        if (contains)
            return entered(d, v, PLACE_SKIP);
    } else {
        enum kv_field field = f->is_map ? f->field : kv_field_at(d->now.tag, f->number);
        value_begins(d, f);
        if (contains)
            return entered(d, v, place_within(d, f, field, v));
        scalar(d, f, field, v);
    }
    value_ended(d);
    return d->err == 0 ? 0 : -1;
}

/* Reads a token in the usual form: a number not below 0, with five readable bytes. Returns the
 * token's length; 0: another form. Has no branch for the size, which is random. */
static inline size_t token_read(const unsigned char *p, uint32_t *id)
{
    uint32_t size = p[0] - 0xccu; /* size of the number: 0, 1 or 2 for 1, 2 or 4 bytes */
    uint32_t bytes = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
    *id = p[0] < 0x80 ? p[0] : bytes >> ((32 - (8u << (size & 3))) & 31);
    return p[0] < 0x80 ? 1 : size <= 2 ? 1 + (1u << size) : 0;
}

/* Nearly all values are tokens. Reads them in a single loop, except a list's last token and unusual
 * forms, which are left to msgpack-c. Returns the number of bytes read. */
static size_t tokens_read(struct kv_decoder *d, struct slice rest)
{
    const unsigned char *p = (const unsigned char *)rest.at, *end = p + rest.len;
    struct reading *r = &d->now;
    struct frame *f = &d->frames[d->depth - 1];
    uint32_t block = d->first ? 0 : r->event.block_tokens, read = 0, id;
    size_t len;
    for (; read + 1 < f->left && end - p >= 5 && (len = token_read(p, &id)) > 0; read++, p += len) {
        if (block == 0)
            continue;
        kv_digest_token(&r->digest, d->secret, id);
        if (++r->in_block == block)
            block_ended(d);
    }
    r->tokens += read;
    f->number += read;
    f->left -= read;
    return (size_t)(p - (const unsigned char *)rest.at);
}

/* --- msgpack-c's reader ---------------------------------------------------------------------- */

/* msgpack-c stores an object for each open container. This decoder stores the containers in
 * `frames`, so msgpack-c's objects are empty. */
typedef char nothing;

#define msgpack_unpack_struct(name)    struct kv_unpack##name
#define msgpack_unpack_func(ret, name) static inline ret kv_unpack##name
#define msgpack_unpack_callback(name)  on##name
#define msgpack_unpack_object          nothing
#define msgpack_unpack_user            struct kv_decoder *

static inline nothing on_root(struct kv_decoder **d)
{
    (void)d;
    return 0;
}

#define ON_NUMBER(name, type)                                                                      \
    static inline int on_##name(struct kv_decoder **d, type n, nothing *out)                       \
    {                                                                                              \
        *out = 0;                                                                                  \
        return value(*d, &(struct value){.kind = VALUE_NUMBER, .number = (uint64_t)n});            \
    }
ON_NUMBER(uint8, uint8_t)
ON_NUMBER(uint16, uint16_t)
ON_NUMBER(uint32, uint32_t)
ON_NUMBER(uint64, uint64_t)
ON_NUMBER(int8, int8_t)
ON_NUMBER(int16, int16_t)
ON_NUMBER(int32, int32_t)
ON_NUMBER(int64, int64_t)

#define ON_OTHER(name, which)                                                                      \
    static inline int on_##name(struct kv_decoder **d, nothing *out)                               \
    {                                                                                              \
        *out = 0;                                                                                  \
        return value(*d, &(struct value){.kind = (which)});                                        \
    }
ON_OTHER(nil, VALUE_NIL)
ON_OTHER(true, VALUE_OTHER)
ON_OTHER(false, VALUE_OTHER)

static inline int on_double(struct kv_decoder **d, double number, nothing *out)
{
    (void)number;
    return on_true(d, out);
}

static inline int on_float(struct kv_decoder **d, float number, nothing *out)
{
    (void)number;
    return on_true(d, out);
}

static inline int on_str(struct kv_decoder **d, const char *base, const char *at, unsigned len,
                         nothing *out)
{
    (void)base;
    *out = 0;
    return value(*d, &(struct value){.kind = VALUE_BYTES, .bytes = slice_of(at, len)});
}

static inline int on_bin(struct kv_decoder **d, const char *base, const char *at, unsigned len,
                         nothing *out)
{
    return on_str(d, base, at, len, out);
}

static inline int on_ext(struct kv_decoder **d, const char *base, const char *at, unsigned len,
                         nothing *out)
{
    (void)base, (void)at, (void)len;
    return on_true(d, out);
}

static inline int on_array(struct kv_decoder **d, unsigned count, nothing *out)
{
    *out = 0;
    unsigned depth = (*d)->depth;
    int err = value(*d, &(struct value){.kind = VALUE_ARRAY, .count = count});
    (*d)->paused = err == 0 && (*d)->depth > depth && (*d)->frames[depth].place == PLACE_TOKENS;
    return (*d)->paused ? -1 : err;
}

static inline int on_array_item(struct kv_decoder **d, const nothing *in, nothing item)
{
    (void)d, (void)in, (void)item;
    return 0;
}

static inline int on_map(struct kv_decoder **d, unsigned count, nothing *out)
{
    *out = 0;
    return value(*d, &(struct value){.kind = VALUE_MAP, .count = count});
}

static inline int on_map_item(struct kv_decoder **d, const nothing *in, nothing key, nothing item)
{
    (void)d, (void)in, (void)key, (void)item;
    return 0;
}

#include <msgpack/unpack_template.h>

static int read_all(struct kv_decoder *d, struct slice payload, bool first)
{
    struct kv_unpack_context c = {.user = d};
    size_t at = 0;
    kv_unpack_init(&c);
    d->first = first;
    d->paused = false;
    d->depth = 0;
    d->err = 0;
    d->batch = (struct kv_batch){.rank = -1};
    int done = kv_unpack_execute(&c, payload.at, payload.len, &at);
    for (; d->paused; done = kv_unpack_execute(&c, payload.at, payload.len, &at)) {
        /* msgpack-c stopped at the last byte of an array's head. As msgpack-c would, this enters
         * the array, but with only the unread elements left. */
        at += 1 + tokens_read(d, slice_skip(payload, at + 1));
        c.cs = MSGPACK_CS_HEADER;
        c.stack[c.top].ct = MSGPACK_CT_ARRAY_ITEM;
        c.stack[c.top++].count = d->frames[d->depth - 1].left;
        d->paused = false;
    }
    if (done <= 0 && d->err == 0)
        d->err = ERR_SYNTAX; /* cut short, too deep, or not MessagePack */
    return d->err;
}

int kv_batch_decode(struct kv_decoder *d, struct slice payload,
                    void (*each)(void *context, const struct kv_event *event), void *context,
                    struct kv_batch *out)
{
    d->each = each;
    d->context = context;
    d->sizes.count = 0;
    int err = read_all(d, payload, true);
    if (err == 0)
        err = reserve(&d->now.digests, d->now.hashes.room);
    if (err != 0)
        return err;
    err = read_all(d, payload, false);
    *out = d->batch;
    return err;
}

int kv_decoder_create(struct kv_decoder **out, const struct hash_secret *secret)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return ERR_NOMEM;
    (*out)->secret = secret;
    return ERR_OK;
}

void kv_decoder_ahead(struct kv_decoder *d, void (*ahead)(void *context, uint64_t hash))
{
    d->ahead = ahead;
}

void kv_decoder_destroy(struct kv_decoder *d)
{
    if (d == NULL)
        return;
    free(d->sizes.at);
    free(d->now.hashes.at);
    free(d->now.digests.at);
    free(d->now.extras.at);
    free(d);
}
