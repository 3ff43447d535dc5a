#include "http/usage.h"

#include <string.h>

#include "base/check.h"
#include "http/error.h"
#include "http/number.h"

/* What an open object or array is, and so what the members in it mean. */
enum level {
    NOTHING,
    ANSWERS,  /* an array of answers */
    ANSWER,   /* the body or the event */
    RESPONSE, /* "response" or "message" of it: what an event of a stream is about */
    CHOICES,  /* array */
    CHOICE,   /* object */
    DELTA,    /* what a choice, or a content block, adds */
    FIGURES,  /* "usage" or "meta_info" */
    DETAILS,  /* of the prompt's tokens */
    TROUBLE,  /* "error" */
    FINISH,   /* "finish_reason" of SGLang's native form */
};

/* What the next value is for. */
enum slot {
    SKIP,
    ENTER, /* an object or array with the level that the slot names */
    TOKEN, /* carries tokens unless empty */
    ID,
    TYPE, /* of the event */
    OBJECT_NAME,
    FAILURE,
    KIND,  /* of an error, in a word */
    CODE,  /* the status that an error names, or a word */
    ABORT, /* the same, which makes it an error */
    SEQUENCE,
    FIGURE, /* FIGURE + n: seen[n] */
};

enum figure { PROMPT, COMPLETION, CACHED, INPUT, CACHE_READ, CACHE_CREATION, FIGURES_COUNT };

/* No engine counts so many tokens: a larger figure is no figure, and sums stay at it. So whatever
 * an engine says, adding up never overflows, here or in who uses the results. */
static const int64_t figure_max = INT64_C(1) << 40;

/* Where an SSE line stands. */
enum line { IN_NAME, AFTER_COLON, IN_DATA, IN_OTHER };

static const char done_mark[] = "[DONE]";
enum { DONE_LEN = sizeof done_mark - 1, DONE_NOT = 255 };

static const char byte_order_mark[] = "\xef\xbb\xbf";
enum { MARK_LEN = sizeof byte_order_mark - 1 };

struct known {
    uint8_t slot;
    uint8_t enters; /* the level of ENTER */
    struct slice name;
};

#define NAME(text)                                                                                 \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

/* A member that carries tokens may be an object or array too: then it must not be empty. */
static const struct known of_answer[] = {
    {ID, 0, NAME("id")},
    {TYPE, 0, NAME("type")},
    {OBJECT_NAME, 0, NAME("object")},
    {FAILURE, TROUBLE, NAME("error")},
    {CODE, 0, NAME("code")},
    {ENTER, FIGURES, NAME("usage")},
    {ENTER, FIGURES, NAME("meta_info")},
    {ENTER, CHOICES, NAME("choices")},
    {ENTER, RESPONSE, NAME("response")},
    {ENTER, RESPONSE, NAME("message")},
    {TOKEN, DELTA, NAME("delta")},
    {TOKEN, 0, NAME("text")},
    {TOKEN, 0, NAME("output_ids")},
    {SEQUENCE, 0, NAME("sequence_number")},
};
static const struct known of_response[] = {
    {ID, 0, NAME("id")},
    {FAILURE, TROUBLE, NAME("error")},
    {ENTER, FIGURES, NAME("usage")},
};
static const struct known of_trouble[] = {
    {CODE, 0, NAME("code")},
    {KIND, 0, NAME("type")},
};
static const struct known of_finish[] = {
    {ABORT, 0, NAME("status_code")},
};
static const struct known of_choice[] = {
    {ENTER, DELTA, NAME("delta")},
    {ENTER, DELTA, NAME("message")},
    {TOKEN, 0, NAME("text")},
    {TOKEN, 0, NAME("token_ids")},
};
static const struct known of_delta[] = {
    {TOKEN, 0, NAME("content")},      {TOKEN, 0, NAME("reasoning_content")},
    {TOKEN, 0, NAME("reasoning")},    {TOKEN, 0, NAME("refusal")},
    {TOKEN, 0, NAME("tool_calls")},   {TOKEN, 0, NAME("function_call")},
    {TOKEN, 0, NAME("text")},         {TOKEN, 0, NAME("thinking")},
    {TOKEN, 0, NAME("partial_json")},
};
static const struct known of_figures[] = {
    {ID, 0, NAME("id")},
    {FIGURE + PROMPT, 0, NAME("prompt_tokens")},
    {FIGURE + COMPLETION, 0, NAME("completion_tokens")},
    {FIGURE + COMPLETION, 0, NAME("output_tokens")},
    {FIGURE + CACHED, 0, NAME("cached_tokens")},
    {FIGURE + INPUT, 0, NAME("input_tokens")},
    {FIGURE + CACHE_READ, 0, NAME("cache_read_input_tokens")},
    {FIGURE + CACHE_CREATION, 0, NAME("cache_creation_input_tokens")},
    {ENTER, FINISH, NAME("finish_reason")},
    {ENTER, DETAILS, NAME("prompt_tokens_details")},
    {ENTER, DETAILS, NAME("input_tokens_details")},
};
static const struct known of_details[] = {
    {FIGURE + CACHED, 0, NAME("cached_tokens")},
};
#define MEMBERS(table)                                                                             \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

