/* Requests after which engines die: their classification, and the replicas that they get. */
#include "node/route/poison.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

static void end(struct node_router *r)
{
    node_router_check(r);
    alone_destroy(r);
}

static void a_suspect_becomes_poison_with_the_second_death(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    assert_false(node_poison_any(r));
    assert_int_equal(node_poison_died(r, 7, 0, false), NODE_POISON_SUSPECT);
    assert_true(node_poison_any(r));
    /* Another request with the same bytes broke when the same engine died. */
    assert_int_equal(node_poison_died(r, 7, 0, false), NODE_POISON_SUSPECT);
    assert_int_equal(node_poison_died(r, 7, 1, false), NODE_POISON_SURE);
    assert_int_equal(node_poison_of(r, 7), NODE_POISON_SURE);
    assert_int_equal(node_poison_of(r, 8), NODE_POISON_NONE);
    node_poison_cleared(r, 7); /* a late answer */
    assert_int_equal(node_poison_of(r, 7), NODE_POISON_SURE);
    assert_int_equal(node_poison_count(r), 1);
    node_poison_refused(r, 7);
    struct buf out = {0};
    assert_int_equal(node_poison_json(r, &out), 0);
    assert_int_equal(buf_append_char(&out, '\0'), 0);
    assert_non_null(strstr(out.at, "\"hash\":\"0000000000000007\",\"state\":\"poison\""));
    assert_non_null(strstr(out.at, "\"replicas\":[\"host-0:8000\",\"host-1:8000\"],\"refused\":1"));
    buf_free(&out);
    assert_int_equal(node_poison_forget(r, 7), 0);
    assert_int_equal(node_poison_of(r, 7), NODE_POISON_NONE);
    assert_int_equal(node_poison_forget(r, 7), ERR_NOT_FOUND);
    end(r);
}

static void an_answer_clears_a_suspect(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 2);
    assert_int_equal(node_poison_died(r, 7, 0, false), NODE_POISON_SUSPECT);
    node_poison_cleared(r, 7);
    assert_int_equal(node_poison_of(r, 7), NODE_POISON_NONE);
    assert_int_equal(node_poison_died(r, 7, 1, false),
                     NODE_POISON_SUSPECT); /* counted from the beginning */
    end(r);
}

static int place(struct node_router *r, enum node_company company, int kept_for_it, bool may_wait,
                 uint64_t now_ms, struct node_decision *d)
{
    struct node_request request = request_of(NULL);
    request.company = company;
    request.kept_for_it = kept_for_it;
    request.may_wait = may_wait;
    return node_router_place(r, &request, NULL, now_ms, d);
}

static void a_suspect_gets_an_idle_replica(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    struct node_decision a = choose(r, NULL, START_MS), b = choose(r, NULL, START_MS), c, d;
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS, &c), ERR_OK);
    assert_int_not_equal(c.replica, a.replica);
    assert_int_not_equal(c.replica, b.replica);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS, &d), ERR_EXISTS);
    assert_int_equal(place(r, NODE_COMPANY_RATHER_ALONE, -1, false, START_MS, &d), ERR_OK);
    done(r, d, START_MS);
    /* Nothing joins the suspect at the replica kept for it, unless no other replica is left. */
    node_router_keep(r, c.replica, true);
    for (unsigned i = 0; i < 6; i++) {
        d = choose(r, NULL, START_MS);
        assert_int_not_equal(d.replica, c.replica);
        done(r, d, START_MS);
    }
    node_router_keep(r, a.replica, true);
    node_router_keep(r, b.replica, true);
    assert_int_equal(place(r, NODE_COMPANY_ANY, -1, true, START_MS, &d), ERR_EXISTS);
    assert_int_equal(place(r, NODE_COMPANY_ANY, -1, false, START_MS, &d), ERR_OK);
    done(r, d, START_MS);
    /* The replica kept for the suspect, once idle. */
    assert_int_equal(place(r, NODE_COMPANY_ALONE, (int)a.replica, false, START_MS, &d), ERR_EXISTS);
    done(r, a, START_MS);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, (int)b.replica, false, START_MS, &d), ERR_EXISTS);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, (int)a.replica, false, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, a.replica);
    done(r, d, START_MS);
    done(r, b, START_MS);
    done(r, c, START_MS);
    node_router_keep(r, a.replica, false);
    node_router_keep(r, b.replica, false);
    node_router_keep(r, c.replica, false);
    end(r);
}

/* No replica is idle. Suspects of the same death meet no other suspect of this router, nor a
 * suspect of another router. */
static void suspects_are_kept_on_separate_replicas(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 4);
    struct node_decision d[4], s;
    for (unsigned i = 0; i < 4; i++)
        d[i] = choose(r, NULL, START_MS);
    for (unsigned i = 0; i < 4; i++)
        r->replicas[i].turn.ahead = i != 2; /* others' turn, except at replica 2 */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(place(r, NODE_COMPANY_RATHER_ALONE, -1, false, START_MS, &s), ERR_OK);
        assert_int_equal(s.replica, 2);
        done(r, s, START_MS);
    }
    node_router_keep(r, 2, true);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(place(r, NODE_COMPANY_RATHER_ALONE, -1, false, START_MS, &s), ERR_OK);
        assert_int_not_equal(s.replica, 2);
        done(r, s, START_MS);
    }
    node_router_keep(r, 2, false);
    for (unsigned i = 0; i < 4; i++)
        done(r, d[i], START_MS);
    end(r);
}

static void the_last_replica_is_not_risked_while_busy(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 1);
    struct node_decision d;
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS, &d), ERR_OK);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS, &d), ERR_LIMIT);
    end(r);
    r = make("round_robin", 1);
    d = choose(r, NULL, START_MS);
    done(r, d, START_MS + 100);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS + 9000, &d), ERR_LIMIT);
    assert_int_equal(place(r, NODE_COMPANY_ALONE, -1, false, START_MS + 10000, &d), ERR_OK);
    done(r, d, START_MS + 10000);
    end(r);
}

static void the_quietest_has_the_fewest_requests(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    struct node_request request = request_of(NULL);
    struct node_decision d[5];
    for (unsigned i = 0; i < 5; i++)
        d[i] = choose(r, NULL, START_MS);
    int quietest = node_router_quietest(r, &request, NULL, START_MS);
    unsigned there = 0;
    for (unsigned i = 0; i < 5; i++)
        there += (int)d[i].replica == quietest;
    assert_int_equal(there, 1);
    for (unsigned i = 0; i < 5; i++)
        done(r, d[i], START_MS);
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_becomes_poison_with_the_second_death),
        cmocka_unit_test(an_answer_clears_a_suspect),
        cmocka_unit_test(a_suspect_gets_an_idle_replica),
        cmocka_unit_test(suspects_are_kept_on_separate_replicas),
        cmocka_unit_test(the_last_replica_is_not_risked_while_busy),
        cmocka_unit_test(the_quietest_has_the_fewest_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
