/* Token ids requested by the router are removed from answers. */
#include "http/ids_cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/lib/test.h"

enum { BYTES = 4096, IDS = 64 };

static uint32_t told[IDS];
static unsigned told_count;

static void on_id(void *context, uint32_t id)
{
    (void)context;
    assert_true(told_count < IDS);
    told[told_count++] = id;
}

static const struct http_ids_user user = {on_id, NULL};

/* Forwards an answer in pieces of `step` bytes. Returns the number of prompts with ids. */
static unsigned cut(bool is_stream, const char *answer, size_t step, char out[BYTES])
{
    struct http_ids_cut c;
    size_t size = strlen(answer), len = 0;
    told_count = 0;
    http_ids_cut_init(&c, is_stream, &user);
    for (size_t at = 0; at <= size; at += step) {
        struct slice in = slice_of(answer + at, size - at < step ? size - at : step), some;
        if (size - at <= step) {
            while (http_ids_cut_next(&c, &in, &some)) {
                memcpy(out + len, some.at, some.len);
                len += some.len;
            }
            http_ids_cut_settled(&c);
            http_ids_cut_end(&c);
        }
        while (http_ids_cut_next(&c, &in, &some)) {
            assert_true(len + some.len < BYTES);
            memcpy(out + len, some.at, some.len);
            len += some.len;
        }
        assert_int_equal(in.len, 0);
        http_ids_cut_settled(&c);
    }
    out[len] = '\0';
    unsigned prompts = c.prompts;
    http_ids_cut_free(&c);
    return prompts;
}

/* `ids`: the prompts' ids, as text; `prompts`: the number of prompts with ids. */
static void check(bool is_stream, const char *answer, const char *wanted, unsigned prompts,
                  const char *ids)
{
    for (size_t step = 1; step <= strlen(answer) + 1; step++) {
        char out[BYTES], text[BYTES] = "";
        assert_int_equal(cut(is_stream, answer, step, out), prompts);
        assert_string_equal(out, wanted);
        for (unsigned i = 0; i < told_count; i++)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%u ", told[i]);
        assert_string_equal(text, ids);
    }
}

#define HEAD "{\"id\":\"c\",\"choices\":[{\"index\":0,"

/* As in vLLM 0.32. */
static void test_whole_answers(void **state)
{
    (void)state;
    check(false,
          HEAD "\"message\":{\"content\":\"\\\"token_ids\\\":[1]\"},\"token_ids\":[7,8],"
               "\"routed_experts\":null}],\"prompt_token_ids\":[1, 22,4294967295],\"x\":[1]}",
          HEAD "\"message\":{\"content\":\"\\\"token_ids\\\":[1]\"},\"token_ids\":null,"
               "\"routed_experts\":null}],\"prompt_token_ids\":null,\"x\":[1]}",
          1, "1 22 4294967295 ");
    check(false, HEAD "\"text\":\"a\",\"token_ids\":[],\"prompt_token_ids\":[5]}]} \n",
          HEAD "\"text\":\"a\",\"token_ids\":null,\"prompt_token_ids\":null}]} \n", 1, "5 ");
    check(false, "{\"choices\":[{\"prompt_token_ids\":[5,6]},{\"prompt_token_ids\":[7]}]}",
          "{\"choices\":[{\"prompt_token_ids\":null},{\"prompt_token_ids\":null}]}", 2, "5 6 ");
    check(false, HEAD "\"token_ids\":null}],\"prompt_token_ids\":null}",
          HEAD "\"token_ids\":null}],\"prompt_token_ids\":null}", 0, "");
    check(false, "", "", 0, "");
}

#define EVENT(text) "data: {\"choices\":[{" text "}]}\n\n"