/* By level. */
static const struct {
    const struct known *at;
    size_t count;
} members[] = {
    [ANSWER] = MEMBERS(of_answer),   [RESPONSE] = MEMBERS(of_response),
    [CHOICE] = MEMBERS(of_choice),   [DELTA] = MEMBERS(of_delta),
    [FIGURES] = MEMBERS(of_figures), [DETAILS] = MEMBERS(of_details),
    [TROUBLE] = MEMBERS(of_trouble), [FINISH] = MEMBERS(of_finish),
};

/* --- one answer ------------------------------------------------------------ */

static void answer_start(struct http_usage *u)
{
    for (int i = 0; i < FIGURES_COUNT; i++)
        u->seen[i] = -1;
}

static void fold(const struct http_usage *u, int64_t *total, int64_t value)
{
    if (value < 0)
        return;
    bool adds = u->is_list && *total >= 0;
    int64_t sum = adds ? *total + value : value;
    *total = sum < figure_max ? sum : figure_max;
}

/* The figures of an answer are complete. */
static void answer_end(struct http_usage *u)
{
    int64_t *seen = u->seen;
    if (seen[INPUT] >= 0) { /* Anthropic counts cached tokens apart, OpenAI's responses do not */
        int64_t read = seen[CACHE_READ] > 0 ? seen[CACHE_READ] : 0;
        int64_t created = seen[CACHE_CREATION] > 0 ? seen[CACHE_CREATION] : 0;
        seen[PROMPT] = seen[INPUT] + read + created;
    }
    if (seen[CACHE_READ] >= 0)
        seen[CACHED] = seen[CACHE_READ];
    fold(u, &u->prompt_tokens, seen[PROMPT]);
    fold(u, &u->cached_tokens, seen[CACHED]);
    fold(u, &u->completion_tokens, seen[COMPLETION]);
    answer_start(u);
}

static enum level level_now(const struct http_usage *u)
{
    unsigned depth = u->json.depth;
    return depth == 0 || depth > HTTP_USAGE_LEVELS ? NOTHING : (enum level)u->levels[depth - 1];
}

static struct slice scratch_text(const struct http_usage *u)
{
    return slice_of(u->scratch, u->scratch_full ? 0 : u->scratch_len);
}

static void on_key(struct http_usage *u)
{
    enum level level = level_now(u);
    struct slice name = scratch_text(u);
    const struct known *at = members[level].at;
    u->slot = SKIP;
    for (size_t i = 0; i < members[level].count; i++) {
        if (slice_equal(at[i].name, name)) {
            u->slot = at[i].slot;
            u->enters = at[i].enters;
            return;
        }
    }
}

static bool text_is(const struct http_usage *u, const char *literal)
{
    return slice_equal(scratch_text(u), slice_of_cstr(literal));
}

static void on_string(struct http_usage *u)
{
    switch (u->slot) {
    case TOKEN:
        u->carries_token |= u->scratch_len > 0;
        break;
    case ID:
        if (u->response_id[0] == '\0')
            (void)slice_to_cstr(scratch_text(u), u->response_id, sizeof u->response_id);
        break;
    case TYPE:
        u->is_terminal |= text_is(u, "message_stop") || text_is(u, "response.completed") ||
                          text_is(u, "response.incomplete") || text_is(u, "response.failed");
        u->error |= text_is(u, "error") || text_is(u, "response.failed");
        u->repeats |= slice_ends_with(scratch_text(u), SLICE(".done"));
        break;
    case OBJECT_NAME:
        u->error |= text_is(u, "error");
        break;
    case FAILURE:
        u->error = true;
        break;
    case CODE:
    case KIND:
        if (u->error_status == 0)
            u->error_status = http_error_status(scratch_text(u));
        break;
    default:
        break;
    }
}

