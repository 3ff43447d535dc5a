#include "node/replica/engine_json.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/json.h"

/* Reads the string at `in`. Returns the whole length; `out` gets as much as fits. */
static size_t draw_text(struct http_json *j, struct slice *in, char *out, size_t room)
{
    char spill[64 + HTTP_JSON_SLACK];
    size_t total = 0;
    while (http_json_in_text(j) && in->len > 0) {
        if (total < room)
            total += http_json_text(j, in, out + total, room - total);
        else
            total += http_json_text(j, in, spill, 64);
    }
    return total;
}

/* A position in a JSON text, with the last key and the last string value that were read. */
struct reader {
    struct http_json json;
    struct slice in;
    unsigned depth;
    char key[64 + HTTP_JSON_SLACK];
    size_t key_len;
    char text[NODE_MODEL_ID_MAX + 1 + HTTP_JSON_SLACK];
    size_t text_len;
};

static enum http_json_token next(struct reader *r)
{
    if (http_json_in_text(&r->json)) /* the input ended inside a text */
        return HTTP_JSON_MORE;
    enum http_json_token token = http_json_next(&r->json, &r->in);
    if (token == HTTP_JSON_KEY)
        r->key_len = draw_text(&r->json, &r->in, r->key, 64);
    else if (token == HTTP_JSON_STRING)
        r->text_len = draw_text(&r->json, &r->in, r->text, NODE_MODEL_ID_MAX + 1);
    else if (token == HTTP_JSON_OBJECT_BEGIN || token == HTTP_JSON_ARRAY_BEGIN)
        r->depth++;
    else if (token == HTTP_JSON_OBJECT_END || token == HTTP_JSON_ARRAY_END)
        r->depth--;
    return token;
}

static bool key_is(const struct reader *r, struct slice name)
{
    return r->key_len <= 64 && slice_equal(slice_of(r->key, r->key_len), name);
}

static double number_of(const struct reader *r)
{
    char text[HTTP_JSON_NUMBER_MAX + 1];
    (void)slice_to_cstr(http_json_number(&r->json), text, sizeof text);
    return strtod(text, NULL);
}

/* The number at the reader, as a context length; 0: no valid length. */
static uint32_t context_of(const struct reader *r)
{
    double tokens = number_of(r);
    return tokens >= 1 && tokens <= NODE_CONTEXT_TOKENS_MAX ? (uint32_t)tokens : 0;
}

/* The stored part of the last string value. */
static struct slice text_of(const struct reader *r)
{
    return slice_of(r->text, r->text_len <= NODE_MODEL_ID_MAX ? r->text_len : NODE_MODEL_ID_MAX);
}

/* Copies the last string value to `room`; returns an empty slice if it is too long. */
static struct slice whole_text(const struct reader *r, char room[NODE_MODEL_ID_MAX])
{
    size_t len = r->text_len <= NODE_MODEL_ID_MAX ? r->text_len : 0;
    memcpy(room, r->text, len);
    return slice_of(room, len);
}

static enum node_engine engine_of(struct slice owner)
{
    return slice_equal(owner, SLICE("vllm"))     ? NODE_ENGINE_VLLM
           : slice_equal(owner, SLICE("sglang")) ? NODE_ENGINE_SGLANG
                                                 : NODE_ENGINE_AUTO;
}

/* Depth 1 is the list's object, depth 2 the array "data", depth 3 a model. */
int node_models_parse(struct slice json, node_listed_each each, void *context)
{
    struct reader r = {.in = json};
    http_json_init(&r.json);
    bool in_data = false;
    bool found = false;
    const char *begin = NULL;
    char id[NODE_MODEL_ID_MAX], parent[NODE_MODEL_ID_MAX];
    struct node_listed model = {.id = {0}};
    enum http_json_token token;
    while ((token = next(&r)) > HTTP_JSON_MORE) {
        if (token == HTTP_JSON_ARRAY_BEGIN && r.depth == 2 && key_is(&r, SLICE("data"))) {
            in_data = true;
            found = true;
        } else if (token == HTTP_JSON_ARRAY_END && r.depth == 1) {
            in_data = false;
        } else if (in_data && token == HTTP_JSON_OBJECT_BEGIN && r.depth == 3) {
            begin = r.in.at - 1;
            model = (struct node_listed){.id = {0}};
        } else if (in_data && token == HTTP_JSON_STRING && r.depth == 3) {
            if (key_is(&r, SLICE("id")))
                model.id = whole_text(&r, id);
            else if (key_is(&r, SLICE("parent")))
                model.parent = whole_text(&r, parent);
            else if (key_is(&r, SLICE("owned_by")))
                model.engine = engine_of(text_of(&r));
        } else if (in_data && token == HTTP_JSON_NUMBER && r.depth == 3) {
            if (key_is(&r, SLICE("max_model_len")))
                model.context_tokens = context_of(&r);
        } else if (in_data && token == HTTP_JSON_OBJECT_END && r.depth == 2 && model.id.len > 0) {
            model.object = slice_of(begin, (size_t)(r.in.at - begin));
            int err = each(context, &model);
            if (err != 0)
                return err;
        }
    }
    return found && http_json_finish(&r.json) ? 0 : ERR_SYNTAX;
}

