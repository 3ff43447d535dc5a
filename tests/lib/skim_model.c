#include "tests/lib/skim_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "http/content.h"
#include "tests/lib/skim_atom.h"

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

static const struct hash128 zero;

/* --- the hash of a segment -------------------------------------------------------------------- */

struct hasher {
    const struct hash_secret *secret;
    struct hash128 state;
    uint64_t bytes; /* all bytes, the piece included */
    char piece[16 + 4096];
    size_t piece_len;
    struct chain_point points[256];
    unsigned count;
    unsigned max;
    bool has_ids;
    bool has_other;
    struct chain_content content;
    struct hash128 set; /* digest of the atoms, in any order */
    uint64_t end_salt;  /* of the role of the message with the present head */
};

/* The segments in the order of a prompt. HEADER, *_LINE and *_BLOCK are heads of the segment after
 * them. */
enum { TOOLS, HEADER, SYSTEM_LINE, SYSTEM_BLOCK, SYSTEM, TEXT_LINE, TEXT_BLOCK, TEXT, SEGMENTS };
static struct hasher segments[SEGMENTS];

/* State of the messages: the bytes of TEXT before the first message of another role than system,
 * and the state after the last later system message. */
static struct {
    bool spoke, is_led;
    uint64_t from;
    struct hash128 late;
} said;

/* The destination of the walk: a segment, or the segment's head until the head ends. */
struct place {
    struct hasher *now;
    struct hasher *whole;
    bool may_be_header;
    bool head_past; /* of the first message */
};

static bool in_line(const struct place *p)
{
    return p->now == &segments[SYSTEM_LINE] || p->now == &segments[TEXT_LINE];
}

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

/* A block that reaches the limit of points is not a block: the bytes go to the whole segment. */
static void put_bytes(struct place *p, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hasher *h = p->now;
        h->piece[16 + h->piece_len++] = at[i];
        h->bytes++;
        if (h->piece_len == 4096 || h->bytes == next_checkpoint(h))
            end_piece(h);
        h->has_other = true;
        if (h->count == 64 && (h == &segments[SYSTEM_BLOCK] || h == &segments[TEXT_BLOCK])) {
            unsigned max = p->whole->max;
            *p->whole = *h;
            p->whole->max = max;
            *h = (struct hasher){.secret = h->secret, .max = h->max};
            p->now = p->whole;
        }
    }
}

static void leave_head(struct place *p)
{
    if (p->now != p->whole)
        end_piece(p->now);
    p->now = p->whole;
}

static void put_text(struct place *p, const char *at, size_t len)
{
    static const char header[] = "x-anthropic-billing-header";
    if (len == 0)
        return;
    if (!in_line(p)) {
        put_bytes(p, at, len);
        leave_head(p);
        return;
    }
    struct hasher *line = p->now;
    if (p->may_be_header && len >= strlen(header) && memcmp(at, header, strlen(header)) == 0) {
        p->may_be_header = false;
        p->now = &segments[HEADER];
        put_bytes(p, at, len);
        end_piece(p->now);
        p->now = line;
        return;
    }
    const char *end = memchr(at, '\n', len < 512 ? len : 512);
    size_t first = end != NULL ? (size_t)(end - at) + 1 : len < 512 ? len : 0;
    put_bytes(p, at, first);
    end_piece(p->now);
    p->now = line + 1;
    put_bytes(p, at + first, len - first);
    leave_head(p);
}

static void put_atom(struct place *p, uint64_t tag, struct atom atom)
{
    leave_head(p);
    struct hasher *h = p->now;
    end_piece(h);
    uint64_t words[6] = {h->state.low,    h->state.high,    tag,
                         atom.digest.low, atom.digest.high, atom.weight};
    h->state = hash128(h->secret, words, sizeof words);
    h->bytes += atom.weight;
    h->has_other |= tag == 0x61746f6d;
    if (tag == 0x61746f6d) {
        h->set.low += atom.digest.low;
        h->set.high += atom.digest.high;
    }
    read_points(h);
}

static void put_value(struct place *p, const json_t *v)
{
    put_atom(p, 0x61746f6d, model_atom_of(p->now->secret, v));
}

static void put_separator(struct place *p)
{
    if (!in_line(p))
        put_atom(p, 0x73657061, (struct atom){zero, 0});
}

/* --- walking the prompt ----------------------------------------------------------------------- */

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
    return strcmp(key, "type") == 0 && model_is_text(v) &&
           (strcmp(json_string_value(v), "text") == 0 ||
            strcmp(json_string_value(v), "input_text") == 0 ||
            strcmp(json_string_value(v), "output_text") == 0);
}

static void put_content(struct place *p, const json_t *v);