static void on_begin(struct http_usage *u, bool is_object)
{
    unsigned depth = u->json.depth; /* the new one is counted */
    enum level outer = depth < 2                       ? NOTHING
                       : depth - 2 < HTTP_USAGE_LEVELS ? (enum level)u->levels[depth - 2]
                                                       : NOTHING;
    enum level level = NOTHING;
    if (depth == 1)
        level = is_object ? ANSWER : ANSWERS;
    else if (outer == ANSWERS && is_object)
        level = ANSWER;
    else if (outer == CHOICES && is_object)
        level = CHOICE;
    else if (outer != CHOICES && outer != ANSWERS && outer != NOTHING) {
        if (u->slot == ENTER || (u->slot == TOKEN && u->enters != 0))
            level = (enum level)u->enters;
        else if (u->slot == TOKEN)
            u->watches = true;
        else if (u->slot == FAILURE)
            level = is_object ? TROUBLE : NOTHING;
        u->error |= u->slot == FAILURE;
    }
    if (level == CHOICES && is_object)
        level = NOTHING;
    if (depth == 1) {
        u->is_list = !is_object;
        u->understood = true;
    }
    if (depth <= HTTP_USAGE_LEVELS)
        u->levels[depth - 1] = (uint8_t)level;
    u->slot = SKIP;
}

static void on_end(struct http_usage *u)
{
    unsigned depth = u->json.depth; /* of what is around */
    if (depth < HTTP_USAGE_LEVELS && u->levels[depth] == ANSWER)
        answer_end(u);
    u->slot = SKIP;
}

static void on_number(struct http_usage *u)
{
    int64_t value;
    if (u->slot < CODE || !http_number_to_i64(http_json_number(&u->json), &value) || value < 0 ||
        value > figure_max)
        return;
    if (u->slot >= FIGURE)
        u->seen[u->slot - FIGURE] = value;
    else if (u->slot == SEQUENCE)
        u->sequence_number = value;
    else if (value >= 400 &&
             value < 600) /* beside the answer's own members it counts with "error" */
        u->error_status = (unsigned)value;
    u->error |= u->slot == ABORT && u->error_status != 0;
}

static void on_token(struct http_usage *u, enum http_json_token token)
{
    switch (token) {
    case HTTP_JSON_OBJECT_BEGIN:
    case HTTP_JSON_ARRAY_BEGIN:
        on_begin(u, token == HTTP_JSON_OBJECT_BEGIN);
        break;
    case HTTP_JSON_OBJECT_END:
    case HTTP_JSON_ARRAY_END:
        on_end(u);
        break;
    case HTTP_JSON_NUMBER:
        on_number(u);
        u->error |= u->slot == FAILURE;
        break;
    case HTTP_JSON_TRUE:
        u->error |= u->slot == FAILURE;
        break;
    default:
        break;
    }
}

static void draw_text(struct http_usage *u, struct slice *in)
{
    while (http_json_in_text(&u->json) && in->len > 0) {
        if (u->scratch_len == HTTP_USAGE_SCRATCH) {
            u->scratch_full = true;
            u->scratch_len = 1; /* not empty, but no longer whole */
        }
        u->scratch_len =
            (uint8_t)(u->scratch_len + http_json_text(&u->json, in, u->scratch + u->scratch_len,
                                                      (size_t)HTTP_USAGE_SCRATCH - u->scratch_len));
    }
}

