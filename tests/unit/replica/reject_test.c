/* Whose fault a rejection is: which are tried elsewhere, and what is held against a replica. */
#include "node/replica/reject.h"

#include "base/check.h"

#include "tests/lib/test.h"

enum { REPLICAS = 8, CLIENT = 1000, OTHER = 2000 };

static struct node_reject at[REPLICAS];
static struct node_reject_clients clients;
static uint64_t now;
static unsigned tries;

static void start(void)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        node_reject_init(&at[i]);
    clients = (struct node_reject_clients){0};
    now = 100000;
    tries = 0;
}

static struct node_rejection rejection(unsigned replica, uint8_t kind, unsigned status, uint64_t id)
{
    return (struct node_rejection){.replica = replica,
                                   .kind = kind,
                                   .status = status,
                                   .client = id,
                                   .sent_ms = now - 1,
                                   .rejected_ms = now};
}

static void accepts(unsigned replica, uint8_t kind, uint64_t id)
{
    now += 2;
    node_reject_client_accepted(&clients, id);
    (void)node_reject_accepted(&at[replica], kind, now - 1);
}

/* There is nobody to ask whether it is the replica's fault, or it is not worth it. Returns what was
 * believed of the replica. */
static double passes(unsigned i, unsigned status, uint64_t id)
{
    now += 2;
    struct node_rejection x = rejection(i, 1, status, id);
    struct node_reject_prior prior = node_reject_prior_of(&clients, id);
    double own = node_reject_own(&at[i], &x, &prior);
    node_reject_passed(&at[i], &x, &prior);
    node_reject_client_passed(&clients, id, own);
    return own;
}

/* A request that replica `i` rejects, of which its peers say `good`. Whether it was tried. */
static bool rejects(unsigned i, unsigned status, uint64_t id, bool good)
{
    struct node_rejection x = rejection(i, 1, status, id);
    struct node_reject_prior prior = node_reject_prior_of(&clients, id);
    if (!node_reject_is_worth(node_reject_own(&at[i], &x, &prior))) {
        (void)passes(i, status, id);
        return false;
    }
    now += 2;
    x = rejection(i, 1, status, id);
    tries++;
    node_reject_tried(&clients, good);
    if (good) {
        (void)node_reject_contradicted(&at[i], &x, now);
        accepts((i + 1) % REPLICAS, 1, id);
    } else {
        node_reject_confirmed(&at[i]);
        node_reject_agreed(&at[(i + 1) % REPLICAS]);
        node_reject_client_confirmed(&clients, id);
    }
    return true;
}

static bool avoids(unsigned i, uint8_t kind)
{
    return node_reject_avoids(&at[i], kind, true, now);
}

static void one_contradiction_is_enough(void **state)
{
    (void)state;
    static const unsigned statuses[] = {400, 401, 403, 404, 405, 408, 413, 415, 422};
    for (unsigned s = 0; s < ARRAY_LEN(statuses); s++) {
        for (unsigned served = 0; served <= 1000; served += 1000) {
            start();
            for (unsigned n = 0; n < served; n++)
                accepts(n % REPLICAS, 1, CLIENT);
            assert_true(rejects(3, statuses[s], CLIENT, true));
            assert_true(avoids(3, 1));
            assert_false(avoids(4, 1));
        }
    }
}

/* Affinity sends one bad client to one replica. The others' requests are accepted there. */
static void a_bad_client_is_hardly_tried_elsewhere(void **state)
{
    (void)state;
    for (unsigned status = 400; status <= 401; status++) {
        start();
        for (unsigned n = 0; n < 1000; n++) {
            (void)rejects(0, status, CLIENT, false);
            accepts(0, 1, OTHER + n % 20);
        }
        assert_in_range(tries, 1, 8);
        start(); /* and nobody else is there */
        for (unsigned n = 0; n < 1000; n++)
            (void)rejects(0, status, CLIENT, false);
        assert_in_range(tries, 1, 30);
    }
}

/* It hides nothing: another client's request that is rejected there is tried at once. */
static void a_bad_client_hides_no_bad_replica(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 1000; n++) {
        (void)rejects(0, 400, CLIENT, false);
        accepts(1, 1, OTHER);
    }
    assert_true(rejects(0, 400, OTHER, true));
}

/* All clients come by one gateway, with one key, and a fifth of their requests is bad. */
static void a_mixed_client_is_tried_after_a_few(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 1000; n++) {
        accepts(n % REPLICAS, 1, CLIENT);
        if (n % 5 == 0)
            (void)rejects(n % REPLICAS, 400, CLIENT, false);
    }
    assert_in_range(tries, 1, 40);
    unsigned seen = 0;
    while (!rejects(0, 400, CLIENT, true))
        seen++;
    assert_in_range(seen, 0, 3);
    assert_true(avoids(0, 1));
}

