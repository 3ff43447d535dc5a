#include "node/settings/allowed.h"

#include "gossip/limits.h"
#include "node/settings/options.h"

const char *const *node_allowed_paths(void)
{
    static const char *const names[] = {"refuse", "pass", NULL};
    return names;
}

const char *const *node_allowed_log_level(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug", NULL};
    return names;
}

const char *const *node_allowed_log_format(void)
{
    static const char *const names[] = {"auto", "text", "json", NULL};
    return names;
}

const char *const *node_allowed_access_log(void)
{
    static const char *const names[] = {"off", "errors", "all", NULL};
    return names;
}

const char *const *node_allowed_forwarded(void)
{
    static const char *const names[] = {"trust", "replace", NULL};
    return names;
}

/* A field name of RFC 9110, section 5.1: a token. */
const char *node_allowed_header_name_not(struct slice value)
{
    const char *wrong = "want the name of a header, such as x-session-id";
    if (value.len == 0 || value.len > 128)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return wrong;
    }
    return NULL;
}

const char *node_allowed_replica_not(struct slice value)
{
    struct node_replica_option parsed;
    if (node_replica_parse(value, &parsed) == 0)
        return NULL;
    if (slice_starts_with(value, SLICE("https:")))
        return "TLS to engines is not supported, want http://HOST:PORT";
    if (!slice_starts_with(value, SLICE("http://")))
        return "want a URL such as http://10.0.0.1:8000";
    struct slice rest = slice_skip(value, strlen("http://"));
    size_t fragment = slice_find(rest, '#');
    if (fragment < rest.len &&
        node_replica_parse(slice_of(value.at, strlen("http://") + fragment), &parsed) == 0)
        return "after # want engine=vllm, engine=sglang or engine=other";
    if (slice_find(rest, '/') < rest.len || slice_find(rest, '?') < rest.len)
        return "want no path: http://HOST:PORT alone";
    return "want a URL such as http://10.0.0.1:8000, its port from 1 to 65535";
}

const char *node_allowed_address_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || node_address_parse(value, &parsed) == 0)
        return NULL;
    return "want HOST:PORT, such as 0.0.0.0:7490 or [::]:7490";
}

/* Peers must be able to send there. */
const char *node_allowed_advertise_not(struct slice value)
{
    struct node_address parsed;
    if (value.len == 0 || (node_address_parse(value, &parsed) == 0 && parsed.port != 0 &&
                           !node_host_is_any(parsed.host)))
        return NULL;
    return "want HOST:PORT where the other routers reach this one, such as 10.0.0.7:7490";
}

const char *node_allowed_join_not(struct slice value)
{
    struct node_address parsed;
    if (node_address_parse_default(value, NODE_GOSSIP_PORT, &parsed) == 0 && parsed.port != 0)
        return NULL;
    return "want HOST or HOST:PORT, such as routers.internal or 10.0.0.7:7490";
}

/* It stands in logs, metrics and tables. */
const char *node_allowed_node_name_not(struct slice value)
{
    const char *wrong = "want 1 to 128 letters, digits or any of . _ : - [ ] @";
    _Static_assert((int)GOSSIP_NAME_MAX == 128, "the text names it");
    if (value.len > GOSSIP_NAME_MAX)
        return wrong;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("._:-[]@", c) == NULL))
            return wrong;
    }
    return NULL;
}
