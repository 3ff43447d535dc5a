#include "node/replica/ruler.h"

#include "tests/lib/test.h"

static struct node_ruler *ruler;

static void begin(void)
{
    assert_int_equal(node_ruler_create(&ruler), 0);
}

static void test_the_latest_note_of_a_checkpoint_counts(void **state)
{
    (void)state;
    begin();
    assert_null(node_ruler_at(ruler, 7));
    assert_null(node_ruler_at(ruler, 0));
    node_ruler_note(ruler, &(struct node_ruler_mark){.id = 7, .tokens = 100});
    node_ruler_note(ruler, &(struct node_ruler_mark){.id = 7, .tokens = 200, .tail_bytes = 5});
    const struct node_ruler_mark *m = node_ruler_at(ruler, 7);
    assert_non_null(m);
    assert_int_equal(m->tail_bytes, 5);
    assert_float_equal(node_ruler_tokens(ruler, m), 200, 0);
    node_ruler_destroy(ruler);
}

/* All tokens of an answer but the last were computed. */
static void test_the_next_prompt_repeats_the_answer(void **state)
{
    const struct node_ruler_mark m = {.id = 7, .tokens = 1000, .answer = 101};
    (void)state;
    begin();
    assert_float_equal(node_ruler_tokens(ruler, &m), 1100, 0);
    /* For example if templates leave reasoning out: the cached part ends with the prompt. */
    for (unsigned i = 0; i < 20; i++)
        node_ruler_found(ruler, &m, 992, 16);
    assert_float_equal(node_ruler_tokens(ruler, &m), 1000, 0);
    /* A turn that lost more than the answer proves nothing about repeated answers. */
    for (unsigned i = 0; i < 100; i++)
        node_ruler_found(ruler, &m, 500, 16);
    assert_float_equal(node_ruler_tokens(ruler, &m), 1000, 0);
    for (unsigned i = 0; i < 100; i++)
        node_ruler_found(ruler, &m, 1088, 16);
    assert_float_equal(node_ruler_tokens(ruler, &m), 1100, 0);
    node_ruler_destroy(ruler);
}

static void test_old_checkpoints_are_evicted(void **state)
{
    unsigned known = 0;
    (void)state;
    begin();
    for (uint64_t id = 1; id <= 100000; id++)
        node_ruler_note(ruler, &(struct node_ruler_mark){.id = id, .tokens = (uint32_t)id});
    for (uint64_t id = 1; id <= 100000; id++) {
        const struct node_ruler_mark *m = node_ruler_at(ruler, id);
        known += m != NULL;
        assert_true(m == NULL || m->tokens == id);
    }
    assert_true(known <= NODE_RULER_PLACES * NODE_RULER_WAYS);
    assert_true(known > NODE_RULER_PLACES * NODE_RULER_WAYS * 0.9);
    assert_non_null(node_ruler_at(ruler, 100000));
    node_ruler_destroy(ruler);
}

static void test_a_restart_keeps_the_marks(void **state)
{
    const struct node_ruler_mark answer = {.id = 1, .tokens = 1000, .answer = 101};
    unsigned at = 0, known = 0, pieces = 0;
    struct node_ruler *next;
    struct buf out = {0};
    (void)state;
    begin();
    assert_int_equal(node_ruler_keep(ruler, &at, &out), 0);
    assert_int_equal(node_ruler_create(&next), 0);
    for (unsigned i = 0; i < 20; i++)
        node_ruler_found(ruler, &answer, 992, 16); /* answers are not repeated */
    for (uint64_t id = 1; id <= 60000; id++)
        node_ruler_note(ruler, &(struct node_ruler_mark){id, (uint32_t)id % 7, (uint32_t)id, 5});
    node_ruler_note(next, &(struct node_ruler_mark){.id = 60000, .tokens = 3}); /* measured there */
    size_t from = 0;
    for (at = 0; node_ruler_keep(ruler, &at, &out) == 1; from = out.len, pieces++)
        node_ruler_recall(next, slice_skip(buf_slice(&out), from));
    assert_true(pieces >= 60000 / NODE_RULER_KEPT / 2 && out.len == from);
    for (uint64_t id = 1; id < 60000; id++) {
        const struct node_ruler_mark *a = node_ruler_at(ruler, id), *b = node_ruler_at(next, id);
        known += a != NULL;
        assert_int_equal(a == NULL, b == NULL);
        assert_true(a == NULL || (a->tail_bytes == b->tail_bytes && a->tokens == b->tokens &&
                                  a->answer == b->answer));
    }
    assert_true(known > 10000);
    assert_int_equal(node_ruler_at(next, 60000)->tokens, 3);
    assert_float_equal(node_ruler_tokens(next, &answer), 1000, 0);
    /* The same marks are evicted in both, except that the measurement of `next` itself takes a
     * place. */
    unsigned others = 0;
    for (uint64_t id = 100001; id <= 120000; id++) {
        node_ruler_note(ruler, &(struct node_ruler_mark){.id = id, .tokens = 1});
        node_ruler_note(next, &(struct node_ruler_mark){.id = id, .tokens = 1});
    }
    for (uint64_t id = 1; id < 60000; id++)
        others += (node_ruler_at(ruler, id) == NULL) != (node_ruler_at(next, id) == NULL);
    assert_true(others <= NODE_RULER_WAYS);
    for (size_t len = 0; len < 200; len++) { /* a cut piece */
        struct node_ruler *other;
        assert_int_equal(node_ruler_create(&other), 0);
        node_ruler_recall(other, slice_of(out.at, len));
        node_ruler_destroy(other);
    }
    buf_free(&out);
    node_ruler_destroy(next);
    node_ruler_destroy(ruler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_latest_note_of_a_checkpoint_counts),
        cmocka_unit_test(test_the_next_prompt_repeats_the_answer),
        cmocka_unit_test(test_old_checkpoints_are_evicted),
        cmocka_unit_test(test_a_restart_keeps_the_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
