/* The operators' view of a replica that is not chosen: the word for each cause. Whenever the
 * replica is avoided, there is a word. */
#include "node/replica/standing.h"

#include <string.h>

#include "base/err.h"
#include "tests/lib/test.h"

enum { NOW = 100000 };

static struct node_replica make(void)
{
    struct node_replica_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    struct node_replica k;
    node_replica_init(&k, SLICE("host:1"), NODE_ENGINE_VLLM, 1, &config);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 1000);
    return k;
}

static void is(const struct node_replica *k, uint64_t now_ms, const char *word, bool avoided,
               uint64_t left_ms)
{
    struct node_standing s = node_replica_standing(k, now_ms);
    assert_string_equal(node_standing_word(s.why), word);
    assert_int_equal(s.avoided, avoided);
    assert_int_equal(s.until_ms > now_ms ? s.until_ms - now_ms : 0, left_ms);
    char room[NODE_STANDING_TEXT_BYTES];
    assert_int_equal(node_standing_text(&s, room)[0] != '\0', word[0] != '\0');
    if (s.why < NODE_STANDING_LEAVING && s.why != NODE_STANDING_WELL)
        assert_false(node_replica_usable(k, NODE_HEALTH_UP));
    else if (k->kept == 0)
        assert_int_equal(s.avoided, node_replica_avoided(k, now_ms));
}

static void an_unusable_replica_has_a_reason(void **state)
{
    (void)state;
    struct node_replica k = make();
    is(&k, NOW, "", false, 0);
    k.asleep = true;
    is(&k, NOW, "asleep", false, 0);
    k.draining = true;
    is(&k, NOW, "drained", false, 0);
    k.vanishing = true;
    is(&k, NOW, "vanishes", false, 0);
    for (int i = 0; i < NODE_ANSWER_FAILURES_MAX; i++)
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, NOW);
    is(&k, NOW, "requests", false, 0);
    for (int i = 0; i < NODE_PROBE_FAILURES_MAX; i++)
        (void)node_replica_probed(&k, (struct node_check){0}, NOW);
    is(&k, NOW, "checks", false, 0);
    (void)node_replica_probed(&k, (struct node_check){.refused = true}, NOW);
    is(&k, NOW, "refuses", false, 0);
    assert_false(node_replica_standing(&k, NOW).drained); /* the source drops it */
    k.vanishing = false;
    struct node_standing both = node_replica_standing(&k, NOW);
    char room[NODE_STANDING_TEXT_BYTES];
    assert_string_equal(node_standing_text(&both, room),
                        "down: its port refuses connections; drained by an operator, too");
    k.vanishing = true;
    (void)node_replica_probed(&k, (struct node_check){0}, NOW); /* back, but the TLS does not fit */
    k.trouble.check.tls_fails = true;
    is(&k, NOW, "tls", false, 0);
    (void)node_replica_probed(&k, (struct node_check){0}, NOW);
    is(&k, NOW, "checks", false, 0);
    node_replica_found_router(&k, SLICE("r2"));
    is(&k, NOW, "router", false, 0);
}

/* The text said "No health check has answered", and then "its health checks fail", although no
 * check had been sent. */
static void an_unresolved_name_has_a_reason(void **state)
{
    (void)state;
    struct node_replica k = make();
    k.health = NODE_HEALTH_UNKNOWN;
    (void)node_replica_probed(&k, (struct node_check){0}, NOW);
    k.trouble.check.unresolved = ERR_TIMEOUT; /* health still unknown */
    is(&k, NOW, "dns_silent", false, 0);
    for (int i = 0; i < NODE_PROBE_FAILURES_MAX; i++)
        (void)node_replica_probed(&k, (struct node_check){0}, NOW);
    k.trouble.check.unresolved = ERR_NOT_FOUND;
    is(&k, NOW, "no_address", false, 0);
    k.trouble.check.unresolved = ERR_UNREACHABLE;
    is(&k, NOW, "dns_fails", false, 0);
    (void)node_replica_probed(&k, (struct node_check){0}, NOW); /* now the name has an address */
    is(&k, NOW, "checks", false, 0);
}

static void an_avoided_replica_has_a_reason_and_an_end(void **state)
{
    (void)state;
    struct node_replica k = make();
    for (int i = 0; i < NODE_ERROR_ANSWERS_MAX; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, NOW);
    is(&k, NOW + 100, "errors", true, 900);
    is(&k, NOW + 1000, "trial", false, 0); /* a request may try: well only after success */
    k.load.requests = 1;
    is(&k, NOW + 1000, "trial", true, 0);
    k = make();
    for (int i = 0; i < NODE_ANSWER_FAILURES_MAX; i++)
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, NOW);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, NOW + 200);
    is(&k, NOW + 200, "broke", true, 800);
    k = make();
    node_replica_answered(&k, NODE_OUTCOME_ENGINE_BUSY, NOW);
    is(&k, NOW + 250, "full", true, 750);
    k = make();
    k.breaker.heard = NODE_BREAKER_OPEN;
    is(&k, NOW, "reported", true, 0);
    k = make();
    k.kept = 1;
    is(&k, NOW, "kept", true, 0);
}

static void a_stalled_replica_has_a_reason(void **state)
{
    (void)state;
    struct node_replica k = make();
    k.signs.quiet = true;
    is(&k, NOW, "quiet", true, 0);
    k.signs.stall = NODE_STALL_SILENT;
    is(&k, NOW, "stalled", true, 0);
    k.signs.stalls.until_ms = NOW + 5000;
    is(&k, NOW, "stalled", true, 5000);
    k.signs.leaving = true;
    is(&k, NOW, "leaving", true, 0);
}

static void slow_start_is_shown_before_it_limits_requests(void **state)
{
    (void)state;
    struct node_replica k = make();
    for (int i = 0; i < NODE_PROBE_FAILURES_MAX; i++)
        (void)node_replica_probed(&k, (struct node_check){0}, NOW);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, NOW);
    is(&k, NOW + 500, "slow_start", false, NODE_WARM_MS - 500);
    k.load.requests = NODE_WARM_REQUESTS;
    is(&k, NOW + 500, "slow_start", true, NODE_WARM_MS - 500);
    is(&k, NOW + NODE_WARM_MS, "", false, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unusable_replica_has_a_reason),
        cmocka_unit_test(an_unresolved_name_has_a_reason),
        cmocka_unit_test(an_avoided_replica_has_a_reason_and_an_end),
        cmocka_unit_test(a_stalled_replica_has_a_reason),
        cmocka_unit_test(slow_start_is_shown_before_it_limits_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
