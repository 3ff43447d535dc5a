#include "tests/engine-sim/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "http/json.h"
#include "tests/engine-sim/ask_internal.h"

enum { MEDIA_TOKENS = 64, SPECIAL_IM_START = 1, SPECIAL_IM_END, SPECIAL_TOOLS, SPECIAL_MEDIA };

struct reader {
    struct sim_ask *ask;
    struct http_json json;
    struct slice in;
    unsigned depth;
    bool is_object;
    bool begins; /* the next piece begins a tool */
    enum section section;
    struct slice top; /* key of the outermost object */
    struct slice key; /* the last key at any depth */
};

static bool is(struct slice s, const char *text)
{
    return slice_equal(s, slice_of_cstr(text));
}

/* The section under a key of the outermost object. */
static enum section section_of(struct slice key)
{
    static const struct {
        const char *key;
        enum section section;
    } known[] = {
        {"messages", MESSAGES},     {"input", MESSAGES},
        {"system", SYSTEM},         {"instructions", SYSTEM},
        {"tools", TOOLS},           {"functions", TOOLS},
        {"prompt", PROMPT},         {"text", PROMPT},
        {"input_ids", PROMPT},      {"tokens", PROMPT},
        {"stream_options", NESTED}, {"tool_choice", NESTED},
        {"function_call", NESTED},  {"sampling_params", NESTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is(key, known[i].key))
            return known[i].section;
    return FIELDS;
}

static struct sim_piece *piece_add(struct sim_ask *a, enum section section, enum kind kind)
{
    if (a->piece_count == a->piece_cap) {
        a->piece_cap = a->piece_cap == 0 ? 32 : a->piece_cap * 2;
        a->pieces = realloc(a->pieces, a->piece_cap * sizeof *a->pieces);
        CHECK(a->pieces != NULL);
    }
    struct sim_piece *p = &a->pieces[a->piece_count++];
    *p = (struct sim_piece){.section = (uint8_t)section, .kind = (uint8_t)kind};
    return p;
}

/* Unescaping never makes a body longer, so all texts of a body together fit in the body's
 * length. */
static struct slice draw_text(struct reader *r)
{
    struct sim_ask *a = r->ask;
    char *at = a->text + a->text_len;
    size_t len = 0;
    while (http_json_in_text(&r->json) && r->in.len > 0)
        len += http_json_text(&r->json, &r->in, at + len, HTTP_JSON_SLACK + r->in.len);
    a->text_len += len;
    return slice_of(at, len);
}

static void field_string(struct sim_ask *a, struct slice top, struct slice text)
{
    if (is(top, "model"))
        a->model = text;
    else if (is(top, "request_id") || is(top, "rid"))
        a->request_id = text;
    else if (is(top, "previous_response_id"))
        a->previous_response = text;
    else if (is(top, "cache_salt")) {
        a->cache_salt = text;
        a->empty_salt = text.len == 0;
    } else if (is(top, "tool_choice"))
        a->tool_choice = is(text, "required") || is(text, "any") ? SIM_TOOL_REQUIRED
                         : is(text, "none")                      ? SIM_TOOL_NONE
                                                                 : SIM_TOOL_AUTO;
}

static void message_text(struct reader *r, struct slice text)
{
    struct sim_ask *a = r->ask;
    bool in_list = r->depth >= 3;
    if (in_list && r->depth == 3 && is(r->key, "role")) {
        for (size_t i = a->piece_count; i-- > 0;)
            if (a->pieces[i].section == MESSAGES && a->pieces[i].kind == MESSAGE) {
                a->pieces[i].role = text;
                return;
            }
    }
    if (in_list && (is(r->key, "type") || is(r->key, "id") || is(r->key, "call_id") ||
                    is(r->key, "tool_call_id") || is(r->key, "status")))
        return;
    if (!in_list) /* input: "text" */
        piece_add(a, MESSAGES, MESSAGE)->role = SLICE("user");
    bool media = is(r->key, "url") || is(r->key, "image_url") || is(r->key, "data");
    bool reasoning =
        is(r->key, "reasoning_content") || is(r->key, "reasoning") || is(r->key, "thinking");
    piece_add(a, MESSAGES, media ? MEDIA : reasoning ? REASONING : TEXT)->text = text;
}

static void tool_piece(struct reader *r, struct slice text)
{
    struct sim_piece *p = piece_add(r->ask, TOOLS, TEXT);
    p->text = text;
    p->begins = r->begins;
    r->begins = false;
}

static void tool_text(struct reader *r, struct slice text)
{
    struct sim_ask *a = r->ask;
    if (is(r->key, "name") && r->depth <= 4 && a->tool_name.len == 0)
        a->tool_name = text;
    tool_piece(r, text);
}

static void on_string(struct reader *r, struct slice text)
{
    switch (r->section) {
    case MESSAGES:
        message_text(r, text);
        break;
    case TOOLS:
        tool_text(r, text);
        break;
    case SYSTEM:
        if (!is(r->key, "type")) {
            struct sim_piece *p = piece_add(r->ask, SYSTEM, TEXT);
            p->text = text;
            p->begins = r->depth > 1;
        }
        break;
    case PROMPT:
        piece_add(r->ask, PROMPT, TEXT)->text = text;
        break;
    case NESTED:
        if (!is(r->top, "tool_choice"))
            break;
        if (is(r->key, "name")) {
            r->ask->tool_name = text;
            r->ask->tool_choice = SIM_TOOL_REQUIRED;
        } else if (is(text, "required") || is(text, "any") || is(text, "none")) {
            field_string(r->ask, r->top, text);
        }
        break;
    default:
        if (r->depth == 1)
            field_string(r->ask, r->top, text);
    }
}

bool sim_ask_integer(struct slice text, int64_t *out)
{
    bool minus = text.len > 0 && text.at[0] == '-';
    uint64_t value = 0;
    if (minus || (text.len > 0 && text.at[0] == '+'))
        text = slice_skip(text, 1);
    if (slice_to_u64(text, &value) != 0 || value > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

static void on_number(struct reader *r, struct slice number)
{
    struct sim_ask *a = r->ask;
    uint64_t value = 0;
    bool whole = slice_to_u64(number, &value) == 0 && value <= INT64_MAX;
    bool id_of_input = r->section == MESSAGES && is(r->top, "input") && r->depth <= 3;
    if (r->section == PROMPT || id_of_input) {
        a->wrong_tokens |= !whole || value >= SIM_VOCABULARY;
        piece_add(a, r->section, TOKEN)->id = (uint32_t)(value % SIM_VOCABULARY);
    } else if (r->section == TOOLS) {
        tool_piece(r, number);
    } else if (r->depth == 1 && is(r->key, "routed_dp_rank")) {
        (void)sim_ask_integer(number, &a->routed_dp_rank);
    } else if (r->depth == 1 && is(r->key, "data_parallel_rank")) {
        (void)sim_ask_integer(number, &a->data_parallel_rank);
    } else if (!whole) {
        return;
    } else if (is(r->key, "max_completion_tokens") ||
               (!a->has_max_tokens &&
                (is(r->key, "max_tokens") || is(r->key, "max_output_tokens") ||
                 is(r->key, "max_new_tokens")))) {
        a->has_max_tokens = is(r->key, "max_completion_tokens");
        a->max_tokens = (int64_t)value;
    } else if (is(r->key, "min_tokens") || is(r->key, "min_new_tokens")) {
        a->min_tokens = (int64_t)value;
    } else if (is(r->key, "seed")) {
        a->seed = value;
    }
}

static void on_bool(struct reader *r, bool value)
{
    struct sim_ask *a = r->ask;
    if (is(r->key, "ignore_eos"))
        a->ignore_eos = value;
    else if (is(r->top, "stream_options") && is(r->key, "include_usage"))
        a->include_usage = value;
    else if (r->depth == 1 && is(r->key, "stream"))
        a->stream = value;
    else if (r->depth == 1 && is(r->key, "return_token_ids"))
        a->return_token_ids = value;
    else if (r->depth == 1 && is(r->key, "store"))
        a->store = value;
    else if (r->depth == 1 && is(r->key, "background"))
        a->background = value;
}

static void on_key(struct reader *r, struct slice key)
{
    struct sim_ask *a = r->ask;
    r->key = key;
    if (r->depth > 1) {
        if (r->section == TOOLS)
            tool_piece(r, key);
        return;
    }
    r->top = key;
    r->section = section_of(key);
    a->has_messages |= is(key, "messages");
    a->has_tools |= is(key, "tools");
    a->has_prompt |= r->section == PROMPT || is(key, "input");
}

/* Returns false at the end, good or bad. */
static bool step(struct reader *r)
{
    enum http_json_token token = http_json_next(&r->json, &r->in);
    switch (token) {
    case HTTP_JSON_ERROR:
    case HTTP_JSON_MORE:
        return false;
    case HTTP_JSON_OBJECT_BEGIN:
        r->is_object |= r->depth++ == 0;
        if (r->section == PROMPT) /* the Responses API's "text" is something else */
            r->section = FIELDS;
        r->begins |= r->section == TOOLS && r->depth == 3;
        if (r->section == MESSAGES && r->depth == 3)
            (void)piece_add(r->ask, MESSAGES, MESSAGE);
        return true;
    case HTTP_JSON_ARRAY_BEGIN:
        r->depth++;
        return r->depth > 1;
    case HTTP_JSON_OBJECT_END:
        r->key = slice_of("", 0);
        r->depth--;
        return true;
    case HTTP_JSON_ARRAY_END:
        r->depth--;
        return true;
    case HTTP_JSON_KEY:
        on_key(r, draw_text(r));
        return !http_json_in_text(&r->json); /* or the body ends inside the text */
    case HTTP_JSON_STRING:
        on_string(r, draw_text(r));
        return r->depth > 0 && !http_json_in_text(&r->json);
    case HTTP_JSON_NUMBER:
        on_number(r, http_json_number(&r->json));
        return r->depth > 0;
    default:
        on_bool(r, token == HTTP_JSON_TRUE);
        return r->depth > 0;
    }
}

int sim_ask_parse(struct sim_ask *a, struct slice body)
{
    *a = (struct sim_ask){.max_tokens = -1,
                          .store = true,
                          .routed_dp_rank = SIM_ASK_NO_RANK,
                          .data_parallel_rank = SIM_ASK_NO_RANK};
    a->text = malloc(body.len + 4 * HTTP_JSON_SLACK);
    CHECK(a->text != NULL);
    struct reader r = {.ask = a, .in = body, .section = FIELDS};
    http_json_init(&r.json);
    while (step(&r))
        ;
    if (r.is_object && r.in.len == 0 && http_json_finish(&r.json))
        return 0;
    a->error_at = body.len - r.in.len;
    return ERR_SYNTAX;
}

void sim_ask_free(struct sim_ask *a)
{
    free(a->text);
    free(a->pieces);
    *a = (struct sim_ask){.max_tokens = -1};
}

struct renderer {
    const struct sim_ask *ask;
    void (*text)(void *, struct slice);
    void (*token)(void *, uint32_t id);
    void *context;
};

static void render_media(const struct renderer *out, struct slice media)
{
    uint64_t hash = 0;
    for (size_t i = 0; i + 8 <= media.len; i += 8) {
        uint64_t part;
        memcpy(&part, media.at + i, sizeof part);
        hash = hash_mix(hash ^ part);
    }
    out->token(out->context, SPECIAL_MEDIA);
    for (unsigned i = 0; i < MEDIA_TOKENS; i++)
        out->token(out->context, (uint32_t)(hash_mix(hash + media.len + i) % SIM_VOCABULARY));
}

static void render_piece(const struct renderer *out, const struct sim_piece *p, bool *open)
{
    if (p->kind == TOKEN) {
        out->token(out->context, p->id);
    } else if (p->kind == MEDIA) {
        render_media(out, p->text);
    } else if (p->kind == MESSAGE) {
        if (*open)
            out->token(out->context, SPECIAL_IM_END);
        *open = true;
        out->token(out->context, SPECIAL_IM_START);
        out->text(out->context, p->role.len > 0 ? p->role : SLICE("user"));
        out->text(out->context, SLICE("\n"));
    } else {
        out->text(out->context, p->text);
    }
}

static void render_section(const struct renderer *out, enum section section)
{
    bool open = false;
    for (size_t i = 0; i < out->ask->piece_count; i++) {
        const struct sim_piece *p = &out->ask->pieces[i];
        if (p->section != section)
            continue;
        if (!open && section < MESSAGES) {
            open = true;
            out->token(out->context, section == TOOLS ? SPECIAL_TOOLS : SPECIAL_IM_START);
        }
        render_piece(out, p, &open);
    }
    if (open)
        out->token(out->context, SPECIAL_IM_END);
}

static void render(const struct renderer *out, bool continues)
{
    bool chat = false;
    for (size_t i = 0; i < out->ask->piece_count; i++)
        chat |= out->ask->pieces[i].section != PROMPT;
    if (continues)
        out->token(out->context, SPECIAL_IM_END);
    for (unsigned section = 0; section < SECTIONS; section++)
        render_section(out, (enum section)section);
    if (chat || continues) {
        out->token(out->context, SPECIAL_IM_START);
        out->text(out->context, SLICE("assistant"));
        out->text(out->context, SLICE("\n"));
    }
}

static void chain_text(void *chain, struct slice text)
{
    sim_chain_add_text(chain, text);
}

static void chain_token(void *chain, uint32_t id)
{
    sim_chain_add(chain, id);
}

void sim_ask_render(const struct sim_ask *a, struct sim_chain *chain, bool continues)
{
    const struct renderer out = {a, chain_text, chain_token, chain};
    render(&out, continues);
}

struct listing {
    void (*each)(void *, uint32_t id, struct slice text);
    void *context;
};

static void list_text(void *context, struct slice text)
{
    const struct listing *l = context;
    while (text.len > 0) {
        struct slice token = sim_token_cut(&text);
        l->each(l->context, sim_token_id(token), token);
    }
}

static void list_token(void *context, uint32_t id)
{
    const struct listing *l = context;
    l->each(l->context, id, slice_of("", 0));
}

void sim_ask_tokens(const struct sim_ask *a, void (*each)(void *, uint32_t id, struct slice text),
                    void *context)
{
    struct listing listing = {each, context};
    const struct renderer out = {a, list_text, list_token, &listing};
    render(&out, false);
}
