#include "node/cluster/digests.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "gossip/limits.h"
#include "http/json.h"

enum { TEXT_BYTES = GOSSIP_NAME_MAX, INDEX_BIT = 1 << NODE_DIGEST_INDEX };
enum { ALL_BITS = (1 << NODE_DIGEST_CLASSES) - 1 };

static const char *class_text(enum node_digest_class class)
{
    static const char *const texts[] = {
        [NODE_DIGEST_REGISTRY] = "registry",
        [NODE_DIGEST_REPORTS] = "reports",
        [NODE_DIGEST_POISON] = "poison",
        [NODE_DIGEST_INDEX] = "index",
    };
    CHECK(class < ARRAY_LEN(texts));
    return texts[class];
}

/* A router's digests: hashes of their texts, so that they have a fixed size. */
struct digests {
    uint64_t classes[NODE_DIGEST_CLASSES]; /* hash per class; of the index: sum over generations
                                            * from `from` on */
    unsigned bits;                         /* the classes that are present */
    bool joining;
    uint64_t floor, now;
};

struct reader {
    struct http_json json;
    struct slice in;
    char text[TEXT_BYTES + HTTP_JSON_SLACK];
};

static enum http_json_token next(struct reader *r)
{
    return http_json_next(&r->json, &r->in);
}

/* The text of a key or string; longer texts are cut, and so equal no expected text. */
static struct slice text(struct reader *r)
{
    size_t len = 0;
    while (http_json_in_text(&r->json) && r->in.len > 0) {
        char rest[TEXT_BYTES + HTTP_JSON_SLACK];
        bool room = len < TEXT_BYTES;
        size_t n = http_json_text(&r->json, &r->in, room ? r->text + len : rest,
                                  room ? TEXT_BYTES - len : TEXT_BYTES);
        len += room ? n : 0;
    }
    return slice_of(r->text, len);
}

/* Skips the rest of a value whose first token is `first`. */
static void skip(struct reader *r, enum http_json_token first)
{
    unsigned depth = 0;
    for (enum http_json_token token = first;; token = next(r)) {
        if (token <= HTTP_JSON_MORE)
            return;
        if (token == HTTP_JSON_KEY || token == HTTP_JSON_STRING)
            (void)text(r);
        depth += token == HTTP_JSON_OBJECT_BEGIN || token == HTTP_JSON_ARRAY_BEGIN;
        depth -= token == HTTP_JSON_OBJECT_END || token == HTTP_JSON_ARRAY_END;
        if (depth == 0 && token != HTTP_JSON_KEY)
            return;
    }
}

static uint64_t text_hash(struct slice s)
{
    uint64_t h = s.len;
    for (size_t i = 0; i < s.len; i++)
        h = hash_mix(h ^ (unsigned char)s.at[i]);
    return h;
}

static bool is_zero(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] != '0')
            return false;
    }
    return true;
}

static uint64_t number(struct reader *r, enum http_json_token token)
{
    uint64_t value = 0;
    if (token == HTTP_JSON_NUMBER)
        DISCARD(slice_to_u64(http_json_number(&r->json), &value));
    else
        skip(r, token);
    return value;
}

/* Reads {"generation": n, "digest": "..."} and adds it to the sum, so the order does not matter. */
static void read_generation(struct reader *r, uint64_t from, struct digests *out)
{
    uint64_t generation = 0;
    uint64_t digest = 0;
    bool empty = true;
    while (next(r) == HTTP_JSON_KEY) {
        struct slice key = text(r);
        bool is_generation = slice_equal(key, SLICE("generation"));
        bool is_digest = slice_equal(key, SLICE("digest"));
        enum http_json_token token = next(r);
        if (is_generation) {
            generation = number(r, token);
        } else if (is_digest && token == HTTP_JSON_STRING) {
            struct slice value = text(r);
            empty = is_zero(value);
            digest = text_hash(value);
        } else {
            skip(r, token);
        }
    }
    if (!empty && generation >= from)
        out->classes[NODE_DIGEST_INDEX] += hash_mix(digest ^ hash_mix(generation));
}

static void read_index(struct reader *r, enum http_json_token token, uint64_t from,
                       struct digests *out)
{
    if (token != HTTP_JSON_ARRAY_BEGIN) {
        skip(r, token);
        return;
    }
    out->bits |= INDEX_BIT;
    while ((token = next(r)) != HTTP_JSON_ARRAY_END && token > HTTP_JSON_MORE) {
        if (token == HTTP_JSON_OBJECT_BEGIN)
            read_generation(r, from, out);
        else
            skip(r, token);
    }
}

