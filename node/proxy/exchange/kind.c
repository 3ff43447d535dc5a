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

/* Whether such a request makes an engine compute and changes nothing: it may be done twice. */
bool exchange_computes(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) || kind == HTTP_PATH_MULTIPART;
}

bool exchange_answers_tokens(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) && kind != HTTP_PATH_PROMPT &&
           kind != HTTP_PATH_INVOCATIONS;
}
