/* A router's table of members, with more members than room. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "base/err.h"
#include "gossip/gossip_internal.h"
#include "tests/lib/gossip_net.h"

enum { SECOND = 1000000, EPOCH = 1700 };

static struct net *net;
static struct gossip *g;

static int setup(void **state)
{
    (void)state;
    net = net_new(1, 31);
    net_start_all(net);
    g = net->nodes[0].gossip;
    g->now_us += SECOND;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_finish(net);
    return 0;
}

/* --- the table of members -------------------------------------------------------------------- */

static struct gossip_peer *find(unsigned i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "router-%u", i);
    return gossip_peer_find(g, gossip_node_id(name));
}

static int join(unsigned i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "router-%u", i);
    struct gossip_frame_member said = {
        .name = slice_of_cstr(name), .incarnation = (uint64_t)EPOCH << 16, .state = GOSSIP_ALIVE};
    return gossip_member_join(g, &said, false);
}

/* The table is full: this router, and dead members, a death each millisecond. */
static void fill(void)
{
    for (unsigned i = 1; i < GOSSIP_MEMBERS_MAX; i++) {
        assert_int_equal(join(i), 1);
        g->now_us += 1000;
        find(i)->heard_us = g->now_us;
        gossip_member_state(g, find(i), GOSSIP_DEAD);
    }
    assert_int_equal(g->listed, GOSSIP_MEMBERS_MAX);
}

static void the_longest_dead_member_is_evicted(void **state)
{
    (void)state;
    fill();
    g->now_us += 20 * (uint64_t)SECOND;
    gossip_member_state(g, find(1), GOSSIP_LEFT); /* the latest of all left members */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(join(GOSSIP_MEMBERS_MAX + i), 1);
    assert_int_equal(g->listed, GOSSIP_MEMBERS_MAX);
    for (unsigned i = 2; i < 5; i++)
        assert_null(find(i));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(find(GOSSIP_MEMBERS_MAX + i)->state, GOSSIP_ALIVE);
    assert_non_null(find(1));
    assert_non_null(find(5));
    assert_int_equal(g->stats.no_room, 0);
}

static void recently_heard_members_are_not_evicted(void **state)
{
    (void)state;
    fill();
    for (unsigned i = 1; i < GOSSIP_MEMBERS_MAX; i++)
        find(i)->heard_us = g->now_us;
    g->now_us += 9 * SECOND;
    assert_int_equal(join(GOSSIP_MEMBERS_MAX), ERR_FULL);
    assert_null(find(GOSSIP_MEMBERS_MAX));
    assert_int_equal(g->stats.no_room, 1);
    g->now_us += 2 * SECOND;
    assert_int_equal(join(GOSSIP_MEMBERS_MAX), 1);
    assert_null(find(1));
}

/* --- lost members ----------------------------------------------------------------------------- */

/* The longest wait between two dials to the member, without the random share. */
static uint64_t wait_at_last(unsigned i)
{
    for (unsigned n = 0; n < 12; n++)
        gossip_reach_peer(g, find(i));
    return find(i)->dial_wait;
}

/* Pods with new names leave many old names behind. Dead members are not called less often: a dead
 * member may be on the other side of a partition. */
static void left_members_are_called_rarely(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 110; i++)
        assert_int_equal(join(i), 1);
    for (unsigned i = 1; i <= 106; i++)
        gossip_member_state(g, find(i), i <= 100 ? GOSSIP_LEFT : GOSSIP_DEAD);
    assert_int_equal(wait_at_last(1), 10 * SECOND);
    assert_int_equal(wait_at_last(101), 2 * SECOND); /* four others live, half a second each */
    for (unsigned i = 107; i <= 110; i++)
        gossip_member_state(g, find(i), GOSSIP_DEAD);
    assert_int_equal(wait_at_last(101), 10 * SECOND / 8); /* alone: 8 dials a second for all ten */
    assert_int_equal(wait_at_last(1), 10 * SECOND);
}

/* --- two routers of one name ----------------------------------------------------------------- */

/* A peer remembers a much later life of this router. The new life is a minute above that. So the
 * new stamps are above those of all hellos of the old life, which replays may have brought to
 * others. */
static bool rise(void)
{
    uint64_t before = g->epoch;
    bool rose = gossip_self_rise(g, (before + 1000) << 16);
    assert_true(rose ? g->epoch >= before + 1000 + 60000 : g->epoch == before);
    return rose;
}

