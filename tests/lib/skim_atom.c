#include "tests/lib/skim_atom.h"

#include <string.h>

#include "base/check.h"
#include "http/media_url.h"
#include "tests/lib/skim_model.h"

static const struct hash128 zero;

struct hash128 model_mix(const struct hash_secret *secret, uint64_t tag, struct hash128 a,
                         struct hash128 b)
{
    uint64_t words[5] = {tag, a.low, a.high, b.low, b.high};
    return hash128(secret, words, sizeof words);
}

/* Long strings are hashed in pieces of 1024 bytes; the last may be empty. */
struct hash128 model_string_digest(const struct hash_secret *secret, const char *at, size_t len)
{
    if (len < 1024)
        return hash128(secret, at, len);
    struct hash128 state = zero;
    for (;;) {
        size_t n = len < 1024 ? len : 1024;
        char piece[16 + 1024];
        memcpy(piece, &state, 16);
        memcpy(piece + 16, at, n);
        state = hash128(secret, piece, 16 + n);
        if (n < 1024)
            return state;
        at += n;
        len -= n;
    }
}

bool model_is_number(const json_t *v)
{
    return json_is_string(v) && json_string_length(v) > 0 &&
           json_string_value(v)[0] == MODEL_NUMBER;
}

bool model_is_text(const json_t *v)
{
    return json_is_string(v) && !model_is_number(v);
}

void model_add_member(const struct hash_secret *secret, struct atom *sum, const char *key,
                      struct atom value)
{
    uint64_t name = model_string_digest(secret, key, strlen(key)).low;
    struct hash128 member = model_mix(secret, name, value.digest, zero);
    sum->digest.low += member.low;
    sum->digest.high += member.high;
    sum->weight += strlen(key) + value.weight;
}

bool model_is_typed(const char *key)
{
    static const char *const names[] = {"function",    "tool_calls", "custom",       "image_url",
                                        "video_url",   "audio_url",  "source",       "file",
                                        "input_audio", "audio",      "function_call"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

/* The digest of a string that may be an image's URL, complete in a single piece or within the first
 * piece. */
static struct hash128 url_digest(const struct hash_secret *secret, const char *at, size_t len)
{
    char first[1024];
    size_t n = len < sizeof first ? len : sizeof first;
    bool is_signed = false;
    memcpy(first, at, n);
    size_t left = http_media_url_trim(first, n, &is_signed);
    if (!is_signed)
        return model_string_digest(secret, at, len);
    if (len < sizeof first)
        return hash128(secret, first, left);
    char piece[16 + sizeof first];
    memcpy(piece, &zero, 16);
    memcpy(piece + 16, first, left);
    return hash128(secret, piece, 16 + left);
}

/* `typed`: the API names the members, so null is absent. `media`: within an image. */
struct atom model_atom_in(const struct hash_secret *secret, const json_t *v, bool typed, bool media)
{
    struct atom sum = {zero, 0};
    if (json_is_object(v)) {
        const char *key;
        json_t *member;
        json_object_foreach((json_t *)v, key, member)
        {
            if (strcmp(key, "cache_control") != 0 && !(typed && json_is_null(member)))
                model_add_member(
                    secret, &sum, key,
                    model_atom_in(secret, member, typed && model_is_typed(key), media));
        }
        sum.digest = model_mix(secret, 'o', sum.digest, zero);
        return sum;
    }
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) {
            struct atom element = model_atom_in(secret, json_array_get(v, i), typed, media);
            sum.digest = model_mix(secret, 0, sum.digest, element.digest);
            sum.weight += element.weight;
        }
        sum.digest = model_mix(secret, 'a', sum.digest, zero);
        return sum;
    }
    const char *text = json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null";
    size_t len = strlen(text);
    char tag = 'l';
    if (json_is_string(v)) {
        text = json_string_value(v) + (model_is_number(v) ? 1 : 0);
        len = json_string_length(v) - (model_is_number(v) ? 1 : 0);
        tag = model_is_number(v) ? 'n' : 's';
    }
    struct hash128 digest = media && tag == 's' ? url_digest(secret, text, len)
                                                : model_string_digest(secret, text, len);
    sum.digest = model_mix(secret, (uint64_t)tag, digest, zero);
    sum.weight = len;
    return sum;
}

struct atom model_atom_of(const struct hash_secret *secret, const json_t *v)
{
    return model_atom_in(secret, v, false, false);
}
