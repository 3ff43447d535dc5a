/* The penalty for a request if more would run than ever ran at once (node/replica/room.h). */
#include "tests/lib/router_help.h"

enum { AT_ONCE = 9 };

static double queue_s(struct node_router *r, uint64_t now_ms)
{
    struct node_request request = request_of(prompt(99, 2000));
    json_t *root = explain(r, &request, now_ms);
    double seconds = explained(root, 0, "queue_s");
    json_decref(root);
    return seconds;
}

/* Starts `count` running streams. */
static void begin(struct node_router *r, struct node_decision *running, unsigned count,
                  uint64_t now_ms)
{
    for (unsigned i = 0; i < count; i++) {
        running[i] = choose(r, prompt(1 + i, 2000), now_ms + i * 1000);
        node_router_first_byte(r, running[i].booking, now_ms + i * 1000 + 100);
    }
}

static void end(struct node_router *r, const struct node_decision *running, unsigned count,
                uint64_t now_ms)
{
    for (unsigned i = 0; i < count; i++)
        node_router_finish(r, running[i].booking, NODE_OUTCOME_OK, &no_usage, now_ms);
    node_router_check(r);
}

static void load_beyond_any_seen_costs(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_decision running[AT_ONCE + 1];
    uint64_t now = START_MS;
    begin(r, running, AT_ONCE, now);
    now += 10000;
    assert_near(queue_s(r, now), 0, 1e-9); /* no answer has ended: load rises, as at first */
    end(r, running, AT_ONCE, now);

    now += 1000;
    begin(r, running, AT_ONCE - 1, now);
    now += 10000;
    assert_near(queue_s(r, now), 0, 1e-9); /* as many as ran before */
    begin(r, running + AT_ONCE - 1, 1, now);
    now += 1000;
    double beyond_s = queue_s(r, now);
    assert_true(beyond_s > 0.01); /* 1 more than ran before */
    begin(r, running + AT_ONCE, 1, now);
    now += 1000;
    double next_s = queue_s(r, now);
    assert_true(next_s > 0.5 * beyond_s && next_s < 1.5 * beyond_s); /* and so does the next */
    end(r, running, AT_ONCE + 1, now);
    assert_near(queue_s(r, now), 0, 1e-9);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_beyond_any_seen_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