static void json_feed(struct http_usage *u, struct slice in)
{
    for (;;) {
        if (http_json_in_text(&u->json)) {
            bool is_key = u->json.is_key;
            draw_text(u, &in);
            if (http_json_in_text(&u->json) || http_json_failed(&u->json))
                return;
            if (is_key)
                on_key(u);
            else
                on_string(u);
            continue;
        }
        enum http_json_token token = http_json_next(&u->json, &in);
        if (token <= HTTP_JSON_MORE)
            return;
        if (u->watches) { /* what carries tokens was entered: is anything in it? */
            u->carries_token |= token != HTTP_JSON_OBJECT_END && token != HTTP_JSON_ARRAY_END;
            u->watches = false;
        }
        if (token == HTTP_JSON_KEY || token == HTTP_JSON_STRING) {
            u->scratch_len = 0;
            u->scratch_full = false;
        } else {
            on_token(u, token);
        }
    }
}

static void json_start(struct http_usage *u)
{
    http_json_init(&u->json);
    answer_start(u);
    u->slot = SKIP;
    u->watches = false;
    u->repeats = false;
    u->is_list = false;
    u->carries_token = false;
    u->is_terminal = false;
    u->done_len = 0;
}

static void count_token(struct http_usage *u)
{
    if (!u->carries_token || u->repeats)
        return;
    u->first_token = true;
    u->token_events++;
}

/* --- server-sent events ---------------------------------------------------- */

/* A blank line: the event is complete (WHATWG HTML, section 9.2.6). */
static void event_end(struct http_usage *u)
{
    if (!u->has_data)
        return;
    u->done |= u->is_terminal || u->done_len == DONE_LEN;
    u->error_whole = u->error;
    count_token(u);
    u->has_data = false;
    json_start(u);
}

static void data_feed(struct http_usage *u, struct slice data)
{
    for (size_t i = 0; i < data.len && u->done_len != DONE_NOT; i++) {
        bool matches = u->done_len < DONE_LEN && data.at[i] == done_mark[u->done_len];
        u->done_len = matches ? (uint8_t)(u->done_len + 1) : (uint8_t)DONE_NOT;
    }
    json_feed(u, data);
}

static bool is_data_name(const struct http_usage *u)
{
    return u->name_len == 4 && memcmp(u->name, "data", 4) == 0;
}

static void data_begin(struct http_usage *u)
{
    if (u->has_data)
        data_feed(u, SLICE("\n"));
    u->has_data = true;
}

static void line_end(struct http_usage *u)
{
    if (u->line == IN_NAME && u->name_len == 0)
        event_end(u);
    else if (u->line == IN_NAME && is_data_name(u))
        data_begin(u); /* a field without a colon has an empty value */
    u->line = IN_NAME;
    u->name_len = 0;
}

/* One byte of a line up to its value. */
static void name_step(struct http_usage *u, char c)
{
    if (u->mark_len < MARK_LEN) {
        if (c == byte_order_mark[u->mark_len]) {
            u->mark_len++;
            return;
        }
        u->mark_len = MARK_LEN;
    }
    if (c == ':') {
        u->line = is_data_name(u) ? AFTER_COLON : IN_OTHER;
        if (u->line == AFTER_COLON)
            data_begin(u);
    } else if (u->name_len < sizeof u->name) {
        u->name[u->name_len++] = c;
    }
}

/* Length of what is left of the line. */
static size_t line_rest(struct slice in)
{
    size_t n = slice_find(in, '\n');
    return slice_find(slice_of(in.at, n), '\r');
}

static void sse_read(struct http_usage *u, struct slice in)
{
    while (in.len > 0) {
        char c = in.at[0];
        if (u->line == AFTER_COLON) {
            u->line = IN_DATA;
            in = slice_skip(in, c == ' ' ? 1 : 0);
            continue;
        }
        size_t n = 1;
        if (c == '\n' && u->after_cr) {
            u->after_cr = false;
        } else if (c == '\n' || c == '\r') {
            u->after_cr = c == '\r';
            line_end(u);
        } else if (u->line == IN_NAME) {
            u->after_cr = false;
            name_step(u, c);
        } else {
            n = line_rest(in);
            if (u->line == IN_DATA)
                data_feed(u, slice_of(in.at, n));
        }
        in = slice_skip(in, n);
    }
}

/* --- events of a known shape -------------------------------------------------- */

/* Length of the event at the front of `in` with its blank line, if it is one line of data and
 * whole; else 0. */