static void where_all_reject_alike_few_are_tried(void **state)
{
    (void)state;
    for (unsigned served = 0; served <= 1000; served += 1000) {
        start();
        for (unsigned n = 0; n < served; n++)
            accepts(n % REPLICAS, 1, CLIENT);
        for (unsigned n = 0; n < 1000; n++)
            (void)rejects(n % REPLICAS, 401, CLIENT, false);
        assert_in_range(tries, 1, 30);
        for (unsigned i = 0; i < REPLICAS; i++)
            assert_false(avoids(i, 1));
    }
}

/* While a replica has no peer, its rejections say nothing of its clients: what they send when it
 * has one again is tried there. An answer that was under way in between does not help it. */
static void what_nobody_could_check_blames_no_client(void **state)
{
    (void)state;
    static const unsigned statuses[] = {400, 401};
    for (unsigned s = 0; s < ARRAY_LEN(statuses); s++) {
        start();
        for (unsigned n = 0; n < 100; n++)
            accepts(n % REPLICAS, 1, CLIENT + n % 10);
        double before = node_reject_prior_of(&clients, CLIENT).bad;
        for (unsigned n = 0; n < 25; n++)
            assert_true(node_reject_is_worth(passes(0, statuses[s], CLIENT + n % 10)));
        assert_true(node_reject_prior_of(&clients, CLIENT).bad <= before);
        accepts(0, 1, CLIENT);
        assert_true(rejects(0, statuses[s], CLIENT, true));
        assert_true(avoids(0, 1));
    }
}

/* A wrong key at all replicas, and clients that are known by good requests: each of them would be
 * worth a try, were it not known of all that it does not pay. */
static void what_never_pays_is_tried_no_more(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 400; n++) {
        accepts(n % REPLICAS, 1, OTHER + n);
        (void)rejects(n % REPLICAS, 401, OTHER + n, false);
    }
    assert_in_range(tries, 1, 20);
}

static void a_back_off_and_its_trials(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    now = at[0].until_ms - 1;
    assert_true(avoids(0, 1));
    now++;
    assert_false(avoids(0, 1));
    assert_true(node_reject_avoids(&at[0], 1, false, now)); /* no trial: it cannot be sent again */
    node_reject_sent(&at[0], 1, now);
    assert_true(avoids(0, 1)); /* one at a time */
    uint32_t before = at[0].length_ms;
    assert_true(rejects(0, 401, CLIENT, true));
    assert_int_equal(at[0].length_ms, 2 * before);
    now = at[0].until_ms;
    node_reject_sent(&at[0], 1, now);
    accepts(0, 1, CLIENT);
    assert_false(avoids(0, 1));
    assert_false(node_reject_any(&at[0]));
}

/* What was under way when it was caught makes no back-off longer, and frees nothing. */
static void what_was_sent_before_is_no_trial(void **state)
{
    (void)state;
    start();
    struct node_rejection early = rejection(0, 1, 401, CLIENT);
    assert_true(rejects(0, 401, CLIENT, true));
    uint32_t length = at[0].length_ms;
    (void)node_reject_contradicted(&at[0], &early, now);
    assert_int_equal(at[0].length_ms, length);
    assert_false(node_reject_accepted(&at[0], 1, early.sent_ms));
    assert_true(avoids(0, 1));
}

static void one_kind_of_request_or_all(void **state)
{
    (void)state;
    start();
    struct node_rejection tools = rejection(0, 5, 400, CLIENT);
    assert_true(node_reject_contradicted(&at[0], &tools, now));
    assert_true(avoids(0, 5));
    assert_false(avoids(0, 1));
    accepts(0, 1, CLIENT);
    assert_true(avoids(0, 5)); /* others say nothing of it */
    struct node_rejection images = rejection(0, 7, 400, CLIENT);
    assert_true(node_reject_contradicted(&at[0], &images, now));
    assert_false(avoids(0, 1)); /* it accepted something in between */
    assert_true(avoids(0, 5) && avoids(0, 7));

    start();
    assert_true(node_reject_contradicted(&at[0], &tools, now));
    assert_true(node_reject_contradicted(&at[0], &images, now + 1));
    now += 2;
    assert_true(avoids(0, 1)); /* two kinds, and nothing accepted: all */
    now = at[0].until_ms;
    node_reject_sent(&at[0], 1, now);
    accepts(0, 1, CLIENT);
    assert_false(avoids(0, 1));
    assert_true(avoids(0, 5) && avoids(0, 7));
}

