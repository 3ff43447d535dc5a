#include "http/field.h"

#include "http/chars.h"

/* True if the token at `at` is `lower` in any case. For a token byte, setting bit 5 folds to lower
 * case: among token bytes only A to Z then become a letter, '-' or a digit. */
static inline __attribute__((always_inline)) bool same(const char *at, const char *lower,
                                                       size_t len)
{
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t a, b;
        memcpy(&a, at + i, 8);
        memcpy(&b, lower + i, 8);
        if ((a | UINT64_C(0x2020202020202020)) != b)
            return false;
    }
    for (; i < len; i++) {
        if ((at[i] | 0x20) != lower[i])
            return false;
    }
    return true;
}

#define IS(text, id)                                                                               \
    if (same(name.at, text, sizeof(text) - 1))                                                     \
    return HTTP_##id

static enum http_field_id lookup_short(struct slice name)
{
    switch (name.len) {
    case 2:
        IS("te", TE);
        break;
    case 3:
        IS("via", VIA);
        break;
    case 4:
        IS("host", HOST);
        IS("date", DATE);
        break;
    case 6:
        IS("accept", ACCEPT);
        IS("cookie", COOKIE);
        IS("origin", ORIGIN);
        IS("server", SERVER);
        IS("expect", EXPECT);
        break;
    case 7:
        IS("api-key", API_KEY);
        IS("upgrade", UPGRADE);
        IS("trailer", TRAILER);
        break;
    case 8:
        IS("location", LOCATION);
        break;
    case 9:
        IS("x-api-key", X_API_KEY);
        IS("x-real-ip", X_REAL_IP);
        IS("forwarded", FORWARDED);
        break;
    case 10:
        IS("user-agent", USER_AGENT);
        IS("connection", CONNECTION);
        IS("keep-alive", KEEP_ALIVE);
        IS("set-cookie", SET_COOKIE);
        IS("tracestate", TRACESTATE);
        break;
    case 11:
        IS("traceparent", TRACEPARENT);
        IS("retry-after", RETRY_AFTER);
        break;
    case 12:
        IS("content-type", CONTENT_TYPE);
        IS("x-request-id", X_REQUEST_ID);
        IS("x-session-id", X_SESSION_ID);
        break;
    default:
        break;
    }
    return HTTP_FIELD_OTHER;
}

static enum http_field_id lookup_long(struct slice name)
{
    switch (name.len) {
    case 13:
        IS("authorization", AUTHORIZATION);
        IS("cache-control", CACHE_CONTROL);
        break;
    case 14:
        IS("content-length", CONTENT_LENGTH);
        IS("http2-settings", HTTP2_SETTINGS);
        break;
    case 15:
        IS("accept-encoding", ACCEPT_ENCODING);
        IS("x-forwarded-for", X_FORWARDED_FOR);
        break;
    case 16:
        IS("content-encoding", CONTENT_ENCODING);
        IS("x-forwarded-host", X_FORWARDED_HOST);
        IS("proxy-connection", PROXY_CONNECTION);
        break;
    case 17:
        IS("transfer-encoding", TRANSFER_ENCODING);
        IS("x-forwarded-proto", X_FORWARDED_PROTO);
        break;
    case 18:
        IS("proxy-authenticate", PROXY_AUTHENTICATE);
        break;
    case 19:
        IS("x-grapevine-replica", X_GRAPEVINE_REPLICA);
        IS("proxy-authorization", PROXY_AUTHORIZATION);
        break;
    case 25:
        IS("proxy-authentication-info", PROXY_AUTHENTICATION_INFO);
        break;
    case 27:
        IS("access-control-allow-origin", ALLOW_ORIGIN);
        break;
    default:
        break;
    }
    if (name.len >= 21)
        IS("endpoint-load-metrics", ENDPOINT_LOAD_METRICS);
    return HTTP_FIELD_OTHER;
}

/* True if a name may belong to a family. Tests the first byte and, after 'x', the third byte. Few
 * names outside the families pass, so most names need no further test. */
static bool may_be_family(struct slice name)
{
    if (name.len < 9)
        return false;
    char first = (char)(name.at[0] | 0x20), third = (char)(name.at[2] | 0x20);
    if (first == 'x')
        return strchr("fgkepdcro", third) != NULL;
    return first == 't' || first == 'c' || first == 'f';
}

#undef IS

enum http_field_id http_field_lookup(struct slice name)
{
    enum http_field_id id = name.len <= 12 ? lookup_short(name) : lookup_long(name);
    return id == HTTP_FIELD_OTHER && may_be_family(name) ? http_field_family(name) : id;
}

struct slice http_field_name(enum http_field_id id)
{
    static const struct slice names[HTTP_FIELD_IDS] = {[HTTP_FIELD_OTHER] = {"", 0},
#define HTTP_FIELD_NAME(field, text) [HTTP_##field] = {(text), sizeof(text) - 1},
                                                       HTTP_FIELD_MAP(HTTP_FIELD_NAME)
#undef HTTP_FIELD_NAME
    };
    return id < HTTP_FIELD_IDS ? names[id] : names[HTTP_FIELD_OTHER];
}

bool http_field_is_valid(struct http_line line)
{
    for (size_t i = 0; i < line.name.len; i++) {
        if (!http_char_is(line.name.at[i], HTTP_CHAR_TOKEN))
            return false;
    }
    for (size_t i = 0; i < line.value.len; i++) {
        if (!http_char_is(line.value.at[i], HTTP_CHAR_VALUE))
            return false;
    }
    return line.name.len > 0 && slice_trim(line.value).len == line.value.len;
}
