/* The end of trust in events, and new trials. */
#include "node/kv/trust.h"

#include "base/prng.h"
#include "tests/lib/test.h"

/* Adds answers, which agree with probability `chance`, until the tally contradicts; returns the
 * number of answers, at most `most`. */
static unsigned answers(struct kv_tally *t, double chance, unsigned most, uint64_t seed)
{
    struct prng p;
    prng_seed(&p, seed);
    for (unsigned i = 1; i <= most; i++) {
        kv_tally_add(t, prng_unit(&p) < chance);
        if (kv_tally_contradicts(t))
            return i;
    }
    return most;
}

static void a_contradicting_engine_is_detected_soon(void **state)
{
    (void)state;
    struct kv_tally t = {0};
    assert_in_range(answers(&t, 0, 1000, 1), 16, 20);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        t = (struct kv_tally){0};
        assert_in_range(answers(&t, 0.1, 1000, seed), 16, 100);
        t = (struct kv_tally){0}; /* right for long */
        assert_int_equal(answers(&t, 0.95, 1000, seed), 1000);
        assert_in_range(answers(&t, 0.05, 1000, seed), 50, 400);
    }
}

/* An engine preempts all the time: half of the answers have no blocks. */
static void half_of_the_answers_agreeing_is_enough(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct kv_tally t = {0};
        lost += answers(&t, 0.5, 2000, seed) < 2000;
        t = (struct kv_tally){0};
        assert_int_equal(answers(&t, 0.6, 2000, seed), 2000);
    }
    assert_in_range(lost, 0, 3);
}

static void lose(struct kv_trust *t, uint64_t now_ms)
{
    unsigned i = 0;
    for (; !kv_trust_lose(t, now_ms); i++)
        kv_tally_add(&t->cached, false);
    assert_true(t->lost && i >= 16);
    assert_false(kv_trust_lose(t, now_ms)); /* reported once */
}

static void each_loss_of_trust_lasts_longer(void **state)
{
    (void)state;
    struct kv_trust t = {0};
    uint64_t now_ms = 0, wait_ms = KV_TRUST_AGAIN_MS;
    for (unsigned i = 0; i < 6; i++) {
        lose(&t, now_ms);
        assert_false(kv_trust_again(&t, now_ms + wait_ms - 1));
        assert_true(kv_trust_again(&t, now_ms + wait_ms));
        assert_false(kv_trust_again(&t, now_ms + wait_ms));
        assert_false(t.lost);
        now_ms += wait_ms + 1000;
        wait_ms *= i < KV_TRUST_DOUBLINGS ? 2 : 1;
    }
    assert_int_equal(wait_ms, (uint64_t)KV_TRUST_AGAIN_MS << KV_TRUST_DOUBLINGS);
    now_ms += KV_TRUST_FORGET_MS;
    lose(&t, now_ms);
    assert_true(kv_trust_again(&t, now_ms + KV_TRUST_AGAIN_MS));
}

/* The report of a restart may be a lie, too. */
static void a_restart_restores_trust_once(void **state)
{
    (void)state;
    struct kv_trust t = {0};
    assert_false(kv_trust_restarted(&t));
    lose(&t, 0);
    assert_true(kv_trust_restarted(&t));
    assert_false(t.lost);
    lose(&t, 1000);
    assert_false(kv_trust_restarted(&t));
    assert_true(t.lost);
    uint64_t late_ms = t.until_ms + KV_TRUST_FORGET_MS;
    assert_true(kv_trust_again(&t, t.until_ms));
    lose(&t, late_ms);
    assert_true(kv_trust_restarted(&t));
}

/* A restart does not end the comparison: restarts have other causes than the engine's behaviour. */
static void tallies_survive_a_restart(void **state)
{
    (void)state;
    struct kv_trust t = {0};
    for (unsigned i = 0; i < 15; i++)
        kv_tally_add(&t.blocks, false);
    assert_false(kv_trust_lose(&t, 0) || kv_trust_restarted(&t));
    for (unsigned i = 0; i < 5; i++)
        kv_tally_add(&t.blocks, false);
    assert_true(kv_trust_lose(&t, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_contradicting_engine_is_detected_soon),
        cmocka_unit_test(half_of_the_answers_agreeing_is_enough),
        cmocka_unit_test(each_loss_of_trust_lasts_longer),
        cmocka_unit_test(a_restart_restores_trust_once),
        cmocka_unit_test(tallies_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
