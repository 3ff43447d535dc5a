#include "tests/lib/skim_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "http/content.h"

json_t *model_parse(const char *bytes, size_t len)
{
    struct buf text = {.at = NULL};
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
            size_t n = 0;
            while (i + n < len && strchr("+-.eE0123456789", bytes[i + n]) != NULL &&
                   bytes[i + n] != '\0')
                n++;
            CHECK(buf_printf(&text, "\"\\u0001%.*s\"", (int)n, bytes + i) == 0);
            i += n - 1;
            continue;
        }
        CHECK(buf_append_char(&text, c) == 0);
        if (in_string && c == '\\' && i + 1 < len)
            CHECK(buf_append_char(&text, bytes[++i]) == 0);
        else if (c == '"')
            in_string = !in_string;
    }
    json_t *doc = json_loadb(text.len == 0 ? "" : text.at, text.len,
                             JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    buf_free(&text);
    return doc;
}

/* --- atoms -------------------------------------------------------------------------------------
 */

struct atom {
    struct hash128 digest;
    uint64_t weight;
};

static struct hash128 mix(const struct hash_secret *secret, uint64_t tag, struct hash128 a,
                          struct hash128 b)
{
    uint64_t words[5] = {tag, a.low, a.high, b.low, b.high};
    return hash128(secret, words, sizeof words);
}

static const struct hash128 zero;

/* Long strings are hashed in pieces of 1024 bytes; the last may be empty. */
static struct hash128 string_digest(const struct hash_secret *secret, const char *at, size_t len)
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

static bool is_number(const json_t *v)
{
    return json_is_string(v) && json_string_length(v) > 0 &&
           json_string_value(v)[0] == MODEL_NUMBER;
}

static bool is_text(const json_t *v)
{
    return json_is_string(v) && !is_number(v);
}

static void add_member(const struct hash_secret *secret, struct atom *sum, const char *key,
                       struct atom value)
{
    uint64_t name = string_digest(secret, key, strlen(key)).low;
    struct hash128 member = mix(secret, name, value.digest, zero);
    sum->digest.low += member.low;
    sum->digest.high += member.high;
    sum->weight += strlen(key) + value.weight;
}

static struct atom atom_of(const struct hash_secret *secret, const json_t *v)
{
    struct atom sum = {zero, 0};
    if (json_is_object(v)) {
        const char *key;
        json_t *member;
        json_object_foreach((json_t *)v, key, member)
        {
            if (strcmp(key, "cache_control") != 0)
                add_member(secret, &sum, key, atom_of(secret, member));
        }
        sum.digest = mix(secret, 'o', sum.digest, zero);
        return sum;
    }
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) {
            struct atom element = atom_of(secret, json_array_get(v, i));
            sum.digest = mix(secret, 0, sum.digest, element.digest);
            sum.weight += element.weight;
        }
        sum.digest = mix(secret, 'a', sum.digest, zero);
        return sum;
    }
    const char *text = json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null";
    size_t len = strlen(text);
    char tag = 'l';
    if (json_is_string(v)) {
        text = json_string_value(v) + (is_number(v) ? 1 : 0);
        len = json_string_length(v) - (is_number(v) ? 1 : 0);
        tag = is_number(v) ? 'n' : 's';
    }
    sum.digest = mix(secret, (uint64_t)tag, string_digest(secret, text, len), zero);
    sum.weight = len;
    return sum;
}

/* --- the hash of a segment ---------------------------------------------------------------------
 */

struct hasher {
    const struct hash_secret *secret;
    struct hash128 state;
    uint64_t bytes; /* all of them, the piece too */
    char piece[16 + 4096];
    size_t piece_len;
    struct chain_point points[256];
    unsigned count;
    unsigned max;
    bool has_ids;
    bool has_other;
    struct chain_content content;
};

static uint64_t next_checkpoint(const struct hasher *h)
{
    return h->count < h->max ? (uint64_t)256 * checkpoint_blocks(h->count) : UINT64_MAX;
}

