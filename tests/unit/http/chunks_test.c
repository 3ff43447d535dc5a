/* A prompt as chunks: a document has the same chunks anywhere in the prompt. */
#include "http/chunk_cut.h"
#include "http/skim.h"

#include <stdio.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/test.h"

enum { DOCUMENT = 20000, BODY = 200000 };

static struct hash_secret secret;
static struct http_skim skim;
static char documents[4][DOCUMENT + 1];

static int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 42);
    static const char *const words[] = {"router", "the ", "cache ", "of ",  "a",   "replica ",
                                        "is ",    "full", ", ",     "and ", "so ", "prefix. "};
    struct prng prng;
    prng_seed(&prng, 7);
    for (size_t d = 0; d < ARRAY_LEN(documents); d++) {
        size_t len = 0;
        while (len < DOCUMENT) {
            const char *word = words[prng_below(&prng, ARRAY_LEN(words))];
            int n = snprintf(documents[d] + len, DOCUMENT + 1 - len, "%s", word);
            len += (size_t)n;
        }
    }
    return 0;
}

static void chain_of(const char *body, size_t step, struct chain *out)
{
    memset(&skim, 0xa5, sizeof skim);
    http_skim_init(&skim, &secret);
    http_skim_by_chunks(&skim);
    for (size_t at = 0, len = strlen(body); at < len; at += step)
        http_skim_feed(&skim, body + at, len - at < step ? len - at : step);
    http_skim_finish(&skim);
    assert_true(skim.understood);
    *out = *http_skim_chain(&skim);
    assert_true(out->chunks);
}

static void chain_of_text(const char *model, const char *text, struct chain *out)
{
    static char body[BODY];
    int n =
        snprintf(body, sizeof body,
                 "{\"model\":\"%s\",\"messages\":[{\"role\":\"system\",\"content\":\"Answer.\"},"
                 "{\"role\":\"user\",\"content\":\"%s\"}]}",
                 model, text);
    assert_true(n > 0 && n < BODY);
    chain_of(body, BODY, out);
}

/* Share of `a`, by weight, found anywhere in `b`. */
static double covered(const struct chain *a, const struct chain *b)
{
    double held = 0;
    for (unsigned i = 0; i < a->length; i++) {
        bool found = false;
        for (unsigned k = 0; k < b->length && !found; k++)
            found = a->points[i].id == b->points[k].id && a->points[i].code == b->points[k].code;
        held += found ? checkpoint_weight(a->points[i].code) : 0;
    }
    return held / a->points[a->length - 1].blocks;
}

static void documents_in_any_order_share_their_chunks(void **state)
{
    (void)state;
    static struct chain one, two, other;
    static char text[BODY / 2];
    (void)snprintf(text, sizeof text, "%s%s%s Who?", documents[0], documents[1], documents[2]);
    chain_of_text("m", text, &one);
    (void)snprintf(text, sizeof text, "Look: %s%s%s What?", documents[2], documents[0],
                   documents[1]);
    chain_of_text("m", text, &two);
    assert_true(covered(&one, &two) > 0.85);
    (void)snprintf(text, sizeof text, "%s%s", documents[3], documents[3]);
    chain_of_text("m", text, &other);
    assert_true(covered(&one, &other) == 0);
    /* Weights add up to the prompt, rounded chunk by chunk. */
    double blocks = (double)one.bytes / CHECKPOINT_BLOCK_BYTES;
    assert_true(one.points[one.length - 1].blocks > 0.9 * blocks &&
                one.points[one.length - 1].blocks < 1.1 * blocks);
}

static void namespaces_share_nothing(void **state)
{
    (void)state;
    static struct chain one, two;
    chain_of_text("m", documents[0], &one);
    chain_of_text("n", documents[0], &two);
    assert_true(covered(&one, &two) == 0);
}

static void a_document_has_equal_chunks_in_any_message(void **state)
{
    (void)state;
    static struct chain one, two;
    static char body[BODY];
    chain_of_text("m", documents[0], &one);
    (void)snprintf(
        body, sizeof body,
        "{\"model\":\"m\",\"system\":\"%s\",\"messages\":[{\"role\":\"tool\",\"content\":"
        "[{\"type\":\"text\",\"text\":\"%s\"}]}]}",
        documents[1], documents[0]);
    chain_of(body, BODY, &two);
    assert_true(covered(&one, &two) == 1);
}

static void chunks_do_not_depend_on_the_bodys_segments(void **state)
{
    (void)state;
    static struct chain whole, pieces;
    static char body[BODY];
    (void)snprintf(body, sizeof body,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"tools\":[{\"name\":"
                   "\"%s\"}],\"model\":\"m\"}",
                   documents[0], documents[1]);
    chain_of(body, BODY, &whole);
    static const size_t steps[] = {1, 7, 255, 4096, 4099};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        chain_of(body, steps[i], &pieces);
        assert_int_equal(whole.length, pieces.length);
        for (unsigned k = 0; k < whole.length; k++)
            assert_true(whole.points[k].id == pieces.points[k].id &&
                        whole.points[k].blocks == pieces.points[k].blocks);
    }
}

/* Text without any natural cut becomes the longest chunks. */
static void chunk_sizes_are_bounded(void **state)
{
    (void)state;
    static char same[2 * HTTP_CHUNK_BYTES_MAX];
    memset(same, 'x', sizeof same);
    assert_int_equal(http_chunk_cut(same, sizeof same), HTTP_CHUNK_BYTES_MAX);
    assert_int_equal(http_chunk_cut(same, HTTP_CHUNK_BYTES_MAX - 1), 0);
    assert_int_equal(http_chunk_cut(same, 0), 0);
    size_t chunks = 0;
    for (size_t at = 0, cut; (cut = http_chunk_cut(documents[0] + at, DOCUMENT - at)) > 0;
         at += cut) {
        assert_true(cut >= HTTP_CHUNK_BYTES_MIN && cut <= HTTP_CHUNK_BYTES_MAX);
        chunks++;
    }
    assert_true(chunks >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_in_any_order_share_their_chunks),
        cmocka_unit_test(namespaces_share_nothing),
        cmocka_unit_test(a_document_has_equal_chunks_in_any_message),
        cmocka_unit_test(chunks_do_not_depend_on_the_bodys_segments),
        cmocka_unit_test(chunk_sizes_are_bounded),
    };
    return cmocka_run_group_tests_name("http/chunks", tests, setup, NULL);
}
