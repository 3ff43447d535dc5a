#include "node/replica/booking.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/prng.h"
#include "tests/lib/test.h"

static struct node_booking book(struct node_bookings *p, struct node_load *l, uint32_t prefill,
                                bool whole, uint64_t now_ms)
{
    struct node_work work = {.prefill_tokens = prefill,
                             .prompt_tokens = prefill,
                             .context_tokens = prefill + 100,
                             .answer_whole = whole};
    struct node_booking b;
    assert_int_equal(node_bookings_open(p, l, &work, now_ms, &b), ERR_OK);
    return b;
}

static void assert_near(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-9)
        fail_msg("%g is not %g", actual, expected);
}

static void the_queue_runs_down_with_time(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    assert_near(node_load_queue_s(p, &l, 1000, 0), 0);
    struct node_booking a = book(p, &l, 2000, false, 1000);
    struct node_booking b = book(p, &l, 3000, false, 1500);
    assert_near(node_load_queue_s(p, &l, 1000, 1500), 4.5);
    assert_near(node_load_queue_s(p, &l, 1000, 3000), 3);
    /* The head takes longer than expected: the prompts behind it are still to be computed. */
    assert_near(node_load_queue_s(p, &l, 1000, 9000), 3);
    assert_true(node_bookings_first_byte(p, &l, a, 9000));
    assert_near(node_bookings_get(p, a)->prefill_s, 8);
    assert_near(node_load_queue_s(p, &l, 1000, 10000), 2);
    assert_true(node_bookings_first_byte(p, &l, b, 12000));
    assert_near(node_bookings_get(p, b)->prefill_s, 3);
    assert_near(node_load_queue_s(p, &l, 1000, 12000), 0);
    (void)node_bookings_close(p, &l, a, 13000);
    (void)node_bookings_close(p, &l, b, 13000);
    assert_int_equal(l.requests + l.context_tokens + l.decoding_tokens, 0);
    node_bookings_destroy(p);
}

static void an_overtaking_prompt_is_not_timed(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    struct node_booking a = book(p, &l, 2000, false, 0), b = book(p, &l, 10, false, 0);
    assert_true(node_bookings_first_byte(p, &l, b, 100));
    assert_true(node_bookings_get(p, b)->prefill_s < 0);
    assert_false(node_bookings_first_byte(p, &l, b, 200));
    assert_true(node_bookings_first_byte(p, &l, a, 2000));
    assert_near(node_bookings_get(p, a)->prefill_s, 2);
    (void)node_bookings_close(p, &l, a, 2000);
    (void)node_bookings_close(p, &l, b, 2000);
    node_bookings_destroy(p);
}

/* The time for which the head of the queue has been computed bounds the engine's speed. */
static void the_first_prompt_in_the_queue_is_timed(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    assert_near(node_load_head(p, &l, 1000).since_s, 0);
    struct node_booking a = book(p, &l, 2000, false, 1000), b = book(p, &l, 10, false, 1500);
    assert_near(node_load_head(p, &l, 1000).since_s, 0);
    assert_near(node_load_head(p, &l, 4000).since_s, 3);
    assert_near(node_load_head(p, &l, 4000).tokens, 2000);
    assert_true(node_bookings_first_byte(p, &l, a, 5000));
    assert_near(node_load_head(p, &l, 5500).since_s, 0.5);
    assert_near(node_load_head(p, &l, 5500).tokens, 10);
    (void)node_bookings_close(p, &l, b, 6000);
    (void)node_bookings_close(p, &l, a, 6000);
    a = book(p, &l, 1000, true, 7000); /* without streaming the end of the prefill is invisible */
    assert_near(node_load_head(p, &l, 9000).since_s, 0);
    (void)node_bookings_close(p, &l, a, 9000);
    node_bookings_destroy(p);
}

/* Unstreamed answers show the first byte only at the end, so they leave the queue when their time
 * has passed. */
