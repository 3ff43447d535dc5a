#include "node/admission/admission.h"

#include "tests/lib/router_help.h"

static struct node_options options;
static struct admission a;
static struct node_replica_set excluded;

static void open_admission(unsigned replicas, uint64_t requests_max, uint64_t queue_max)
{
    const struct hash_secret secret = {0};
    options = (struct node_options){
        .requests_max = requests_max, .queue_max = queue_max, .retry_budget = 0.1};
    admission_init(&a, make("cache_aware", replicas), NULL, &options, &secret);
}

static struct admission_answer ask(struct admission_request *r, uint64_t now_ms)
{
    struct node_request request = request_of(prompt(1, 100));
    const struct admission_question question = {
        .request = &request, .excluded = &excluded, .prompt = true};
    struct admission_answer answer;
    admission_ask(&a, r, &question, now_ms, &answer);
    queue_check(&a.queue);
    return answer;
}

static void end(struct admission_request *r, const struct admission_answer *answer, uint64_t now_ms)
{
    admission_alone(&a, r, answer->decision.server);
    done(a.router, answer->decision, now_ms);
}

static void requests_go_then_wait_then_are_refused(void **state)
{
    (void)state;
    struct admission_request r[4] = {0};
    open_admission(1, 1, 2);
    struct admission_answer first = ask(&r[0], START_MS);
    assert_int_equal(first.verdict, ADMISSION_GO);
    for (unsigned i = 1; i < 3; i++) {
        struct admission_answer next = ask(&r[i], START_MS);
        assert_int_equal(next.verdict, ADMISSION_WAIT);
        assert_int_equal(next.class, QUEUE_ROOM);
        assert_int_equal(next.waited_ms, 0);
    }
    struct admission_answer refused = ask(&r[3], START_MS + 3000);
    assert_int_equal(refused.verdict, ADMISSION_REFUSE);
    assert_int_equal(refused.err, 0);
    assert_int_equal(refused.why, REFUSED_QUEUE_FULL);
    assert_int_equal(refused.retry_after_s, 3); /* the time since a request was last served */
    struct queue_look look = {0};
    assert_null(admission_next(&a, &look));
    end(&r[0], &first, START_MS + 5000);
    assert_ptr_equal(admission_next(&a, &look), &r[1]);
    struct admission_answer second = ask(&r[1], START_MS + 5000);
    assert_int_equal(second.verdict, ADMISSION_GO);
    assert_int_equal(a.queue.lines[QUEUE_ROOM].served, 1);
    admission_leave(&a, &r[2], START_MS + 6000);
    struct admission_answer again = ask(&r[2], START_MS + 7000);
    assert_int_equal(again.verdict, ADMISSION_WAIT);
    assert_int_equal(again.waited_ms, 6000); /* earlier waiting counts */
    admission_leave(&a, &r[2], START_MS + 7000);
    end(&r[1], &second, START_MS + 8000);
    alone_destroy(a.router);
}

/* Each request fills the retry budget once, whether or not the request succeeds. */
static void a_request_fills_the_budget_once(void **state)
{
    (void)state;
    struct admission_request r[2] = {0};
    open_admission(1, 1, 2);
    a.budget.level = 0;
    struct admission_answer first = ask(&r[0], START_MS);
    assert_near(a.budget.level, 0.1, 1e-9);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(&r[1], START_MS).verdict, ADMISSION_WAIT);
    assert_near(a.budget.level, 0.2, 1e-9);
    admission_leave(&a, &r[1], START_MS);
    end(&r[0], &first, START_MS);
    alone_destroy(a.router);
}