static void read_points(struct hasher *h)
{
    while (next_checkpoint(h) <= h->bytes) {
        h->points[h->count] = (struct chain_point){
            .id = h->state.low,
            .blocks = checkpoint_blocks(h->count),
            .code = checkpoint_code(h->count),
            .media = (uint16_t)chain_media(&h->content),
        };
        h->count++;
    }
}

static void count_byte(struct chain_content *c, unsigned char byte)
{
    if (byte >= 0x80)
        c->wide++;
    else if (isalpha(byte))
        c->letters++;
    else if (byte == ' ')
        c->spaces++;
    else if (isdigit(byte))
        c->digits++;
    else
        c->marks++;
    c->leads += byte >= 0xe0;
}

static void end_piece(struct hasher *h)
{
    if (h->piece_len == 0)
        return;
    for (size_t i = 0; i < h->piece_len && !h->has_ids; i++)
        count_byte(&h->content, (unsigned char)h->piece[16 + i]);
    memcpy(h->piece, &h->state, 16);
    h->state = hash128(h->secret, h->piece, 16 + h->piece_len);
    h->piece_len = 0;
    read_points(h);
}

static void put_text(struct hasher *h, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        h->piece[16 + h->piece_len++] = at[i];
        h->bytes++;
        if (h->piece_len == 4096 || h->bytes == next_checkpoint(h))
            end_piece(h);
    }
    h->has_other |= len > 0;
}

static void put_atom(struct hasher *h, uint64_t tag, struct atom atom)
{
    end_piece(h);
    uint64_t words[6] = {h->state.low,    h->state.high,    tag,
                         atom.digest.low, atom.digest.high, atom.weight};
    h->state = hash128(h->secret, words, sizeof words);
    h->bytes += atom.weight;
    h->has_other |= tag == 0x61746f6d;
    read_points(h);
}

static void put_value(struct hasher *h, const json_t *v)
{
    put_atom(h, 0x61746f6d, atom_of(h->secret, v));
}

static void put_separator(struct hasher *h)
{
    put_atom(h, 0x73657061, (struct atom){zero, 0});
}

/* --- walking the prompt ------------------------------------------------------------------------
 */

static bool is_media(const char *key)
{
    static const char *const names[] = {"image_url", "video_url", "audio_url", "input_audio",
                                        "source",    "image",     "audio",     "video",
                                        "file",      "file_data", "file_url"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

static bool is_text_type(const char *key, const json_t *v)
{
    return strcmp(key, "type") == 0 && is_text(v) &&
           (strcmp(json_string_value(v), "text") == 0 ||
            strcmp(json_string_value(v), "input_text") == 0 ||
            strcmp(json_string_value(v), "output_text") == 0);
}

static void put_content(struct hasher *h, const json_t *v);

static void put_part(struct hasher *h, const json_t *part)
{
    end_piece(h);
    const json_t *content = json_object_get(part, "content");
    const json_t *text = json_object_get(part, "text");
    bool content_streams = is_text(content) || json_is_array(content) || json_is_object(content);
    if (content_streams)
        put_content(h, content);
    else if (is_text(text))
        put_text(h, json_string_value(text), json_string_length(text));
    struct atom sum = {zero, 0};
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)part, key, member)
    {
        if (strcmp(key, "cache_control") == 0 || json_is_null(member) ||
            is_text_type(key, member) || (strcmp(key, "content") == 0 && content_streams) ||
            (strcmp(key, "text") == 0 && is_text(text)))
            continue;
        uint64_t before = sum.weight;
        add_member(h->secret, &sum, key, atom_of(h->secret, member));
        if (is_media(key))
            sum.weight = before + 4096;
        if (strstr(key, "audio") != NULL)
            h->content.media[CHAIN_SOUND] += is_media(key);
        else if (strstr(key, "video") != NULL || strstr(key, "file") != NULL)
            h->content.media[CHAIN_FILM] += is_media(key);
        else
            h->content.media[CHAIN_IMAGE] += is_media(key);
    }
    if (sum.digest.low != 0 || sum.digest.high != 0)
        put_atom(h, 0x61746f6d, sum);
}

