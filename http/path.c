#include "http/path.h"

#include "base/check.h"
#include "base/err.h"
#include "http/chars.h"

#define M(name) (1u << HTTP_METHOD_##name)

enum {
    GET = M(GET), /* the engines refuse HEAD */
    GET_HEAD = M(GET) | M(HEAD),
    POST = M(POST),
    ANY = (1u << HTTP_METHODS) - 1,
    SEGMENT_BYTES_MAX = 128, /* much longer than any name below */
};

/* --- the paths used by clients -------------------------------------------------------------- */

struct known {
    struct slice path;
    enum http_path_kind kind;
    unsigned methods;
};

#define PATH(text, kind, methods)                                                                  \
    {                                                                                              \
        {(text), sizeof(text) - 1}, HTTP_PATH_##kind, (methods)                                    \
    }

/* Sorted by frequency, because the table is searched from the front. */
static const struct known known_paths[] = {
    PATH("/v1/chat/completions", CHAT, POST),
    PATH("/v1/completions", COMPLETIONS, POST),
    PATH("/v1/messages", MESSAGES, POST),
    PATH("/v1/responses", RESPONSES, POST),
    PATH("/generate", GENERATE, POST),
    PATH("/inference/v1/generate", TOKENS, POST),
    PATH("/v1/embeddings", PROMPT, POST),
    PATH("/v1/models", MODELS, GET_HEAD),
    PATH("/health", HEALTH, GET_HEAD),
    PATH("/ping", HEALTH, GET_HEAD | POST),

    PATH("/v1/messages/count_tokens", PROMPT, POST),
    PATH("/tokenize", PROMPT, POST),
    PATH("/v1/tokenize", PROMPT, POST),
    PATH("/v1/chat/completions/render", PROMPT, POST),
    PATH("/v1/completions/render", PROMPT, POST),
    PATH("/v1/messages/render", PROMPT, POST),
    PATH("/v1/responses/render", PROMPT, POST),
    PATH("/v1/chat/completions/batch", PROMPT, POST),
    PATH("/invocations", INVOCATIONS, POST),
    PATH("/v2/embed", PROMPT, POST),
    PATH("/pooling", PROMPT, POST),
    PATH("/classify", PROMPT, POST),
    PATH("/v1/classify", PROMPT, POST),
    PATH("/encode", PROMPT, POST),
    PATH("/score", PROMPT, POST),
    PATH("/v1/score", PROMPT, POST),
    PATH("/generative_scoring", PROMPT, POST),
    PATH("/rerank", PROMPT, POST),
    PATH("/v1/rerank", PROMPT, POST),
    PATH("/v2/rerank", PROMPT, POST),
    PATH("/api/chat", PROMPT, POST),
    PATH("/api/generate", PROMPT, POST),
    PATH("/api/show", PROMPT, POST),
    PATH("/detokenize", PROMPT, POST),
    PATH("/v1/detokenize", PROMPT, POST),
    PATH("/v1/chat/completions/derender", PROMPT, POST),
    PATH("/v1/completions/derender", PROMPT, POST),

    PATH("/v1/moderations", PROMPT, POST),
    PATH("/v1/decisions", PROMPT, POST),
    PATH("/v1/pooling", PROMPT, POST),
    PATH("/cohere/v2/chat", PROMPT, POST),
    PATH("/cohere/v2/chat/render", PROMPT, POST),

    PATH("/v1/audio/transcriptions", MEDIA, POST),
    PATH("/v1/audio/translations", MEDIA, POST),
    PATH("/v1/audio/speech", MEDIA, POST),
    PATH("/v1/audio/speech/batch", MEDIA, POST),
    PATH("/v1/audio/generate", MEDIA, POST),
    PATH("/v1/images/generations", MEDIA, POST),
    PATH("/v1/images/edits", MEDIA, POST),
    PATH("/v1/images/variations", MEDIA, POST),
    PATH("/v1/videos/sync", MEDIA, POST),
    PATH("/v1/videos", JOBS, GET | POST),
    PATH("/v1/videos/edits", JOBS, POST),
    PATH("/v1/videos/extensions", JOBS, POST),
    PATH("/v1/audio/voices", PLAIN, GET), /* voices are added at each engine separately */

    PATH("/api/tags", PLAIN, GET),
    PATH("/api/version", PLAIN, GET),
    PATH("/version", PLAIN, GET),
    PATH("/model_info", PLAIN, GET),
    PATH("/get_model_info", PLAIN, GET),

    PATH("/metrics", STATUS, GET),
    PATH("/load", STATUS, GET),
    PATH("/v1/loads", STATUS, GET),
    PATH("/get_load", STATUS, GET),
    PATH("/health_generate", STATUS, GET),
};

