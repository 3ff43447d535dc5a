#include "http/skim.h"

#include <string.h>

#include "base/check.h"
#include "http/engine_field.h"
#include "http/member.h"
#include "http/number.h"
#include "http/skim_internal.h"

/* Kinds of open objects and arrays. */
enum kind {
    IN_BODY,
    IN_OBJECT, /* an OBJECT slot */
    IN_LIST,
    IN_MESSAGE,
    IN_PARTS,
    IN_PART,
    IN_ATOM_ARRAY,
    IN_ATOM_OBJECT,
};

enum { MESSAGE_BYTES = 16 }; /* bytes added to a message by a chat template: about 4 tokens */

/* --- atoms ----------------------------------------------------------------- */

static struct hash128 mix(const struct http_skim *s, uint64_t tag, struct hash128 a,
                          struct hash128 b)
{
    const uint64_t words[] = {tag, a.low, a.high, b.low, b.high};
    return hash128(s->secret, words, sizeof words);
}

static const struct hash128 nothing = {.low = 0, .high = 0};

static struct http_skim_frame *frame_top(struct http_skim *s)
{
    CHECK(s->depth > 0);
    return &s->frames[s->depth - 1];
}

static void frame_add(const struct http_skim *s, struct http_skim_frame *f, uint64_t key,
                      struct hash128 value, uint64_t weight)
{
    struct hash128 member = mix(s, key, value, nothing);
    f->sum.low += member.low;
    f->sum.high += member.high;
    f->weight += weight;
}

/* Adds a complete value, but no streamed text, to the innermost container. */
static void deliver(struct http_skim *s, struct hash128 value, uint64_t weight)
{
    struct http_skim_frame *f = frame_top(s);
    switch ((enum kind)f->kind) {
    case IN_PART:
        http_skim_medium_past(s, f);
        frame_add(s, f, f->key, value, f->is_media ? CHAIN_MEDIUM_BYTES : f->key_weight + weight);
        break;
    case IN_MESSAGE:
    case IN_ATOM_OBJECT:
        frame_add(s, f, f->key, value, f->key_weight + weight);
        break;
    case IN_BODY:
        if (f->takes_argument)
            frame_add(s, f, f->key, value, 0);
        else
            http_prompt_atom(&s->prompt, value, weight);
        break;
    case IN_ATOM_ARRAY:
        f->sum = mix(s, 0, f->sum, value);
        f->weight += weight;
        break;
    default:
        http_prompt_atom(&s->prompt, value, weight);
        break;
    }
}

/* --- objects and arrays ---------------------------------------------------- */

static void push(struct http_skim *s, enum kind kind)
{
    if (s->depth == HTTP_SKIM_DEPTH_MAX) {
        s->failed = true;
        return;
    }
    const struct http_skim_frame *around = s->depth > 0 ? frame_top(s) : NULL;
    bool is_atom = around != NULL && (kind == IN_ATOM_ARRAY || kind == IN_ATOM_OBJECT);
    struct http_skim_frame *f = &s->frames[s->depth++];
    f->kind = (uint8_t)kind;
    f->rank = 0;
    f->is_first = true;
    f->is_media = is_atom && around->is_media;
    f->is_typed =
        !is_atom || (around->is_typed && (around->kind == IN_ATOM_ARRAY || around->key_is_typed));
    f->key_is_typed = false;
    f->takes_argument = false;
    f->media = (struct chain_content){0};
    f->role = 0;
    f->by = HTTP_PROMPT_BY_OTHER;
    f->weight = 0;
    f->sum = nothing;
    if (kind == IN_MESSAGE || kind == IN_PART)
        f->mark = http_prompt_mark(&s->prompt);
}

/* True if the current member of a message or part streams: the highest rank does, and of equal
 * ranks the last. Drops the text of an earlier member. */
static bool claim(struct http_skim *s, uint8_t rank)
{
    struct http_skim_frame *f = frame_top(s);
    if (rank < f->rank)
        return false;
    if (f->rank != 0)
        http_prompt_rewind(&s->prompt, &f->mark);
    f->rank = rank;
    return true;
}

