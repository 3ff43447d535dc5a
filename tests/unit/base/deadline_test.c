#include "base/deadline.h"
#include "tests/lib/test.h"

static unsigned fired;
static struct deadline *last_fired;

static void on_expired(struct deadline *d)
{
    fired++;
    last_fired = d;
}

static void fires_in_order_and_only_when_due(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 100);
    struct deadline a = {.expired = on_expired};
    struct deadline b = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    deadline_set(&q, &b, 10);
    deadline_run(&q, 99);
    assert_int_equal(fired, 0);
    deadline_run(&q, 105);
    assert_int_equal(fired, 1);
    assert_ptr_equal(last_fired, &a);
    deadline_run(&q, 1000);
    assert_int_equal(fired, 2);
}

static void rearming_moves_a_deadline_to_the_back(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 100);
    struct deadline a = {.expired = on_expired};
    struct deadline b = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    deadline_set(&q, &b, 10);
    deadline_set(&q, &a, 50);
    deadline_run(&q, 120);
    assert_int_equal(fired, 1);
    assert_ptr_equal(last_fired, &b);
    deadline_clear(&a);
    deadline_clear(&a); /* clearing twice is allowed */
    deadline_run(&q, 1000);
    assert_int_equal(fired, 1);
}

static void a_resumed_deadline_waits_for_the_rest(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 100);
    struct deadline a = {.expired = on_expired};
    struct deadline b = {.expired = on_expired};
    struct deadline c = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    deadline_set(&q, &b, 50);
    deadline_resume(&q, &c, 30, 60);
    deadline_run(&q, 129);
    assert_int_equal(fired, 1);
    deadline_run(&q, 130);
    assert_int_equal(fired, 2);
    assert_ptr_equal(last_fired, &c);
    deadline_resume(&q, &c, 1000, 140); /* no time is left */
    deadline_run(&q, 140);
    assert_int_equal(fired, 3);
    assert_ptr_equal(last_fired, &c);
    deadline_run(&q, 150);
    assert_ptr_equal(last_fired, &b);
}

static void a_shift_extends_every_deadline(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 100);
    struct deadline a = {.expired = on_expired};
    struct deadline b = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    deadline_set(&q, &b, 10);
    deadline_shift(&q, 5000);
    deadline_run(&q, 5099);
    assert_int_equal(fired, 0);
    deadline_run(&q, 5100);
    assert_int_equal(fired, 1);
    deadline_run(&q, 5110);
    assert_int_equal(fired, 2);
}

static void a_new_limit_applies_to_waiting_deadlines(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 100);
    struct deadline a = {.expired = on_expired};
    struct deadline b = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    deadline_set(&q, &b, 40);
    deadline_queue_limit(&q, 1000);
    deadline_run(&q, 999);
    assert_int_equal(fired, 0);
    deadline_queue_limit(&q, 50);
    deadline_run(&q, 50);
    assert_ptr_equal(last_fired, &a);
    assert_int_equal(fired, 1);
    deadline_run(&q, 90);
    assert_ptr_equal(last_fired, &b);
    deadline_set(&q, &a, 100);
    deadline_queue_limit(&q, 0);
    assert_null(a.next);
    deadline_run(&q, UINT64_MAX);
    assert_int_equal(fired, 2);
}

static struct deadline_queue other;

static void on_expired_rearm(struct deadline *d)
{
    fired++;
    if (fired < 3)
        deadline_set(&other, d, d->at_ms);
}

static void a_callback_may_rearm_its_deadline(void **state)
{
    (void)state;
    deadline_queue_init(&other, 10);
    struct deadline a = {.expired = on_expired_rearm};
    fired = 0;
    deadline_set(&other, &a, 0);
    deadline_run(&other, 100);
    assert_int_equal(fired, 3);
}

static void zero_turns_a_limit_off(void **state)
{
    (void)state;
    struct deadline_queue q;
    deadline_queue_init(&q, 0);
    struct deadline a = {.expired = on_expired};
    fired = 0;
    deadline_set(&q, &a, 0);
    assert_null(a.next);
    deadline_run(&q, UINT64_MAX);
    assert_int_equal(fired, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_in_order_and_only_when_due),
        cmocka_unit_test(rearming_moves_a_deadline_to_the_back),
        cmocka_unit_test(a_resumed_deadline_waits_for_the_rest),
        cmocka_unit_test(a_shift_extends_every_deadline),
        cmocka_unit_test(a_new_limit_applies_to_waiting_deadlines),
        cmocka_unit_test(a_callback_may_rearm_its_deadline),
        cmocka_unit_test(zero_turns_a_limit_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