static void read_node(struct reader *r, enum http_json_token first, uint64_t from,
                      struct digests *out)
{
    *out = (struct digests){.now = UINT32_MAX};
    out->classes[NODE_DIGEST_POISON] = text_hash(SLICE("0000000000000000"));
    out->bits = 1u << NODE_DIGEST_POISON; /* a missing class counts as empty, because earlier
                                           * versions do not have it */
    if (first != HTTP_JSON_OBJECT_BEGIN) {
        skip(r, first);
        return;
    }
    while (next(r) == HTTP_JSON_KEY) {
        struct slice key = text(r);
        int class = -1;
        for (int i = 0; i < NODE_DIGEST_CLASSES; i++)
            class = slice_equal(key, slice_of_cstr(class_text(i))) ? i : class;
        bool is_floor = slice_equal(key, SLICE("floor"));
        bool is_now = slice_equal(key, SLICE("now"));
        bool is_ready = slice_equal(key, SLICE("ready"));
        enum http_json_token token = next(r);
        if (class == NODE_DIGEST_INDEX) {
            read_index(r, token, from, out);
        } else if (class >= 0 && token == HTTP_JSON_STRING) {
            out->classes[class] = text_hash(text(r));
            out->bits |= 1u << class;
        } else if (is_floor) {
            out->floor = number(r, token);
        } else if (is_now) {
            out->now = number(r, token);
        } else if (is_ready) {
            out->joining = token == HTTP_JSON_FALSE;
            skip(r, token);
        } else {
            skip(r, token);
        }
    }
}

/* Compares the digests of all members, with the index from generation `from` on. Returns bits as
 * node_digests_differ() does. Raises *floor to the greatest floor of all members. */
static unsigned compare(struct slice nodes, uint64_t from, uint64_t *floor)
{
    struct reader r = {.in = nodes};
    http_json_init(&r.json);
    struct digests first;
    unsigned count = 0, differ = 0;
    uint64_t newest = UINT32_MAX;
    enum http_json_token token = next(&r);
    if (token != HTTP_JSON_OBJECT_BEGIN)
        return ALL_BITS;
    while ((token = next(&r)) == HTTP_JSON_KEY) {
        struct digests theirs;
        (void)text(&r);
        read_node(&r, next(&r), from, &theirs);
        if (count++ == 0)
            first = theirs;
        if (theirs.floor > *floor)
            *floor = theirs.floor;
        newest = theirs.now < newest ? theirs.now : newest;
        differ |= ALL_BITS & ~theirs.bits;
        differ |= theirs.joining ? NODE_DIGESTS_JOINING : 0;
        for (unsigned i = 0; i < NODE_DIGEST_CLASSES; i++)
            differ |= theirs.classes[i] != first.classes[i] ? 1u << i : 0;
    }
    differ |= *floor > newest + 1 ? NODE_DIGESTS_INCOMPARABLE : 0;
    return count > 0 && token == HTTP_JSON_OBJECT_END ? differ : ALL_BITS;
}

unsigned node_digests_differ(struct slice nodes)
{
    uint64_t floor = 0;
    (void)compare(nodes, 0, &floor);
    uint64_t again = 0;
    return compare(nodes, floor, &again);
}

void node_digests_differ_write(unsigned differ, struct json_writer *w)
{
    json_array_begin(w);
    for (unsigned i = 0; i < NODE_DIGEST_CLASSES; i++) {
        if ((differ & 1u << i) != 0)
            json_cstr(w, class_text(i));
    }
    json_array_end(w);
}

/* --- in short form ---------------------------------------------------------------------------- */

/* Copies a string, a number below 2^64, true or false. Any other value becomes null. */
static void copy_value(struct reader *r, enum http_json_token token, struct json_writer *w)
{
    switch (token) {
    case HTTP_JSON_STRING:
        json_slice(w, text(r));
        break;
    case HTTP_JSON_NUMBER:
        json_u64(w, number(r, token));
        break;
    case HTTP_JSON_TRUE:
    case HTTP_JSON_FALSE:
        json_bool(w, token == HTTP_JSON_TRUE);
        break;
    default:
        skip(r, token);
        json_nil(w);
    }
}