/* True if the body's current member fills the segment, by rank. Then opens the segment. */
static bool claim_segment(struct http_skim *s, bool is_list)
{
    uint8_t segment = s->member->index;
    if (s->member->rank < s->ranks[segment])
        return false;
    s->ranks[segment] = s->member->rank;
    if (s->member->has_head)
        http_prompt_open_head(&s->prompt, (enum http_prompt_segment)segment, is_list);
    else
        http_prompt_open(&s->prompt, (enum http_prompt_segment)segment);
    frame_top(s)[1].mark = http_prompt_mark(&s->prompt); /* start of a string that is a message */
    return true;
}

/* Call before each element of an array: separates elements that stand apart. */
static void next_element(struct http_skim *s, bool stands_apart)
{
    struct http_skim_frame *f = frame_top(s);
    if (!f->is_first && stands_apart)
        http_prompt_separate(&s->prompt);
    f->is_first = false;
}

/* Closes the segment if the complete value is a member of the body itself. */
static void end_segment(struct http_skim *s)
{
    if (frame_top(s)->kind == IN_BODY)
        http_prompt_close(&s->prompt);
}

static enum http_prompt_by said_by(struct slice role)
{
    if (slice_equal(role, SLICE("user")))
        return HTTP_PROMPT_BY_USER;
    bool is_system = slice_equal(role, SLICE("system")) || slice_equal(role, SLICE("developer"));
    return is_system ? HTTP_PROMPT_BY_SYSTEM : HTTP_PROMPT_BY_OTHER;
}

static void end_message(struct http_skim *s, struct http_skim_frame *f)
{
    if (f->role != 0) {
        http_prompt_tint(&s->prompt, &f->mark, f->role);
        frame_add(s, f, 0, (struct hash128){.low = f->role}, 0);
    }
    http_prompt_said(&s->prompt, (enum http_prompt_by)f->by, &f->mark);
    http_prompt_atom(&s->prompt, f->sum, f->weight + MESSAGE_BYTES);
}

static void end_container(struct http_skim *s)
{
    CHECK(s->depth > 0);
    struct http_skim_frame *f = &s->frames[--s->depth];
    switch ((enum kind)f->kind) {
    case IN_BODY:
    case IN_OBJECT:
        return;
    case IN_ATOM_ARRAY:
        deliver(s, mix(s, 'a', f->sum, nothing), f->weight);
        return;
    case IN_ATOM_OBJECT:
        if (!frame_top(s)->takes_argument || (f->sum.low | f->sum.high) != 0) /* an empty object is
                                                                               * no argument */
            deliver(s, mix(s, 'o', f->sum, nothing), f->weight);
        return;
    case IN_MESSAGE:
        end_message(s, f);
        break;
    case IN_PART:
        http_prompt_media(&s->prompt, &f->media);
        if ((f->sum.low | f->sum.high) != 0)
            http_prompt_atom(&s->prompt, f->sum, f->weight);
        break;
    case IN_LIST:
    case IN_PARTS:
        break;
    }
    end_segment(s);
}

/* --- members and values ---------------------------------------------------- */

/* The slot of a message's or part's member. */
static enum http_slot prompt_slot(struct http_skim_frame *f, struct slice name)
{
    if (slice_equal(name, SLICE("cache_control")))
        return HTTP_SLOT_SKIP;
    if (f->kind == IN_ATOM_OBJECT)
        return HTTP_SLOT_ATOM;
    f->is_media = false;
    if (slice_equal(name, SLICE("content")))
        return f->kind == IN_MESSAGE ? HTTP_SLOT_MESSAGE_CONTENT : HTTP_SLOT_PART_CONTENT;
    if (f->kind == IN_MESSAGE)
        return slice_equal(name, SLICE("role")) ? HTTP_SLOT_ROLE : HTTP_SLOT_MEMBER;
    f->is_media = http_member_is_media(name, &f->medium);
    if (slice_equal(name, SLICE("type")))
        return HTTP_SLOT_PART_TYPE;
    return slice_equal(name, SLICE("text")) ? HTTP_SLOT_PART_TEXT : HTTP_SLOT_MEMBER;
}

/* The slot of a member that routing does not use: perhaps an engine field. */
static uint8_t unknown_slot(struct http_skim *s, const struct http_skim_frame *f, struct slice name)
{
    const char *field = f->rank == HTTP_IN_METADATA ? NULL : http_engine_field_find(name);
    if (field == NULL)
        return HTTP_SLOT_SKIP;
    s->engine_name = field;
    return HTTP_SLOT_ENGINE;
}

