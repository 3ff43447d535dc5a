/* What kind of work a request is, by its path. */
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

bool exchange_is_json(const struct http_head *head)
{
    return type_starts_with(head, SLICE("application/json"));
}

bool exchange_names_model(enum http_path_kind kind)
{
    return kind == HTTP_PATH_MEDIA || kind == HTTP_PATH_JOBS || kind == HTTP_PATH_OTHER;
}

/* Whether such a request makes an engine compute and changes nothing: it may be done twice. */
bool exchange_computes(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) || kind == HTTP_PATH_MEDIA;
}

bool exchange_answers_tokens(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) && kind != HTTP_PATH_PROMPT &&
           kind != HTTP_PATH_INVOCATIONS;
}