static void put_content(struct hasher *h, const json_t *v)
{
    if (is_text(v))
        put_text(h, json_string_value(v), json_string_length(v));
    else if (json_is_object(v))
        put_part(h, v);
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        const json_t *part = json_array_get(v, i);
        bool apart = i > 0 && (is_text(part) || json_is_array(part) || json_is_object(part));
        if (apart)
            put_separator(h);
        if (json_is_object(part))
            put_part(h, part);
        else if (is_text(part))
            put_text(h, json_string_value(part), json_string_length(part));
        else
            put_value(h, part);
    }
}

static void put_message_end(struct hasher *h, struct atom sum, const char *role, size_t role_len,
                            unsigned first_point)
{
    end_piece(h);
    if (role != NULL) {
        uint64_t digest = string_digest(h->secret, role, role_len).low;
        for (unsigned i = first_point; i < h->count; i++)
            h->points[i].id = hash_mix(h->points[i].id ^ digest);
        struct hash128 member = mix(h->secret, 0, (struct hash128){.low = digest}, zero);
        sum.digest.low += member.low;
        sum.digest.high += member.high;
    }
    sum.weight += 16;
    put_atom(h, 0x61746f6d, sum);
}

static void put_message(struct hasher *h, const json_t *message)
{
    end_piece(h);
    unsigned first_point = h->count;
    const json_t *content = json_object_get(message, "content");
    bool streams = is_text(content) || json_is_array(content) || json_is_object(content);
    if (streams)
        put_content(h, content);
    struct atom sum = {zero, 0};
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)message, key, member)
    {
        if (strcmp(key, "cache_control") != 0 && strcmp(key, "role") != 0 &&
            !json_is_null(member) && !(streams && strcmp(key, "content") == 0))
            add_member(h->secret, &sum, key, atom_of(h->secret, member));
    }
    const json_t *role = json_object_get(message, "role");
    bool has_role = is_text(role);
    put_message_end(h, sum, has_role ? json_string_value(role) : NULL,
                    has_role ? json_string_length(role) : 0, first_point);
}

static bool id_of(const json_t *v, uint32_t *id)
{
    if (!is_number(v) || json_string_length(v) > 11 ||
        strspn(json_string_value(v) + 1, "0123456789") + 1 != json_string_length(v))
        return false;
    unsigned long long value = strtoull(json_string_value(v) + 1, NULL, 10);
    *id = (uint32_t)value;
    return value <= UINT32_MAX;
}

static void put_list(struct hasher *h, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        uint32_t id;
        if (i > 0 && (is_text(v) || json_is_array(v)))
            put_separator(h);
        if (is_text(v)) {
            put_text(h, json_string_value(v), json_string_length(v));
        } else if (json_is_array(v)) {
            put_list(h, v);
        } else if (json_is_object(v)) {
            put_message(h, v);
        } else if (id_of(v, &id)) {
            bool other = h->has_other;
            char bytes[4] = {(char)id, (char)(id >> 8), (char)(id >> 16), (char)(id >> 24)};
            h->has_ids = true;
            put_text(h, bytes, 4);
            h->has_other = other;
        } else {
            put_value(h, v);
        }
    }
}

static void put_segment(struct hasher *h, const json_t *body, const char *const *names)
{
    for (; *names != NULL; names++) {
        const json_t *v = json_object_get(body, *names);
        if (v == NULL || json_is_null(v))
            continue;
        bool is_content = strcmp(*names, "system") == 0 || strcmp(*names, "instructions") == 0;
        bool is_plain = !json_is_string(v) && !json_is_array(v) && !json_is_object(v);
        if (is_plain || is_number(v)) {
            put_value(h, v);
        } else if (is_content) {
            put_content(h, v);
        } else if (json_is_array(v)) {
            put_list(h, v);
        } else if (json_is_object(v)) {
            put_message(h, v);
        } else {
            put_text(h, json_string_value(v), json_string_length(v));
            if (strcmp(*names, "input") == 0)
                put_message_end(h, (struct atom){zero, 0}, "user", 4, 0);
        }
        break;
    }
    end_piece(h);
}

