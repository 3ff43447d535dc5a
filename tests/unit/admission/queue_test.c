#include "node/admission/queue.h"

#include "base/err.h"
#include "base/prng.h"
#include "tests/lib/test.h"

static struct queue q;

static void push(struct queue_waiter *w, uint64_t key, uint64_t now_ms)
{
    assert_int_equal(queue_push(&q, w, QUEUE_ROOM, key, now_ms), ERR_OK);
    queue_check(&q);
}

static void first_come_first_served(void **state)
{
    (void)state;
    struct queue_waiter w[4] = {0};
    queue_init(&q, 4);
    for (unsigned i = 0; i < 4; i++)
        push(&w[i], i % 2, 10 * i); /* requests for two models */
    struct queue_look look = {0};
    for (unsigned i = 0; i < 4; i++) {
        assert_ptr_equal(queue_look_next(&q, &look), &w[i]);
        queue_take(&q, &w[i], 100);
        queue_check(&q);
        assert_false(queue_waits(&w[i]));
    }
    assert_null(queue_look_next(&q, &look));
    assert_int_equal(q.lines[QUEUE_ROOM].served, 4);
    assert_int_equal(q.lines[QUEUE_ROOM].waited.count, 4);
}

/* If a model has no free replica, the look passes over all requests for that model and goes on with
 * the next model. */
static void a_full_model_does_not_delay_other_models(void **state)
{
    (void)state;
    struct queue_waiter w[4] = {0};
    queue_init(&q, 4);
    static const uint64_t keys[] = {1, 1, 2, 1};
    for (unsigned i = 0; i < 4; i++)
        push(&w[i], keys[i], 0);
    struct queue_look look = {0};
    struct queue_waiter *first = queue_look_next(&q, &look);
    assert_ptr_equal(first, &w[0]);
    queue_pass(&look, first);
    assert_ptr_equal(queue_look_next(&q, &look), &w[2]);
    queue_take(&q, &w[2], 0);
    assert_null(queue_look_next(&q, &look)); /* w[1] and w[3], also for model 1, are passed over */
    assert_int_equal(q.length, 3);
    look = (struct queue_look){0};
    assert_ptr_equal(queue_look_next(&q, &look), &w[0]);
}

static void a_full_queue_refuses_requests(void **state)
{
    (void)state;
    struct queue_waiter w[3] = {0};
    queue_init(&q, 2);
    push(&w[0], 1, 0);
    push(&w[1], 2, 0);
    assert_int_equal(queue_push(&q, &w[2], QUEUE_ROOM, 1, 0), ERR_FULL);
    assert_false(queue_waits(&w[2]));
    queue_remove(&q, &w[2]); /* does nothing */
    queue_remove(&q, &w[0]);
    queue_check(&q);
    push(&w[2], 3, 0);
    queue_init(&q, 0); /* no queue */
    w[0] = (struct queue_waiter){0};
    assert_int_equal(queue_push(&q, &w[0], QUEUE_ROOM, 1, 0), ERR_FULL);
}

/* An operator lowers queue-max while more requests wait: they keep their places, and no new request
 * enters. */
static void a_lower_limit_ends_no_wait(void **state)
{
    (void)state;
    struct queue_waiter w[4] = {0};
    queue_init(&q, 3);
    for (unsigned i = 0; i < 3; i++)
        push(&w[i], 1, 0);
    q.length_max = 1;
    queue_check(&q);
    assert_int_equal(q.length, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(queue_push(&q, &w[3], QUEUE_ROOM, 1, 0), ERR_FULL);
        queue_take(&q, &w[i], 10);
        queue_check(&q);
    }
    push(&w[3], 1, 0);
}

static void an_arriving_request_sees_earlier_waiters(void **state)
{
    (void)state;
    struct queue_waiter w[2] = {0};
    queue_init(&q, 2);
    assert_false(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 7));
    push(&w[0], 7, 0);
    assert_true(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 7));
    assert_false(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 8));
    queue_remove(&q, &w[0]);
    assert_false(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 7));
}

/* An attempt failed and no other replica is free: the request goes before all later requests. */
static void a_retried_request_keeps_its_place(void **state)
{
    (void)state;
    struct queue_waiter w[4] = {0};
    queue_init(&q, 4);
    for (unsigned i = 0; i < 3; i++)
        push(&w[i], 7, 0);
    queue_take(&q, &w[1], 10);
    push(&w[3], 7, 10);
    assert_true(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 7)); /* w[0] */
    push(&w[1], 7, 20);
    queue_take(&q, &w[0], 20);
    struct queue_look look = {0};
    assert_ptr_equal(queue_look_next(&q, &look), &w[1]);
    queue_take(&q, &w[1], 30);
    assert_false(queue_has_waiters(&q, &w[1], QUEUE_ROOM, 7));
    push(&w[1], 8, 40); /* other replicas serve the model now: still the first request */
    assert_ptr_equal(queue_look_next(&q, &look), &w[1]);
    assert_ptr_equal(w[2].next, &w[3]);
}

/* With more keys than lanes, some keys share a lane. Every request gets a turn. */
static void more_keys_than_lanes(void **state)
{
    (void)state;
    enum { COUNT = 3 * QUEUE_LANES };
    static struct queue_waiter w[COUNT];
    queue_init(&q, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        push(&w[i], 1000 + i, i);
    struct queue_look look = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        assert_ptr_equal(queue_look_next(&q, &look), &w[i]);
        queue_take(&q, &w[i], COUNT);
    }
    queue_check(&q);
    assert_int_equal(q.length, 0);
}

