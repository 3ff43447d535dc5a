/* Replicas that reject requests accepted by others: the choices of a single router and of
 * several. */
#include "base/check.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

static struct node_rejection rejection(unsigned replica, uint64_t now_ms)
{
    return (struct node_rejection){
        .replica = replica, .kind = 8, .status = 401, .from = {.client = 7}, .sent_ms = now_ms};
}

static void caught(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    struct node_rejection x = rejection(replica, now_ms);
    assert_true(node_router_reject_guilt(r, &x) >= NODE_REJECT_WORTH);
    node_router_reject_doubt(r, &x, true);
    assert_true(node_router_reject_contradicted(r, &x, now_ms));
    node_router_reject_doubt(r, &x, false);
}

static bool accepted(struct node_router *r, unsigned replica, uint64_t sent_ms)
{
    struct node_request request = {.kind = 8};
    return node_router_accepted(r, replica, &request, (struct node_reject_from){.client = 7},
                                sent_ms);
}

/* Places `requests` new requests, which stay there, and counts the requests of each replica in
 * `got`. */
static void place(struct node_router *r, unsigned requests, bool again, uint64_t now_ms,
                  unsigned *got)
{
    static uint64_t asked = 100;
    struct node_decision d[64];
    for (unsigned i = 0; i < requests; i++) {
        struct node_request request = request_of(prompt(asked++, 2000));
        request.kind = 8;
        request.again = again;
        assert_int_equal(node_router_place(r, &request, NULL, now_ms, &d[i]), ERR_OK);
        got[d[i].server]++;
    }
    for (unsigned i = 0; i < requests; i++)
        node_router_finish(r, d[i].booking, NODE_OUTCOME_NOT_SENT, NULL, now_ms);
}

static void a_rejecting_replica_gets_no_requests(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    unsigned got[4] = {0};
    caught(r, 1, START_MS);
    place(r, 32, true, START_MS, got);
    assert_int_equal(got[1], 0);
    struct node_standing s = node_router_replica_standing(r, 1, START_MS);
    assert_int_equal(s.why, NODE_STANDING_REJECTS);
    assert_true(s.avoided);
    assert_int_equal(s.until_ms, START_MS + NODE_REJECT_BACKOFF_MS);
    node_router_check(r);
    /* A request is a trial if it can be sent again, but only one at a time. */
    uint64_t later = START_MS + NODE_REJECT_BACKOFF_MS;
    s = node_router_replica_standing(r, 1, later);
    assert_int_equal(s.why, NODE_STANDING_REJECTS);
    assert_false(s.avoided);
    place(r, 32, false, later, got);
    assert_int_equal(got[1], 0);
    place(r, 32, true, later, got);
    assert_int_equal(got[1], 1);
    assert_true(accepted(r, 1, later));
    place(r, 32, true, later, got);
    assert_true(got[1] > 1);
    alone_destroy(r);
}

static void answer(struct node_router *r, unsigned replica, enum node_outcome outcome)
{
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.replica_wanted = (int)replica;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_finish(r, d.booking, outcome, NULL, START_MS);
}

static unsigned count_avoided(const struct node_router *r, unsigned replicas)
{
    unsigned count = 0;
    for (unsigned i = 0; i < replicas; i++) {
        struct node_standing s = node_router_replica_standing(r, i, START_MS + 10);
        assert_int_equal(s.avoided, node_router_reject_is_avoided(r, i));
        count += s.avoided && s.why == NODE_STANDING_REJECTS;
    }
    return count;
}

/* The rejecting replica that is not avoided. */
static unsigned used_of(const struct node_router *r, unsigned replicas)
{
    unsigned used = replicas;
    for (unsigned i = 0; i < replicas; i++) {
        struct node_standing s = node_router_replica_standing(r, i, START_MS + 10);
        char room[NODE_STANDING_TEXT_BYTES];
        if (s.why != NODE_STANDING_REJECTS || s.avoided)
            continue;
        assert_int_equal(used, replicas);
        assert_int_equal(s.until_ms, 0);
        assert_string_equal(node_standing_text(&s, room),
                            "used, though it answers 401 to chat requests where its peers accept "
                            "the key: at most half of a model's replicas are avoided for this");
        used = i;
    }
    assert_true(used < replicas);
    return used;
}

