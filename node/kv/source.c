#include "node/kv/source.h"

#include <string.h>

#include "http/json.h"

enum { TEXT_MAX = 320, SGLANG_RANKS_MAX = UINT16_MAX };

/* The object being read, with sources of events: of a rank (vLLM), or of all ranks (SGLang). */
struct told {
    bool is_object;
    bool is_off; /* the engine publishes no events */
    bool is_zmq;
    char endpoint[TEXT_MAX], replay[TEXT_MAX], topic[TEXT_MAX];
    uint64_t port_base, replay_base, ranks;
};

struct reader {
    struct http_json json;
    struct slice in;
    unsigned depth;
    bool ended;                            /* the outermost object ended */
    char text[TEXT_MAX + HTTP_JSON_SLACK]; /* the last string; empty if too long or with a NUL */
    char key[3][TEXT_MAX];                 /* the present key at each depth */
    struct told told;
    struct kv_source *out;
    unsigned max, count;
};

static void read_text(struct reader *r)
{
    char rest[64 + HTTP_JSON_SLACK];
    size_t len = http_json_text(&r->json, &r->in, r->text, TEXT_MAX - 1);
    r->text[len] = '\0';
    if (strlen(r->text) < len)
        r->text[0] = '\0'; /* no text that matters has a NUL */
    while (http_json_in_text(&r->json) && r->in.len > 0) {
        r->text[0] = '\0'; /* too long */
        (void)http_json_text(&r->json, &r->in, rest, 64);
    }
}

/* --- interpretation -------------------------------------------------------------------------- */

static uint16_t port_of(uint64_t number)
{
    return number > 0 && number <= UINT16_MAX ? (uint16_t)number : 0;
}

/* Returns an endpoint's port, if the engine binds the endpoint; 0: the engine connects instead. */
static uint16_t port_bound(const char *endpoint)
{
    struct slice at = slice_of_cstr(endpoint);
    uint64_t port;
    bool wild = strchr(endpoint, '*') != NULL || strstr(endpoint, "::") != NULL;
    const char *colon = strrchr(endpoint, ':');
    if (!slice_starts_with(at, SLICE("tcp://")) || !wild || colon == NULL ||
        slice_to_u64(slice_of_cstr(colon + 1), &port) != ERR_OK)
        return 0;
    return port_of(port);
}

/* Returns the port of a replay endpoint, which the engine always binds. */
static uint16_t port_replay(const char *endpoint)
{
    uint64_t port;
    const char *colon = strrchr(endpoint, ':');
    if (!slice_starts_with(slice_of_cstr(endpoint), SLICE("tcp://")) || colon == NULL ||
        slice_to_u64(slice_of_cstr(colon + 1), &port) != ERR_OK)
        return 0;
    return port_of(port);
}

static void add(struct reader *r, uint64_t rank, uint16_t port, uint16_t replay_port)
{
    const struct told *t = &r->told;
    size_t topic = strlen(t->topic);
    if (port == 0 || rank > UINT16_MAX || topic >= KV_TOPIC_MAX || r->count == r->max)
        return;
    struct kv_source *s = &r->out[r->count++];
    *s = (struct kv_source){(uint16_t)rank, port, replay_port, ""};
    memcpy(s->topic, t->topic, topic + 1);
}

static void object_ended(struct reader *r)
{
    const struct told *t = &r->told;
    uint64_t rank;
    if (!t->is_object || t->is_off || !t->is_zmq)
        return;
    if (slice_to_u64(slice_of_cstr(r->key[0]), &rank) == ERR_OK)
        add(r, rank, port_bound(t->endpoint), port_replay(t->replay));
    else if (strcmp(r->key[0], "kv_events") == 0) {
        uint64_t ranks = t->ranks > 0 ? t->ranks : 1;
        for (rank = 0; rank < ranks && rank < SGLANG_RANKS_MAX && r->count < r->max; rank++)
            add(r, rank, port_of(t->port_base > 0 ? t->port_base + rank : 0),
                port_of(t->replay_base > 0 ? t->replay_base + rank : 0));
    }
}

static bool number_is_port(struct slice text, uint16_t *port)
{
    uint64_t number;
    *port = slice_to_u64(text, &number) == ERR_OK ? port_of(number) : 0;
    return *port != 0;
}

/* Returns true for a host without characters that have a meaning to libzmq: '*' binds, and ';' ends
 * a source address. */
static bool is_host(struct slice host)
{
    bool brackets = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    struct slice inner = brackets ? slice_of(host.at + 1, host.len - 2) : host;
    for (size_t i = 0; i < inner.len; i++) {
        char c = inner.at[i];
        bool name = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    c == '.' || c == '-' || c == '_';
        if (!name && !(brackets && (c == ':' || c == '%')))
            return false;
    }
    return inner.len > 0;
}