static void put_part(struct place *p, const json_t *part)
{
    end_piece(p->now);
    const json_t *content = json_object_get(part, "content");
    const json_t *text = json_object_get(part, "text");
    bool content_streams =
        model_is_text(content) || json_is_array(content) || json_is_object(content);
    if (content_streams)
        put_content(p, content);
    else if (model_is_text(text))
        put_text(p, json_string_value(text), json_string_length(text));
    struct atom sum = {zero, 0};
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)part, key, member)
    {
        if (strcmp(key, "cache_control") == 0 || json_is_null(member) ||
            is_text_type(key, member) || (strcmp(key, "content") == 0 && content_streams) ||
            (strcmp(key, "text") == 0 && model_is_text(text)))
            continue;
        uint64_t before = sum.weight;
        model_add_member(p->now->secret, &sum, key,
                         model_atom_in(p->now->secret, member, model_is_typed(key), is_media(key)));
        if (is_media(key))
            sum.weight = before + 4096;
        if (is_media(key))
            leave_head(p);
        if (strstr(key, "audio") != NULL)
            p->now->content.media[CHAIN_SOUND] += is_media(key);
        else if (strstr(key, "video") != NULL || strstr(key, "file") != NULL)
            p->now->content.media[CHAIN_FILM] += is_media(key);
        else
            p->now->content.media[CHAIN_IMAGE] += is_media(key);
    }
    if (sum.digest.low != 0 || sum.digest.high != 0)
        put_atom(p, 0x61746f6d, sum);
}

static void put_content(struct place *p, const json_t *v)
{
    if (model_is_text(v))
        put_text(p, json_string_value(v), json_string_length(v));
    else if (json_is_object(v))
        put_part(p, v);
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        const json_t *part = json_array_get(v, i);
        bool apart = i > 0 && (model_is_text(part) || json_is_array(part) || json_is_object(part));
        if (apart)
            put_separator(p);
        if (json_is_object(part))
            put_part(p, part);
        else if (model_is_text(part))
            put_text(p, json_string_value(part), json_string_length(part));
        else
            put_value(p, part);
    }
}

/* The number of points of each segment when a message began. */
struct counts {
    unsigned of[SEGMENTS];
};

static struct counts counts_now(void)
{
    struct counts counts;
    for (int i = 0; i < SEGMENTS; i++)
        counts.of[i] = segments[i].count;
    return counts;
}

static void note_speaker(const struct place *p, const char *role, uint64_t began)
{
    if (p->whole != &segments[TEXT])
        return;
    bool is_system =
        role != NULL && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
    if (is_system && said.spoke)
        said.late = p->now->state;
    said.is_led |= is_system && !said.spoke;
    if (!is_system && !said.spoke && said.is_led)
        said.from = began;
    said.spoke |= !is_system;
}

/* A head's end points, which come later, belong to the head's message. */
static void put_message_end(struct place *p, struct atom sum, const char *role, size_t role_len,
                            const struct counts *before, uint64_t began)
{
    end_piece(p->now);
    note_speaker(p, role, began);
    if (role != NULL) {
        uint64_t digest = model_string_digest(p->now->secret, role, role_len).low;
        for (struct hasher *h = p->whole == &segments[TEXT] ? &segments[TEXT_LINE] : p->whole;
             h <= p->whole; h++) {
            for (unsigned i = before->of[h - segments]; i < h->count; i++)
                h->points[i].id = hash_mix(h->points[i].id ^ digest);
            h->end_salt = p->head_past || h == p->whole ? h->end_salt : digest;
        }
        struct hash128 member = model_mix(p->now->secret, 0, (struct hash128){.low = digest}, zero);
        sum.digest.low += member.low;
        sum.digest.high += member.high;
    }
    p->head_past = true;
    sum.weight += 16;
    put_atom(p, 0x61746f6d, sum);
}

static void put_message(struct place *p, const json_t *message)
{
    end_piece(p->now);
    struct counts before = counts_now();
    uint64_t began = p->now->bytes;
    const json_t *content = json_object_get(message, "content");
    bool streams = model_is_text(content) || json_is_array(content) || json_is_object(content);
    if (streams)
        put_content(p, content);
    struct atom sum = {zero, 0};
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)message, key, member)
    {
        if (strcmp(key, "cache_control") != 0 && strcmp(key, "role") != 0 &&
            !json_is_null(member) && !(streams && strcmp(key, "content") == 0))
            model_add_member(p->now->secret, &sum, key,
                             model_atom_in(p->now->secret, member, model_is_typed(key), false));
    }
    const json_t *role = json_object_get(message, "role");
    bool has_role = model_is_text(role);
    put_message_end(p, sum, has_role ? json_string_value(role) : NULL,
                    has_role ? json_string_length(role) : 0, &before, began);
}