static void end_key(struct http_skim *s)
{
    struct http_skim_frame *f = frame_top(s);
    struct slice name = http_skim_scratch_text(s);
    if (f->kind == IN_BODY || f->kind == IN_OBJECT) {
        s->member = http_member_find((enum http_member_parent)f->rank, name);
        s->slot = s->member != NULL ? s->member->slot : unknown_slot(s, f, name);
        f->takes_argument = s->slot == HTTP_SLOT_ARGUMENT;
        if (f->takes_argument)
            f->key = http_skim_scratch_digest(s).low;
        if (s->slot == HTTP_SLOT_NOTED || s->slot == HTTP_SLOT_GIVEN)
            s->flags[s->member->index] = true;
        if (s->slot == HTTP_SLOT_NOTED)
            s->slot = HTTP_SLOT_SKIP;
        return;
    }
    s->slot = (uint8_t)prompt_slot(f, name);
    if (s->slot == HTTP_SLOT_SKIP || s->slot == HTTP_SLOT_ROLE)
        return;
    f->key = http_skim_scratch_digest(s).low;
    f->key_weight = s->scratch_total;
    f->key_is_typed = f->is_typed && http_member_is_typed(name);
}

static void begin_string(struct http_skim *s)
{
    s->text = HTTP_SKIM_TO_PROMPT;
    switch ((enum http_slot)s->slot) {
    case HTTP_SLOT_SKIP:
    case HTTP_SLOT_NOTED: /* not possible: NOTED became SKIP */
    case HTTP_SLOT_INTEGER:
    case HTTP_SLOT_BOOLEAN:
    case HTTP_SLOT_GIVEN:
    case HTTP_SLOT_OBJECT:
        s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    case HTTP_SLOT_ENGINE:
        s->engine_field = s->engine_name;
        s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    case HTTP_SLOT_LIST:
    case HTTP_SLOT_CONTENT:
        if (!claim_segment(s, false))
            s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    case HTTP_SLOT_ELEMENT:
    case HTTP_SLOT_PART:
        next_element(s, true);
        break;
    case HTTP_SLOT_MESSAGE_CONTENT:
    case HTTP_SLOT_PART_CONTENT:
        if (!claim(s, 2))
            s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    case HTTP_SLOT_PART_TEXT:
        if (!claim(s, 1))
            s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    case HTTP_SLOT_FIELD:
    case HTTP_SLOT_ROLE:
    case HTTP_SLOT_PART_TYPE:
    case HTTP_SLOT_MEMBER:
    case HTTP_SLOT_ATOM:
    case HTTP_SLOT_ARGUMENT:
        http_skim_scratch_start(s);
        break;
    }
}

static void deliver_string(struct http_skim *s)
{
    struct hash128 digest =
        frame_top(s)->is_media ? http_skim_url_digest(s) : http_skim_scratch_digest(s);
    deliver(s, mix(s, 's', digest, nothing), s->scratch_total);
}

static void end_string(struct http_skim *s, uint64_t end)
{
    switch ((enum http_slot)s->slot) {
    case HTTP_SLOT_FIELD:
        http_skim_field_store(s, end);
        break;
    case HTTP_SLOT_ROLE:
        frame_top(s)->by = (uint8_t)said_by(http_skim_scratch_text(s));
        frame_top(s)->role = http_skim_scratch_digest(s).low;
        break;
    case HTTP_SLOT_PART_TYPE:
        if (http_member_is_text_type(http_skim_scratch_text(s)))
            break;
        deliver_string(s);
        break;
    case HTTP_SLOT_MEMBER:
    case HTTP_SLOT_ATOM:
    case HTTP_SLOT_ARGUMENT:
        deliver_string(s);
        break;
    case HTTP_SLOT_LIST:
    case HTTP_SLOT_CONTENT:
        if (s->text == HTTP_SKIM_TO_NOWHERE)
            break;
        if (s->member->is_user_message) {
            struct http_skim_frame *user = frame_top(s) + 1;
            *user = (struct http_skim_frame){.mark = user->mark,
                                             .by = HTTP_PROMPT_BY_USER,
                                             .role = hash128(s->secret, "user", 4).low};
            end_message(s, user);
        }
        http_prompt_close(&s->prompt);
        break;
    default:
        if (s->text == HTTP_SKIM_TO_PROMPT)
            http_prompt_text_end(&s->prompt);
        break;
    }
}