/* It answers at once, so it has room for everything: not while nobody knows whose fault it is. */
static void a_doubt_avoids(void **state)
{
    (void)state;
    start();
    struct node_rejection x = rejection(0, 1, 401, CLIENT);
    node_reject_doubt(&at[0], &x, true);
    node_reject_doubt(&at[0], &x, true);
    assert_true(avoids(0, 1));
    assert_false(avoids(0, 2));
    node_reject_doubt(&at[0], &x, false);
    assert_true(avoids(0, 1));
    node_reject_doubt(&at[0], &x, false);
    assert_false(avoids(0, 1));
    node_reject_doubt(&at[0], &x, true);
    accepts(0, 1, CLIENT);
    assert_false(avoids(0, 1));
}

static void hear(unsigned i, unsigned other, bool ahead)
{
    struct node_reject_heard h = {0};
    node_reject_heard_add(&h, node_reject_report(&at[other], now), ahead);
    node_reject_hear(&at[i], &h, now);
}

/* Two routers, 0 and 1, see one replica. */
static void another_router_is_heeded(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    assert_true(avoids(1, 1));
    now = at[0].until_ms + 1; /* that one tries it */
    assert_false(avoids(0, 1));
    assert_true(avoids(1, 1));
    accepts(0, 1, CLIENT);
    hear(1, 0, true);
    assert_false(avoids(1, 1));
}

/* It has a back-off's time for it. */
static void the_others_try_where_the_first_has_no_request(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    assert_true(node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
    now = at[0].until_ms + NODE_REJECT_BACKOFF_MS - 1;
    hear(1, 0, true);
    assert_true(!node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
    now++;
    hear(1, 0, true);
    assert_false(node_reject_avoids_any(&at[1], now));
    assert_false(avoids(1, 1));
    assert_true(rejects(1, 401, CLIENT, true)); /* in vain */
    hear(0, 1, false);
    assert_true(node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
}

/* Trials in vain at others: own eyes look, and what they see counts. */
static void what_others_tell_is_heeded_for_a_minute(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    now += NODE_REJECT_HEED_MS;
    at[0].until_ms = now;
    assert_false(avoids(1, 1));
    node_reject_sent(&at[1], 1, now);
    assert_true(avoids(1, 1));
    now++;
    (void)node_reject_accepted(&at[1], 1, now);
    hear(1, 0, true);
    assert_false(avoids(1, 1));
}

static void of_two_that_found_out_one_tries(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    assert_true(rejects(1, 401, CLIENT, true));
    hear(0, 1, false);
    hear(1, 0, true);
    assert_true(at[0].kinds != 0 && at[1].kinds == 0);
    hear(0, 1, false);
    now = at[0].until_ms + 1;
    assert_false(avoids(0, 1));
    assert_true(avoids(1, 1));
}

static void a_restart_forgets(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    struct node_rejection x = rejection(0, 1, 401, CLIENT);
    node_reject_doubt(&at[0], &x, true);
    node_reject_renew(&at[0]);
    assert_int_equal(at[0].kinds, 0);
    assert_int_equal(at[0].doubts, 1); /* its end is still to come */
    assert_int_equal(at[0].contradicted, 1);
}

static void clients_are_bounded(void **state)
{
    (void)state;
    start();
    for (uint64_t id = 1; id <= 100000; id++)
        node_reject_client_confirmed(&clients, id * 0x9e3779b97f4a7c15);
    assert_in_range(clients.count, NODE_REJECT_CLIENTS_MAX / 2, NODE_REJECT_CLIENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_contradiction_is_enough),
        cmocka_unit_test(a_bad_client_is_hardly_tried_elsewhere),
        cmocka_unit_test(a_bad_client_hides_no_bad_replica),
        cmocka_unit_test(a_mixed_client_is_tried_after_a_few),
        cmocka_unit_test(where_all_reject_alike_few_are_tried),
        cmocka_unit_test(what_nobody_could_check_blames_no_client),
        cmocka_unit_test(what_never_pays_is_tried_no_more),
        cmocka_unit_test(a_back_off_and_its_trials),
        cmocka_unit_test(what_was_sent_before_is_no_trial),
        cmocka_unit_test(one_kind_of_request_or_all),
        cmocka_unit_test(a_doubt_avoids),
        cmocka_unit_test(another_router_is_heeded),
        cmocka_unit_test(the_others_try_where_the_first_has_no_request),
        cmocka_unit_test(what_others_tell_is_heeded_for_a_minute),
        cmocka_unit_test(of_two_that_found_out_one_tries),
        cmocka_unit_test(a_restart_forgets),
        cmocka_unit_test(clients_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