static void test_streams(void **state)
{
    (void)state;
    check(
        true,
        "data: "
        "{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}],\"prompt_token_ids\":[3,4]}\n\n" EVENT(
            "\"delta\":{\"content\":\"x\"},\"finish_reason\":null,\"token_ids\":[9]") ": "
                                                                                      "comment\n\n"
                                                                                      "data: "
                                                                                      "{\"choices\""
                                                                                      ":[],"
                                                                                      "\"usage\":{"
                                                                                      "\"prompt_"
                                                                                      "tokens\":2}}"
                                                                                      "\n\ndata: "
                                                                                      "[DONE]\n\n",
        "data: "
        "{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}],\"prompt_token_ids\":null}\n\n" EVENT(
            "\"delta\":{\"content\":\"x\"},\"finish_reason\":null,\"token_ids\":null") ": "
                                                                                       "comment\n\n"
                                                                                       "data: "
                                                                                       "{\"choices"
                                                                                       "\":[],"
                                                                                       "\"usage\":{"
                                                                                       "\"prompt_"
                                                                                       "tokens\":2}"
                                                                                       "}\n\ndata: "
                                                                                       "[DONE]\n\n",
        1, "3 4 ");
    check(true,
          EVENT("\"text\":\"a\",\"prompt_token_ids\":[1],\"token_ids\":[2]") "data: {\"cut\":",
          EVENT("\"text\":\"a\",\"prompt_token_ids\":null,\"token_ids\":null") "data: {\"cut\":", 1,
          "1 ");
}

/* While a parser keeps tokens back, vLLM sends an event for them only because of the router's
 * request. */
static void test_events_for_ids_alone_are_left_out(void **state)
{
    (void)state;
    const char *alone = EVENT("\"delta\":{},\"logprobs\":null,\"finish_reason\":null,"
                              "\"token_ids\":[9]");
    check(true, alone, "", 0, "");
    char after_blanks[512]; /* the blank line may have been sent on before */
    (void)snprintf(after_blanks, sizeof after_blanks, ": ping\n\n\n%s", alone);
    check(true, after_blanks, ": ping\n\n\n", 0, "");
    static const char *const stay[][2] = {
        {EVENT("\"delta\":{\"content\":\"\"},\"finish_reason\":null,\"token_ids\":[9]"),
         EVENT("\"delta\":{\"content\":\"\"},\"finish_reason\":null,\"token_ids\":null")},
        {EVENT("\"delta\":{},\"finish_reason\":\"stop\",\"token_ids\":[9]"),
         EVENT("\"delta\":{},\"finish_reason\":\"stop\",\"token_ids\":null")},
        {EVENT(
             "\"delta\":{},\"logprobs\":{\"content\":[]},\"finish_reason\":null,\"token_ids\":[9]"),
         EVENT("\"delta\":{},\"logprobs\":{\"content\":[]},\"finish_reason\":null,\"token_ids\":"
               "null")},
        {EVENT("\"delta\":{},\"finish_reason\":null,\"token_ids\":null"),
         EVENT("\"delta\":{},\"finish_reason\":null,\"token_ids\":null")},
        {EVENT("\"delta\":{},\"finish_reason\":null,\"token_ids\":[]"),
         EVENT("\"delta\":{},\"finish_reason\":null,\"token_ids\":null")},
    };
    for (size_t i = 0; i < ARRAY_LEN(stay); i++)
        check(true, stay[i][0], stay[i][1], 0, "");
}