static void begin_container(struct http_skim *s, bool is_object)
{
    switch ((enum http_slot)s->slot) {
    case HTTP_SLOT_SKIP:
    case HTTP_SLOT_NOTED:
    case HTTP_SLOT_FIELD:
    case HTTP_SLOT_INTEGER:
    case HTTP_SLOT_BOOLEAN:
    case HTTP_SLOT_GIVEN:
    case HTTP_SLOT_ROLE:
        s->skip_depth = 1;
        break;
    case HTTP_SLOT_ENGINE:
        s->engine_field = s->engine_name;
        s->skip_depth = 1;
        break;
    case HTTP_SLOT_OBJECT:
        if (!is_object) {
            s->skip_depth = 1;
            break;
        }
        push(s, IN_OBJECT);
        frame_top(s)->rank = s->member->index;
        break;
    case HTTP_SLOT_LIST:
    case HTTP_SLOT_CONTENT:
        if (!claim_segment(s, true))
            s->skip_depth = 1;
        else if (s->slot == HTTP_SLOT_LIST)
            push(s, is_object ? IN_MESSAGE : IN_LIST);
        else
            push(s, is_object ? IN_PART : IN_PARTS);
        break;
    case HTTP_SLOT_ELEMENT:
        next_element(s, !is_object);
        push(s, is_object ? IN_MESSAGE : IN_LIST);
        break;
    case HTTP_SLOT_PART:
        next_element(s, true);
        push(s, is_object ? IN_PART : IN_ATOM_ARRAY);
        break;
    case HTTP_SLOT_MESSAGE_CONTENT:
    case HTTP_SLOT_PART_CONTENT:
        if (!claim(s, 2))
            s->skip_depth = 1;
        else
            push(s, is_object ? IN_PART : IN_PARTS);
        break;
    case HTTP_SLOT_PART_TEXT:
    case HTTP_SLOT_PART_TYPE:
    case HTTP_SLOT_MEMBER:
    case HTTP_SLOT_ATOM:
    case HTTP_SLOT_ARGUMENT:
        push(s, is_object ? IN_ATOM_OBJECT : IN_ATOM_ARRAY);
        break;
    }
}

/* --- numbers and literals -------------------------------------------------- */

static void deliver_scalar(struct http_skim *s, char tag, struct slice text)
{
    deliver(s, mix(s, (uint64_t)tag, hash128(s->secret, text.at, text.len), nothing), text.len);
}

/* Handles a number (`tag` n) or a literal (`tag` l), such as null. */
static void on_scalar(struct http_skim *s, char tag, struct slice text)
{
    bool is_null = tag == 'l' && text.at[0] == 'n';
    uint32_t id, bit;
    switch ((enum http_slot)s->slot) {
    case HTTP_SLOT_FIELD:
        bit = UINT32_C(1) << s->member->index;
        if ((s->present & bit) != 0 && s->fields[s->member->index].rank <= s->member->rank)
            s->present &= ~bit;
        s->odd |= is_null ? 0 : bit;
        break;
    case HTTP_SLOT_INTEGER:
        s->has_number[s->member->index] =
            tag == 'n' && http_number_to_i64(text, &s->numbers[s->member->index]);
        break;
    case HTTP_SLOT_BOOLEAN:
    case HTTP_SLOT_GIVEN:
        s->flags[s->member->index] = tag == 'l' ? text.at[0] == 't' : s->slot == HTTP_SLOT_GIVEN;
        break;
    case HTTP_SLOT_LIST:
    case HTTP_SLOT_CONTENT:
        if (is_null || !claim_segment(s, false))
            break;
        deliver_scalar(s, tag, text);
        http_prompt_close(&s->prompt);
        break;
    case HTTP_SLOT_ELEMENT:
        next_element(s, false);
        if (tag == 'n' && http_number_to_u32(text, &id))
            http_prompt_token_id(&s->prompt, id);
        else
            deliver_scalar(s, tag, text);
        break;
    case HTTP_SLOT_PART:
        next_element(s, false);
        deliver_scalar(s, tag, text);
        break;
    case HTTP_SLOT_MESSAGE_CONTENT:
    case HTTP_SLOT_PART_TEXT:
    case HTTP_SLOT_PART_CONTENT:
    case HTTP_SLOT_PART_TYPE:
    case HTTP_SLOT_MEMBER:
    case HTTP_SLOT_ARGUMENT:
        if (!is_null)
            deliver_scalar(s, tag, text);
        break;
    case HTTP_SLOT_ATOM:
        if (!is_null || !frame_top(s)->is_typed || frame_top(s)->kind != IN_ATOM_OBJECT)
            deliver_scalar(s, tag, text);
        break;
    case HTTP_SLOT_ENGINE:
        if (!is_null)
            s->engine_field = s->engine_name;
        break;
    case HTTP_SLOT_SKIP:
    case HTTP_SLOT_NOTED:
    case HTTP_SLOT_OBJECT:
    case HTTP_SLOT_ROLE:
        break;
    }
}