/* Parses tcp://HOST:PORT; sets out->host and out->port. */
static bool is_address(struct slice at, struct kv_named *out)
{
    if (!slice_starts_with(at, SLICE("tcp://")))
        return false;
    at = slice_skip(at, strlen("tcp://"));
    size_t colon = at.len;
    while (colon > 0 && at.at[colon - 1] != ':')
        colon--;
    if (colon == 0 || !number_is_port(slice_skip(at, colon), &out->port))
        return false;
    out->host = slice_of(at.at, colon - 1);
    return is_host(out->host);
}

const char *kv_named_parse(struct slice text, struct kv_named *out)
{
    static const char wrong[] = "after # want kv-events=tcp://HOST:PORT or kv-events=listen, and "
                                "maybe ?replay=PORT and &topic=TEXT behind it, or kv-events=off";
    if (slice_equal(text, SLICE("on")) || slice_equal(text, SLICE("auto")))
        return "after # kv-events= names an endpoint, tcp://HOST:PORT or listen, or is off: events "
               "are read by default";
    if (slice_equal(text, SLICE("off"))) {
        *out = (struct kv_named){.off = true};
        return NULL;
    }
    struct kv_named named = {0};
    struct slice more = text;
    struct slice at = slice_cut(&more, '?');
    named.connects = slice_equal(at, SLICE("listen"));
    if (text.len > KV_NAMED_MAX || (!named.connects && !is_address(at, &named)))
        return wrong;
    while (more.len > 0) {
        struct slice value = slice_cut(&more, '&');
        struct slice name = slice_cut(&value, '=');
        if (slice_equal(name, SLICE("topic")) && value.len < KV_TOPIC_MAX)
            named.topic = value;
        else if (!slice_equal(name, SLICE("replay")) || !number_is_port(value, &named.replay_port))
            return wrong;
    }
    *out = named;
    return NULL;
}

/* --- reading --------------------------------------------------------------------------------- */

static void keep(char *to, const char *text)
{
    memcpy(to, text, strlen(text) + 1);
}

static void value(struct reader *r, enum http_json_token token)
{
    struct told *t = &r->told;
    const char *key = r->key[1];
    uint64_t number;
    if (token == HTTP_JSON_STRING) {
        if (strcmp(key, "endpoint") == 0)
            keep(t->endpoint, r->text);
        else if (strcmp(key, "replay_endpoint") == 0)
            keep(t->replay, r->text);
        else if (strcmp(key, "topic") == 0)
            keep(t->topic, r->text);
        else if (strcmp(key, "publisher") == 0)
            t->is_zmq = strcmp(r->text, "zmq") == 0;
    } else if (token == HTTP_JSON_FALSE) {
        t->is_off |= strcmp(key, "enable_kv_cache_events") == 0;
    } else if (token == HTTP_JSON_NUMBER &&
               slice_to_u64(http_json_number(&r->json), &number) == ERR_OK) {
        if (strcmp(key, "endpoint_port_base") == 0)
            t->port_base = number;
        else if (strcmp(key, "replay_endpoint_port_base") == 0)
            t->replay_base = number;
        else if (strcmp(key, "dp_size") == 0)
            t->ranks = number;
    }
}

/* Handles a token. Returns false if the answer is not an object. */
static bool take(struct reader *r, enum http_json_token token)
{
    bool opens = token == HTTP_JSON_OBJECT_BEGIN || token == HTTP_JSON_ARRAY_BEGIN;
    if (token == HTTP_JSON_KEY || token == HTTP_JSON_STRING)
        read_text(r);
    if (r->depth == 0)
        r->depth = token == HTTP_JSON_OBJECT_BEGIN;
    else if (opens) {
        if (r->depth == 1)
            r->told = (struct told){.is_object = token == HTTP_JSON_OBJECT_BEGIN};
        r->depth++;
    } else if (token == HTTP_JSON_OBJECT_END || token == HTTP_JSON_ARRAY_END) {
        r->depth--;
        if (r->depth == 1)
            object_ended(r);
        r->ended = r->depth == 0;
        return true;
    } else if (token == HTTP_JSON_KEY && r->depth <= 2)
        keep(r->key[r->depth - 1], r->text);
    else if (token != HTTP_JSON_KEY && r->depth == 2)
        value(r, token);
    return r->depth > 0;
}

int kv_sources_read(struct slice json, struct kv_source *out, unsigned max, unsigned *count)
{
    struct reader r = {.in = json, .out = out, .max = max};
    enum http_json_token token;
    http_json_init(&r.json);
    while ((token = http_json_next(&r.json, &r.in)) > HTTP_JSON_MORE) {
        if (!take(&r, token))
            return ERR_SYNTAX;
    }
    *count = r.count;
    return token == HTTP_JSON_MORE && r.ended ? ERR_OK : ERR_SYNTAX;
}