/* More than half are detected: half of all are avoided. Another rejecting replica gets a share of
 * the requests that can be sent again, and no more, though the queue is always empty. */
static void at_most_half_are_avoided(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    unsigned got[4] = {0}, other[4] = {0};
    for (unsigned i = 0; i < 3; i++)
        caught(r, i, START_MS + i);
    assert_int_equal(count_avoided(r, 4), 2);
    unsigned used = used_of(r, 4);
    for (unsigned i = 0; i < 32; i++)
        place(r, 1, true, START_MS + 10, got);
    assert_in_range(got[used], 1, 8); /* at most one of four, in turn */
    assert_int_equal(got[used] + got[3], 32);
    place(r, 32, false, START_MS + 10, other);
    assert_int_equal(other[3], 32);
    struct node_request second = request_of(prompt(1, 2000));
    struct node_decision d;
    second.kind = 8;
    second.again = true;
    second.attempt = 2;
    for (unsigned i = 0; i < 8; i++) { /* tried requests move where accepted */
        assert_int_equal(node_router_place(r, &second, NULL, START_MS + 10, &d), ERR_OK);
        assert_int_equal(d.server, 3);
        node_router_finish(r, d.booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS + 10);
    }
    alone_destroy(r);
}

/* A rejection is verified at a replica accepting such requests, if such a replica is known. */
static void a_replica_that_accepts_verifies_a_rejection(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 4);
    struct node_rejection x = rejection(0, START_MS);
    struct node_request second = request_of(prompt(1, 2000));
    struct node_replica_set without = {{1}};
    struct node_decision d;
    second.kind = 8;
    second.again = second.rejected = true;
    second.attempt = 2;
    for (unsigned proven = 0; proven < 4; proven++) {
        if (proven > 0)
            (void)accepted(r, proven, START_MS);
        unsigned got[4] = {0};
        node_router_reject_doubt(r, &x, true);
        for (unsigned i = 0; i < 12; i++) {
            assert_true(node_router_has_other(r, &second, &without, 0, false, START_MS));
            assert_int_equal(node_router_place(r, &second, &without, START_MS, &d), ERR_OK);
            got[d.server]++;
            node_router_finish(r, d.booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS);
        }
        node_router_reject_doubt(r, &x, false);
        for (unsigned i = 1; i < 4; i++)
            assert_int_equal(got[i] > 0, proven == 0 || i <= proven);
    }
    alone_destroy(r);
}

static void has_others(struct node_router *r, bool well, bool any)
{
    struct node_request second = request_of(prompt(1, 2000));
    struct node_replica_set without = {{1}};
    second.kind = 8;
    second.again = second.rejected = true;
    second.attempt = 2;
    assert_int_equal(node_router_has_other(r, &second, &without, 0, false, START_MS), well);
    assert_int_equal(node_router_has_other(r, &second, &without, 0, true, START_MS), any);
}

/* The possible peer if the rejection is rather the replica's own fault. A replica in a back-off is
 * possible, but none that is full, is stalled, rejects such requests itself, or is down. */