static void unstreamed_prompts_leave_the_queue_by_estimate(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    struct node_booking a = book(p, &l, 1000, true, 0), b = book(p, &l, 1000, true, 100);
    struct node_booking c = book(p, &l, 1000, false, 200);
    node_load_advance(p, &l, 1000, 1500);
    assert_int_equal(l.prefill_tokens, 2000);
    assert_int_equal(l.decoding_tokens, 1100);
    assert_near(node_load_queue_s(p, &l, 1000, 1500), 1.5);
    node_load_advance(p, &l, 1000, 60000);
    assert_int_equal(l.prefill_tokens, 1000); /* the streamed request waits for the first byte */
    assert_true(node_bookings_first_byte(p, &l, a, 60000));
    assert_true(node_bookings_get(p, a)->prefill_s < 0);
    (void)node_bookings_close(p, &l, a, 60000);
    (void)node_bookings_close(p, &l, b, 60000);
    (void)node_bookings_close(p, &l, c, 60000);
    assert_int_equal(l.prefill_tokens + l.decoding_tokens + l.context_tokens + l.requests, 0);

    /* Advanced late: the second prompt did not begin before it arrived. */
    struct node_booking d = book(p, &l, 1000, true, 100000), e = book(p, &l, 1000, true, 110000);
    node_load_advance(p, &l, 1000, 110500);
    assert_near(node_load_queue_s(p, &l, 1000, 110500), 0.5);
    (void)node_bookings_close(p, &l, d, 110500);
    (void)node_bookings_close(p, &l, e, 110500);
    node_bookings_destroy(p);
}

/* Two answers of 2 s each: 1 s for 1000 tokens, and 1 s. */
static void overdue_whole_answers_are_counted(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    assert_near(node_load_due_whole(&l, 0.001, 1, 5000), 0);
    struct node_booking a = book(p, &l, 1000, true, 1000), b = book(p, &l, 1000, true, 3000);
    struct node_booking c = book(p, &l, 1000, false, 3000);
    assert_near(node_load_due_whole(&l, 0.001, 1, 1000), 0); /* the other began later */
    assert_near(node_load_due_whole(&l, 0.001, 1, 6000), 4);
    node_load_advance(p, &l, 1e9, 6000); /* a computed prompt is no end */
    assert_near(node_load_due_whole(&l, 0.001, 1, 6000), 4);
    (void)node_bookings_close(p, &l, a, 6000);
    assert_near(node_load_due_whole(&l, 0.001, 1, 6000), 1.5);
    (void)node_bookings_close(p, &l, b, 6000);
    (void)node_bookings_close(p, &l, c, 6000);
    assert_near(node_load_due_whole(&l, 0.001, 1, 9000), 0);
    node_bookings_destroy(p);
}

static void others(struct node_load *l, uint64_t prefill, uint64_t decoding, uint64_t prefilled,
                   uint64_t now_ms)
{
    struct node_remote_load remote = {
        .prefill_tokens = prefill, .decoding_tokens = decoding, .prefilled_tokens = prefilled};
    node_load_remote(l, &remote, now_ms);
}

/* A prompt of this router, of another router, and of this router, at 1,000 tokens a second. */
static void other_routers_prompts_in_between_are_counted(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    others(&l, 0, 0, 70000, 0);
    struct node_booking a = book(p, &l, 2000, false, 0);
    others(&l, 500, 0, 70000, 100);
    struct node_booking b = book(p, &l, 1000, false, 200);
    assert_true(node_bookings_first_byte(p, &l, a, 2000));
    assert_near(node_bookings_get(p, a)->prefill_s, 2);
    assert_near(node_bookings_get(p, a)->prefill_beside, 0);
    others(&l, 0, 700, 70500, 2500);
    assert_true(node_bookings_first_byte(p, &l, b, 3500));
    assert_near(node_bookings_get(p, b)->prefill_s, 1.5);
    assert_near(node_bookings_get(p, b)->prefill_beside, 500);
    /* The work ahead of b's stream: 2,100 tokens of a, 1,100 of b and 700 of the others for a
     * second, and then 1,000 tokens of the others' prefill. */
    others(&l, 1000, 0, 70500, 4500);
    others(&l, 0, 0, 71500, 5500);
    struct node_booking_entry e = *node_bookings_close(p, &l, b, 5500);
    assert_near(l.decoding_area - e.area_at_first_byte, 2 * 3200 + 700);
    assert_near(l.prefilled_tokens - e.prefilled_at_first_byte, 1000);
    (void)node_bookings_close(p, &l, a, 5500);
    node_bookings_destroy(p);
}

/* Another router's prompt is under way when this prompt comes: the computed part is unknown. */
static void a_prompt_behind_other_routers_prompts_is_not_timed(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    others(&l, 3000, 0, 0, 0);
    struct node_booking a = book(p, &l, 1000, false, 1000), b = book(p, &l, 1000, false, 1000);
    others(&l, 0, 0, 3000, 3000);
    assert_true(node_bookings_first_byte(p, &l, a, 4000));
    assert_true(node_bookings_get(p, a)->prefill_s < 0);
    assert_true(node_bookings_first_byte(p, &l, b, 5000)); /* but the next prompt is timed */
    assert_near(node_bookings_get(p, b)->prefill_s, 1);
    assert_near(node_bookings_get(p, b)->prefill_beside, 0);
    others(&l, 0, 0, 5, 6000); /* a new count */
    assert_near(l.prefilled_tokens, 5000);
    (void)node_bookings_close(p, &l, a, 6000);
    (void)node_bookings_close(p, &l, b, 6000);
    node_bookings_destroy(p);
}

