/* Caches in the memory of the host or on disk: blocks evicted from the engine's memory are brought
 * back, for less time than computing takes. */
#include "node/route/discovered.h"
#include "tests/lib/router_help.h"

enum { NEAR = 100000, RATE = 10000, PROMPT = 20000, PROMPTS = 12 };

/* An engine that reports its own memory; `label` is the label in the settings. */
static struct node_router *tiered(const char *label)
{
    struct node_router *r = make("cache_aware", 1);
    struct node_labels labels;
    assert_null(node_labels_parse(slice_of_cstr(label), &labels));
    struct discover_host host = node_router_discover_host(r);
    assert_int_equal(host.use(host.context, SLICE("host-0:8000"), &labels), ERR_OK);
    struct node_scrape s = node_scrape_unknown;
    s.cache_tokens = NEAR;
    s.running = 0;
    assert_false(node_router_scraped(r, 0, &s, START_MS));
    return r;
}

static uint64_t fill(struct node_router *r)
{
    uint64_t now = START_MS;
    for (unsigned i = 0; i < PROMPTS; i++, now += 20000)
        done(r, choose(r, prompt(100 + i, PROMPT), now), now + 2000);
    return now;
}

static json_t *asked(struct node_router *r, unsigned number, uint64_t now)
{
    struct node_request request = request_of(prompt(100 + number, PROMPT));
    return explain(r, &request, now);
}

static void a_tiers_blocks_are_brought_back(void **state)
{
    (void)state;
    struct node_router *r = tiered("cache-tokens=1000000");
    uint64_t now = fill(r);
    json_t *old = asked(r, 0, now), *new = asked(r, PROMPTS - 1, now);
    double cached = explained(old, 0, "cached_tokens");
    assert_true(cached > 19000);
    assert_near(explained(old, 0, "tier_tokens"), cached, 0.01);
    assert_near(explained(old, 0, "uncached_s"), (PROMPT - cached + cached * 0.1) / RATE, 1e-3);
    assert_near(explained(new, 0, "tier_tokens"), 0, 0);
    assert_near(explained(new, 0, "uncached_s"), (PROMPT - cached) / RATE, 1e-3);
    json_decref(old);
    json_decref(new);
    alone_destroy(r);
}

/* Without a label only the engine's own figure exists. */
static void without_tiers_evicted_blocks_are_gone(void **state)
{
    (void)state;
    struct node_router *r = tiered("weight=1");
    uint64_t now = fill(r);
    json_t *old = asked(r, 0, now);
    assert_near(explained(old, 0, "cached_tokens"), 0, 0);
    assert_near(explained(old, 0, "tier_tokens"), 0, 0);
    json_decref(old);
    alone_destroy(r);
}

/* A slow disk: half of the time for computing. The router learns this rate, and keeps the rate of
 * prefill unspoiled. */
static void the_time_to_bring_blocks_back_is_learned(void **state)
{
    (void)state;
    struct node_router *r = tiered("cache-tokens=1000000");
    uint64_t now = fill(r);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < PROMPTS; i++, now += 20000) {
            struct node_decision d = choose(r, prompt(100 + i, PROMPT), now);
            struct node_usage usage = {
                .prompt_tokens = PROMPT, .cached_tokens = PROMPT - 64, .completion_tokens = 1};
            done_with(r, d, &usage, now + 1000);
        }
    }
    json_t *old = asked(r, 0, now);
    double cached = explained(old, 0, "cached_tokens");
    assert_near(explained(old, 0, "tier_tokens"), cached, 0.01);
    assert_near(explained(old, 0, "uncached_s"), 1, 0.15);
    json_decref(old);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiers_blocks_are_brought_back),
        cmocka_unit_test(without_tiers_evicted_blocks_are_gone),
        cmocka_unit_test(the_time_to_bring_blocks_back_is_learned),
    };
    return cmocka_run_group_tests_name("route/tiers", tests, NULL, NULL);
}
