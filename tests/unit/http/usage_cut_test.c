/* Usage, and nothing else, is removed from a stream, however the stream is cut into pieces. Some
 * parts of the usage event belong to the event before, and are moved there. */
#include "http/usage_cut.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/lib/test.h"

#define EVENT_X "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
#define EVENT_Q "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\"}}]}\n\n"
#define EVENT_N "data: {\"id\":1,\"choices\":[{\"text\":\"y\"}],\"usage\":null}\n\n"
#define USAGE                                                                                      \
    "data: {\"id\":1,\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"x\":[1,{}]},\"z\":{}}\n\n"
#define USAGE_CR "data:{ \"usage\" : { } , \"choices\" : [ ] }\r\n\r\n"
#define BESIDE   "data: {\"choices\":[{\"text\":\"y\"}],\"usage\":{\"prompt_tokens\":3}}\n\n"
#define DONE     "data: [DONE]\n\n"
/* The end of a choice, and usage with a fingerprint behind it. */
#define END_HEAD    "data: {\"choices\":[{\"text\":\"}\",\"finish_reason\":\"stop\",\"a\":[]}]"
#define END_CHOICE  END_HEAD "}\n\n"
#define PRINT       ",\"system_fingerprint\":\"v\\\"0.32\""
#define END_PRINT   END_HEAD PRINT "}\n\n"
#define USAGE_PRINT "data: {\"id\":1,\"choices\":[],\"usage\":{\"prompt_tokens\":3}" PRINT "}\n\n"
#define BESIDE_END                                                                                 \
    "data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}\n\n"

/* The output, if the stream comes in pieces of random length up to `most`. It is read after the
 * piece, so that ASan sees output in freed memory. */
static void cut(const char *stream, uint64_t most, uint64_t seed, struct buf *out)
{
    struct http_usage_cut c;
    struct prng prng;
    prng_seed(&prng, seed);
    http_usage_cut_init(&c);
    struct slice rest = slice_of_cstr(stream), piece;
    while (rest.len > 0) {
        size_t len = 1 + (size_t)prng_below(&prng, most);
        char *copy = malloc(len); /* so that ASan sees reads beyond the end */
        len = len < rest.len ? len : rest.len;
        memcpy(copy, rest.at, len);
        rest = slice_skip(rest, len);
        struct slice in = slice_of(copy, len), gathered[64];
        size_t count = 0;
        while (http_usage_cut_next(&c, &in, &piece)) {
            assert_true(piece.len > 0 && count < 64);
            gathered[count++] = piece;
        }
        assert_int_equal(in.len, 0);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(buf_append_slice(out, gathered[i]), 0);
        http_usage_cut_settled(&c);
        free(copy);
    }
    c.passes = true;
    while (http_usage_cut_next(&c, &(struct slice){0}, &piece))
        assert_int_equal(buf_append_slice(out, piece), 0);
    http_usage_cut_free(&c);
}

