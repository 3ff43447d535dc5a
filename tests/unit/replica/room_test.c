/* Room that no engine reports: learned from what had to wait (room.h, booking.h, fleet.h). */
#include "node/replica/room.h"

#include <math.h>
#include <string.h>

#include "node/replica/fleet.h"
#include "tests/lib/test.h"

enum { NOW_MS = 1000000 };

static struct node_room_amount amount(double requests, double tokens)
{
    return (struct node_room_amount){requests, tokens};
}

static double wait_s(const struct node_room *room, double requests, double tokens)
{
    return node_room_wait_s(room, amount(requests, tokens), amount(1, 1000), 10);
}

static void answer_that_takes_long_has_waited(void **state)
{
    (void)state;
    assert_true(node_room_waited(2.0, 0.5, 0.02));
    assert_false(node_room_waited(0.6, 0.5, 0.02));
    assert_false(node_room_waited(0.04, 0.002, 0.02)); /* computed between two steps */
}

/* What ran once has room: the number is a setting. */
static void limit_below_what_ran_is_disproved(void **state)
{
    (void)state;
    struct node_room room = {0};
    for (unsigned i = 0; i < 6; i++)
        node_room_add(&room, amount(2, 9000 + 5000 * i), NOW_MS);
    assert_true(node_room_own(&room, NOW_MS).requests == 2);
    node_room_streamed(&room, 3);
    assert_true(node_room_own(&room, NOW_MS).requests == 0);

    /* One more of sixteen is an end that was heard of late. */
    room = (struct node_room){0};
    for (unsigned i = 0; i < 6; i++)
        node_room_add(&room, amount(16, 90000 + 50000 * i), NOW_MS);
    node_room_streamed(&room, 17);
    assert_true(node_room_own(&room, NOW_MS).requests == 16);
}

static void gauges_disprove_a_limit(void **state)
{
    (void)state;
    struct node_room room = {0};
    for (unsigned i = 0; i < 6; i++)
        node_room_add(&room, amount(2, 9000 + 5000 * i), NOW_MS);
    room.most = node_room_own(&room, NOW_MS);
    assert_false(node_room_told(&room, 2, 3, 5, false)); /* they wait, as is believed */
    assert_false(node_room_told(&room, 1, 0, 1, false));
    assert_false(node_room_told(&room, -1, -1, 5, false));
    assert_true(node_room_own(&room, NOW_MS).requests == 2);
    assert_true(node_room_told(&room, 2, 0, 5, false)); /* none waits of five */
    assert_true(node_room_own(&room, NOW_MS).requests == 0);

    for (unsigned i = 0; i < 6; i++)
        node_room_add(&room, amount(2, 9000 + 5000 * i), NOW_MS);
    (void)node_room_told(&room, 4, -1, 2, false); /* others' run there, too */
    assert_true(node_room_own(&room, NOW_MS).requests == 0);
    (void)node_room_told(&room, 1, -1, 1, true); /* it restarted, maybe with another limit */
    assert_true(node_room_own(&room, NOW_MS).requests == 2);
}

/* Prompts of all sizes, 16 at once: the tokens are now few, now many, the requests always 16. */
static void limit_is_what_samples_agree_on(void **state)
{
    (void)state;
    struct node_room room = {0};
    for (unsigned i = 0; i < 9; i++)
        node_room_add(&room, amount(15.5 + i % 2, i % 3 ? 20000 : 200000), NOW_MS);
    room.most = node_room_own(&room, NOW_MS);
    assert_true(room.most.requests >= 15.5 && room.most.requests <= 16.5);
    assert_true(room.most.tokens == 0);
    assert_true(wait_s(&room, 14, 400000) == 0);
    assert_true(wait_s(&room, 31, 10000) > 4.8 &&
                wait_s(&room, 31, 10000) < 5.4); /* half have to end */

    room = (struct node_room){0};
    for (unsigned i = 0; i < 9; i++)
        node_room_add(&room, amount(i % 3 ? 5 : 50, 99000 + 200 * i), NOW_MS);
    room.most = node_room_own(&room, NOW_MS);
    assert_true(room.most.requests == 0);
    assert_true(room.most.tokens > 99000 && room.most.tokens < 101000);
    assert_true(wait_s(&room, 1000, 90000) == 0);
    assert_true(wait_s(&room, 5, 110000) > 0.9);
}

/* A stall or two says nothing, and what is said fades. */
static void stall_is_no_limit(void **state)
{
    (void)state;
    struct node_room room = {0};
    node_room_add(&room, amount(3, 5000), NOW_MS);
    node_room_add(&room, amount(3, 5000), NOW_MS);
    assert_true(node_room_own(&room, NOW_MS).requests == 0);
    for (unsigned i = 0; i < 8; i++)
        node_room_add(&room, amount(3, 5000 + i), NOW_MS);
    assert_true(node_room_own(&room, NOW_MS).requests == 3);
    assert_true(node_room_own(&room, NOW_MS + 120000).requests == 0);
    /* More that ran at once than was believed to fit disproves it. */
    room.most = node_room_own(&room, NOW_MS);
    assert_true(node_room_exceeds(&room, amount(20, 40000)));
    for (unsigned i = 0; i < 20; i++)
        node_room_add(&room, amount(20, 40000 + 100 * i), NOW_MS);
    assert_true(node_room_own(&room, NOW_MS).requests == 20);
}

