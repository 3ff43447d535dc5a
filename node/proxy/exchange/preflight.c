/* Answers preflights. Before a page of another origin sends a request with a key or with JSON, the
 * browser asks for permission. This OPTIONS has no key and names no model, so the router answers by
 * the setting cors-allow-origin. */
#include "node/proxy/exchange/exchange_internal.h"

/* Seconds until a browser must ask again, as in engines (Starlette). */
static const struct slice max_age = SLICE("600");
/* All methods, as in engines: so a page can read the 405 to a wrong method. */
static const struct slice methods = SLICE("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");

bool exchange_preflight(struct exchange *x, const struct http_head *head)
{
    struct slice method = http_head_find(head, SLICE("access-control-request-method"));
    struct slice fields = http_head_find(head, SLICE("access-control-request-headers"));
    enum exchange_cors cors = exchange_cors_of(x);
    if (method.len == 0 || !http_head_has(head, HTTP_ORIGIN) || cors == EXCHANGE_CORS_OFF ||
        x->route.kind == HTTP_PATH_CONTROL)
        return false;
    if (cors == EXCHANGE_CORS_OTHER) {
        exchange_answer_refusal(x, REFUSED_ORIGIN);
        return true;
    }
    struct http_line lines[3];
    size_t n = 0;
    lines[n++] = (struct http_line){SLICE("access-control-allow-methods"), methods};
    if (fields.len > 0) /* "*" would not include Authorization */
        lines[n++] = (struct http_line){SLICE("access-control-allow-headers"), fields};
    lines[n++] = (struct http_line){SLICE("access-control-max-age"), max_age};
    exchange_answer(x, 204, slice_of("", 0), slice_of("", 0), lines, n);
    return true;
}