/* A tenant's limit is checked first, and only once: a counted request is not checked again. */
static void a_tenant_over_its_limit_is_refused(void **state)
{
    (void)state;
    struct admission_request r[2] = {0};
    struct access *access;
    struct access_key tenant = {.use = access_use_new(SLICE("a")), .limits = {.in_flight = 1}};
    const struct admission_question question = {.tenant = &tenant};
    struct admission_answer answer;
    assert_non_null(tenant.use);
    assert_int_equal(access_create(&access), ERR_OK);
    open_admission(1, 1, 2);
    a.access = access;
    for (unsigned i = 0; i < 2; i++) {
        admission_ask(&a, &r[0], &question, START_MS, &answer);
        assert_int_equal(answer.verdict, ADMISSION_GO);
        assert_true(r[0].counted);
    }
    admission_ask(&a, &r[1], &question, START_MS, &answer);
    assert_int_equal(answer.verdict, ADMISSION_REFUSE);
    assert_int_equal(answer.why, REFUSED_KEY_LIMIT);
    assert_int_equal(answer.over, ACCESS_OVER_IN_FLIGHT);
    assert_int_equal(answer.retry_after_s, 1);
    assert_false(r[1].counted);
    access_end(access, &tenant);
    access_destroy(access);
    access_use_drop(tenant.use);
    alone_destroy(a.router);
}

static void a_known_poison_request_is_refused(void **state)
{
    (void)state;
    struct admission_request r = {0};
    open_admission(1, 1, 2);
    const struct admission_question question = {.against = REFUSED_POISON};
    struct admission_answer answer;
    a.budget.level = 0;
    admission_ask(&a, &r, &question, START_MS, &answer);
    assert_int_equal(answer.verdict, ADMISSION_REFUSE);
    assert_int_equal(answer.why, REFUSED_POISON);
    assert_near(a.budget.level, 0, 1e-9);
    alone_destroy(a.router);
}

/* If there is no replica, the error of the choice is returned at once. */
static void without_a_replica_the_error_is_passed_on(void **state)
{
    (void)state;
    struct admission_request r = {0};
    open_admission(0, 1, 2);
    struct admission_answer answer = ask(&r, START_MS);
    assert_int_equal(answer.verdict, ADMISSION_REFUSE);
    assert_int_equal(answer.err, ERR_UNREACHABLE);
    assert_false(queue_waits(&r.waiter));
    alone_destroy(a.router);
}

/* A suspect request waits for a replica without other requests. The replica is reserved; other
 * requests go elsewhere meanwhile. The wait is short. */
static void a_suspect_waits_for_a_replica_to_itself(void **state)
{
    (void)state;
    struct admission_request r[4] = {{0}, {0}, {0}, {.company = NODE_COMPANY_ALONE}};
    struct admission_answer busy[3];
    r[3].came_ms = START_MS;
    open_admission(2, 10, 10);
    busy[0] = ask(&r[0], START_MS);
    excluded.words[0] = UINT64_C(1) << busy[0].decision.replica;
    busy[1] = ask(&r[1], START_MS);
    excluded.words[0] = 0;
    struct admission_answer suspect = ask(&r[3], START_MS);
    assert_int_equal(suspect.verdict, ADMISSION_WAIT);
    assert_int_equal(suspect.class, QUEUE_ALONE);
    assert_true(a.kept > 0);
    busy[2] = ask(&r[2], START_MS);
    assert_int_equal(busy[2].verdict, ADMISSION_GO);
    assert_int_not_equal(busy[2].decision.server, a.kept - 1);
    assert_int_equal(ask(&r[3], START_MS + ADMISSION_ALONE_MS).verdict, ADMISSION_WAIT);
    admission_leave(&a, &r[3], START_MS + ADMISSION_ALONE_MS);
    suspect = ask(&r[3], START_MS + ADMISSION_ALONE_MS);
    assert_int_equal(suspect.verdict, ADMISSION_REFUSE);
    assert_int_equal(suspect.why, REFUSED_SUSPECT);
    assert_non_null(suspect.text);
    assert_true(a.pause_until_ms > START_MS); /* the replica was reserved in vain */
    (void)admission_settle(&a);
    assert_int_equal(a.kept, 0);
    for (unsigned i = 0; i < 3; i++)
        end(&r[i], &busy[i], START_MS + ADMISSION_ALONE_MS);
    alone_destroy(a.router);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_go_then_wait_then_are_refused),
        cmocka_unit_test(a_request_fills_the_budget_once),
        cmocka_unit_test(a_tenant_over_its_limit_is_refused),
        cmocka_unit_test(a_known_poison_request_is_refused),
        cmocka_unit_test(without_a_replica_the_error_is_passed_on),
        cmocka_unit_test(a_suspect_waits_for_a_replica_to_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
