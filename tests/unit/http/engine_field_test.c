/* Fields for messages between engines: found wherever an engine reads such a field, in each
 * disguise. */
#include "http/engine_field.h"

#include <stdio.h>

#include "base/check.h"
#include "http/field.h"
#include "tests/lib/skim_help.h"

static void check(const char *body, const char *want)
{
    for (size_t step = 0; step < 3; step++) {
        skim_split(body, strlen(body), step, step);
        assert_true(skim.understood);
        if (want == NULL && skim.engine_field != NULL)
            fail_msg("%s: %s", body, skim.engine_field);
        if (want != NULL && (skim.engine_field == NULL || strcmp(skim.engine_field, want) != 0))
            fail_msg("%s: %s, not %s", body, skim.engine_field, want);
    }
}

static void members_of_a_body(void **state)
{
    (void)state;
    static const char *const values[] = {"{}",   "[]",    "{\"remote_host\":\"h\",\"x\":[{}]}",
                                         "\"\"", "0",     "-1.5e3",
                                         "true", "false", "[[\"a\"]]"};
    static const char *const names[][2] = {
        {"kv_transfer_params", "kv_transfer_params"},
        {"ec_transfer_params", "ec_transfer_params"},
        {"bootstrap_host", "bootstrap_host"},
        {"bootstrap_port", "bootstrap_port"},
        {"bootstrap_room", "bootstrap_room"},
        {"bootstrap_pair_key", "bootstrap_pair_key"},
        {"disagg_prefill_dp_rank", "disagg_prefill_dp_rank"},
        {"decode_tp_size", "decode_tp_size"},
        {"disaggregated_params", "disaggregated_params"},
        {"\\u006bv_transfer\\u005fparams", "kv_transfer_params"},
        {"b\\u006fotstrap_host", "bootstrap_host"},
        {"bootstrap_next", "bootstrap_*"},
    };
    static const char *const places[] = {
        "{\"%s\":%s}",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"%s\":%s,\"n\":1}",
        "{\"vllm_xargs\":{\"a\":1,\"%s\":%s}}",
        "{\"sampling_params\":{\"%s\":%s,\"max_tokens\":1}}",
        "{\"sampling_params\":{\"extra_args\":{\"%s\":%s}},\"token_ids\":[1]}",
    };
    char body[512];
    for (size_t n = 0; n < ARRAY_LEN(names); n++)
        for (size_t p = 0; p < ARRAY_LEN(places); p++) {
            for (size_t v = 0; v < ARRAY_LEN(values); v++) {
                (void)snprintf(body, sizeof body, places[p], names[n][0], values[v]);
                check(body, names[n][1]);
            }
            (void)snprintf(body, sizeof body, places[p], names[n][0], "null");
            check(body, NULL);
        }
}

static void repeated_fields_are_found(void **state)
{
    (void)state;
    check("{\"kv_transfer_params\":{\"a\":1},\"kv_transfer_params\":null}", "kv_transfer_params");
    check("{\"kv_transfer_params\":null,\"kv_transfer_params\":{\"a\":1}}", "kv_transfer_params");
    check("{\"vllm_xargs\":{},\"vllm_xargs\":{\"kv_transfer_params\":\"x\"},\"vllm_xargs\":null}",
          "kv_transfer_params");
    check("{\"kv_transfer_params\":null,\"bootstrap_room\":[1,2]}", "bootstrap_room");
}

/* In a prompt, a tool's schema, metadata or a value, the same words mean nothing to an engine.
 * Ranks, priorities and sessions have their own rules. */
static void similar_names_are_no_engine_fields(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"messages\":[{\"role\":\"user\",\"kv_transfer_params\":{},\"content\":\"x\"}]}",
        "{\"prompt\":\"\\\"kv_transfer_params\\\":{}\"}",
        "{\"tools\":[{\"function\":{\"parameters\":{\"properties\":{\"bootstrap_host\":{}}}}}]}",
        "{\"metadata\":{\"kv_transfer_params\":\"x\"}}",
        "{\"user\":\"kv_transfer_params\",\"other\":{\"kv_transfer_params\":{}}}",
        "{\"kv_transfer_param\":1,\"xkv_transfer_params\":1,\"bootstrap\":1,\"KV_TRANSFER_PARAMS\":"
        "1}",
        "{\"routed_dp_rank\":1,\"data_parallel_rank\":1,\"priority\":1,\"session_id\":\"x\","
        "\"cache_salt\":\"x\",\"extra_key\":\"x\",\"request_id\":\"chat-1\",\"\":1}",
        "{\"request_id\":7}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        check(bodies[i], NULL);
}

