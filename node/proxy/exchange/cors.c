/* Cross-origin requests of browsers (the Fetch standard's CORS protocol). Engines say which pages
 * may read their answers, and the router forwards these fields unchanged. In the router's own
 * answers the fields follow the setting cors-allow-origin. Without them, a page could not
 * distinguish the router's errors from network failures. */
#include "node/proxy/exchange/exchange_internal.h"

/* Header fields that pages may read, besides those always allowed by the standard. */
static const struct slice exposed =
    SLICE("x-request-id, x-should-retry, x-grapevine-replica, x-grapevine-model, "
          "x-grapevine-fallback, x-grapevine-reason, x-grapevine-limit, retry-after");

static bool is_off(struct slice setting)
{
    return setting.len == 0 || slice_equal(setting, SLICE("off"));
}

static bool is_any(struct slice setting)
{
    return slice_equal(setting, SLICE("*"));
}

void exchange_cors_note(struct exchange *x, const struct http_head *head)
{
    struct slice rest = slice_of_cstr(x->proxy->config.options->cors_allow_origin);
    struct slice origin = http_head_get(head, HTTP_ORIGIN);
    if (is_off(rest) || is_any(rest) || origin.len > sizeof x->origin)
        return;
    while (rest.len > 0) {
        struct slice one = slice_trim(slice_cut(&rest, ','));
        if (!slice_equal(one, origin))
            continue;
        memcpy(x->origin, origin.at, origin.len);
        x->origin_len = (uint16_t)origin.len;
        return;
    }
}

enum exchange_cors exchange_cors_of(const struct exchange *x)
{
    struct slice setting = slice_of_cstr(x->proxy->config.options->cors_allow_origin);
    if (x->client->port != PROXY_PORT_CLIENT || is_off(setting))
        return EXCHANGE_CORS_OFF;
    if (is_any(setting))
        return EXCHANGE_CORS_ANY;
    return x->origin_len > 0 ? EXCHANGE_CORS_LISTED : EXCHANGE_CORS_OTHER;
}

size_t exchange_cors_lines(const struct exchange *x, struct http_line *lines)
{
    enum exchange_cors cors = exchange_cors_of(x);
    size_t n = 0;
    if (cors == EXCHANGE_CORS_OFF)
        return 0;
    if (cors != EXCHANGE_CORS_ANY) /* the answer depends on the page */
        lines[n++] = (struct http_line){SLICE("vary"), SLICE("Origin")};
    if (cors == EXCHANGE_CORS_OTHER)
        return n;
    struct slice origin =
        cors == EXCHANGE_CORS_ANY ? SLICE("*") : slice_of(x->origin, x->origin_len);
    lines[n++] = (struct http_line){SLICE("access-control-allow-origin"), origin};
    lines[n++] = (struct http_line){SLICE("access-control-expose-headers"), exposed};
    return n;
}
