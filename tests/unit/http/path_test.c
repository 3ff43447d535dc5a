#include "http/path.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

static struct http_route look(const char *path, enum http_method method)
{
    return http_path_lookup(slice_of_cstr(path), method);
}

static enum http_path_kind kind(const char *path)
{
    return look(path, HTTP_METHOD_POST).kind;
}

static void known_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum http_method method;
        enum http_path_kind kind;
    } cases[] = {
        {"/v1/chat/completions", HTTP_METHOD_POST, HTTP_PATH_CHAT},
        {"/v1/completions", HTTP_METHOD_POST, HTTP_PATH_COMPLETIONS},
        {"/v1/responses", HTTP_METHOD_POST, HTTP_PATH_RESPONSES},
        {"/v1/messages", HTTP_METHOD_POST, HTTP_PATH_MESSAGES},
        {"/generate", HTTP_METHOD_POST, HTTP_PATH_GENERATE},
        {"/inference/v1/generate", HTTP_METHOD_POST, HTTP_PATH_TOKENS},
        {"/v1/messages/count_tokens", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/tokenize", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/v1/embeddings", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/v2/rerank", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/v1/chat/completions/render", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/invocations", HTTP_METHOD_POST, HTTP_PATH_INVOCATIONS},
        {"/v1/audio/transcriptions", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/audio/translations", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/audio/speech", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/audio/speech/batch", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/audio/generate", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/audio/voices", HTTP_METHOD_GET, HTTP_PATH_PLAIN},
        {"/v1/images/generations", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/images/edits", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/images/variations", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/images/img_1/content", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED},
        {"/v1/videos", HTTP_METHOD_POST, HTTP_PATH_JOBS},
        {"/v1/videos", HTTP_METHOD_GET, HTTP_PATH_JOBS},
        {"/v1/videos/edits", HTTP_METHOD_POST, HTTP_PATH_JOBS},
        {"/v1/videos/video_1/remix", HTTP_METHOD_POST, HTTP_PATH_MEDIA_STORED},
        {"/v1/videos/sync", HTTP_METHOD_POST, HTTP_PATH_MEDIA},
        {"/v1/videos/video_1", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED},
        {"/v1/videos/video_1", HTTP_METHOD_DELETE, HTTP_PATH_MEDIA_STORED},
        {"/v1/videos/video_1/content", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED},
        {"/v1/moderations", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/v1/decisions", HTTP_METHOD_POST, HTTP_PATH_PROMPT},
        {"/version", HTTP_METHOD_GET, HTTP_PATH_PLAIN},
        {"/v1/models", HTTP_METHOD_GET, HTTP_PATH_MODELS},
        {"/v1/models/a%2Fb", HTTP_METHOD_GET, HTTP_PATH_MODEL_ONE},
        {"/health", HTTP_METHOD_HEAD, HTTP_PATH_HEALTH},
        {"/ping", HTTP_METHOD_POST, HTTP_PATH_HEALTH},
        {"/metrics", HTTP_METHOD_GET, HTTP_PATH_STATUS},
        {"/v1/responses/resp_1", HTTP_METHOD_GET, HTTP_PATH_RESPONSE_STORED},
        {"/v1/responses/resp_1/cancel", HTTP_METHOD_POST, HTTP_PATH_RESPONSE_STORED},
        {"/v1/responses/resp_1/input_items", HTTP_METHOD_GET, HTTP_PATH_RESPONSE_STORED},
        {"*", HTTP_METHOD_OPTIONS, HTTP_PATH_SERVER},
        {"/", HTTP_METHOD_GET, HTTP_PATH_ROOT},
        {"/", HTTP_METHOD_HEAD, HTTP_PATH_ROOT},
        {"/", HTTP_METHOD_POST, HTTP_PATH_OTHER},
        {"/", HTTP_METHOD_OPTIONS, HTTP_PATH_OTHER},
        {"//", HTTP_METHOD_GET, HTTP_PATH_OTHER},
        {"/whatever", HTTP_METHOD_PUT, HTTP_PATH_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_route r = look(cases[i].path, cases[i].method);
        assert_int_equal(r.kind, cases[i].kind);
        assert_true(r.method_allowed);
    }
}

/* Replicas may serve different models. A model's name must be read, or the request goes to an
 * engine without the model. */
static void the_model_is_read_on_these_paths(void **state)
{
    (void)state;
    static const char *const paths[] = {"/detokenize",
                                        "/v1/detokenize",
                                        "/v1/chat/completions/derender",
                                        "/v1/completions/derender",
                                        "/v1/chat/completions/batch",
                                        "/generative_scoring",
                                        "/cohere/v2/chat",
                                        "/cohere/v2/chat/render",
                                        "/api/chat",
                                        "/api/generate",
                                        "/api/show"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct http_route r = look(paths[i], HTTP_METHOD_POST);
        assert_int_equal(r.kind, HTTP_PATH_PROMPT);
        assert_int_equal(r.methods, 1u << HTTP_METHOD_POST);
    }
}

static void ids(void **state)
{
    (void)state;
    assert_slice_equal(look("/v1/models/org/m%20x", HTTP_METHOD_GET).id, "org/m%20x");
    assert_slice_equal(look("/v1/responses/resp_a-1.b/cancel", HTTP_METHOD_POST).id, "resp_a-1.b");
    static const char *const none[] = {"/v1/responses/..",       "/v1/responses/a%2fb",
                                       "/v1/responses/a;b",      "/v1/responses//cancel",
                                       "/v1/responses/./cancel", "/v1/responses/a//",
                                       "/v1/videos/../content",  "/v1/images//content"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_int_equal(kind(none[i]), HTTP_PATH_OTHER);
}

/* An engine may be behind a root path. Computing requests and stored responses are recognised there
 * too: owners and limits of keys apply. */
static void known_paths_are_recognised_behind_a_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum http_method method;
        enum http_path_kind kind;
        const char *prefix, *id;
    } cases[] = {
        {"/api/v1/chat/completions", HTTP_METHOD_POST, HTTP_PATH_CHAT, "/api", ""},
        {"/a/b.c/v1/messages/", HTTP_METHOD_POST, HTTP_PATH_MESSAGES, "/a/b.c", ""},
        {"/x/v1/responses", HTTP_METHOD_POST, HTTP_PATH_RESPONSES, "/x", ""},
        {"/V1/Completions", HTTP_METHOD_POST, HTTP_PATH_COMPLETIONS, "", ""},
        {"/x/generate", HTTP_METHOD_POST, HTTP_PATH_GENERATE, "/x", ""},
        {"/v1/v1/audio/speech", HTTP_METHOD_POST, HTTP_PATH_MEDIA, "/v1", ""},
        {"//v1/videos", HTTP_METHOD_GET, HTTP_PATH_JOBS, "/", ""},
        {"/x%2fy/invocations", HTTP_METHOD_POST, HTTP_PATH_INVOCATIONS, "/x%2fy", ""},
        {"/x/tokenize", HTTP_METHOD_POST, HTTP_PATH_PROMPT, "/x", ""},
        {"/x/v1/responses/Resp_1", HTTP_METHOD_GET, HTTP_PATH_RESPONSE_STORED, "/x", "Resp_1"},
        {"/x/v1/responses/r/cancel", HTTP_METHOD_POST, HTTP_PATH_RESPONSE_STORED, "/x", "r"},
        {"/x/v1/RESPONSES/r/", HTTP_METHOD_DELETE, HTTP_PATH_RESPONSE_STORED, "/x", "r"},
        {"/x/v1/videos/v/content", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED, "/x", "v"},
        /* Unknown paths below a stored response, with any method. */
        {"/v1/responses/a/b", HTTP_METHOD_PATCH, HTTP_PATH_RESPONSE_STORED, "", "a"},
        {"/v1/responses/a/b/c", HTTP_METHOD_GET, HTTP_PATH_RESPONSE_STORED, "", "a"},
        {"/x/v1/responses/a/b", HTTP_METHOD_HEAD, HTTP_PATH_RESPONSE_STORED, "/x", "a"},
        {"/v1/videos/a/content/b", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED, "", "a"},
        {"/v1/images/a", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED, "", "a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_route r = look(cases[i].path, cases[i].method);
        if (r.kind != cases[i].kind || !r.behind || r.slashed || !r.method_allowed)
            fail_msg("%s: kind %d", cases[i].path, (int)r.kind);
        assert_int_equal(r.prefix, strlen(cases[i].prefix));
        assert_slice_equal(r.id, cases[i].id);
    }
    static const struct {
        const char *path;
        enum http_method method;
    } others[] = {
        {"/x/generate", HTTP_METHOD_GET},  {"/x/v1/chat/completions", HTTP_METHOD_OPTIONS},
        {"/x/v1/models", HTTP_METHOD_GET}, {"/x/v1/responses/a", HTTP_METHOD_OPTIONS},
        {"/x/health", HTTP_METHOD_GET},    {"/xgenerate", HTTP_METHOD_POST},
        {"/x/metrics", HTTP_METHOD_GET},   {"/x/v1/responses/..", HTTP_METHOD_GET},
        {"/generate/x", HTTP_METHOD_POST},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct http_route r = look(others[i].path, others[i].method);
        assert_true(r.kind == HTTP_PATH_OTHER && r.method_allowed && !r.behind && r.id.len == 0);
    }
    assert_false(look("/v1/responses/a", HTTP_METHOD_GET).behind);
    assert_int_equal(look("/sleep/v1/chat/completions", HTTP_METHOD_POST).kind, HTTP_PATH_CONTROL);
}

/* After a success on these paths an engine's cache is empty. */
static void cache_resetting_paths_are_recognised(void **state)
{
    (void)state;
    static const char *const resets[] = {
        "/reset_prefix_cache",        "/flush_cache",        "/sleep",
        "/release_memory_occupation", "/api/%46lush_cache/", "/x/../sleep;y"};
    static const char *const others[] = {"/wake_up",     "/reset_mm_cache",
                                         "/sleepy",      "/start_profile",
                                         "/is_sleeping", "/v1/load_lora_adapter"};
    for (size_t i = 0; i < ARRAY_LEN(resets); i++)
        assert_true(http_path_resets_cache(slice_of_cstr(resets[i])));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(http_path_resets_cache(slice_of_cstr(others[i])));
}

/* Engines redirect such a path to the path without the slash. */
static void a_slash_at_the_end_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum http_method method;
        enum http_path_kind kind;
    } cases[] = {
        {"/v1/chat/completions/", HTTP_METHOD_POST, HTTP_PATH_CHAT},
        {"/v1/responses/", HTTP_METHOD_POST, HTTP_PATH_RESPONSES},
        {"/v1/responses/a/", HTTP_METHOD_GET, HTTP_PATH_RESPONSE_STORED},
        {"/v1/videos/a/content/", HTTP_METHOD_GET, HTTP_PATH_MEDIA_STORED},
        {"/v1/models/", HTTP_METHOD_GET, HTTP_PATH_MODELS},
        {"/v1/models/org/m/", HTTP_METHOD_GET, HTTP_PATH_MODEL_ONE},
        {"/health/", HTTP_METHOD_GET, HTTP_PATH_HEALTH},
        {"/v1/chat/completions/", HTTP_METHOD_OPTIONS, HTTP_PATH_PLAIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_route r = look(cases[i].path, cases[i].method);
        assert_int_equal(r.kind, cases[i].kind);
        assert_true(r.slashed && r.method_allowed);
    }
    assert_slice_equal(look("/v1/models/org/m/", HTTP_METHOD_GET).id, "org/m");
    static const char *const none[] = {"/", "/x/", "/v1/chat/completions//", "//"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_true(kind(none[i]) == HTTP_PATH_OTHER && !look(none[i], HTTP_METHOD_POST).slashed);
    assert_int_equal(kind("/sleep/"), HTTP_PATH_CONTROL);
    assert_false(look("/v1/chat/completions", HTTP_METHOD_POST).slashed);
}

static void wrong_methods(void **state)
{
    (void)state;
    struct http_route r = look("/v1/chat/completions", HTTP_METHOD_GET);
    assert_int_equal(r.kind, HTTP_PATH_CHAT);
    assert_false(r.method_allowed);
    char allow[64];
    http_methods_text(r.methods, allow, sizeof allow);
    assert_string_equal(allow, "POST");
    http_methods_text(look("/ping", HTTP_METHOD_PUT).methods, allow, sizeof allow);
    assert_string_equal(allow, "GET, HEAD, POST");
    http_methods_text(look("/ping", HTTP_METHOD_PUT).methods, allow, 10);
    assert_string_equal(allow, "GET, HEAD");
    assert_false(look("/v1/models", HTTP_METHOD_POST).method_allowed);
    assert_false(look("/v1/models", HTTP_METHOD_OTHER).method_allowed);
    /* The engine answers CORS preflight requests. */
    static const char *const asked[] = {"/v1/chat/completions", "/v1/responses/resp_1"};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        r = look(asked[i], HTTP_METHOD_OPTIONS);
        assert_int_equal(r.kind, HTTP_PATH_PLAIN);
        assert_true(r.method_allowed);
    }
}

static void control_paths(void **state)
{
    (void)state;
    static const char *const paths[] = {"/sleep",
                                        "/wake_up",
                                        "/is_sleeping",
                                        "/reset_prefix_cache",
                                        "/reset_mm_cache",
                                        "/reset_encoder_cache",
                                        "/pause",
                                        "/resume",
                                        "/is_paused",
                                        "/abort_requests",
                                        "/abort_request",
                                        "/server_info",
                                        "/get_server_info",
                                        "/load_lora_adapter",
                                        "/unload_lora_adapter",
                                        "/v1/load_lora_adapter",
                                        "/v1/unload_lora_adapter",
                                        "/load_lora_adapter_from_tensors",
                                        "/flush_cache",
                                        "/open_session",
                                        "/close_session",
                                        "/pause_generation",
                                        "/continue_generation",
                                        "/release_memory_occupation",
                                        "/resume_memory_occupation",
                                        "/collective_rpc",
                                        "/scale_elastic_ep",
                                        "/is_scaling_elastic_ep",
                                        "/start_profile",
                                        "/stop_profile",
                                        "/update_weights_from_disk",
                                        "/v1/omni/wakeup",
                                        "/v1/set_lora",
                                        "/v1/merge_lora_weights",
                                        "/v1/unmerge_lora_weights",
                                        "/update_weights_from_tensor",
                                        "/init_weights_update_group",
                                        "/get_weights_by_name",
                                        "/kv_event_sources",
                                        "/set_internal_state",
                                        "/hicache/storage-backend"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        for (unsigned m = HTTP_METHOD_GET; m < HTTP_METHODS; m++)
            assert_int_equal(look(paths[i], (enum http_method)m).kind, HTTP_PATH_CONTROL);
    }
}

static void control_paths_in_disguise(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/%73leep",
        "/%73%6c%65%65%70",
        "/%2573leep",
        "/%25252573leep",
        "/%%373leep",
        "/%257%33leep",
        "//sleep",
        "///sleep",
        "/sleep/",
        "/sleep//",
        "/./sleep",
        "/v1/../sleep",
        "/v1/%2e%2e/sleep",
        "/v1/..%2fsleep",
        "/x/..;/sleep",
        "/sleep;x=y",
        "/sleep%3Fx",
        "/sleep%23",
        "/SLEEP",
        "/Sleep",
        "/%53LEEP",
        "/sleep%00",
        "/sleep%0a",
        "/sleep%20",
        "/%09sleep",
        "/sl%00eep",
        "/sleep/x",
        "/root/sleep",
        "\\sleep",
        "/%5csleep",
        "/v1%2Fload_lora_adapter",
        "/V1/Load_LoRA_Adapter",
        "/v1/chat/completions/../../../sleep",
        "/v1/chat/completions/%2e%2e/sleep",
        "/v1/responses/../../sleep",
        "/v1/responses/..%2f..%2fsleep",
        "/flush_cache/",
        "/%66lush_cache",
        "/.%2fsleep",
        "/reset%5fprefix_cache",
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (kind(paths[i]) != HTTP_PATH_CONTROL)
            fail_msg("%s is of kind %d", paths[i], kind(paths[i]));
    }
    /* Answered by the router, so no engine ever sees it. */
    assert_int_equal(kind("/v1/models/../../sleep"), HTTP_PATH_MODEL_ONE);
}

/* Every way to percent-encode the letters of a control path. */
static void control_paths_encoded_anyhow(void **state)
{
    (void)state;
    static const char name[] = "wake_up";
    for (unsigned mask = 0; mask < 1u << (sizeof name - 1); mask++) {
        char path[64] = "/";
        for (size_t i = 0; i < sizeof name - 1; i++) {
            size_t n = strlen(path);
            (void)snprintf(path + n, sizeof path - n, mask >> i & 1 ? "%%%02x" : "%c", name[i]);
        }
        assert_int_equal(kind(path), HTTP_PATH_CONTROL);
    }
}

static void long_segments_hide_nothing(void **state)
{
    (void)state;
    char path[2048];
    for (size_t fill = 0; fill < 600; fill++) {
        memset(path, 'a', sizeof path);
        path[0] = '/';
        (void)snprintf(path + 1 + fill, sizeof path - 1 - fill, "%s", "%2Fsleep");
        assert_int_equal(kind(path), HTTP_PATH_CONTROL);
        (void)snprintf(path + 1 + fill, sizeof path - 1 - fill, "%s", "/x");
        assert_int_equal(kind(path), HTTP_PATH_OTHER);
    }
}

static void other_paths_stay_other(void **state)
{
    (void)state;
    static const char *const paths[] = {"/",           "/sleepy", "/asleep",      "/v2/files",
                                        "/v1/models2", "/pauses", "/%76%31/chat", "",
                                        "/a%zzb",      "/docs"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(kind(paths[i]), HTTP_PATH_OTHER);
}

static void percent_decoding(void **state)
{
    (void)state;
    char out[8];
    struct slice s;
    assert_int_equal(http_percent_decode(SLICE("a%2Fb%2f%25"), out, sizeof out, &s), 0);
    assert_slice_equal(s, "a/b/%");
    assert_int_equal(http_percent_decode(SLICE("%"), out, sizeof out, &s), ERR_SYNTAX);
    assert_int_equal(http_percent_decode(SLICE("%2"), out, sizeof out, &s), ERR_SYNTAX);
    assert_int_equal(http_percent_decode(SLICE("%2g"), out, sizeof out, &s), ERR_SYNTAX);
    assert_int_equal(http_percent_decode(SLICE("123456789"), out, sizeof out, &s), ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_paths),
        cmocka_unit_test(the_model_is_read_on_these_paths),
        cmocka_unit_test(ids),
        cmocka_unit_test(known_paths_are_recognised_behind_a_prefix),
        cmocka_unit_test(cache_resetting_paths_are_recognised),
        cmocka_unit_test(a_slash_at_the_end_changes_nothing),
        cmocka_unit_test(wrong_methods),
        cmocka_unit_test(control_paths),
        cmocka_unit_test(control_paths_in_disguise),
        cmocka_unit_test(control_paths_encoded_anyhow),
        cmocka_unit_test(long_segments_hide_nothing),
        cmocka_unit_test(other_paths_stay_other),
        cmocka_unit_test(percent_decoding),
    };
    return cmocka_run_group_tests_name("http/path", tests, NULL, NULL);
}
