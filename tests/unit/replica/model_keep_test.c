/* Learned facts of models survive a restart; invalid facts are learned anew. */
#include "node/replica/model_keep.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/lib/test.h"

enum { MODELS = 200, BYTES = 4096, PROMPTS = 50 };

static const struct chain_content program = {2300, 1100, 100, 596, 0, 0, {0}, 0, 0},
                                  chinese = {500, 250, 40, 200, 3106, 1035, {0}, 0, 0};
static const int64_t untold[CHAIN_MEDIA];

static struct node_models *make(void)
{
    struct hash_secret secret;
    struct node_models *m;
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(node_models_create(&m, &secret, 4, 256), ERR_OK);
    return m;
}

static struct slice name_of(unsigned i)
{
    static char name[16];
    return slice_of(name, (size_t)snprintf(name, sizeof name, "model-%u", i));
}

/* Every second model has answered, and some models have no row. */
static struct node_models *taught(void)
{
    struct node_models *m = make();
    struct prng prng;
    prng_seed(&prng, 7);
    for (unsigned i = 0; i < MODELS; i++)
        assert_int_equal(node_models_also(m, 3, name_of(i)), ERR_OK);
    for (unsigned i = 0; i <= MODELS; i += 2) {
        struct node_model *row = node_models_row(m, name_of(i)); /* the last model gets row 0 */
        for (unsigned k = 0; k < PROMPTS; k++)
            node_model_bytes_add(row, BYTES, k % 2 ? &program : &chinese,
                                 900 + i + (double)prng_below(&prng, 100), untold);
        node_ratio_add(&row->output_tokens, 900, 1);
    }
    return m;
}

/* Writes the facts, and gives them to `to` unless NULL, piece by piece; returns the number of
 * pieces. */
static unsigned pass_on(struct node_models *from, struct node_models *to, struct buf *out)
{
    unsigned at = 0, pieces = 0;
    size_t start = out->len;
    for (; node_models_keep(from, &at, out) == 1; start = out->len, pieces++) {
        if (to != NULL)
            node_models_recall(to, slice_skip(buf_slice(out), start));
    }
    assert_int_equal(out->len, start);
    return pieces;
}

static void the_same(struct node_models *a, struct node_models *b, unsigned model, bool same)
{
    const struct node_model *x = node_models_row(a, name_of(model)),
                            *y = node_models_row(b, name_of(model));
    const struct chain_content *c[] = {&program, &chinese};
    for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
        double was = node_tokens_of(&x->tokens, BYTES, c[i], NULL);
        double is = node_tokens_of(&y->tokens, BYTES, c[i], NULL);
        assert_int_equal(fabs(is - was) < 1e-9 * was, same);
        was = node_tokens_deviation(&x->tokens, BYTES, c[i]);
        is = node_tokens_deviation(&y->tokens, BYTES, c[i]);
        assert_int_equal(fabs(is - was) < 1e-9 * was, same);
    }
    assert_int_equal(x->bytes_samples == y->bytes_samples, same);
    assert_int_equal(node_ratio_value(&x->bytes_per_token) == node_ratio_value(&y->bytes_per_token),
                     same);
    assert_int_equal(node_ratio_value(&x->output_tokens) == node_ratio_value(&y->output_tokens),
                     same);
}

static void a_restart_keeps_the_predictions(void **state)
{
    (void)state;
    struct node_models *m = taught(), *next = make(), *other = make();
    struct buf out = {0}, again = {0};
    assert_int_equal(pass_on(m, next, &out), 2); /* each of at most NODE_MODELS_KEPT models */
    node_models_check(next);
    for (unsigned i = 0; i <= MODELS; i += 2)
        the_same(m, next, i, true);
    /* No model counts as served before an engine lists it. */
    assert_false(node_models_known(next, name_of(2)));
    assert_int_equal(node_models_also(next, 5, name_of(2)), ERR_OK);
    the_same(m, next, 2, true);
    /* Learning continues in `next` as in `m`. */
    struct node_models *both[] = {m, next};
    for (unsigned i = 0; i < 2; i++)
        node_model_bytes_add(node_models_row(both[i], name_of(2)), BYTES, &program, 1500, untold);
    the_same(m, next, 2, true);
    (void)pass_on(m, NULL, &again);
    (void)pass_on(next, other, &out);
    the_same(m, other, 2, true);
    buf_free(&out);
    buf_free(&again);
    node_models_destroy(m);
    node_models_destroy(next);
    node_models_destroy(other);
}

static void own_answers_outrank_kept_values(void **state)
{
    (void)state;
    struct node_models *m = taught(), *next = make();
    struct buf out = {0};
    assert_int_equal(node_models_also(next, 5, name_of(2)), ERR_OK);
    node_model_bytes_add(node_models_row(next, name_of(2)), BYTES, &program, 3000, untold);
    (void)pass_on(m, next, &out);
    the_same(m, next, 2, false);
    the_same(m, next, 4, true);
    buf_free(&out);
    node_models_destroy(m);
    node_models_destroy(next);
}

static double tokens_of(struct node_models *m)
{
    const struct node_model *row = node_models_row(m, SLICE("m"));
    return node_tokens_of(&row->tokens, BYTES, &program, NULL) +
           node_ratio_value(&row->bytes_per_token) + node_ratio_value(&row->output_tokens) +
           node_tokens_deviation(&row->tokens, BYTES, &program);
}

/* Each piece has an impossible figure; and each length is cut. */
static void invalid_kept_values_are_relearned(void **state)
{
    (void)state;
    static const double none[] = {NAN, INFINITY, -INFINITY, -1, 1e300, 1e-320};
    struct node_models *m = make();
    struct buf out = {0};
    assert_int_equal(node_models_also(m, 0, SLICE("m")), ERR_OK);
    node_model_bytes_add(node_models_row(m, SLICE("m")), BYTES, &program, 1500, untold);
    assert_int_equal(pass_on(m, NULL, &out), 1);
    struct node_models *empty = make();
    double first = tokens_of(empty);
    for (size_t len = 0; len < out.len; len++) {
        struct node_models *next = make();
        node_models_recall(next, slice_of(out.at, len));
        node_models_check(next);
        assert_true(tokens_of(next) == first);
        node_models_destroy(next);
    }
    for (size_t at = 2 + 1 + 8; at + 8 <= out.len; at += 8) {
        for (unsigned i = 0; i < ARRAY_LEN(none); i++) {
            struct node_models *next = make();
            char was[8];
            memcpy(was, out.at + at, 8);
            memcpy(out.at + at, &none[i], 8);
            node_models_recall(next, buf_slice(&out));
            memcpy(out.at + at, was, 8);
            assert_true(isfinite(tokens_of(next)) && tokens_of(next) > 0);
            assert_true(i >= 3 || tokens_of(next) == first);
            node_models_destroy(next);
        }
    }
    buf_free(&out);
    node_models_destroy(empty);
    node_models_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_keeps_the_predictions),
        cmocka_unit_test(own_answers_outrank_kept_values),
        cmocka_unit_test(invalid_kept_values_are_relearned),
    };
    return cmocka_run_group_tests_name("replica/model_keep", tests, NULL, NULL);
}
