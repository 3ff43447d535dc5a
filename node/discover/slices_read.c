#include "node/discover/slices_read.h"

#include "base/check.h"

/* The role of an open container. */
enum role {
    ROLE_NONE,
    ROLE_LIST,
    ROLE_LIST_META,
    ROLE_ITEMS,
    ROLE_EVENT,
    ROLE_OBJECT, /* a slice, or a status instead of a slice */
    ROLE_OBJECT_META,
    ROLE_ENDPOINTS,
    ROLE_ENDPOINT,
    ROLE_ADDRESSES,
    ROLE_CONDITIONS,
    ROLE_PORTS,
    ROLE_PORT,
};

enum { KEY_ROOM = 32, TEXT_ROOM = DISCOVER_CONTINUE_MAX + 1 };

/* The JSON objects and arrays to read, by the container around them and the key; members of arrays
 * have the key "". All others are skipped. */
static const struct {
    enum role in;
    const char *key;
    bool array;
    enum role role;
} containers[] = {
    {ROLE_LIST, "metadata", false, ROLE_LIST_META},
    {ROLE_LIST, "items", true, ROLE_ITEMS},
    {ROLE_ITEMS, "", false, ROLE_OBJECT},
    {ROLE_EVENT, "object", false, ROLE_OBJECT},
    {ROLE_OBJECT, "metadata", false, ROLE_OBJECT_META},
    {ROLE_OBJECT, "endpoints", true, ROLE_ENDPOINTS},
    {ROLE_ENDPOINTS, "", false, ROLE_ENDPOINT},
    {ROLE_ENDPOINT, "addresses", true, ROLE_ADDRESSES},
    {ROLE_ENDPOINT, "conditions", false, ROLE_CONDITIONS},
    {ROLE_OBJECT, "ports", true, ROLE_PORTS},
    {ROLE_PORTS, "", false, ROLE_PORT},
};

/* The strings to store, and the field of struct discover_reader for each. */
#define KEPT(field)                                                                                \
    offsetof(struct discover_reader, field), sizeof((struct discover_reader *)0)->field
static const struct {
    enum role in;
    const char *key;
    size_t offset, size;
    bool cut; /* too long text is cut; without `cut`, an error */
} strings[] = {
    {ROLE_LIST_META, "resourceVersion", KEPT(list_version), false},
    {ROLE_LIST_META, "continue", KEPT(next), false},
    {ROLE_EVENT, "type", KEPT(type), true},
    {ROLE_OBJECT, "message", KEPT(message), true},
    {ROLE_OBJECT_META, "name", KEPT(slice.name), false},
    {ROLE_OBJECT_META, "resourceVersion", KEPT(version), false},
    {ROLE_PORT, "name", KEPT(port.name), false},
};

static enum discover_read_what fail(struct discover_reader *r, const char *error)
{
    r->error = error;
    return DISCOVER_READ_ERROR;
}

static enum role role_now(const struct discover_reader *r)
{
    return r->skipped > 0 || r->depth == 0 ? ROLE_NONE : (enum role)r->roles[r->depth - 1];
}

static bool key_is(const struct discover_reader *r, const char *key)
{
    return r->key_len <= KEY_ROOM && slice_equal(slice_of(r->key, r->key_len), slice_of_cstr(key));
}

/* --- objects -------------------------------------------------------------------------------- */

static void begin_object(struct discover_reader *r)
{
    r->slice = (struct discover_slice){.ports = r->ports, .endpoints = r->endpoints};
    r->version[0] = r->message[0] = '\0';
    r->code = 0;
}

static enum role root_of(enum discover_read_kind kind)
{
    return kind == DISCOVER_READ_LIST    ? ROLE_LIST
           : kind == DISCOVER_READ_WATCH ? ROLE_EVENT
                                         : ROLE_OBJECT;
}

void discover_read_begin(struct discover_reader *r, enum discover_read_kind kind)
{
    http_json_init(&r->json);
    r->kind = kind;
    r->depth = r->skipped = 0;
    r->drawing = r->done = false;
    r->bytes = r->key_len = r->text_len = 0;
    r->list_version[0] = r->next[0] = r->type[0] = '\0';
    r->error = NULL;
    begin_object(r);
}