/* --- the parser's loop --------------------------------------------------- */

/* Skips a token inside an unused value. */
static void skip_token(struct http_skim *s, enum http_json_token token)
{
    switch (token) {
    case HTTP_JSON_OBJECT_BEGIN:
    case HTTP_JSON_ARRAY_BEGIN:
        s->skip_depth++;
        break;
    case HTTP_JSON_OBJECT_END:
    case HTTP_JSON_ARRAY_END:
        s->skip_depth--;
        break;
    case HTTP_JSON_KEY:
    case HTTP_JSON_STRING:
        s->text = HTTP_SKIM_TO_NOWHERE;
        break;
    default:
        break;
    }
}

static void set_element_slot(struct http_skim *s)
{
    switch ((enum kind)frame_top(s)->kind) {
    case IN_LIST:
        s->slot = HTTP_SLOT_ELEMENT;
        break;
    case IN_PARTS:
        s->slot = HTTP_SLOT_PART;
        break;
    case IN_ATOM_ARRAY:
        s->slot = HTTP_SLOT_ATOM;
        break;
    default:
        break;
    }
}

static void on_token(struct http_skim *s, enum http_json_token token)
{
    if (s->depth == 0) { /* the body must be an object */
        s->has_body = token == HTTP_JSON_OBJECT_BEGIN;
        s->failed = !s->has_body;
        if (s->has_body)
            push(s, IN_BODY);
        return;
    }
    if (s->skip_depth > 0) {
        skip_token(s, token);
        return;
    }
    set_element_slot(s);
    switch (token) {
    case HTTP_JSON_OBJECT_BEGIN:
    case HTTP_JSON_ARRAY_BEGIN:
        if (s->slot == HTTP_SLOT_FIELD)
            s->odd |= 1u << s->member->index;
        begin_container(s, token == HTTP_JSON_OBJECT_BEGIN);
        break;
    case HTTP_JSON_OBJECT_END:
    case HTTP_JSON_ARRAY_END:
        end_container(s);
        break;
    case HTTP_JSON_KEY:
        http_skim_scratch_start(s);
        break;
    case HTTP_JSON_STRING:
        begin_string(s);
        break;
    case HTTP_JSON_NUMBER:
        on_scalar(s, 'n', http_json_number(&s->json));
        break;
    case HTTP_JSON_TRUE:
        on_scalar(s, 'l', SLICE("true"));
        break;
    case HTTP_JSON_FALSE:
        on_scalar(s, 'l', SLICE("false"));
        break;
    case HTTP_JSON_NULL:
        on_scalar(s, 'l', SLICE("null"));
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

void http_skim_init(struct http_skim *s, const struct hash_secret *secret)
{
    memset(s, 0, offsetof(struct http_skim, json));
    s->secret = secret;
    http_json_init(&s->json);
    http_prompt_init(&s->prompt, secret);
}

void http_skim_feed(struct http_skim *s, const void *bytes, size_t len)
{
    struct slice in = slice_of(bytes, len);
    CHECK(!s->finished);
    s->fed += len;
    while (!s->failed && len > 0) {
        if (http_json_in_text(&s->json)) {
            bool is_key = s->json.is_key;
            http_skim_draw(s, &in);
            if (http_json_in_text(&s->json))
                return;
            if (http_json_failed(&s->json))
                s->failed = true;
            else if (s->skip_depth == 0 && is_key)
                end_key(s);
            else if (s->skip_depth == 0)
                end_string(s, s->fed - in.len);
            continue;
        }
        enum http_json_token token = http_json_next(&s->json, &in);
        if (token == HTTP_JSON_MORE)
            return;
        if (token == HTTP_JSON_STRING)
            s->string_at = s->fed - in.len;
        if (token == HTTP_JSON_ERROR)
            s->failed = true;
        else
            on_token(s, token);
    }
}
