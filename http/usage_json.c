/* Interprets the members of an answer as the JSON arrives. */
#include "http/usage_internal.h"

#include <string.h>

#include "base/check.h"
#include "http/error.h"
#include "http/names.h"
#include "http/number.h"

/* Levels of open objects and arrays, which give their members a meaning. */
enum level {
    NOTHING,
    ANSWERS,  /* an array of answers */
    ANSWER,   /* the body or the event */
    RESPONSE, /* "response" or "message": the subject of a stream's event */
    CHOICES,  /* array */
    CHOICE,   /* object */
    DELTA,    /* what a choice or a content block adds */
    FIGURES,  /* "usage" or "meta_info" */
    DETAILS,  /* details of the prompt's tokens */
    MEDIA,    /* vLLM's "multimodal_tokens" in these details */
    TROUBLE,  /* "error" */
    FINISH,   /* "finish_reason" of SGLang's native form */
};

/* Meaning of the next value. */
enum slot {
    SKIP,
    ENTER, /* an object or array that opens the level in `enters` */
    TOKEN, /* a value that has tokens unless it is empty */
    ID,
    TYPE, /* type of the event */
    OBJECT_NAME,
    FAILURE,
    END,    /* the finish reason of a choice, in a word */
    STOP,   /* the stop reason of Anthropic's message */
    STATUS, /* status of a response */
    KIND,   /* type of an error, in a word */
    CODE,   /* an error's HTTP status, or a word for it */
    ABORT,  /* a status: from 400 on, the answer is an error */
    SEQUENCE,
    FIGURE, /* FIGURE + n: seen[n] */
};

enum figure {
    PROMPT,
    COMPLETION,
    CACHED,
    INPUT,
    CACHE_READ,
    CACHE_CREATION,
    IN_MEDIA, /* IN_MEDIA + enum chain_medium: tokens of the medium */
    FIGURES_COUNT = IN_MEDIA + CHAIN_MEDIA
};

/* Limit of token counts. A larger figure is invalid, and sums are capped to this. So no sum
 * overflows, here or in callers, whatever an engine sends. */
static const int64_t figure_max = INT64_C(1) << 40;

struct known {
    uint8_t slot;
    uint8_t enters; /* the level of ENTER */
    struct slice name;
};

#define NAME(text)                                                                                 \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

/* A TOKEN member may be an object or array too, with tokens unless empty. */
static const struct known of_answer[] = {
    {ID, 0, NAME("id")},
    {TYPE, 0, NAME("type")},
    {OBJECT_NAME, 0, NAME("object")},
    {FAILURE, TROUBLE, NAME("error")},
    {CODE, 0, NAME("code")},
    {ENTER, FIGURES, NAME("usage")},
    {ENTER, FIGURES, NAME("meta_info")},
    {ENTER, CHOICES, NAME("choices")},
    {TOKEN, RESPONSE, NAME("response")}, /* Ollama's "response" is text */
    {ENTER, RESPONSE, NAME("message")},
    {TOKEN, DELTA, NAME("delta")},
    {TOKEN, 0, NAME("text")},
    {TOKEN, 0, NAME("output_ids")},
    {SEQUENCE, 0, NAME("sequence_number")},
    {FIGURE + PROMPT, 0, NAME("prompt_eval_count")},
    {FIGURE + COMPLETION, 0, NAME("eval_count")},
    {STOP, 0, NAME("stop_reason")},
    {STATUS, 0, NAME("status")},
};
static const struct known of_response[] = {
    {ID, 0, NAME("id")},         {FAILURE, TROUBLE, NAME("error")}, {ENTER, FIGURES, NAME("usage")},
    {STATUS, 0, NAME("status")}, {TOKEN, 0, NAME("content")}, /* content of Ollama's message */
};
static const struct known of_trouble[] = {
    {CODE, 0, NAME("code")},
    {KIND, 0, NAME("type")},
};
static const struct known of_finish[] = {
    {END, 0, NAME("type")},
    {ABORT, 0, NAME("status_code")},
};
static const struct known of_choice[] = {
    {ENTER, DELTA, NAME("delta")}, {ENTER, DELTA, NAME("message")}, {TOKEN, 0, NAME("text")},
    {TOKEN, 0, NAME("token_ids")}, {END, 0, NAME("finish_reason")},
};
static const struct known of_delta[] = {
    {TOKEN, 0, NAME("content")},      {TOKEN, 0, NAME("reasoning_content")},
    {TOKEN, 0, NAME("reasoning")},    {TOKEN, 0, NAME("refusal")},
    {TOKEN, 0, NAME("tool_calls")},   {TOKEN, 0, NAME("function_call")},
    {TOKEN, 0, NAME("text")},         {TOKEN, 0, NAME("thinking")},
    {TOKEN, 0, NAME("partial_json")}, {STOP, 0, NAME("stop_reason")},
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
    {FIGURE + IN_MEDIA + CHAIN_IMAGE, 0, NAME("image_tokens")},
    {FIGURE + IN_MEDIA + CHAIN_SOUND, 0, NAME("audio_tokens")},
    {FIGURE + IN_MEDIA + CHAIN_FILM, 0, NAME("video_tokens")},
    {ENTER, MEDIA, NAME("multimodal_tokens")},
};
static const struct known of_media[] = {
    {FIGURE + IN_MEDIA + CHAIN_IMAGE, 0, NAME("image")},
    {FIGURE + IN_MEDIA + CHAIN_SOUND, 0, NAME("audio")},
    {FIGURE + IN_MEDIA + CHAIN_FILM, 0, NAME("video")},
};
#define MEMBERS(table)                                                                             \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

