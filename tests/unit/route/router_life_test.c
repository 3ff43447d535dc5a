/* Random lives under every policy, and the operators' view of a router. */
#include "node/route/router_internal.h"

#include "base/prng.h"
#include "node/replica/model.h"
#include "tests/lib/router_help.h"

/* --- invariants under random lives ---------------------------------------------------------- */

enum { REPLICAS = 7, OPEN_MAX = 50 };

/* The test's own knowledge of possible choices. */
struct shadow {
    bool up[REPLICAS], draining[REPLICAS];
};

static bool may_serve(const struct shadow *s, unsigned k, const struct node_replica_set *excluded,
                      bool model_b)
{
    bool serves = !model_b || k % 2 == 0; /* even replicas serve "b" too */
    return serves && !s->draining[k] && !(excluded->words[0] >> k & 1) && s->up[k];
}

static void check_choice(const struct shadow *s, int err, unsigned replica,
                         const struct node_replica_set *excluded, bool model_b)
{
    bool any = false;
    for (unsigned k = 0; k < REPLICAS; k++)
        any = any || may_serve(s, k, excluded, model_b);
    assert_int_equal(err, any ? ERR_OK : ERR_UNREACHABLE);
    assert_true(!any || may_serve(s, replica, excluded, model_b));
}

/* A router's life: open requests, and the test's knowledge. */
struct life {
    struct node_router *r;
    const char *plain;
    struct shadow s;
    struct prng prng;
    struct {
        struct node_booking b;
        unsigned replica;
    } open[OPEN_MAX];
    unsigned count;
    uint64_t now;
};

static void life_choose(struct life *l)
{
    struct prng *prng = &l->prng;
    struct node_replica_set excluded = {{prng_below(prng, 1 << REPLICAS)}};
    bool model_b = prng_below(prng, 2) != 0;
    struct node_request request = request_of(
        prng_below(prng, 4) ? prompt(prng_below(prng, 20), 500 << prng_below(prng, 6)) : NULL);
    request.model = model_b ? SLICE("b") : SLICE("a");
    request.session = prng_below(prng, 2) ? SLICE("me") : SLICE("");
    request.conversation = l->plain ? prng_below(prng, 8) : 0;
    request.answer_whole = prng_below(prng, 3) == 0;
    struct node_decision d = {0};
    int err = prng_below(prng, 5)
                  ? node_router_place(l->r, &request, &excluded, l->now, &d)
                  : node_router_place_by_load(l->r, &request, &excluded, l->now, &d);
    check_choice(&l->s, err, d.replica, &excluded, model_b);
    if (err == ERR_OK) {
        l->open[l->count].b = d.booking;
        l->open[l->count++].replica = d.replica;
    }
}

static void life_finish(struct life *l)
{
    struct prng *prng = &l->prng;
    unsigned at = (unsigned)prng_below(prng, l->count);
    enum node_outcome outcome = (enum node_outcome)prng_below(prng, 6);
    if (outcome == NODE_OUTCOME_ENGINE_BUSY)
        outcome = NODE_OUTCOME_OK; /* tested elsewhere */
    struct node_usage usage = {(int64_t)prng_below(prng, 30000),
                               (int64_t)prng_below(prng, 30000),
                               (int64_t)prng_below(prng, 1000),
                               {0}};
    node_router_finish(l->r, l->open[at].b, outcome, prng_below(prng, 2) ? &usage : NULL, l->now);
    unsigned replica = l->open[at].replica;
    bool down = node_router_replica_health(l->r, replica) == NODE_HEALTH_DOWN;
    if (outcome == NODE_OUTCOME_CONNECT_FAILED || outcome == NODE_OUTCOME_BROKEN)
        l->s.up[replica] = l->s.up[replica] && !down; /* replica_test.c tests the moment */
    assert_true(down == !l->s.up[replica]);
    l->open[at] = l->open[--l->count];
}

static void life_probed(struct life *l, unsigned k)
{
    bool ok = prng_below(&l->prng, 3) != 0;
    node_router_probed(l->r, k, (struct node_check){.ok = ok, .refused = !ok}, l->now);
    bool down = node_router_replica_health(l->r, k) == NODE_HEALTH_DOWN;
    assert_true(ok ? !(down && l->s.up[k]) : down);
    l->s.up[k] = !down;
}

static void life_renew(struct life *l)
{
    struct node_router_config config = l->r->config;
    config.plain_policy = l->plain;
    config.shadow = prng_below(&l->prng, 3) != 0;
    config.control_share = prng_below(&l->prng, 2) * 0.5;
    node_router_renew(l->r, &config);
}

static void life_step(struct life *l, bool over)
{
    struct prng *prng = &l->prng;
    l->now += prng_below(prng, 400);
    if (l->plain && prng_below(prng, 100) == 0)
        life_renew(l);
    if (l->plain && prng_below(prng, 50) == 0) {
        struct node_request request = request_of(prompt(prng_below(prng, 20), 3000));
        request.model = SLICE("a");
        request.conversation = prng_below(prng, 8);
        json_decref(explain(l->r, &request, l->now));
    }
    unsigned k = (unsigned)prng_below(prng, REPLICAS);
    uint64_t what = prng_below(prng, 10);
    if (what < 4 && l->count < OPEN_MAX && !over) {
        life_choose(l);
    } else if (what < 6 && l->count > 0) {
        node_router_first_byte(l->r, l->open[prng_below(prng, l->count)].b, l->now);
    } else if (what < 8 && l->count > 0) {
        life_finish(l);
    } else if (what == 8) {
        life_probed(l, k);
    } else if (prng_below(prng, 2)) {
        l->s.draining[k] = prng_below(prng, 3) == 0;
        node_router_replica_drain(l->r, k, l->s.draining[k]);
    } else {
        node_router_tick(l->r, l->now);
    }
}