static void ids_of_requests(void **state)
{
    (void)state;
    static char body[4096];
    check("{\"request_id\":\"___prefill_addr_10.0.0.1:1___decode_addr_10.0.0.2:2_x\"}",
          "___prefill_addr_");
    check("{\"request_id\":\"x___decode\\u005faddr_10.0.0.2:2_x\"}", "___decode_addr_");
    check("{\"request_id\":\"___prefill_addr_1:1___\",\"request_id\":\"x\"}", "___prefill_addr_");
    /* Longer than a kept id, and longer than the examined part. */
    for (int pad = 200; pad <= 2000; pad += 1800) {
        (void)snprintf(body, sizeof body,
                       "{\"request_id\":\"%0*d___prefill_addr_1:1___\",\"model\":\"m\"}", pad, 0);
        check(body, pad > HTTP_SKIM_SCRATCH ? "request_id" : "___prefill_addr_");
    }
    (void)snprintf(body, sizeof body, "{\"request_id\":\"%0*d\"}", 300, 0);
    check(body, NULL);
}

static void headers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "X-Prefiller-Host-Port",       "x-encoder-hosts-ports", "X-DATA-PARALLEL-HOST-PORT",
        "x-kv-cache-source-host-port", "X-KV-Transfer-Params",  "x_kv_transfer-params",
        "X-EC-Transfer-Params",
    };
    static const char *const others[] = {"X-Prefiller-Host", "X-KV-Transfer-Params-Not",
                                         "x-data-parallel-rank", "X-Stainless-Lang"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(http_field_lookup(slice_of_cstr(names[i])), HTTP_ENGINE_HEADER);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(http_field_lookup(slice_of_cstr(others[i])), HTTP_FIELD_OTHER);
}

/* Bodies unreadable to the skimmer go to the engine, unless a more tolerant reader may find a
 * field, wherever the body is cut into segments. */
static void unreadable_bodies_are_searched_for_engine_fields(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } bodies[] = {
#define BODY(text, want) {text, sizeof(text) - 1, want}
        BODY("\xef\xbb\xbf{\"kv_transfer_params\":{}}", "kv_transfer_params"),
        BODY("{\"a\":NaN,\"ec_transfer_params\":1}", "ec_transfer_params"),
        BODY("{\"a\":NaN,\"\\u006bv_transfer_params\":1}", "engine fields"),
        BODY("{\"a\":NaN,\"kv\\u005ftransfer_params\":1}", "engine fields"),
        BODY("{\0\"\0k\0v\0_\0", "engine fields"),
        BODY("\xff\xfe \0{\0\"\0", "engine fields"),
        BODY("\0\n\0{\0\"", "engine fields"),
        BODY("\xfe\xff\0{", "engine fields"),
        BODY(" \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 \0 "
             "\0 \0 \0 \0 \0 \0 \0 \0 {\0\"\0k\0",
             "engine fields"),
        BODY("  \t\r\n", NULL),
        BODY("{\0\0\0\"\0\0\0", "engine fields"),
        BODY("\0\0\xfe\xff\0\0\0{", "engine fields"),
        BODY("\0\0\0\0{\0", NULL),
        BODY("\0", NULL),
        BODY("\0[\0{", NULL),
        BODY("{\"a\":NaN,\"request_id\":\"___decode_addr_1:2\"}", "___decode_addr_"),
        BODY("{\"a\":NaN,\"x\":\"\\u003c\\u0026\\u4e2d\\u000a\\u00e9\\u00\"}", NULL),
        BODY("no JSON at all, and longer than the seam of two segments: ................."
             "................................................................",
             NULL),
        BODY("", NULL),
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        for (size_t cut = 1; cut <= 80; cut++) {
            struct segment *all[256], *before = NULL;
            struct body body = {.refs = 1};
            size_t n = 0;
            for (size_t at = 0; at < bodies[i].len; at += cut) {
                size_t len = cut < bodies[i].len - at ? cut : bodies[i].len - at;
                struct segment *s = all[n++] = calloc(1, sizeof *s + len);
                memcpy(s->data, bodies[i].text + at, len);
                s->len = s->cap = (uint32_t)len;
                *(before != NULL ? &before->next : &body.first) = s;
                before = body.last = s;
            }
            const char *found = http_engine_field_suspect(&body);
            if (found != bodies[i].want &&
                (found == NULL || bodies[i].want == NULL || strcmp(found, bodies[i].want) != 0))
                fail_msg("%zu, cut at %zu: %s", i, cut, found);
            while (n > 0)
                free(all[--n]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_a_body),
        cmocka_unit_test(repeated_fields_are_found),
        cmocka_unit_test(similar_names_are_no_engine_fields),
        cmocka_unit_test(ids_of_requests),
        cmocka_unit_test(headers),
        cmocka_unit_test(unreadable_bodies_are_searched_for_engine_fields),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
