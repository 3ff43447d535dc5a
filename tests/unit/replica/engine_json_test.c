#include "base/check.h"
#include "base/err.h"
#include "node/replica/engine_json.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct seen {
    unsigned count;
    char ids[8][64];
    char objects[8][256];
    char parents[8][64];
    uint32_t contexts[8];
    enum node_engine engines[8];
};

static int see(void *context, const struct node_listed *model)
{
    struct seen *s = context;
    assert_true(slice_to_cstr(model->id, s->ids[s->count], sizeof s->ids[0]));
    assert_true(slice_to_cstr(model->object, s->objects[s->count], sizeof s->objects[0]));
    assert_true(slice_to_cstr(model->parent, s->parents[s->count], sizeof s->parents[0]));
    s->contexts[s->count] = model->context_tokens;
    s->engines[s->count] = model->engine;
    s->count++;
    return 0;
}

static void models_are_listed_with_their_whole_objects(void **state)
{
    (void)state;
    struct seen s = {0};
    struct slice json = SLICE(
        "{\"object\":\"list\",\"data\":[{\"id\":\"tiny\",\"permission\":[{\"id\":\"modelperm-1\"}],"
        "\"parent\":null}, {\"owned_by\":\"vllm\",\"id\":\"sql\\u002dlora\"}]}");
    assert_int_equal(node_models_parse(json, see, &s), 0);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.ids[0], "tiny"); /* and not the permission's id */
    assert_string_equal(
        s.objects[0],
        "{\"id\":\"tiny\",\"permission\":[{\"id\":\"modelperm-1\"}],\"parent\":null}");
    assert_string_equal(s.ids[1], "sql-lora");
}

static bool model_unknown(struct slice json)
{
    struct node_engine_error error;
    node_error_read(json, &error);
    return error.model_unknown;
}

static void malformed_model_lists_are_refused(void **state)
{
    (void)state;
    struct seen s = {0};
    assert_int_equal(node_models_parse(SLICE("{\"data\":{}}"), see, &s), ERR_SYNTAX);
    assert_int_equal(node_models_parse(SLICE("[]"), see, &s), ERR_SYNTAX);
    assert_int_equal(node_models_parse(SLICE(""), see, &s), ERR_SYNTAX);
    assert_int_equal(node_models_parse(SLICE("{\"data\":[{\"id\":\"a\"}]"), see, &s), ERR_SYNTAX);
    /* Cut anywhere, as by a dying engine: this once ended the router. */
    struct slice whole = SLICE("{\"data\":[{\"id\":\"a\\u00e9\",\"owned_by\":\"vllm\"}]}");
    struct node_scrape scrape;
    uint32_t context;
    for (size_t len = 0; len < whole.len; len++) {
        s.count = 0;
        assert_int_equal(node_models_parse(slice_of(whole.at, len), see, &s), ERR_SYNTAX);
        assert_int_equal(node_server_info_parse(slice_of(whole.at, len), &scrape, &context),
                         ERR_SYNTAX);
        assert_false(model_unknown(slice_of(whole.at, len)));
    }
    s.count = 0;
    assert_int_equal(node_models_parse(SLICE("{\"data\":[{\"id\":7},{},1]}"), see, &s), 0);
    assert_int_equal(s.count, 0);
}

static struct seen seen_of(const char *objects)
{
    char json[1024];
    struct seen s = {0};
    (void)snprintf(json, sizeof json, "{\"data\":[%s]}", objects);
    assert_int_equal(node_models_parse(slice_of_cstr(json), see, &s), 0);
    return s;
}

static void the_engine_is_recognised_by_the_owner(void **state)
{
    (void)state;
    struct seen s = seen_of("{\"id\":\"m\",\"owned_by\":\"vllm\"},"
                            "{\"owned_by\":\"sglang\",\"id\":\"m\"},"
                            "{\"id\":\"vllm\",\"owned_by\":\"openai\"},"
                            "{\"id\":\"m\",\"permission\":[{\"owned_by\":\"vllm\"}]}");
    assert_int_equal(s.count, 4);
    assert_int_equal(s.engines[0], NODE_ENGINE_VLLM);
    assert_int_equal(s.engines[1], NODE_ENGINE_SGLANG);
    assert_int_equal(s.engines[2], NODE_ENGINE_AUTO);
    assert_int_equal(s.engines[3], NODE_ENGINE_AUTO);
}

static void an_adapter_has_a_parent(void **state)
{
    (void)state;
    struct seen s = seen_of("{\"id\":\"sql\",\"parent\":\"ba\\u0073e\"},"
                            "{\"id\":\"base\",\"parent\":null},"
                            "{\"id\":\"m\",\"permission\":[{\"parent\":\"x\"}]}");
    assert_string_equal(s.parents[0], "base");
    assert_string_equal(s.parents[1], "");
    assert_string_equal(s.parents[2], "");
}