static void only_usage_is_removed(void **state)
{
    (void)state;
    static const struct {
        const char *stream, *out;
    } cases[] = {
        {EVENT_X EVENT_X USAGE DONE, EVENT_X EVENT_X DONE},
        {EVENT_Q EVENT_N USAGE_CR DONE, EVENT_Q EVENT_N DONE},
        {EVENT_X DONE, EVENT_X DONE},
        {EVENT_X USAGE, EVENT_X},
        {EVENT_X BESIDE USAGE DONE, EVENT_X BESIDE USAGE DONE},
        {": ping\n\n" EVENT_X ": \"usage\"\n\n" USAGE DONE,
         ": ping\n\n" EVENT_X ": \"usage\"\n\n" DONE},
        {EVENT_X "data: {\"choices\":[],\"usa", EVENT_X "data: {\"choices\":[],\"usa"},
        {EVENT_X "data: {\"choices\":[{}],\"a\":{\"usage\":{}}}\n\n" DONE,
         EVENT_X "data: {\"choices\":[{}],\"a\":{\"usage\":{}}}\n\n" DONE},
        {"data: {\"usage\":{},\"cho\n\n" DONE, "data: {\"usage\":{},\"cho\n\n" DONE},
        {"data: {\"choices\":[],\"usage\":{}\n\n" DONE,
         "data: {\"choices\":[],\"usage\":{}\n\n" DONE},
        /* vLLM's fingerprint */
        {EVENT_X END_CHOICE USAGE_PRINT DONE, EVENT_X END_PRINT DONE},
        {END_CHOICE USAGE_PRINT, END_PRINT},
        {": x\r\n" END_HEAD "}\r\n\r\n" USAGE_CR DONE, ": x\r\n" END_HEAD "}\r\n\r\n" DONE},
        {": x\n" END_CHOICE ": y\n" USAGE_PRINT DONE, ": x\n" END_PRINT DONE},
        {EVENT_X END_CHOICE DONE, EVENT_X END_CHOICE DONE},
        {EVENT_X END_CHOICE, EVENT_X END_CHOICE},
        {EVENT_X END_CHOICE "data: {\"cho", EVENT_X END_CHOICE "data: {\"cho"},
        {EVENT_X END_CHOICE USAGE DONE, EVENT_X END_CHOICE DONE},
        {END_CHOICE ": ping\n\n" USAGE_PRINT DONE, END_CHOICE ": ping\n\n" DONE},
        {END_PRINT USAGE_PRINT DONE, END_PRINT DONE},
        {EVENT_X USAGE_PRINT DONE, EVENT_X DONE},
        {BESIDE_END USAGE_PRINT DONE, BESIDE_END USAGE_PRINT DONE},
        {END_CHOICE BESIDE USAGE_PRINT, END_CHOICE BESIDE USAGE_PRINT},
        {"data: {\ndata: \"choices\":[{\"finish_reason\":\"stop\"}]\ndata: }\n\n" USAGE_PRINT DONE,
         "data: {\ndata: \"choices\":[{\"finish_reason\":\"stop\"}]\ndata: " PRINT "}\n\n" DONE},
        /* of several choices, the last gets the parts */
        {END_CHOICE EVENT_X END_CHOICE USAGE_PRINT DONE, END_CHOICE EVENT_X END_PRINT DONE},
        {END_CHOICE END_CHOICE USAGE_PRINT DONE, END_CHOICE END_PRINT DONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (uint64_t seed = 0; seed < 400; seed++) {
            struct buf out;
            buf_init(&out, 0);
            cut(cases[i].stream, seed < 10 ? 1000 : 1 + seed % 60, seed, &out);
            assert_int_equal(out.len, strlen(cases[i].out));
            assert_memory_equal(out.at, cases[i].out, out.len);
            buf_free(&out);
        }
    }
}

/* A tool call, kept back by the engine's parser, comes as a single event of any length. A read may
 * bring the end of an event and 64 KiB of other events. Neither ends the cutting. */
static void usage_is_removed_after_long_events(void **state)
{
    (void)state;
    static char stream[400000], wanted[400000];
    static const char *const ends[] = {"\n\n", "\r\n\r\n", "\r\r"};
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t n = 0, left = 0;
        const char *end = ends[seed % 3];
        for (unsigned event = 0; event < 5; event++) {
            size_t len = event % 2 == seed % 2 ? 65000 + 250 * (seed % 10) : 100;
            for (unsigned usage = 0; usage < 2; usage++) {
                size_t from = n;
                n += (size_t)sprintf(stream + n,
                                     usage ? "data: {\"choices\":[],\"usage\":{}}" : "data: ");
                memset(stream + n, 'x', usage ? 0 : len);
                n += usage ? 0 : len;
                n += (size_t)sprintf(stream + n, "%s", end);
                memcpy(wanted + left, stream + from, usage ? 0 : n - from);
                left += usage ? 0 : n - from;
            }
        }
        left += (size_t)sprintf(wanted + left, DONE);
        (void)sprintf(stream + n, DONE);
        struct buf out;
        buf_init(&out, 0);
        cut(stream, seed % 4 == 0 ? 3000 : HTTP_USAGE_CUT_MAX, seed, &out);
        assert_int_equal(out.len, left);
        assert_memory_equal(out.at, wanted, left);
        buf_free(&out);
    }
}