static size_t whole_event(const struct http_usage *u, struct slice in)
{
    const struct slice start = SLICE("data: {");
    if (u->line != IN_NAME || u->name_len > 0 || u->has_data || u->after_cr ||
        !slice_starts_with(in, start))
        return 0;
    size_t n = slice_find(in, '\n');
    return n + 1 < in.len && in.at[n + 1] == '\n' && in.at[n - 1] != '\r' ? n + 2 : 0;
}

/* Whether a JSON string may hold these bytes just so, and they are not none. */
static bool is_plain_text(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c < ' ' || c == '"' || c == '\\')
            return false;
    }
    return len > 0;
}

static bool has_known_shape(const struct http_usage *u, struct slice event)
{
    size_t head = u->shape_head;
    size_t tail = u->shape_tail;
    return head > 0 && event.len > head + tail && memcmp(event.at, u->shape, head) == 0 &&
           memcmp(event.at + event.len - tail, u->shape + head, tail) == 0 &&
           is_plain_text(event.at + head, event.len - head - tail);
}

/* The event was read and counts as one with tokens: keeps what is around its text. */
static void learn_shape(struct http_usage *u, struct slice event)
{
    static const struct slice before[] = {SLICE("\"content\":\""), SLICE("\"text\":\"")};
    u->shape_head = 0;
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        const char *at = memmem(event.at, event.len, before[i].at, before[i].len);
        if (at == NULL)
            continue;
        size_t head = (size_t)(at - event.at) + before[i].len;
        size_t text = slice_find(slice_skip(event, head), '"');
        size_t tail = event.len - head - text;
        if (head + tail > HTTP_USAGE_SHAPE_MAX || !is_plain_text(event.at + head, text))
            return;
        memcpy(u->shape, event.at, head);
        memcpy(u->shape + head, event.at + head + text, tail);
        u->shape_head = (uint16_t)head;
        u->shape_tail = (uint16_t)tail;
        return;
    }
}

static void sse_feed(struct http_usage *u, struct slice in)
{
    size_t len;
    while ((len = whole_event(u, in)) > 0) {
        struct slice event = slice_of(in.at, len);
        in = slice_skip(in, len);
        if (has_known_shape(u, event)) {
            u->token_events++;
            continue;
        }
        unsigned before = u->token_events;
        sse_read(u, event);
        if (u->token_events == before + 1 && !u->done && !u->error)
            learn_shape(u, event);
    }
    sse_read(u, in);
}

/* --- driving --------------------------------------------------------------- */

void http_usage_init(struct http_usage *u, enum http_usage_form form)
{
    memset(u, 0, offsetof(struct http_usage, json));
    u->prompt_tokens = -1;
    u->cached_tokens = -1;
    u->completion_tokens = -1;
    u->sequence_number = -1;
    u->form = (uint8_t)form;
    u->line = IN_NAME;
    json_start(u);
}

void http_usage_feed(struct http_usage *u, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    if (u->form == HTTP_USAGE_JSON)
        json_feed(u, slice_of(bytes, len));
    else
        sse_feed(u, slice_of(bytes, len));
}

void http_usage_finish(struct http_usage *u)
{
    if (u->form == HTTP_USAGE_SSE) {
        u->ended_in = (uint8_t)http_usage_place(u);
        u->finished = true;
        if (u->line != IN_NAME || u->name_len > 0)
            line_end(u);
        event_end(u); /* engines may forget the last blank line */
        return;
    }
    u->done = http_json_finish(&u->json);
    u->error_whole = u->error;
    u->carries_token |= u->completion_tokens > 0;
    count_token(u);
}

bool http_usage_unfinished(const struct http_usage *u)
{
    if (u->done || u->error)
        return false;
    if (u->form == HTTP_USAGE_JSON)
        return u->understood && !http_json_failed(&u->json);
    /* What is no event, but lines of something else, has begun a name that no event ended. */
    return u->understood || (u->line == IN_NAME && u->name_len == 0 && u->mark_len == 0);
}

enum http_usage_place http_usage_place(const struct http_usage *u)
{
    if (u->finished)
        return (enum http_usage_place)u->ended_in;
    if (u->line == IN_NAME && u->name_len > 0)
        return HTTP_USAGE_IN_NAME;
    return u->line == IN_NAME && !u->has_data ? HTTP_USAGE_BETWEEN : HTTP_USAGE_IN_LINE;
}