static bool id_of(const json_t *v, uint32_t *id)
{
    if (!model_is_number(v) || json_string_length(v) > 11 ||
        strspn(json_string_value(v) + 1, "0123456789") + 1 != json_string_length(v))
        return false;
    unsigned long long value = strtoull(json_string_value(v) + 1, NULL, 10);
    *id = (uint32_t)value;
    return value <= UINT32_MAX;
}

static void put_list(struct place *p, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        uint32_t id;
        if (i > 0 && (model_is_text(v) || json_is_array(v)))
            put_separator(p);
        if (model_is_text(v)) {
            put_text(p, json_string_value(v), json_string_length(v));
        } else if (json_is_array(v)) {
            put_list(p, v);
        } else if (json_is_object(v)) {
            put_message(p, v);
        } else if (id_of(v, &id)) {
            leave_head(p);
            struct hasher *h = p->now;
            bool other = h->has_other;
            char bytes[4] = {(char)id, (char)(id >> 8), (char)(id >> 16), (char)(id >> 24)};
            h->has_ids = true;
            put_bytes(p, bytes, 4);
            h->has_other = other;
        } else {
            put_value(p, v);
        }
    }
}

static void put_segment(struct hasher *whole, const json_t *body, const char *const *names)
{
    struct place place = {.now = whole, .whole = whole};
    struct place *p = &place;
    struct counts before = counts_now();
    for (; *names != NULL; names++) {
        const json_t *v = json_object_get(body, *names);
        if (v == NULL || json_is_null(v))
            continue;
        bool is_content = strcmp(*names, "system") == 0 || strcmp(*names, "instructions") == 0;
        if ((is_content || strcmp(*names, "messages") == 0 || strcmp(*names, "input") == 0) &&
            whole > segments)
            place.now = whole - 2;
        place.may_be_header = is_content && !json_is_string(v);
        bool is_plain = !json_is_string(v) && !json_is_array(v) && !json_is_object(v);
        if (is_plain || model_is_number(v)) {
            put_value(p, v);
        } else if (is_content) {
            put_content(p, v);
        } else if (json_is_array(v)) {
            put_list(p, v);
        } else if (json_is_object(v)) {
            put_message(p, v);
        } else {
            put_text(p, json_string_value(v), json_string_length(v));
            if (strcmp(*names, "input") == 0)
                put_message_end(p, (struct atom){zero, 0}, "user", 4, &before, 0);
        }
        break;
    }
    end_piece(p->now);
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
        if (!model_is_text(v) && names[i][1] != NULL)
            v = json_object_get(body, names[i][1]);
        if (!model_is_text(v)) {
            CHECK(buf_append_char(&bytes, 0) == 0);
            continue;
        }
        size_t len = json_string_length(v);
        if (len <= 255) {
            CHECK(buf_append_char(&bytes, 1) == 0 && buf_append_char(&bytes, (char)len) == 0);
            CHECK(buf_append(&bytes, json_string_value(v), len) == 0);
        } else {
            struct hash128 d = model_string_digest(secret, json_string_value(v), len);
            CHECK(buf_append_char(&bytes, 2) == 0 && buf_append_char(&bytes, 32) == 0);
            CHECK(buf_printf(&bytes, "%016llx%016llx", (unsigned long long)d.high,
                             (unsigned long long)d.low) == 0);
        }
    }
    struct hash128 digest = hash128(secret, bytes.at, bytes.len);
    buf_free(&bytes);
    return digest;
}

static struct hash128 arguments_of(const struct hash_secret *secret, const json_t *body)
{
    static const char *const names[] = {
        "chat_template",   "chat_template_kwargs",  "reasoning_effort",   "reasoning",
        "thinking",        "output_config",         "add_special_tokens", "mm_processor_kwargs",
        "media_io_kwargs", "truncate_prompt_tokens"};
    struct atom sum = {zero, 0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *v = json_object_get(body, names[i]);
        if (v != NULL && !json_is_null(v) && !(json_is_object(v) && json_object_size(v) == 0))
            model_add_member(secret, &sum, names[i], model_atom_of(secret, v));
    }
    return sum.digest;
}

static void end_point(struct hasher *h)
{
    uint32_t at = h->count == 0 ? 0 : h->points[h->count - 1].blocks;
    uint32_t beyond = (uint32_t)(h->bytes / 256) - at;
    uint8_t code = CHECKPOINT_CODE_MAX;
    if (beyond == 0)
        return;
    while (checkpoint_weight(code) > beyond)
        code--;
    uint64_t id = h->state.low;
    h->points[h->count++] =
        (struct chain_point){.id = h->end_salt != 0 ? hash_mix(id ^ h->end_salt) : id,
                             .blocks = at + checkpoint_weight(code),
                             .code = code,
                             .media = (uint16_t)chain_media(&h->content)};
}