/* Known members by level. */
static const struct {
    const struct known *at;
    size_t count;
} members[] = {
    [ANSWER] = MEMBERS(of_answer),   [RESPONSE] = MEMBERS(of_response),
    [CHOICE] = MEMBERS(of_choice),   [DELTA] = MEMBERS(of_delta),
    [FIGURES] = MEMBERS(of_figures), [DETAILS] = MEMBERS(of_details),
    [TROUBLE] = MEMBERS(of_trouble), [FINISH] = MEMBERS(of_finish),
    [MEDIA] = MEMBERS(of_media),
};

static struct http_names names_at[ARRAY_LEN(members)];

/* Runs before main(), so no thread sees incomplete tables. */
__attribute__((constructor)) static void names_make(void)
{
    for (size_t k = 0; k < ARRAY_LEN(members); k++) {
        for (size_t i = members[k].count; i > 0; i--)
            http_names_put(&names_at[k], (unsigned)i - 1, members[k].at[i - 1].name);
    }
}

/* --- an answer ------------------------------------------------------------- */

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

/* Handles the end of an answer, whose figures are complete. */
static void answer_end(struct http_usage *u)
{
    int64_t *seen = u->seen;
    if (seen[INPUT] >=
        0) { /* Anthropic counts cached tokens separately, OpenAI's responses do not */
        int64_t read = seen[CACHE_READ] > 0 ? seen[CACHE_READ] : 0;
        int64_t created = seen[CACHE_CREATION] > 0 ? seen[CACHE_CREATION] : 0;
        seen[PROMPT] = seen[INPUT] + read + created;
    }
    if (seen[CACHE_READ] >= 0)
        seen[CACHED] = seen[CACHE_READ];
    fold(u, &u->prompt_tokens, seen[PROMPT]);
    fold(u, &u->cached_tokens, seen[CACHED]);
    fold(u, &u->completion_tokens, seen[COMPLETION]);
    for (unsigned i = 0; i < CHAIN_MEDIA; i++)
        fold(u, &u->media_tokens[i], seen[IN_MEDIA + i]);
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
    if (at == NULL)
        return;
    const struct http_names *names = &names_at[level];
    for (unsigned i = http_names_first(names, name); i != 0; i = names->next[i]) {
        const struct known *one = &at[i - 1];
        if (name.len == one->name.len && memcmp(name.at, one->name.at, name.len) == 0) {
            u->slot = one->slot;
            u->enters = one->enters;
            return;
        }
    }
}

static bool text_is(const struct http_usage *u, const char *literal)
{
    return slice_equal(scratch_text(u), slice_of_cstr(literal));
}

static void aborted_if(struct http_usage *u, bool aborted)
{
    u->aborted |= aborted;
    u->error |= aborted;
}

/* Counts a message without a stop reason as aborted: vLLM then sends null, or leaves the field
 * out. */
static void message_end(struct http_usage *u)
{
    aborted_if(u, u->is_message && !u->has_stop_reason);
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
        u->is_message |= text_is(u, "message") || text_is(u, "message_delta");
        if (text_is(u, "message_stop"))
            message_end(u);
        break;
    case OBJECT_NAME:
        u->error |= text_is(u, "error");
        break;
    case FAILURE:
        u->error = true;
        break;
    case END:
        aborted_if(u, text_is(u, "abort"));
        break;
    case STOP:
        u->has_stop_reason = true;
        break;
    case STATUS: /* vLLM writes "cancelled" for an aborted response */
        aborted_if(u, text_is(u, "cancelled"));
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
    unsigned depth = u->json.depth; /* including the new container */
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
    unsigned depth = u->json.depth; /* of the surrounding container */
    if (depth < HTTP_USAGE_LEVELS && u->levels[depth] == ANSWER) {
        answer_end(u);
        if (u->form == HTTP_USAGE_JSON)
            message_end(u);
    }
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
             value < 600) /* a code alone is no error: "error" must be there as well */
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
    bool is_text = u->slot == TOKEN && !u->json.is_key;
    while (http_json_in_text(&u->json) && in->len > 0) {
        if (u->scratch_len == HTTP_USAGE_SCRATCH) {
            u->scratch_full = true;
            u->scratch_len = 1; /* not empty, but no longer complete */
        }
        size_t n = http_json_text(&u->json, in, u->scratch + u->scratch_len,
                                  (size_t)HTTP_USAGE_SCRATCH - u->scratch_len);
        u->scratch_len = (uint8_t)(u->scratch_len + n);
        u->seen_text += is_text ? n : 0;
    }
}

void http_usage_json_feed(struct http_usage *u, struct slice in)
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
        /* An object or array was entered that has tokens unless empty: tests if it is empty. */
        if (u->watches) {
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

void http_usage_json_start(struct http_usage *u)
{
    http_json_init(&u->json);
    answer_start(u);
    u->seen_text = 0;
    u->slot = SKIP;
    u->watches = false;
    u->repeats = false;
    u->is_list = false;
    u->carries_token = false;
    u->is_terminal = false;
    u->done_len = 0;
}
