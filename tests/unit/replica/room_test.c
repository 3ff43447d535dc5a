/* Room unreported by engines: amounts never seen to run at once (room.h, booking.h, fleet.h). */
#include "node/replica/room.h"

#include <math.h>
#include <string.h>

#include "node/replica/replica.h"
#include "tests/lib/test.h"

enum { NOW_MS = 1000000 };

static struct node_room_amount amount(double requests, double tokens)
{
    return (struct node_room_amount){requests, tokens};
}

static void a_slow_first_token_shows_a_wait(void **state)
{
    (void)state;
    assert_true(node_room_waited(2.0, 0.5, 0.02));
    assert_false(node_room_waited(0.6, 0.5, 0.02));
    assert_false(node_room_waited(0.04, 0.002, 0.02)); /* computed between two steps */
}

/* Half as much again as ever ran at once costs a third of a residence, and twice as much costs a
 * whole residence. */
static void load_beyond_any_seen_costs_a_wait(void **state)
{
    (void)state;
    struct node_room room = {.ran_anywhere = {20, 40000}};
    assert_true(node_room_beyond_s(&room, amount(19, 30000), amount(1, 1000), 0, 10) == 0);
    double half = node_room_beyond_s(&room, amount(29, 30000), amount(1, 1000), 0, 10);
    assert_true(half > 3.5 && half < 3.6);
    assert_true(fabs(node_room_beyond_s(&room, amount(39, 0), amount(1, 0), 0, 10) - 10) < 1e-9);
    assert_true(fabs(node_room_beyond_s(&room, amount(9, 79000), amount(1, 1000), 0, 10) - 10) <
                1e-9);
    /* A single request runs anywhere, however large. */
    assert_true(node_room_beyond_s(&room, amount(0, 0), amount(1, 100000), 0, 10) == 0);
    assert_true(fabs(node_room_beyond_s(&room, amount(1, 100000), amount(1, 100000), 0, 10) - 10) <
                1e-9);
    /* Three short answers had ended: at an idle engine a prompt was predicted to wait for 411 s. */
    room = (struct node_room){.ran_anywhere = {8, 80}};
    assert_true(node_room_beyond_s(&room, amount(0, 0), amount(1, 4700), 0, 0.04) == 0);
    assert_true(node_room_beyond_s(&room, amount(7, 7 * 4700), amount(1, 4700), 0, 0.04) == 0);
    assert_true(node_room_beyond_s(&room, amount(8, 8 * 4700), amount(1, 4700), 0, 0.04) > 0);
    /* No evidence yet. While load rose, short prompts gathered at 1 engine of 12: 142 of 435. */
    room = (struct node_room){0};
    assert_true(node_room_beyond_s(&room, amount(71, 1e6), amount(1, 1000), 36, 10) == 0);
    assert_true(fabs(node_room_beyond_s(&room, amount(143, 1e6), amount(1, 0), 36, 10) - 10) <
                1e-9);
    assert_true(node_room_beyond_s(&room, amount(7, 1e6), amount(1, 1000), 1, 10) == 0);
}

/* An amount that ran at a replica counts as run anywhere, once enough answers have ended: then the
 * load no longer merely rises. */
static void capacity_seen_at_a_replica_counts_for_its_model(void **state)
{
    (void)state;
    static struct node_replica replicas[4];
    memset(replicas, 0, sizeof replicas);
    struct node_vote votes[5];
    struct node_replica_config config = {.prefill_tokens_per_s = 10000, .decode_step_ms = 20};
    replicas[3].believed.fleet = 1; /* another model */
    assert_true(node_room_ran(&replicas[0].room, amount(16, 50000)));
    assert_true(node_room_ran(&replicas[1].room, amount(12, 60000)));
    replicas[1].room.ended = 6; /* 6 of 28 answers have ended */
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

    replicas[0].room.ran = amount(2, 3000); /* light load: 8 requests would fit */
    replicas[1].room.ran = amount(1, 4000);
    replicas[2].room.ran = amount(0, 0);
    node_fleet_believe(replicas, 4, &config, votes, NOW_MS);
    assert_true(replicas[2].room.ran_anywhere.requests == 8);
    assert_true(replicas[2].room.ran_anywhere.tokens == 16000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_first_token_shows_a_wait),
        cmocka_unit_test(load_beyond_any_seen_costs_a_wait),
        cmocka_unit_test(capacity_seen_at_a_replica_counts_for_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