static void a_likely_fault_may_be_checked_at_a_backed_off_peer(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    has_others(r, true, true);
    node_router_replica_drain(r, 2, true);
    for (unsigned i = 0; i < NODE_ERROR_ANSWERS_MAX; i++) {
        has_others(r, true, true);
        answer(r, 1, NODE_OUTCOME_ENGINE_ERROR);
    }
    has_others(r, false, true);
    answer(r, 1, NODE_OUTCOME_ENGINE_BUSY);
    has_others(r, false, false);
    r->replicas[1].trouble.busy_until_ms = 0;
    caught(r, 1, START_MS);
    has_others(r, false, false);
    assert_true(accepted(r, 1, START_MS));
    has_others(r, false, true);
    node_router_replica_drain(r, 2, false);
    r->replicas[2].signs.quiet = true; /* and either may be chosen */
    has_others(r, false, false);
    r->replicas[2].signs.quiet = false;
    has_others(r, true, true);
    node_router_replica_drain(r, 2, true);
    r->replicas[1].health = NODE_HEALTH_UNKNOWN;
    has_others(r, false, false);
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    has_others(r, false, false);
    alone_destroy(r);
}

/* If all are detected, those not avoided are used as usual. */
static void half_of_all_rejecting_replicas_are_used(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    unsigned got[4] = {0}, some = 0;
    for (unsigned i = 0; i < 4; i++)
        caught(r, i, START_MS + i);
    assert_int_equal(count_avoided(r, 4), 2);
    place(r, 32, true, START_MS + 10, got);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(got[i] == 0 || !node_router_reject_is_avoided(r, i));
        some += got[i] > 0;
    }
    assert_int_equal(some, 2);
    alone_destroy(r);
}

static void at_most_half_are_avoided_per_model(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    struct slice models[] = {SLICE("one"), SLICE("two")};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(node_router_models(r, i, models, i < 2 ? 2 : 1), ERR_OK);
    caught(r, 0, START_MS);
    caught(r, 1, START_MS);
    assert_int_equal(count_avoided(r, 4), 1);
    alone_destroy(r);
}

static void the_only_replica_is_used_despite_rejections(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    unsigned got[2] = {0};
    caught(r, 0, START_MS);
    node_router_replica_drain(r, 1, true);
    place(r, 8, true, START_MS + 1, got);
    assert_int_equal(got[0], 8);
    alone_destroy(r);
}

static void a_restart_clears_a_finding(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    unsigned got[2] = {0};
    caught(r, 0, START_MS);
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS + 1);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS + 2);
    assert_false(node_reject_any(&r->replicas[0].reject));
    place(r, 8, true, START_MS + 20000, got);
    assert_true(got[0] > 0);
    alone_destroy(r);
}

static struct node_request for_model(const struct chain *chain, struct slice model)
{
    struct node_request request = request_of(chain);
    request.kind = 8;
    request.again = true;
    request.model = model;
    return request;
}

/* The number of 32 requests for `model` going to `replica`. */
static unsigned got_for(struct node_router *r, unsigned replica, struct slice model)
{
    static uint64_t asked = 1000000;
    struct node_decision d[32];
    unsigned got = 0;
    for (unsigned i = 0; i < 32; i++) {
        struct node_request request = for_model(prompt(asked++, 2000), model);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS + 10, &d[i]), ERR_OK);
        got += d[i].server == replica;
    }
    for (unsigned i = 0; i < 32; i++)
        node_router_finish(r, d[i].booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS + 10);
    return got;
}

static bool caught_for(struct node_router *r, unsigned replica, struct slice model)
{
    struct node_request request = for_model(prompt(1, 2000), model);
    struct node_rejection x = rejection(replica, START_MS);
    x.model = node_router_reject_model(r, &request);
    return node_router_reject_contradicted(r, &x, START_MS);
}

/* An adapter is broken at a single replica: the base stays in use there. If a replica serves a
 * single model, under any names, the whole replica is avoided at once. */
static void a_broken_adapter_keeps_the_base_in_use(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    struct slice models[] = {SLICE("base"), SLICE("adapter"), SLICE("other")};
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(node_router_models(r, i, models, i < 2 ? 3 : 1), ERR_OK);
    assert_true(caught_for(r, 0, models[1]));
    assert_int_equal(got_for(r, 0, models[1]), 0);
    assert_true(node_router_replica_standing(r, 0, START_MS).one_model);
    assert_true(got_for(r, 0, models[0]) > 4);
    assert_int_equal(r->slots[0].told.rejects, 0);
    assert_true(caught_for(r, 0, models[2]));
    assert_int_equal(got_for(r, 0, models[0]), 0);
    assert_true(caught_for(r, 2, SLICE("by another name")));
    assert_int_equal(got_for(r, 2, models[0]), 0);
    alone_destroy(r);
}