static bool is_id(struct slice s)
{
    bool only_dots = true;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (!http_char_is(c, HTTP_CHAR_TOKEN) || c == '%')
            return false;
        only_dots = only_dots && c == '.';
    }
    return !only_dots;
}

/* Splits `path`, the text behind the path in `stored`, into the id and the path below the id.
 * `*below` is empty if nothing follows the id. False: this is no id, or nothing follows the slash
 * behind it. */
static bool lookup_stored(struct slice path, struct slice *id, struct slice *below)
{
    *below = path;
    *id = slice_cut(below, '/');
    bool alone = id->at + id->len == path.at + path.len;
    if (alone)
        *below = slice_of("", 0);
    return is_id(*id) && (alone || below->len > 0);
}

/* Methods of /v1/responses/{id} or of a path below; 0: unknown. */
static unsigned response_methods(struct slice below)
{
    return below.len == 0                             ? M(GET) | M(DELETE)
           : slice_equal(below, SLICE("cancel"))      ? POST
           : slice_equal(below, SLICE("input_items")) ? GET
                                                      : 0;
}

static unsigned video_methods(struct slice below)
{
    return below.len == 0                         ? M(GET) | M(DELETE)
           : slice_equal(below, SLICE("content")) ? GET
           : slice_equal(below, SLICE("remix"))   ? POST
                                                  : 0;
}

/* Methods of an engine's stored image: only the content below has a path. 0: unknown. */
static unsigned image_methods(struct slice below)
{
    return slice_equal(below, SLICE("content")) ? GET : 0;
}

static const struct {
    struct slice before;
    enum http_path_kind kind;
    unsigned (*methods)(struct slice below);
} stored[] = {
    {SLICE("/v1/responses/"), HTTP_PATH_RESPONSE_STORED, response_methods},
    {SLICE("/v1/videos/"), HTTP_PATH_MEDIA_STORED, video_methods},
    {SLICE("/v1/images/"), HTTP_PATH_MEDIA_STORED, image_methods},
};

/* Looks up /v1/models/{id}, /v1/responses/{id}, /v1/videos/{id}, /v1/images/{id}, and the paths
 * below. */
static struct http_route lookup_with_id(struct slice path)
{
    struct http_route route = {.kind = HTTP_PATH_OTHER, .methods = ANY};
    if (slice_starts_with(path, SLICE("/v1/models/"))) {
        struct slice id = slice_skip(path, sizeof "/v1/models/" - 1);
        if (id.len > 0)
            route = (struct http_route){.kind = HTTP_PATH_MODEL_ONE, .methods = GET_HEAD, .id = id};
        return route;
    }
    for (size_t i = 0; i < ARRAY_LEN(stored); i++) {
        struct slice id, below;
        if (!slice_starts_with(path, stored[i].before) ||
            !lookup_stored(slice_skip(path, stored[i].before.len), &id, &below))
            continue;
        unsigned methods = stored[i].methods(below);
        if (methods != 0)
            route = (struct http_route){.kind = stored[i].kind, .methods = methods, .id = id};
    }
    return route;
}

static struct http_route lookup_known(struct slice path)
{
    for (size_t i = 0; i < ARRAY_LEN(known_paths); i++) {
        const struct known *known = &known_paths[i];
        if (slice_equal(known->path, path))
            return (struct http_route){.kind = known->kind, .methods = known->methods};
    }
    return lookup_with_id(path);
}

/* Looks up a listed path, with or without a slash at the end. */
static struct http_route lookup_slashed(struct slice path)
{
    if (path.len < 2 || path.at[path.len - 1] != '/')
        return lookup_known(path);
    struct http_route route = lookup_known(slice_of(path.at, path.len - 1));
    if (route.kind == HTTP_PATH_OTHER) /* unknown, such as "/x//" */
        return lookup_known(path);
    route.slashed = true;
    return route;
}

/* --- listed paths behind other segments ---------------------------------------------------- */

static bool starts_nocase(struct slice path, struct slice start)
{
    return path.len >= start.len && slice_equal_nocase(slice_of(path.at, start.len), start);
}

/* Finds paths that make an engine compute, and paths of stored results, including unknown paths
 * below stored results. Other paths, such as lists and health, are not searched for: behind other
 * segments they differ by engine. */