static bool is_gone(struct rendering rendering, int segment, int first)
{
    return (segment == HEADER && !rendering.counts_header) ||
           (segment == first && rendering.lead > 0) ||
           (segment == first + 1 && rendering.lead == 2);
}

/* The segments seen by an engine, in the engine's order. */
static unsigned order_of(struct rendering rendering, struct hasher **out)
{
    bool has_system = false;
    unsigned count = 0;
    for (int i = SYSTEM_LINE; i <= SYSTEM; i++)
        has_system |= segments[i].bytes > 0;
    int first = has_system ? SYSTEM_LINE : TEXT_LINE;
    uint64_t left = 0; /* less than a block after the lead: the lead is the prompt, and counts */
    for (int i = HEADER; i < SEGMENTS; i++)
        left += is_gone(rendering, i, first) ? 0 : segments[i].bytes;
    if (left < 256)
        rendering.lead = 0;
    bool tools = segments[TOOLS].bytes > 0;
    if (tools && !rendering.tools_after)
        out[count++] = &segments[TOOLS];
    for (int i = HEADER; i < SEGMENTS; i++) {
        if (!is_gone(rendering, i, first) && segments[i].bytes > 0)
            out[count++] = &segments[i];
        if (tools && rendering.tools_after && i == (has_system ? SYSTEM : TEXT_BLOCK))
            out[count++] = &segments[TOOLS];
    }
    return count;
}

void model_chain(const struct hash_secret *secret, const json_t *body, struct rendering rendering,
                 struct chain *out)
{
    static const char *const tools[] = {"tools", "functions", NULL};
    static const char *const system_[] = {"system", "instructions", "documents", NULL};
    static const char *const prompt[] = {"input_ids", "token_ids", "messages", "prompt",
                                         "input",     "text",      "query",    NULL};
    static const unsigned max[] = {96, 2, 2, 64, 96, 2, 64, 256};
    struct hash128 before = namespace_of(secret, body), given = arguments_of(secret, body);
    if (!rendering.no_arguments && (given.low != 0 || given.high != 0)) {
        uint64_t words[5] = {before.low, before.high, given.low, given.high, 0x61726773};
        before = hash128(secret, words, sizeof words);
    }
    memset(segments, 0, sizeof segments);
    memset(&said, 0, sizeof said);
    for (int i = 0; i < SEGMENTS; i++) {
        segments[i].secret = secret;
        segments[i].max = max[i];
    }
    put_segment(&segments[TOOLS], body, tools);
    put_segment(&segments[SYSTEM], body, system_);
    put_segment(&segments[TEXT], body, prompt);
    *out = (struct chain){.length = 0};
    uint32_t blocks = 0;
    struct hasher *order[SEGMENTS];
    unsigned count = order_of(rendering, order);
    for (unsigned i = 0; i < count; i++) {
        struct hasher *h = order[i];
        bool sorted = h == &segments[TOOLS] && rendering.tools_sorted;
        struct hash128 state = sorted ? h->set : h->state;
        if (i + 1 < count) /* the end counts, because another segment follows */
            end_point(h);
        uint64_t form = (uint64_t)(h - segments) << 32 | (h->has_ids ? 0x696473 : 0);
        /* If an engine moves late system messages to the head, they come before the
         * conversation. */
        bool is_said = h == &segments[TEXT] || (h > &segments[SYSTEM] && !said.is_led);
        struct hash128 later = before;
        if (rendering.late_first && is_said && (said.late.low != 0 || said.late.high != 0)) {
            uint64_t words[5] = {before.low, before.high, said.late.low, said.late.high,
                                 0x6c617465};
            later = hash128(secret, words, sizeof words);
        }
        for (unsigned k = 0; k < h->count; k++) {
            bool behind = 256 * (uint64_t)h->points[k].blocks > said.from;
            struct hash128 above = behind ? later : before;
            uint64_t words[5] = {sorted ? state.low : h->points[k].id, above.low, above.high, form,
                                 h->points[k].blocks};
            h->points[k].id = hash64(secret, words, sizeof words);
            h->points[k].blocks += blocks;
            h->points[k].media = (uint16_t)(h->points[k].media + chain_media(&out->content));
            out->points[out->length++] = h->points[k];
        }
        if (out->length > 0)
            blocks = out->points[out->length - 1].blocks;
        uint64_t words[6] = {later.low, later.high, state.low, state.high, h->bytes, form};
        before = hash128(secret, words, sizeof words);
        out->bytes += h->bytes;
        http_content_add(&out->content, &h->content);
    }
    const struct hasher *text = &segments[TEXT];
    out->token_ids = text->has_ids && !text->has_other && out->bytes == text->bytes;
}
