/* Finds the kind of a request's work from the path. */
#include <string.h>

#include "base/check.h"
#include "node/proxy/exchange/exchange_internal.h"

bool exchange_carries_prompt(enum http_path_kind kind)
{
    switch (kind) {
    case HTTP_PATH_CHAT:
    case HTTP_PATH_COMPLETIONS:
    case HTTP_PATH_RESPONSES:
    case HTTP_PATH_MESSAGES:
    case HTTP_PATH_GENERATE:
    case HTTP_PATH_TOKENS:
    case HTTP_PATH_PROMPT:
    case HTTP_PATH_INVOCATIONS:
        return true;
    default:
        return false;
    }
}

static bool type_starts_with(const struct http_head *head, struct slice start)
{
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    return type.len >= start.len && slice_equal_nocase(slice_of(type.at, start.len), start);
}

bool exchange_is_form(const struct http_head *head)
{
    return type_starts_with(head, SLICE("multipart/form-data"));
}

bool exchange_is_multipart(const struct http_head *head)
{
    return type_starts_with(head, SLICE("multipart/"));
}

bool exchange_is_json(const struct http_head *head)
{
    return type_starts_with(head, SLICE("application/json"));
}

bool exchange_names_model(enum http_path_kind kind)
{
    return kind == HTTP_PATH_MEDIA || kind == HTTP_PATH_JOBS || kind == HTTP_PATH_OTHER;
}

bool exchange_computes(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) || kind == HTTP_PATH_MEDIA;
}

bool exchange_weighs_rejections(enum http_path_kind kind)
{
    return exchange_computes(kind) || kind == HTTP_PATH_JOBS || kind == HTTP_PATH_OTHER ||
           kind == HTTP_PATH_PLAIN || kind == HTTP_PATH_STATUS;
}

bool exchange_is_idempotent(enum http_method method)
{
    switch (method) {
    case HTTP_METHOD_GET:
    case HTTP_METHOD_HEAD:
    case HTTP_METHOD_OPTIONS:
    case HTTP_METHOD_PUT:
    case HTTP_METHOD_DELETE:
        return true;
    default:
        return false;
    }
}

bool exchange_begins_nothing(enum http_method method, unsigned status)
{
    switch (status) {
    case 401:
    case 403:
    case 404:
    case 405:
    case 413:
    case 422: /* an error of form, before the content is examined */
        return true;
    default:
        return exchange_is_idempotent(method);
    }
}

bool exchange_answers_tokens(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) && kind != HTTP_PATH_PROMPT &&
           kind != HTTP_PATH_INVOCATIONS;
}

static enum node_reject_api api_of(enum http_path_kind kind)
{
    switch (kind) {
    case HTTP_PATH_CHAT:
        return NODE_REJECT_CHAT;
    case HTTP_PATH_COMPLETIONS:
        return NODE_REJECT_COMPLETIONS;
    case HTTP_PATH_RESPONSES:
        return NODE_REJECT_RESPONSES;
    case HTTP_PATH_MESSAGES:
        return NODE_REJECT_MESSAGES;
    case HTTP_PATH_GENERATE:
    case HTTP_PATH_TOKENS:
        return NODE_REJECT_GENERATE;
    case HTTP_PATH_PROMPT:
    case HTTP_PATH_INVOCATIONS:
        return NODE_REJECT_PROMPT;
    case HTTP_PATH_MEDIA:
        return NODE_REJECT_MEDIA_API;
    default:
        return NODE_REJECT_OTHERS;
    }
}

uint8_t exchange_reject_kind(const struct exchange *x)
{
    bool read = x->skimming && x->skim.understood;
    unsigned kind = (unsigned)api_of(x->local && read ? http_skim_path(&x->skim) : x->route.kind) *
                    NODE_REJECT_API;
    if (!read)
        return (uint8_t)kind;
    bool media = chain_media(&http_skim_chain(&x->skim)->content) > 0;
    return (uint8_t)(kind | (http_skim_has_tools(&x->skim) ? NODE_REJECT_TOOLS : 0) |
                     (media ? NODE_REJECT_MEDIA : 0) |
                     (x->skim.flags[HTTP_SKIM_STREAM] ? NODE_REJECT_STREAM : 0));
}

/* Words in fields and parts that an engine must prepare (vLLM: in the server or before scheduling;
 * SGLang: in the tokenizer and the grammar queue). A text may contain such a word by chance. */
static const char *const PREPARED[] = {
    "image",  "audio", "video",       "file",     "response_format", "json_schema", "guided_",
    "struct", "regex", "\"grammar\"", "\"ebnf\"", "\"tools\"",       "embed",       "lora",
};

static bool is_plain(const struct exchange *x)
{
    const struct body *b = x->request.body;
    if (!b->complete || x->dropped || b->first == NULL)
        return false;
    for (const struct segment *s = b->first; s != NULL; s = s->next)
        for (size_t i = 0; i < ARRAY_LEN(PREPARED); i++)
            if (memmem(s->data, s->len, PREPARED[i], strlen(PREPARED[i])) != NULL)
                return false;
    return true;
}

bool exchange_is_plain(struct exchange *x)
{
    if (!x->plain_known)
        x->plain = is_plain(x);
    x->plain_known = true;
    return x->plain;
}