/* Whole events go on at once: only the end of a piece may wait. */
static void whole_events_do_not_wait(void **state)
{
    (void)state;
    struct http_usage_cut c;
    http_usage_cut_init(&c);
    struct slice in = SLICE(EVENT_X "da"), out;
    assert_true(http_usage_cut_next(&c, &in, &out));
    assert_true(slice_equal(out, SLICE(EVENT_X)));
    assert_false(c.handed); /* straight from the piece */
    assert_false(http_usage_cut_next(&c, &in, &out));
    assert_true(slice_equal(http_usage_cut_rest(&c), SLICE("da")));
    http_usage_cut_free(&c);
}

/* Only the end of a choice waits: until the end of the next event at most. */
static void the_end_of_a_choice_waits(void **state)
{
    (void)state;
    static const struct {
        const char *next, *out;
    } cases[] = {{USAGE_PRINT, END_PRINT},
                 {USAGE, END_CHOICE},
                 {DONE, END_CHOICE},
                 {": ping\n\n", END_CHOICE}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_usage_cut c;
        struct slice in = SLICE(EVENT_X END_CHOICE), out;
        http_usage_cut_init(&c);
        assert_true(http_usage_cut_next(&c, &in, &out));
        assert_true(slice_equal(out, SLICE(EVENT_X)));
        assert_int_equal(c.handed, 0);
        assert_false(http_usage_cut_next(&c, &in, &out));
        assert_true(slice_equal(http_usage_cut_finish(&c), SLICE(END_CHOICE)));
        assert_int_equal(http_usage_cut_rest(&c).len, 0);
        in = slice_of_cstr(cases[i].next);
        assert_true(http_usage_cut_next(&c, &in, &out));
        assert_true(slice_equal(out, slice_of_cstr(cases[i].out)));
        assert_true(c.handed);
        assert_int_equal(http_usage_cut_finish(&c).len, 0);
        http_usage_cut_free(&c);
    }
    /* If the piece also has the next event, which is no usage, nothing is copied. */
    struct http_usage_cut c;
    struct slice in = SLICE(END_CHOICE EVENT_X DONE), out;
    http_usage_cut_init(&c);
    assert_true(http_usage_cut_next(&c, &in, &out));
    assert_true(slice_equal(out, SLICE(END_CHOICE EVENT_X DONE)));
    assert_int_equal(c.handed, 0);
    http_usage_cut_free(&c);
}

/* Output stays in place while the same piece brings the beginning of more usage. */
static void usage_after_a_sent_end_is_removed(void **state)
{
    (void)state;
    struct http_usage_cut c;
    struct slice out,
        pieces[] = {SLICE(EVENT_X "data: {"), SLICE("}\n\n" END_CHOICE),
                    SLICE(EVENT_X "data: {\"choices\":[],\"usage\":"), SLICE("{}}\n\n" DONE)};
    struct buf all;
    buf_init(&all, 0);
    http_usage_cut_init(&c);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        while (http_usage_cut_next(&c, &pieces[i], &out))
            assert_int_equal(buf_append_slice(&all, out), 0);
        http_usage_cut_settled(&c);
    }
    assert_true(
        slice_equal(buf_slice(&all), SLICE(EVENT_X "data: {}\n\n" END_CHOICE EVENT_X DONE)));
    buf_free(&all);
    http_usage_cut_free(&c);
}

/* Memory is bounded: bytes without an event pass in the end. */
static void endless_events_pass(void **state)
{
    (void)state;
    struct http_usage_cut c;
    http_usage_cut_init(&c);
    char piece[1000];
    memset(piece, 'x', sizeof piece);
    size_t in_all = 0, out_all = 0;
    for (unsigned i = 0; i < 200; i++) {
        struct slice in = slice_of(piece, sizeof piece), out;
        in_all += in.len;
        while (http_usage_cut_next(&c, &in, &out))
            out_all += out.len;
        http_usage_cut_settled(&c);
        assert_true(in_all - out_all <= HTTP_USAGE_CUT_MAX);
        assert_true(c.part.len <= HTTP_USAGE_CUT_MAX);
    }
    assert_true(in_all == out_all);
    http_usage_cut_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_usage_is_removed),
        cmocka_unit_test(usage_is_removed_after_long_events),
        cmocka_unit_test(whole_events_do_not_wait),
        cmocka_unit_test(the_end_of_a_choice_waits),
        cmocka_unit_test(usage_after_a_sent_end_is_removed),
        cmocka_unit_test(endless_events_pass),
    };
    return cmocka_run_group_tests_name("http/usage_cut", tests, NULL, NULL);
}