static void open_container(struct discover_reader *r, bool array)
{
    enum role role = ROLE_NONE;
    if (r->depth == 0 && r->skipped == 0) {
        role = array ? ROLE_NONE : root_of(r->kind);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(containers); i++) {
            if (containers[i].in == role_now(r) && containers[i].array == array &&
                key_is(r, containers[i].key))
                role = containers[i].role;
        }
    }
    r->key_len = 0;
    if (role == ROLE_NONE) {
        r->skipped++;
        return;
    }
    CHECK(r->depth < sizeof r->roles);
    r->roles[r->depth++] = (uint8_t)role;
    if (role == ROLE_OBJECT) {
        begin_object(r);
    } else if (role == ROLE_ENDPOINT) {
        r->endpoint = (struct discover_endpoint){0};
    } else if (role == ROLE_PORT) {
        r->port = (struct discover_port){0};
        r->port_is_tcp = true; /* the default if there is no protocol */
    }
}

/* Adds the endpoint just read to the slice, if it has an address. Returns an error, or NULL. */
static const char *end_endpoint(struct discover_reader *r)
{
    if (r->endpoint.ip[0] == '\0')
        return NULL;
    if (r->slice.endpoint_count == DISCOVER_SLICE_ENDPOINTS_MAX)
        return "a slice has too many endpoints";
    r->endpoints[r->slice.endpoint_count++] = r->endpoint;
    return NULL;
}

static const char *end_port(struct discover_reader *r)
{
    if (!r->port_is_tcp)
        return NULL;
    if (r->slice.port_count == DISCOVER_SLICE_PORTS_MAX)
        return "a slice has too many ports";
    r->ports[r->slice.port_count++] = r->port;
    return NULL;
}

static enum discover_read_what end_root(struct discover_reader *r)
{
    r->bytes = 0;
    if (r->kind == DISCOVER_READ_WATCH) {
        if (r->type[0] == '\0')
            return fail(r, "an event has no type");
        http_json_init(&r->json); /* the next event follows */
        return DISCOVER_READ_EVENT;
    }
    r->done = true;
    return r->kind == DISCOVER_READ_LIST ? DISCOVER_READ_PAGE : DISCOVER_READ_DONE;
}

static enum discover_read_what close_container(struct discover_reader *r)
{
    enum role role = role_now(r);
    r->key_len = 0;
    if (r->skipped > 0)
        r->skipped--;
    else
        r->depth--;
    const char *error = NULL;
    if (role == ROLE_ENDPOINT)
        error = end_endpoint(r);
    else if (role == ROLE_PORT)
        error = end_port(r);
    if (error != NULL)
        return fail(r, error);
    if (r->depth == 0 && r->skipped == 0)
        return role != ROLE_NONE ? end_root(r) : fail(r, "it is no JSON object");
    if (role != ROLE_OBJECT || r->kind != DISCOVER_READ_LIST)
        return DISCOVER_READ_MORE;
    r->bytes = 0;
    return r->slice.name[0] != '\0' ? DISCOVER_READ_SLICE : fail(r, "a slice has no name");
}

/* --- values --------------------------------------------------------------------------------- */

/* True for digits, hexadecimal letters, dots and colons, the characters of an address. */
static bool is_address(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\0' || strchr("0123456789abcdefABCDEF.:", text.at[i]) == NULL)
            return false;
    }
    return text.len > 0 && text.len <= DISCOVER_IP_MAX;
}

static const char *take_string(struct discover_reader *r, enum role in)
{
    bool whole = r->text_len <= TEXT_ROOM;
    struct slice text = slice_of(r->text, whole ? r->text_len : TEXT_ROOM);
    for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
        if (strings[i].in != in || !key_is(r, strings[i].key))
            continue;
        bool fits = slice_to_cstr(text, (char *)r + strings[i].offset, strings[i].size) && whole;
        return fits || strings[i].cut ? NULL : "a name in it is too long";
    }
    /* By the API, several addresses are equivalent, and clients use the first. */
    if (in == ROLE_ADDRESSES && r->endpoint.ip[0] == '\0' && is_address(text))
        (void)slice_to_cstr(text, r->endpoint.ip, sizeof r->endpoint.ip);
    else if (in == ROLE_OBJECT && key_is(r, "addressType"))
        r->slice.family = slice_equal(text, SLICE("IPv4"))   ? DISCOVER_FAMILY_IPV4
                          : slice_equal(text, SLICE("IPv6")) ? DISCOVER_FAMILY_IPV6
                                                             : DISCOVER_FAMILY_OTHER;
    else if (in == ROLE_PORT && key_is(r, "protocol"))
        r->port_is_tcp = slice_equal(text, SLICE("TCP"));
    return NULL;
}