/* 10 requests a second are served and 50 wait: 5 seconds. */
static void retry_after_is_the_time_to_serve_the_queue(void **state)
{
    (void)state;
    enum { COUNT = 250 };
    static struct queue_waiter w[COUNT];
    queue_init(&q, COUNT);
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 0), 1); /* nobody waits */
    for (unsigned i = 0; i < COUNT; i++)
        push(&w[i], 1, 0);
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 100), 1);
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 7000), 7); /* nothing served in 7 s */
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 1000000), QUEUE_RETRY_AFTER_MAX_S);
    queue_init(&q, COUNT);
    memset(w, 0, sizeof w);
    for (unsigned i = 0; i < COUNT; i++)
        push(&w[i], 1, 0);
    for (unsigned i = 0; i < 200; i++)
        queue_take(&q, &w[i], 100 * (i + 1));
    assert_in_range(queue_retry_after_s(&q, QUEUE_ROOM, 20000), 5, 6);
    for (unsigned i = 200; i < COUNT; i++)
        queue_remove(&q, &w[i]);
    push(&w[0], 1, 3600000); /* the rate of an hour ago no longer counts */
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 3600000), 1);
}

/* All classes share the limit. Each class has separate lanes and a separate service rate. If a
 * request moves to another class, it keeps the number. */
static void queue_classes_have_separate_lanes_and_one_limit(void **state)
{
    (void)state;
    struct queue_waiter w[4] = {0};
    queue_init(&q, 3);
    push(&w[0], 7, 0);
    assert_int_equal(queue_push(&q, &w[1], QUEUE_APART, 7, 1), ERR_OK);
    assert_false(queue_has_waiters(&q, &w[2], QUEUE_ALONE, 7));
    assert_int_equal(queue_push(&q, &w[2], QUEUE_ALONE, 7, 2), ERR_OK);
    assert_int_equal(queue_push(&q, &w[3], QUEUE_ALONE, 7, 2), ERR_FULL);
    assert_false(queue_has_place(&q, &w[3]));
    assert_true(queue_has_place(&q, &w[0])); /* w[0] is already in the queue */
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 9000), 9);
    struct queue_look look = {0};
    assert_ptr_equal(queue_look_next(&q, &look), &w[2]);
    queue_pass(&look, &w[2]);
    assert_ptr_equal(queue_look_next(&q, &look), &w[1]);
    queue_take(&q, &w[1], 9000);
    assert_int_equal(q.lines[QUEUE_APART].served, 1);
    assert_int_equal(queue_retry_after_s(&q, QUEUE_ROOM, 9000), 9);
    assert_ptr_equal(queue_look_next(&q, &look), &w[0]);
    queue_take(&q, &w[0], 9000);
    assert_null(queue_look_next(&q, &look));
    push(&w[1], 7, 9000);
    push(&w[0], 7, 9001);
    assert_ptr_equal(queue_look_next(&q, &look), &w[0]);
}

/* Compares the queue with a list searched from the front. */
static void the_queue_agrees_with_a_naive_model(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct queue_waiter w[COUNT];
    struct prng prng;
    prng_seed(&prng, 1);
    memset(w, 0, sizeof w);
    queue_init(&q, 100);
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (unsigned)prng_below(&prng, COUNT);
        uint64_t full = prng_below(&prng, 100); /* the key without a free replica */
        if (prng_below(&prng, 3) > 0) {
            if (!queue_waits(&w[i]))
                DISCARD(queue_push(&q, &w[i], (enum queue_class)prng_below(&prng, QUEUE_CLASSES),
                                   prng_below(&prng, 50), step));
        } else if (prng_below(&prng, 2) == 0) {
            queue_remove(&q, &w[i]);
        } else {
            const struct queue_waiter *oldest = NULL;
            for (unsigned j = 0; j < COUNT; j++) {
                bool before = oldest == NULL || w[j].class < oldest->class ||
                              (w[j].class == oldest->class && w[j].number < oldest->number);
                if (queue_waits(&w[j]) && w[j].key != full && before)
                    oldest = &w[j];
            }
            struct queue_look look = {0};
            struct queue_waiter *got = queue_look_next(&q, &look);
            while (got != NULL && got->key == full) {
                queue_pass(&look, got);
                got = queue_look_next(&q, &look);
            }
            assert_ptr_equal(got, oldest);
            if (got != NULL)
                queue_take(&q, got, step);
        }
        queue_check(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(a_full_model_does_not_delay_other_models),
        cmocka_unit_test(a_full_queue_refuses_requests),
        cmocka_unit_test(a_lower_limit_ends_no_wait),
        cmocka_unit_test(an_arriving_request_sees_earlier_waiters),
        cmocka_unit_test(a_retried_request_keeps_its_place),
        cmocka_unit_test(more_keys_than_lanes),
        cmocka_unit_test(retry_after_is_the_time_to_serve_the_queue),
        cmocka_unit_test(queue_classes_have_separate_lanes_and_one_limit),
        cmocka_unit_test(the_queue_agrees_with_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