static bool contains(struct slice text, struct slice word)
{
    return memmem(text.at, text.len, word.at, word.len) != NULL;
}

/* True if the stored part of the text says that a model is unknown. The text must begin with
 * "model" or a similar word: engines use the same words for other missing things, such as the id of
 * a response. The name of the model comes between. */
static bool says_unknown(struct slice text)
{
    static const struct slice begins[] = {{"The model", 9}, {"the model", 9}, {"Model", 5},
                                          {"model", 5},     {"No model", 8},  {"no model", 8}};
    bool missing = contains(text, SLICE("does not exist")) || contains(text, SLICE("not found")) ||
                   slice_starts_with(text, SLICE("model: ")); /* Anthropic's "model: NAME" */
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        if (slice_starts_with(text, begins[i]))
            return missing;
    }
    return false;
}

/* True if the field just read says that the model is unknown, and not a path or a stored object. */
static bool says_no_model(const struct reader *r)
{
    struct slice text = text_of(r);
    return (key_is(r, SLICE("param")) && slice_equal(text, SLICE("model"))) ||
           (key_is(r, SLICE("code")) && slice_equal(text, SLICE("model_not_found"))) ||
           (key_is(r, SLICE("message")) && says_unknown(text));
}

static void keep_text(const struct reader *r, char *out, size_t size)
{
    struct slice text = text_of(r);
    text.len = text.len < size ? text.len : size - 1;
    memcpy(out, text.at, text.len);
    out[text.len] = '\0';
}

/* If several fields are named `type`, the last counts: in an event, the event's own type comes
 * first, and the error's type follows, nested deeper. */
void node_error_read(struct slice json, struct node_engine_error *out)
{
    *out = (struct node_engine_error){0};
    struct reader r = {.in = json};
    http_json_init(&r.json);
    enum http_json_token token;
    while ((token = next(&r)) > HTTP_JSON_MORE) {
        if (r.depth > 3)
            continue;
        if (token == HTTP_JSON_STRING)
            out->model_unknown |= says_no_model(&r);
        if (token == HTTP_JSON_STRING && key_is(&r, SLICE("message")))
            keep_text(&r, out->message, sizeof out->message);
        else if (token == HTTP_JSON_STRING && key_is(&r, SLICE("type")))
            keep_text(&r, out->type, sizeof out->type);
        else if (token == HTTP_JSON_STRING && key_is(&r, SLICE("code")))
            out->too_long |= slice_equal(text_of(&r), SLICE("context_length_exceeded"));
        if (token == HTTP_JSON_NUMBER &&
            (key_is(&r, SLICE("code")) || key_is(&r, SLICE("status_code")))) {
            double status = number_of(&r);
            out->status = status >= 400 && status < 600 ? (unsigned)status : 0;
        }
    }
    out->model_unknown &= http_json_finish(&r.json);
    if (strcmp(out->type, "abort") == 0) /* SGLang's finish reason, not a type of error */
        out->type[0] = '\0';
    if (strcmp(out->type, "overloaded_error") == 0)
        out->status = 503;
}

static unsigned count_of(const struct reader *r)
{
    double number = number_of(r);
    return number >= 0 && number <= NODE_RANKS_MAX ? (unsigned)number : 0;
}

/* Limits the context to the cache size, because SGLang rejects a larger prompt. */
static uint32_t within(uint32_t context_tokens, double cache_tokens)
{
    bool holds = cache_tokens <= 0 || cache_tokens >= context_tokens;
    return holds ? context_tokens : (uint32_t)cache_tokens;
}

int node_server_info_parse(struct slice json, struct node_scrape *out, uint32_t *context_tokens)
{
    struct node_scrape s = node_scrape_unknown;
    uint32_t context = 0;
    s.sglang = true;
    struct reader r = {.in = json};
    http_json_init(&r.json);
    enum http_json_token token;
    while ((token = next(&r)) > HTTP_JSON_MORE) {
        if (token != HTTP_JSON_NUMBER || r.depth != 1)
            continue;
        if (key_is(&r, SLICE("max_total_num_tokens")))
            s.cache_tokens = number_of(&r);
        else if (key_is(&r, SLICE("page_size")))
            s.block_tokens = number_of(&r);
        else if (key_is(&r, SLICE("dp_size")))
            s.ranks = count_of(&r);
        else if (key_is(&r, SLICE("context_length")))
            context = context_of(&r);
    }
    if (!http_json_finish(&r.json))
        return ERR_SYNTAX;
    if (s.cache_tokens <= 0 && s.block_tokens <= 0)
        return ERR_NOT_FOUND;
    *out = s;
    *context_tokens = within(context, s.cache_tokens);
    return 0;
}