/* `plain`: the plain policy while shadow mode and a control group go on and off; NULL: neither. */
static void random_life(const char *policy, const char *plain, uint64_t seed)
{
    struct life l = {.r = make(policy, REPLICAS), .now = START_MS, .plain = plain};
    prng_seed(&l.prng, seed);
    for (unsigned k = 0; k < REPLICAS; k++) {
        struct slice ids[] = {SLICE("a"), SLICE("b")};
        assert_int_equal(node_router_models(l.r, k, ids, k % 2 == 0 ? 2 : 1), ERR_OK);
        l.s.up[k] = true;
    }
    for (unsigned i = 0; i < 4000 || l.count > 0; i++) {
        life_step(&l, i >= 4000);
        if (i % 97 == 0)
            node_router_check(l.r);
    }
    node_router_check(l.r);
    json_t *root = replicas_json(l.r, l.now);
    for (unsigned k = 0; k < REPLICAS; k++) {
        assert_near(believed(root, k, "load", "requests"), 0, 0);
        assert_near(believed(root, k, "load", "prefill_tokens"), 0, 0);
        assert_near(believed(root, k, "load", "context_tokens"), 0, 0);
    }
    json_decref(root);
    alone_destroy(l.r);
}

static void random_runs_keep_the_invariants(void **state)
{
    (void)state;
    for (const char *const *name = node_policy_names; *name; name++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            random_life(*name, NULL, seed);
}

/* Reloads with a change of mode while requests are under way, and explanations between. */
static void random_runs_in_shadow_mode_keep_the_invariants(void **state)
{
    (void)state;
    for (unsigned i = 0; node_policy_plain_names[i]; i++)
        random_life(i % 2 ? "chunk_aware" : "cache_aware", node_policy_plain_names[i], i + 1);
}

/* --- the operators' view -------------------------------------------------------------------- */

static void explaining_changes_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    struct node_request request = request_of(prompt(1, 3000));
    for (unsigned i = 0; i < 6; i++) {
        json_t *first = explain(r, &request, START_MS), *second = explain(r, &request, START_MS);
        assert_true(json_equal(first, second));
        struct node_decision d = choose(r, NULL, START_MS);
        assert_string_equal(json_string_value(json_object_get(first, "choice")),
                            d.replica == 0   ? "host-0:8000"
                            : d.replica == 1 ? "host-1:8000"
                                             : "host-2:8000");
        json_decref(first);
        json_decref(second);
    }
    struct slice ids[] = {SLICE("a")};
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(node_router_models(r, k, ids, 1), ERR_OK);
    request.model = SLICE("\"b\"");
    json_t *root = explain(r, &request, START_MS);
    assert_string_equal(json_string_value(json_object_get(root, "error")),
                        "no replica serves the model");
    json_decref(root);
    alone_destroy(r);
}

/* Every line is a comment or `name{labels} value`; HELP and TYPE come before each name. */
static void metrics_are_well_formed(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    assert_int_equal(node_router_name(r, SLICE("a\"b\\c\nd"), NODE_ENGINE_AUTO), 2);
    done(r, choose(r, prompt(1, 5000), START_MS), START_MS + 700);
    struct buf text = {0};
    assert_int_equal(write_metrics(r, &text), ERR_OK);
    struct slice rest = buf_slice(&text), name = SLICE("");
    unsigned series = 0;
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        assert_true(line.len > 0);
        if (slice_starts_with(line, SLICE("# HELP "))) {
            line = slice_skip(line, 7);
            name = slice_cut(&line, ' ');
            assert_true(line.len > 0);
            struct slice type = slice_cut(&rest, '\n');
            assert_true(slice_starts_with(type, SLICE("# TYPE ")));
            type = slice_skip(type, 7);
            assert_true(slice_equal(slice_cut(&type, ' '), name));
            assert_true(slice_equal(type, SLICE("gauge")) || slice_equal(type, SLICE("counter")));
            continue;
        }
        assert_true(slice_starts_with(line, name));
        assert_true(line.at[name.len] == '{' || line.at[name.len] == ' ');
        char number[64], *end;
        size_t space = line.len;
        while (line.at[space - 1] != ' ')
            space--;
        assert_true(slice_to_cstr(slice_skip(line, space), number, sizeof number));
        double value = strtod(number, &end);
        assert_true(*end == '\0' && isfinite(value));
        series++;
    }
    assert_true(series > 100);
    assert_int_equal(buf_append_char(&text, '\0'), ERR_OK);
    assert_non_null(
        strstr(text.at, "grapevine_replica_health{replica=\"host-0:8000\",state=\"up\"} 1"));
    assert_non_null(
        strstr(text.at, "grapevine_replica_scrape_age_seconds{replica=\"host-0:8000\"} -1"));
    assert_non_null(strstr(text.at, "grapevine_model_bytes_per_token{bound=\"max\"} 4\n"));
    assert_non_null(strstr(text.at, "grapevine_replica_up{replica=\"a\\\"b\\\\c\\nd\"} 0\n"));
    buf_free(&text);

    struct buf tight;
    buf_init(&tight, 1000);
    assert_int_equal(write_metrics(r, &tight), ERR_LIMIT);
    assert_int_equal(tight.len, 0);
    buf_free(&tight);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs_keep_the_invariants),
        cmocka_unit_test(random_runs_in_shadow_mode_keep_the_invariants),
        cmocka_unit_test(explaining_changes_nothing),
        cmocka_unit_test(metrics_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