static void samples_that_disagree_are_no_limit(void **state)
{
    (void)state;
    struct node_room room = {0};
    for (unsigned i = 0; i < 12; i++)
        node_room_add(&room, amount(2 + i, 10000 * (1 + i % 5)), NOW_MS);
    struct node_room_amount own = node_room_own(&room, NOW_MS);
    assert_true(own.requests == 0 && own.tokens == 0);
}

/* Half as much again as ever ran at once costs a third of a residence, twice as much all of it. */
static void what_never_ran_at_once_may_not_fit(void **state)
{
    (void)state;
    struct node_room room = {.ran_anywhere = {20, 40000}};
    assert_true(node_room_beyond_s(&room, amount(19, 30000), amount(1, 1000), 0, 10) == 0);
    double half = node_room_beyond_s(&room, amount(29, 30000), amount(1, 1000), 0, 10);
    assert_true(half > 3.5 && half < 3.6);
    assert_true(fabs(node_room_beyond_s(&room, amount(39, 0), amount(1, 0), 0, 10) - 10) < 1e-9);
    assert_true(fabs(node_room_beyond_s(&room, amount(9, 79000), amount(1, 1000), 0, 10) - 10) <
                1e-9);
    /* One alone runs anywhere, however large. */
    assert_true(node_room_beyond_s(&room, amount(0, 0), amount(1, 100000), 0, 10) == 0);
    assert_true(fabs(node_room_beyond_s(&room, amount(1, 100000), amount(1, 100000), 0, 10) - 10) <
                1e-9);
    /* Three short answers had ended: at an idle engine a prompt was said to wait for 411 s. */
    room = (struct node_room){.ran_anywhere = {8, 80}};
    assert_true(node_room_beyond_s(&room, amount(0, 0), amount(1, 4700), 0, 0.04) == 0);
    assert_true(node_room_beyond_s(&room, amount(7, 7 * 4700), amount(1, 4700), 0, 0.04) == 0);
    assert_true(node_room_beyond_s(&room, amount(8, 8 * 4700), amount(1, 4700), 0, 0.04) > 0);
    /* Nothing is known. While load rose short prompts gathered at one of twelve: 142 of 435. */
    room = (struct node_room){0};
    assert_true(node_room_beyond_s(&room, amount(71, 1e6), amount(1, 1000), 36, 10) == 0);
    assert_true(fabs(node_room_beyond_s(&room, amount(143, 1e6), amount(1, 0), 36, 10) - 10) <
                1e-9);
    assert_true(node_room_beyond_s(&room, amount(7, 1e6), amount(1, 1000), 1, 10) == 0);
}

/* What ran at one of them ran anywhere, once so many answers ended that load no longer just rises.
 */
static void what_ran_at_one_ran_anywhere_of_its_model(void **state)
{
    (void)state;
    static struct node_replica replicas[4];
    memset(replicas, 0, sizeof replicas);
    struct node_vote votes[5];
    struct node_replica_config config = {.prefill_tokens_per_s = 10000, .decode_step_ms = 20};
    replicas[3].fleet = 1; /* another model */
    assert_true(node_room_ran(&replicas[0].room, amount(16, 50000)));
    assert_true(node_room_ran(&replicas[1].room, amount(12, 60000)));
    replicas[1].room.ended = 6; /* of 28 that ran */
    node_fleet_believe(replicas, 4, &config, votes, NOW_MS);
    assert_true(replicas[0].room.ran_anywhere.requests == 0);
    replicas[1].room.ended = 7;
    node_fleet_believe(replicas, 4, &config, votes, NOW_MS);
    for (unsigned k = 0; k < 3; k++) {
        assert_true(replicas[k].room.ran_anywhere.requests == 16);
        assert_true(replicas[k].room.ran_anywhere.tokens == 60000);
    }
    assert_true(replicas[3].room.ran_anywhere.requests == 0);
    assert_false(node_room_ran(&replicas[2].room, amount(16, 60000)));
    assert_true(node_room_ran(&replicas[2].room, amount(17, 60000)));

    replicas[0].room.ran = amount(2, 3000); /* at light load: eight would fit */
    replicas[1].room.ran = amount(1, 4000);
    replicas[2].room.ran = amount(0, 0);
    node_fleet_believe(replicas, 4, &config, votes, NOW_MS);
    assert_true(replicas[2].room.ran_anywhere.requests == 8);
    assert_true(replicas[2].room.ran_anywhere.tokens == 16000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_that_takes_long_has_waited),
        cmocka_unit_test(limit_below_what_ran_is_disproved),
        cmocka_unit_test(gauges_disprove_a_limit),
        cmocka_unit_test(limit_is_what_samples_agree_on),
        cmocka_unit_test(stall_is_no_limit),
        cmocka_unit_test(samples_that_disagree_are_no_limit),
        cmocka_unit_test(what_never_ran_at_once_may_not_fit),
        cmocka_unit_test(what_ran_at_one_ran_anywhere_of_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