static void name_conflicts_double_the_wait(void **state)
{
    (void)state;
    assert_true(rise()); /* the clock may have gone back */
    assert_int_equal(g->stats.name_conflicts, 0);
    uint64_t wait_s = 1;
    for (unsigned i = 0; i < 9; i++) {
        g->now_us += wait_s * SECOND - 1;
        assert_false(rise());
        assert_int_equal(g->stats.name_conflicts, 2 * i + 1);
        g->now_us += 1;
        assert_true(rise());
        wait_s = wait_s < 64 ? 2 * wait_s : 64;
    }
    /* After five minutes without conflict the state is as before. */
    g->now_us += 300 * (uint64_t)SECOND + 1;
    assert_true(rise());
    g->now_us += SECOND;
    assert_true(rise());
}

/* --- the addresses of one member ------------------------------------------------------------- */

static struct gossip_frame_place place(unsigned n, enum gossip_place_kind kind)
{
    return (struct gossip_frame_place){
        .at = {.ip = {10, 0, 0, (uint8_t)n}, .port = 7490, .family = 4}, .kind = kind};
}

static bool has(const struct gossip_peer *p, unsigned n)
{
    for (unsigned i = 0; i < p->places_count; i++)
        if (p->places[i].place.at.ip[3] == n)
            return true;
    return false;
}

/* A member with the maximum number of addresses, 1 and up; address 1 did not answer. */
static struct gossip_peer *with_places(void)
{
    assert_int_equal(join(1), 1);
    struct gossip_peer *p = find(1);
    for (unsigned n = 1; n <= GOSSIP_PLACES_MAX; n++) {
        struct gossip_frame_place said = place(n, GOSSIP_PLACE_ADVERTISED);
        assert_true(gossip_place_hint(p, &said, EPOCH));
    }
    assert_int_equal(p->places_count, GOSSIP_PLACES_MAX);
    struct gossip_frame_place first = place(1, GOSSIP_PLACE_ADVERTISED);
    for (unsigned i = 0; i < 3; i++)
        gossip_place_dialled(p, &first.at);
    return p;
}

static void an_unanswered_address_is_replaced(void **state)
{
    (void)state;
    struct gossip_peer *p = with_places();
    struct gossip_frame_place said = place(77, GOSSIP_PLACE_LEARNED);
    assert_true(gossip_place_hint(p, &said, EPOCH));
    assert_int_equal(p->places_count, GOSSIP_PLACES_MAX);
    assert_false(has(p, 1));
    assert_true(has(p, 2) && has(p, GOSSIP_PLACES_MAX) && has(p, 77));
}

static void an_address_of_an_earlier_epoch_replaces_none(void **state)
{
    (void)state;
    struct gossip_peer *p = with_places();
    struct gossip_frame_place said = place(77, GOSSIP_PLACE_ADVERTISED);
    assert_false(gossip_place_hint(p, &said, EPOCH - 1));
    assert_true(has(p, 1));
    assert_false(has(p, 77));
}

static void the_address_in_use_is_kept(void **state)
{
    (void)state;
    struct gossip_peer *p = with_places();
    p->source = place(1, GOSSIP_PLACE_ADVERTISED).at;
    struct gossip_frame_place said = place(77, GOSSIP_PLACE_LEARNED);
    assert_false(gossip_place_hint(p, &said, EPOCH)); /* the others are more likely */
    said = place(78, GOSSIP_PLACE_ADVERTISED);
    assert_true(gossip_place_hint(p, &said, EPOCH));
    assert_true(has(p, 1) && has(p, 78));
    assert_int_equal(p->places_count, GOSSIP_PLACES_MAX);
    memset(&p->source, 0, sizeof p->source);
}

/* The member's clock went back between two lives, and the later life is at another address. The
 * second address looks earlier, and was never dialled while the first address did not answer. */
static void an_address_with_an_earlier_epoch_is_dialled_too(void **state)
{
    (void)state;
    assert_int_equal(join(1), 1);
    struct gossip_peer *p = find(1);
    struct gossip_frame_place known = place(1, GOSSIP_PLACE_ADVERTISED);
    struct gossip_frame_place earlier = place(2, GOSSIP_PLACE_ADVERTISED);
    assert_true(gossip_place_hint(p, &known, EPOCH));
    assert_true(gossip_place_hint(p, &earlier, EPOCH - 1));
    unsigned dialled[2] = {0};
    for (unsigned i = 0; i < 20; i++) {
        const struct gossip_candidate *at = gossip_place_best(g, p);
        unsigned n = at->place.at.ip[3];
        assert_true(i > 0 || n == 1);
        dialled[n - 1]++;
        gossip_place_dialled(p, &at->place.at);
    }
    assert_true(dialled[0] > dialled[1] && dialled[1] > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_with_an_earlier_epoch_is_dialled_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_longest_dead_member_is_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(recently_heard_members_are_not_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(left_members_are_called_rarely, setup, teardown),
        cmocka_unit_test_setup_teardown(name_conflicts_double_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unanswered_address_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_of_an_earlier_epoch_replaces_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_address_in_use_is_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