/* Bodies of 404 from real engines. */
static void a_404_for_an_unknown_model_is_recognised(void **state)
{
    (void)state;
    static const char *const unknown[] = {
        "{\"error\":{\"message\":\"The model `nope` does not exist. Valid aliases: tiny.\","
        "\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}",
        "{\"object\":\"error\",\"message\":\"The model `nope` does not exist.\","
        "\"type\":\"NotFoundError\",\"param\":null,\"code\":404}",
        "{\"type\":\"error\",\"error\":{\"type\":\"NotFoundError\",\"message\":"
        "\"The model `nope` does not exist.\"}}",
        "{\"error\":{\"message\":\"No such thing\",\"code\":\"model_not_found\"}}",
        "{\"error\":{\"message\":\"model \\\"nope\\\" not found, try pulling it first\"}}",
        "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: nope\"}}",
    };
    static const char *const other[] = {
        "{\"detail\":\"Not Found\"}",
        "{\"error\":{\"message\":\"Response 'resp_1' not found.\",\"param\":\"response_id\"}}",
        "{\"error\":{\"message\":\"The model is busy\"}}",
        "{\"error\":{\"message\":\"Response 'my-model' not found.\",\"param\":\"response_id\"}}",
        "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"batch\"}}",
        "{\"error\":{\"param\":\"model\"}", /* cut */
        "The model `nope` does not exist.",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        assert_true(model_unknown(slice_of_cstr(unknown[i])));
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        assert_false(model_unknown(slice_of_cstr(other[i])));
    char long_one[1024] = "{\"error\":{\"message\":\"The model `";
    memset(long_one + strlen(long_one), 'x', 600);
    (void)strcat(long_one, "` does not exist.\",\"param\":\"model\"}}");
    assert_true(model_unknown(slice_of_cstr(long_one)));
}

static void server_info_has_the_cache_size(void **state)
{
    (void)state;
    struct node_scrape s;
    uint32_t context = 7;
    assert_int_equal(
        node_server_info_parse(SLICE("{\"max_total_num_tokens\":123456,\"page_size\":1,"
                                     "\"internal_states\":[{\"page_size\":9}]}"),
                               &s, &context),
        0);
    assert_int_equal(context, 0);
    assert_true(s.cache_tokens == 123456 && s.block_tokens == 1 && s.running == -1);
    assert_int_equal(s.ranks, 0);
    assert_int_equal(node_server_info_parse(SLICE("{\"dp_size\":8,\"page_size\":1}"), &s, &context),
                     0);
    assert_int_equal(s.ranks, 8);
    assert_int_equal(
        node_server_info_parse(SLICE("{\"dp_size\":1e9,\"page_size\":1}"), &s, &context), 0);
    assert_int_equal(s.ranks, 0);
    assert_int_equal(node_server_info_parse(SLICE("{}"), &s, &context), ERR_NOT_FOUND);
    assert_int_equal(node_server_info_parse(SLICE("{"), &s, &context), ERR_SYNTAX);
}

/* SGLang takes no prompt larger than the cache (max_req_input_len). */
static void server_info_has_the_context_length(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        uint32_t context;
    } cases[] = {
        {"{\"page_size\":1,\"context_length\":8192}", 8192},
        {"{\"max_total_num_tokens\":65536,\"context_length\":8192}", 8192},
        {"{\"max_total_num_tokens\":4000,\"context_length\":8192}", 4000},
        {"{\"page_size\":1,\"context_length\":null}", 0},
        {"{\"page_size\":1,\"internal_states\":[{\"context_length\":5}]}", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_scrape s;
        uint32_t context = 7;
        assert_int_equal(node_server_info_parse(slice_of_cstr(cases[i].json), &s, &context), 0);
        assert_int_equal(context, cases[i].context);
    }
}

static void a_model_list_has_the_context_length(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        uint32_t context;
    } cases[] = {
        {"{\"id\":\"m\",\"max_model_len\":131072}", 131072},
        {"{\"max_model_len\":4096,\"id\":\"m\"}", 4096},
        {"{\"id\":\"adapter\",\"max_model_len\":null}", 0},
        {"{\"id\":\"m\",\"max_model_len\":-1}", 0},
        {"{\"id\":\"m\",\"max_model_len\":1e30}", 0},
        {"{\"id\":\"m\",\"max_model_len\":\"4096\"}", 0},
        {"{\"id\":\"m\",\"permission\":[{\"max_model_len\":5}]}", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(seen_of(cases[i].json).contexts[0], cases[i].context);
}

static void an_error_code_shows_a_prompt_too_long(void **state)
{
    (void)state;
    struct node_engine_error error;
    node_error_read(SLICE("{\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}"),
                    &error);
    assert_true(error.too_long);
    node_error_read(SLICE("{\"error\":{\"message\":\"context_length_exceeded\",\"code\":400}}"),
                    &error);
    assert_false(error.too_long);
}

static void errors_in_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        unsigned status;
        const char *message, *type;
    } cases[] = {
        {"{\"error\":{\"message\":\"busy\",\"type\":\"Busy\",\"code\":503}}", 503, "busy", "Busy"},
        {"{\"object\":\"error\",\"message\":\"bad\",\"type\":\"Bad\",\"code\":400}", 400, "bad",
         "Bad"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"full\"}}", 503,
         "full", "overloaded_error"},
        {"{\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"status_code\":503,"
         "\"message\":\"full\"}}}",
         503, "full", ""},
        {"{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\","
         "\"message\":\"full\"}}}",
         0, "full", "response.failed"},
        {"{\"error\":{\"message\":\"cut", 0, "cut", ""},
        {"Internal Server Error", 0, "", ""},
        {"{\"code\":1e9}", 0, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_engine_error e;
        node_error_read(slice_of_cstr(cases[i].json), &e);
        assert_int_equal(e.status, cases[i].status);
        assert_string_equal(e.message, cases[i].message);
        assert_string_equal(e.type, cases[i].type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_listed_with_their_whole_objects),
        cmocka_unit_test(malformed_model_lists_are_refused),
        cmocka_unit_test(the_engine_is_recognised_by_the_owner),
        cmocka_unit_test(an_adapter_has_a_parent),
        cmocka_unit_test(a_404_for_an_unknown_model_is_recognised),
        cmocka_unit_test(server_info_has_the_cache_size),
        cmocka_unit_test(server_info_has_the_context_length),
        cmocka_unit_test(a_model_list_has_the_context_length),
        cmocka_unit_test(an_error_code_shows_a_prompt_too_long),
        cmocka_unit_test(errors_in_every_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