static struct http_route lookup_end(struct slice path, enum http_method method)
{
    struct http_route route = {.kind = HTTP_PATH_OTHER, .methods = ANY};
    for (size_t i = 0; i < ARRAY_LEN(known_paths); i++) {
        const struct known *known = &known_paths[i];
        if (known->kind >= HTTP_PATH_CHAT && known->kind <= HTTP_PATH_JOBS &&
            (known->methods & (1u << method)) != 0 && slice_equal_nocase(known->path, path)) {
            route.kind = known->kind;
            route.methods = known->methods;
            return route;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(stored) && method != HTTP_METHOD_OPTIONS; i++) {
        struct slice below;
        if (starts_nocase(path, stored[i].before) &&
            lookup_stored(slice_skip(path, stored[i].before.len), &route.id, &below)) {
            route.kind = stored[i].kind;
            return route;
        }
    }
    route.id = slice_of(NULL, 0);
    return route;
}

static struct http_route lookup_behind(struct slice path, enum http_method method)
{
    size_t len = path.len > 1 && path.at[path.len - 1] == '/' ? path.len - 1 : path.len;
    for (size_t i = 0; i < len; i++) {
        if (path.at[i] != '/')
            continue;
        struct http_route route = lookup_end(slice_of(path.at + i, len - i), method);
        if (route.kind != HTTP_PATH_OTHER) {
            route.behind = true;
            route.prefix = i;
            return route;
        }
    }
    return (struct http_route){.kind = HTTP_PATH_OTHER, .methods = ANY};
}

/* --- the paths that steer an engine --------------------------------------------------------- */

/* In lower case. A path with any of these segments anywhere is a control path, because an engine
 * may have a root path. So is a path with a segment whose beginning is in the next table. */
static const char *const control_names[] = {
    /* vLLM */
    "sleep", "wake_up", "is_sleeping", "pause", "resume", "is_paused", "abort_requests",
    "reset_prefix_cache", "reset_mm_cache", "reset_encoder_cache", "server_info", "collective_rpc",
    "scale_elastic_ep", "is_scaling_elastic_ep", "start_profile", "stop_profile",
    "load_lora_adapter", "unload_lora_adapter", "get_world_size", "kv_event_sources",
    /* vLLM-Omni */
    "wakeup",
    /* SGLang */
    "get_server_info", "flush_cache", "abort_request", "open_session", "close_session",
    "pause_generation", "continue_generation", "release_memory_occupation",
    "resume_memory_occupation", "freeze_gc", "slow_down", "weights_checker", "configure_logging",
    "set_internal_state", "hicache", "dumper", "clear_hicache_storage_backend",
    "dump_expert_distribution_record", "start_expert_distribution_record",
    "stop_expert_distribution_record",
    /* SGLang's server for images and videos */
    "set_lora", "merge_lora_weights", "unmerge_lora_weights"};

/* Families of control paths: they grow with every release of an engine. */
static const char *const control_prefixes[] = {
    "update_weight",       "init_weight",         "send_weight",     "destroy_weight",
    "get_weight",          "start_weight",        "finish_weight",   "load_lora_adapter",
    "unload_lora_adapter", "get_remote_instance", "remote_instance", "reset_",
    "attach_hicache",      "detach_hicache"};

static bool segment_is_control(struct slice segment)
{
    for (size_t i = 0; i < ARRAY_LEN(control_names); i++) {
        if (slice_equal(segment, slice_of_cstr(control_names[i])))
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(control_prefixes); i++) {
        if (slice_starts_with(segment, slice_of_cstr(control_prefixes[i])))
            return true;
    }
    return false;
}

static bool segment_resets(struct slice segment)
{
    static const struct slice names[] = {SLICE("reset_prefix_cache"), SLICE("flush_cache"),
                                         SLICE("sleep"), SLICE("release_memory_occupation")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (slice_equal(segment, names[i]))
            return true;
    }
    return false;
}

static char fold(char c)
{
    return c == '\\' ? '/' : http_lower(c);
}

/* True if `is` accepts any segment. All percent-encoding is undone first: backslashes count as
 * slashes, letters are lower case, control bytes and spaces are left out ("/sleep%0a" matches a
 * Python "^/sleep$"). Every segment is tested, so dot segments need no resolving. */
static bool any_segment(struct slice path, bool (*is)(struct slice segment))
{
    char segment[SEGMENT_BYTES_MAX];
    size_t n = 0;
    for (size_t i = 0; i <= path.len; i++) {
        if (n ==
            sizeof segment) { /* keeps the start, for prefixes, and a possibly incomplete %XX */
            memmove(segment + n - 16, segment + n - 2, 2);
            n -= 14;
        }
        segment[n++] = i < path.len ? fold(path.at[i]) : '/';
        /* A decoded byte may complete another code: %2573 is %73 is s. */
        while (n >= 3 && segment[n - 3] == '%' && http_char_is(segment[n - 2], HTTP_CHAR_HEX) &&
               http_char_is(segment[n - 1], HTTP_CHAR_HEX)) {
            segment[n - 3] =
                fold((char)(http_hex_value(segment[n - 2]) << 4 | http_hex_value(segment[n - 1])));
            n -= 2;
        }
        unsigned char last = (unsigned char)segment[n - 1];
        if (last == '/') {
            struct slice name = slice_of(segment, n - 1);
            name.len = slice_find(name, ';');
            name.len = slice_find(name, '?');
            name.len = slice_find(name, '#');
            if (is(name))
                return true;
            n = 0;
        } else if (last <= ' ' || last == 0x7f) {
            n--;
        }
    }
    return false;
}

/* --- together ------------------------------------------------------------------------------- */

struct http_route http_path_lookup(struct slice path, enum http_method method)
{
    struct http_route route;
    if (slice_equal(path, SLICE("*")))
        route = (struct http_route){.kind = HTTP_PATH_SERVER, .methods = M(OPTIONS)};
    else if (slice_equal(path, SLICE("/")) && (GET_HEAD & 1u << method) != 0)
        route = (struct http_route){.kind = HTTP_PATH_ROOT, .methods = GET_HEAD};
    else
        route = lookup_slashed(path);
    if (route.kind == HTTP_PATH_OTHER && any_segment(path, segment_is_control))
        route.kind = HTTP_PATH_CONTROL;
    if (route.kind == HTTP_PATH_OTHER)
        route = lookup_behind(path, method);