static void copy_object(struct reader *r, enum http_json_token token, struct json_writer *w)
{
    json_object_begin(w);
    if (token != HTTP_JSON_OBJECT_BEGIN)
        skip(r, token);
    while (token == HTTP_JSON_OBJECT_BEGIN && next(r) == HTTP_JSON_KEY) {
        json_key_slice(w, text(r));
        copy_value(r, next(r), w);
    }
    json_object_end(w);
}

/* Copies a member's digests. True: the member has an error. */
static bool copy_node(struct reader *r, enum http_json_token token, bool with_hears,
                      struct json_writer *w)
{
    bool failed = false;
    static const struct slice keys[] = {SLICE("ready"),   SLICE("registry"),    SLICE("poison"),
                                        SLICE("reports"), SLICE("whole_index"), SLICE("error")};
    json_object_begin(w);
    if (token != HTTP_JSON_OBJECT_BEGIN)
        skip(r, token);
    while (token == HTTP_JSON_OBJECT_BEGIN && next(r) == HTTP_JSON_KEY) {
        struct slice key = text(r);
        const struct slice *known = NULL;
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            known = slice_equal(key, keys[i]) ? &keys[i] : known;
        bool hears = with_hears && slice_equal(key, SLICE("hears"));
        failed = failed || slice_equal(key, SLICE("error"));
        if (hears || known)
            json_key_slice(w, key);
        enum http_json_token value = next(r);
        if (hears)
            copy_object(r, value, w);
        else if (known)
            copy_value(r, value, w);
        else
            skip(r, value);
    }
    json_object_end(w);
    return failed;
}

bool node_digests_brief_write(struct slice nodes, bool hears, unsigned *silent,
                              struct json_writer *w)
{
    *silent = 0;
    struct reader r = {.in = nodes};
    http_json_init(&r.json);
    enum http_json_token token = next(&r);
    bool begun = token == HTTP_JSON_OBJECT_BEGIN;
    json_object_begin(w);
    while (begun && (token = next(&r)) == HTTP_JSON_KEY) {
        json_key_slice(w, text(&r));
        *silent += copy_node(&r, next(&r), hears, w);
    }
    json_object_end(w);
    return begun && token == HTTP_JSON_OBJECT_END;
}

/* --- which router hears which ---------------------------------------------------------------- */

/* The row of this router, added if it is new; -1: there is no room. */
static int hears_row(struct node_hears *h, struct slice name)
{
    for (unsigned i = 0; i < h->count; i++) {
        if (slice_equal(name, slice_of_cstr(h->names[i])))
            return (int)i;
    }
    if (h->count == NODE_HEARS_MAX || !slice_to_cstr(name, h->names[h->count], GOSSIP_NAME_MAX + 1))
        return -1;
    for (unsigned i = 0; i < NODE_HEARS_MAX; i++)
        h->ms[h->count][i] = NODE_HEARS_UNKNOWN;
    return (int)h->count++;
}

static void read_hears(struct reader *r, enum http_json_token token, int row, struct node_hears *h)
{
    if (token != HTTP_JSON_OBJECT_BEGIN) {
        skip(r, token);
        return;
    }
    while (next(r) == HTTP_JSON_KEY) {
        int of = hears_row(h, text(r));
        token = next(r);
        bool never = token == HTTP_JSON_NULL;
        uint64_t ms = number(r, token);
        if (row >= 0 && of >= 0)
            h->ms[row][of] = never || ms >= NODE_HEARS_NEVER ? NODE_HEARS_NEVER : (uint32_t)ms;
    }
}

void node_digests_hears(struct slice nodes, struct node_hears *out)
{
    struct reader r = {.in = nodes};
    http_json_init(&r.json);
    out->count = 0;
    memset(out->answered, 0, sizeof out->answered);
    if (next(&r) != HTTP_JSON_OBJECT_BEGIN)
        return;
    while (next(&r) == HTTP_JSON_KEY) {
        int row = hears_row(out, text(&r));
        bool answered = true;
        enum http_json_token token = next(&r);
        if (token != HTTP_JSON_OBJECT_BEGIN)
            skip(&r, token);
        while (token == HTTP_JSON_OBJECT_BEGIN && next(&r) == HTTP_JSON_KEY) {
            struct slice key = text(&r);
            bool hears = slice_equal(key, SLICE("hears"));
            answered = answered && !slice_equal(key, SLICE("error"));
            enum http_json_token value = next(&r);
            if (hears)
                read_hears(&r, value, row, out);
            else
                skip(&r, value);
        }
        if (row >= 0)
            out->answered[row] = answered;
    }
}