/* An engine may send anything: bytes pass unchanged if cutting is not safe. */
static void test_other_values_pass_unchanged(void **state)
{
    (void)state;
    static const char *const values[] = {"[1,2,\"3\"]", "[1,-2]", "[1,2.0]",       "[1e3]",
                                         "[[1]]",       "[01]",   "[4294967296]",  "[1,{}]",
                                         "[null]",      "7",      "\"[1]\"",       "{\"a\":[1]}",
                                         "[true]",      "{}",     "[99999999999]", "[-1]"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char answer[512];
        (void)snprintf(answer, sizeof answer, HEAD "\"token_ids\":%s}],\"prompt_token_ids\":%s}",
                       values[i], values[i]);
        check(false, answer, answer, 0, "");
        (void)snprintf(answer, sizeof answer,
                       "data: {\"choices\":[{\"delta\":{},\"token_ids\":%s}]}\n\n", values[i]);
        check(true, answer, answer, 0, "");
    }
    /* no JSON, or another place */
    static const char *const answers[] = {
        "{\"prompt_token\\u005fids\":[1]}",
        "{\"prompt_token_ids\":[1 2]}",
        "{\"prompt_token_ids\":[1,]}",
        "{\"prompt_token_ids\":[,1]}",
        "{\"token_ids\":[1]}",
        "[{\"prompt_token_ids\":[1]}]",
        "{\"a\":{\"prompt_token_ids\":[1]}}",
        "{\"choices\":{\"token_ids\":[1]}}",
        "{\"choices\":[[{\"token_ids\":[1]}]]}",
        "{\"other\":[{\"token_ids\":[1]}]}",
        "{\"choices\":[{\"x\":{\"token_ids\":[1]}}]}",
        "{\"prompt_token_ids\":[",
        "[1,2]",
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        check(false, answers[i], answers[i], 0, "");
    const char *broken = "{\"prompt_token_ids\":[1,2],\"token_ids\":nul}";
    char out[BYTES];
    (void)cut(false, broken, 5, out);
    assert_string_equal(out, broken);
    const char *lines = "data: {\"prompt_token_ids\":[1]}\r\n\r\n";
    check(true, lines, lines, 0, "");
}

/* A stream unlike vLLM's is not delayed until the end. */
static void test_lines_ending_with_cr_pass_at_once(void **state)
{
    (void)state;
    struct http_ids_cut c;
    struct slice in = SLICE("data: {\"choices\":[]}\r\n\r\n"), out;
    http_ids_cut_init(&c, true, &user);
    assert_true(http_ids_cut_next(&c, &in, &out));
    assert_slice_equal(out, "data: {\"choices\":[]}\r\n\r\n");
    http_ids_cut_free(&c);
}

/* A million ids are cut; events and answers beyond the limit pass. */
static void test_long_answers(void **state)
{
    (void)state;
    static char *answer, *got;
    enum { MANY = 1000000 };
    size_t room = 8 * (size_t)MANY;
    answer = malloc(room), got = malloc(room);
    assert_non_null(answer);
    assert_non_null(got);
    for (unsigned many = 0; many < 2; many++) {
        size_t len = (size_t)snprintf(answer, room, "data: {\"prompt_token_ids\":[1"), out_len = 0;
        for (unsigned i = 0; i < (many > 0 ? MANY : MANY / 2); i++) {
            answer[len++] = ',';
            answer[len++] = '1';
            answer[len++] = '2';
        }
        len += (size_t)snprintf(answer + len, room - len, "]}\n\ndata: [DONE]\n\n");
        struct http_ids_cut c;
        const struct http_ids_user nobody = {on_id, NULL};
        http_ids_cut_init(&c, true, &nobody);
        c.prompts = 1; /* ignored */
        for (size_t at = 0; at < len; at += 65536) {
            struct slice in = slice_of(answer + at, len - at < 65536 ? len - at : 65536), some;
            while (http_ids_cut_next(&c, &in, &some)) {
                memcpy(got + out_len, some.at, some.len);
                out_len += some.len;
            }
            http_ids_cut_settled(&c);
            assert_true(c.part.len <= HTTP_IDS_CUT_MAX);
        }
        if (many > 0) {
            assert_int_equal(out_len, len);
            assert_memory_equal(got, answer, len);
        } else {
            const char *wanted = "data: {\"prompt_token_ids\":null}\n\ndata: [DONE]\n\n";
            assert_int_equal(out_len, strlen(wanted));
            assert_memory_equal(got, wanted, out_len);
        }
        http_ids_cut_free(&c);
    }
    free(answer);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_answers),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_events_for_ids_alone_are_left_out),
        cmocka_unit_test(test_other_values_pass_unchanged),
        cmocka_unit_test(test_lines_ending_with_cr_pass_at_once),
        cmocka_unit_test(test_long_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