    bool preflight = method == HTTP_METHOD_OPTIONS && !route.behind &&
                     route.kind >= HTTP_PATH_CHAT && route.kind <= HTTP_PATH_MEDIA_STORED;
    if (preflight)
        route = (struct http_route){.kind = HTTP_PATH_PLAIN,
                                    .methods = route.methods | M(OPTIONS),
                                    .slashed = route.slashed};
    route.method_allowed = (route.methods & (1u << method)) != 0;
    return route;
}

bool http_path_resets_cache(struct slice path)
{
    return any_segment(path, segment_resets);
}

static const char *const method_names[HTTP_METHODS] = {
    [HTTP_METHOD_GET] = "GET",       [HTTP_METHOD_HEAD] = "HEAD",
    [HTTP_METHOD_POST] = "POST",     [HTTP_METHOD_PUT] = "PUT",
    [HTTP_METHOD_DELETE] = "DELETE", [HTTP_METHOD_OPTIONS] = "OPTIONS",
    [HTTP_METHOD_PATCH] = "PATCH",
};

const char *http_method_name(enum http_method method)
{
    return method_names[method] != NULL ? method_names[method] : "";
}

void http_methods_text(unsigned methods, char *out, size_t size)
{
    CHECK(size > 0);
    size_t n = 0;
    out[0] = '\0';
    for (unsigned m = 0; m < HTTP_METHODS; m++) {
        if ((methods & (1u << m)) == 0 || method_names[m] == NULL)
            continue;
        size_t len = strlen(method_names[m]) + (n > 0 ? 2 : 0);
        if (n + len >= size)
            return;
        if (n > 0)
            memcpy(out + n, ", ", 2);
        memcpy(out + n + len - strlen(method_names[m]), method_names[m],
               strlen(method_names[m]) + 1);
        n += len;
    }
}

int http_percent_decode(struct slice encoded, char *out, size_t size, struct slice *decoded)
{
    size_t n = 0;
    for (size_t i = 0; i < encoded.len; i++) {
        char c = encoded.at[i];
        if (c == '%') {
            if (encoded.len - i < 3 || !http_char_is(encoded.at[i + 1], HTTP_CHAR_HEX) ||
                !http_char_is(encoded.at[i + 2], HTTP_CHAR_HEX))
                return ERR_SYNTAX;
            c = (char)(http_hex_value(encoded.at[i + 1]) << 4 | http_hex_value(encoded.at[i + 2]));
            i += 2;
        }
        if (n == size)
            return ERR_LIMIT;
        out[n++] = c;
    }
    CHECK(n <= size && n <= encoded.len);
    *decoded = slice_of(out, n);
    return 0;
}