static struct hash128 namespace_of(const struct hash_secret *secret, const json_t *body)
{
    static const char *const names[][2] = {{"model", NULL},
                                           {"lora_path", "lora_name"},
                                           {"cache_salt", NULL},
                                           {"extra_key", NULL},
                                           {"previous_response_id", NULL}};
    struct buf bytes = {.at = NULL};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *v = json_object_get(body, names[i][0]);
        if (!is_text(v) && names[i][1] != NULL)
            v = json_object_get(body, names[i][1]);
        if (!is_text(v)) {
            CHECK(buf_append_char(&bytes, 0) == 0);
            continue;
        }
        size_t len = json_string_length(v);
        if (len <= 255) {
            CHECK(buf_append_char(&bytes, 1) == 0 && buf_append_char(&bytes, (char)len) == 0);
            CHECK(buf_append(&bytes, json_string_value(v), len) == 0);
        } else {
            struct hash128 d = string_digest(secret, json_string_value(v), len);
            CHECK(buf_append_char(&bytes, 2) == 0 && buf_append_char(&bytes, 32) == 0);
            CHECK(buf_printf(&bytes, "%016llx%016llx", (unsigned long long)d.high,
                             (unsigned long long)d.low) == 0);
        }
    }
    struct hash128 digest = hash128(secret, bytes.at, bytes.len);
    buf_free(&bytes);
    return digest;
}

void model_chain(const struct hash_secret *secret, const json_t *body, struct chain *out)
{
    static const char *const tools[] = {"tools", "functions", NULL};
    static const char *const system_[] = {"system", "instructions", "documents", NULL};
    static const char *const prompt[] = {"input_ids", "token_ids", "messages", "prompt",
                                         "input",     "text",      "query",    NULL};
    static const char *const *const segments[] = {tools, system_, prompt};
    static struct hasher hashers[3];
    struct hash128 before = namespace_of(secret, body);
    int last = 0;
    memset(hashers, 0, sizeof hashers);
    for (int i = 0; i < 3; i++) {
        hashers[i].secret = secret;
        hashers[i].max = i == 2 ? 256 : 127;
        put_segment(&hashers[i], body, segments[i]);
        last = hashers[i].bytes > 0 ? i : last;
    }
    out->length = 0;
    out->chunks = false;
    out->content = (struct chain_content){0};
    out->bytes = 0;
    uint32_t blocks = 0;
    for (int i = 0; i <= last; i++) {
        struct hasher *h = &hashers[i];
        uint32_t at = h->count == 0 ? 0 : h->points[h->count - 1].blocks;
        uint32_t beyond = (uint32_t)(h->bytes / 256) - at;
        if (i < last && beyond > 0) { /* the end counts, for something follows */
            uint8_t code = CHECKPOINT_CODE_MAX;
            while (checkpoint_weight(code) > beyond)
                code--;
            h->points[h->count++] =
                (struct chain_point){.id = h->state.low,
                                     .blocks = at + checkpoint_weight(code),
                                     .code = code,
                                     .media = (uint16_t)chain_media(&h->content)};
        }
        uint64_t form = (uint64_t)i << 32 | (h->has_ids ? 0x696473 : 0);
        for (unsigned k = 0; k < h->count; k++) {
            uint64_t words[5] = {h->points[k].id, before.low, before.high, form,
                                 h->points[k].blocks};
            h->points[k].id = hash64(secret, words, sizeof words);
            h->points[k].blocks += blocks;
            h->points[k].media = (uint16_t)(h->points[k].media + chain_media(&out->content));
            out->points[out->length++] = h->points[k];
        }
        if (out->length > 0)
            blocks = out->points[out->length - 1].blocks;
        uint64_t words[6] = {before.low, before.high, h->state.low, h->state.high, h->bytes, form};
        if (h->bytes > 0)
            before = hash128(secret, words, sizeof words);
        out->bytes += h->bytes;
        http_content_add(&out->content, &h->content);
    }
    out->token_ids = hashers[2].has_ids && !hashers[2].has_other && out->bytes == hashers[2].bytes;
}