/* A full peer will have a place soon, and a warming peer takes another request. */
static void a_likely_rejection_waits_for_its_peer(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 2);
    struct node_decision under_way[NODE_WARM_REQUESTS];
    struct node_replica_set without = {{1}};
    struct node_request request = request_of(prompt(7, 2000));
    has_others(r, true, true);
    node_router_replica_full(r, 1, true);
    has_others(r, false, true);
    node_router_replica_full(r, 1, false);
    for (unsigned i = 0; i < NODE_WARM_REQUESTS; i++)
        assert_int_equal(node_router_place(r, &request, &without, START_MS, &under_way[i]), ERR_OK);
    has_others(r, true, true);
    r->replicas[1].trouble.back_ms = START_MS;
    has_others(r, false, true);
    for (unsigned i = 0; i < NODE_WARM_REQUESTS; i++)
        node_router_finish(r, under_way[i].booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS);
    alone_destroy(r);
}

/* A replica contradicts not the peers, but the replica's own list: it is avoided for the model
 * alone, and other routers find out by themselves. */
static void a_replica_denying_a_listed_model_is_shown(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice models[] = {SLICE("base"), SLICE("adapter")};
    char room[NODE_STANDING_TEXT_BYTES];
    assert_int_equal(node_router_models(r, 0, models, 2), ERR_OK);
    assert_false(node_models_deny(node_router_model_table(r), 0, models[1], START_MS));
    node_router_models_asked(r, 0, START_MS);
    assert_int_equal(node_router_models(r, 0, models, 2), ERR_OK);
    assert_int_equal(node_router_replica_standing(r, 0, START_MS).why, NODE_STANDING_WELL);
    assert_true(node_models_deny(node_router_model_table(r), 0, models[1], START_MS));
    struct node_standing s = node_router_replica_standing(r, 0, START_MS);
    assert_true(s.why == NODE_STANDING_REJECTS && s.status == 404 && s.avoided);
    assert_int_equal(s.until_ms, START_MS + NODE_MODELS_DENIED_MS);
    assert_string_equal(node_standing_text(&s, room),
                        "avoided: it answers that it does not know 1 of the models that it lists");
    s = node_router_replica_standing(r, 0, START_MS + NODE_MODELS_DENIED_MS);
    assert_true(s.why == NODE_STANDING_REJECTS && !s.avoided);
    assert_true(got_for(r, 0, models[0]) > 4);
    assert_int_equal(r->slots[0].told.rejects, 0);
    assert_int_equal(node_router_models(r, 0, models, 1), ERR_OK); /* off the list */
    assert_int_equal(node_router_replica_standing(r, 0, START_MS).why, NODE_STANDING_WELL);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rejecting_replica_gets_no_requests),
        cmocka_unit_test(at_most_half_are_avoided),
        cmocka_unit_test(a_replica_that_accepts_verifies_a_rejection),
        cmocka_unit_test(a_likely_fault_may_be_checked_at_a_backed_off_peer),
        cmocka_unit_test(a_likely_rejection_waits_for_its_peer),
        cmocka_unit_test(half_of_all_rejecting_replicas_are_used),
        cmocka_unit_test(at_most_half_are_avoided_per_model),
        cmocka_unit_test(the_only_replica_is_used_despite_rejections),
        cmocka_unit_test(a_restart_clears_a_finding),
        cmocka_unit_test(a_broken_adapter_keeps_the_base_in_use),
        cmocka_unit_test(a_replica_denying_a_listed_model_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