static void take_number(struct discover_reader *r, enum role in)
{
    uint64_t number;
    if (slice_to_u64(http_json_number(&r->json), &number) != 0 || number > UINT16_MAX)
        return;
    if (in == ROLE_PORT && key_is(r, "port"))
        r->port.number = (uint16_t)number;
    else if (in == ROLE_OBJECT && key_is(r, "code"))
        r->code = (unsigned)number;
}

static void take_bool(struct discover_reader *r, enum role in, bool value)
{
    if (in != ROLE_CONDITIONS)
        return;
    if (key_is(r, "ready"))
        r->endpoint.unready = !value;
    else if (key_is(r, "terminating"))
        r->endpoint.terminating = value;
}

/* --- tokens --------------------------------------------------------------------------------- */

/* Reads the received part of the current key or string. Bytes beyond the room are counted and
 * dropped. */
static void draw(struct discover_reader *r, struct slice *in)
{
    char *out = r->is_key ? r->key : r->text;
    size_t room = r->is_key ? KEY_ROOM : TEXT_ROOM;
    size_t *len = r->is_key ? &r->key_len : &r->text_len;
    char spill[64 + HTTP_JSON_SLACK];
    while (http_json_in_text(&r->json) && in->len > 0) {
        if (*len < room)
            *len += http_json_text(&r->json, in, out + *len, room - *len);
        else
            *len += http_json_text(&r->json, in, spill, 64);
    }
}

/* Handles a token. Returns DISCOVER_READ_MORE if there is nothing to report yet. */
static enum discover_read_what take_token(struct discover_reader *r, enum http_json_token token)
{
    enum role in = role_now(r);
    const char *error = NULL;
    switch (token) {
    case HTTP_JSON_OBJECT_BEGIN:
    case HTTP_JSON_ARRAY_BEGIN:
        open_container(r, token == HTTP_JSON_ARRAY_BEGIN);
        return DISCOVER_READ_MORE;
    case HTTP_JSON_OBJECT_END:
    case HTTP_JSON_ARRAY_END:
        return close_container(r);
    case HTTP_JSON_STRING:
        error = take_string(r, in);
        break;
    case HTTP_JSON_NUMBER:
        take_number(r, in);
        break;
    case HTTP_JSON_TRUE:
    case HTTP_JSON_FALSE:
        take_bool(r, in, token == HTTP_JSON_TRUE);
        break;
    default:
        break;
    }
    r->key_len = 0;
    if (error != NULL)
        return fail(r, error);
    return r->depth == 0 && r->skipped == 0 ? fail(r, "it is no JSON object") : DISCOVER_READ_MORE;
}

/* Returns the next complete token; MORE: not received yet. Keys are not returned: their text is
 * stored in `key`. */
static enum http_json_token next_token(struct discover_reader *r, struct slice *in)
{
    for (;;) {
        if (!r->drawing) {
            enum http_json_token token = http_json_next(&r->json, in);
            if (token != HTTP_JSON_KEY && token != HTTP_JSON_STRING)
                return token;
            r->drawing = true;
            r->is_key = token == HTTP_JSON_KEY;
            *(r->is_key ? &r->key_len : &r->text_len) = 0;
        }
        draw(r, in);
        if (http_json_in_text(&r->json))
            return HTTP_JSON_MORE;
        r->drawing = false;
        if (!r->is_key)
            return http_json_failed(&r->json) ? HTTP_JSON_ERROR : HTTP_JSON_STRING;
    }
}

enum discover_read_what discover_read_next(struct discover_reader *r, struct slice *in)
{
    if (r->error != NULL)
        return DISCOVER_READ_ERROR;
    if (r->done) { /* bytes after the end are ignored */
        *in = slice_skip(*in, in->len);
        return DISCOVER_READ_MORE;
    }
    for (;;) {
        size_t before = in->len;
        enum http_json_token token = next_token(r, in);
        r->bytes += before - in->len;
        if (token == HTTP_JSON_ERROR)
            return fail(r, "it is no JSON");
        if (r->bytes > DISCOVER_OBJECT_BYTES_MAX)
            return fail(r, "a slice or an event is too long");
        if (token == HTTP_JSON_MORE)
            return DISCOVER_READ_MORE;
        enum discover_read_what what = take_token(r, token);
        if (what != DISCOVER_READ_MORE)
            return what;
    }
}