static void a_full_pool_is_an_error(void **state)
{
    (void)state;
    struct node_bookings *p;
    struct node_load l;
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    node_load_init(&l);
    struct node_booking b, first = book(p, &l, 1, false, 0);
    for (unsigned i = 1; i < NODE_BOOKINGS_MAX; i++)
        (void)book(p, &l, 1, false, 0);
    struct node_work work = {.prefill_tokens = 1};
    assert_int_equal(node_bookings_open(p, &l, &work, 0, &b), ERR_FULL);
    assert_int_equal(l.requests, NODE_BOOKINGS_MAX);
    (void)node_bookings_close(p, &l, first, 0);
    assert_int_equal(node_bookings_open(p, &l, &work, 0, &b), ERR_OK);
    assert_true(b.slot == first.slot && b.stamp != first.stamp);
    node_bookings_destroy(p);
}

/* Random lives, in any order: loads always add up, and end at exactly zero. */
static void loads_return_to_zero(void **state)
{
    (void)state;
    enum { REPLICAS = 5, OPEN_MAX = 40, STEPS = 20000 };
    struct node_bookings *p;
    struct node_load loads[REPLICAS];
    const struct node_load *pointers[REPLICAS];
    struct {
        struct node_booking b;
        unsigned replica;
    } open[OPEN_MAX];
    unsigned count = 0;
    struct prng prng;
    prng_seed(&prng, 42);
    assert_int_equal(node_bookings_create(&p), ERR_OK);
    for (unsigned k = 0; k < REPLICAS; k++) {
        node_load_init(&loads[k]);
        pointers[k] = &loads[k];
    }
    uint64_t now = 0;
    for (unsigned i = 0; i < STEPS || count > 0; i++) {
        now += prng_below(&prng, 50);
        uint64_t what = prng_below(&prng, 5);
        if (what == 0 && count < OPEN_MAX && i < STEPS) {
            unsigned k = (unsigned)prng_below(&prng, REPLICAS);
            struct node_work work = {.replica = k,
                                     .prefill_tokens = (uint32_t)prng_below(&prng, 1000),
                                     .context_tokens = (uint32_t)prng_below(&prng, 5000),
                                     .answer_whole = prng_below(&prng, 2) != 0};
            assert_int_equal(node_bookings_open(p, &loads[k], &work, now, &open[count].b), ERR_OK);
            open[count++].replica = k;
        } else if (what <= 2 && count > 0) {
            unsigned at = (unsigned)prng_below(&prng, count);
            (void)node_bookings_first_byte(p, &loads[open[at].replica], open[at].b, now);
        } else if (what == 3 && count > 0) {
            unsigned at = (unsigned)prng_below(&prng, count);
            (void)node_bookings_close(p, &loads[open[at].replica], open[at].b, now);
            open[at] = open[--count];
        } else {
            node_load_advance(p, &loads[prng_below(&prng, REPLICAS)], 2000, now);
        }
        if (i % 7 == 0)
            node_bookings_check(p, pointers, REPLICAS);
    }
    for (unsigned k = 0; k < REPLICAS; k++) {
        assert_int_equal(loads[k].requests, 0);
        assert_int_equal(loads[k].prefill_tokens, 0);
        assert_int_equal(loads[k].context_tokens, 0);
        assert_int_equal(loads[k].decoding_tokens, 0);
        assert_int_equal(loads[k].head, NODE_BOOKING_NONE);
    }
    node_bookings_check(p, pointers, REPLICAS);
    node_bookings_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_runs_down_with_time),
        cmocka_unit_test(an_overtaking_prompt_is_not_timed),
        cmocka_unit_test(the_first_prompt_in_the_queue_is_timed),
        cmocka_unit_test(unstreamed_prompts_leave_the_queue_by_estimate),
        cmocka_unit_test(overdue_whole_answers_are_counted),
        cmocka_unit_test(other_routers_prompts_in_between_are_counted),
        cmocka_unit_test(a_prompt_behind_other_routers_prompts_is_not_timed),
        cmocka_unit_test(a_full_pool_is_an_error),
        cmocka_unit_test(loads_return_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
