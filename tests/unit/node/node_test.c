#include "node/node.h"

#include "base/err.h"
#include "base/prng.h"
#include "tests/lib/test.h"

enum { NOW_US = 5000000 };

static void on_random(void *context, void *out, size_t len)
{
    uint8_t *at = out;
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)prng_next(context);
}

static int create(struct node **out, const struct node_config *config, struct prng *prng)
{
    struct node_replication_io io = {.context = prng, .random = on_random};
    return node_create(out, config, &io, NOW_US);
}

static void options_reach_the_parts(void **state)
{
    (void)state;
    struct node_options o;
    assert_int_equal(node_options_init(&o), ERR_OK);
    o.near_tie = 0.125;
    o.gossip_flush_ms = 7;
    o.gossip_ring_bytes = 12345;
    struct node_config config;
    node_config_of(&config, &o);
    assert_string_equal(config.router.policy, "cache_aware");
    assert_true(config.router.near_tie == 0.125);
    assert_int_equal(config.replication.gossip.flush_us, 7000);
    assert_int_equal(config.replication.gossip.ring_bytes, 12345);
    assert_false(config.replication.has_seeds);
    node_options_free(&o);
}

static void invalid_settings_are_refused_without_leaks(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 1);
    struct node_config good, bad;
    struct node *n = NULL;
    struct gossip_keyring keyring;
    gossip_keyring_insecure(&keyring);
    assert_int_equal(node_config_default(&good), ERR_OK);
    bad = good;
    bad.router.policy = "nonsense";
    assert_int_equal(create(&n, &bad, &prng), ERR_NOT_FOUND);
    bad = good;
    bad.state.index_bytes = 1000;
    assert_int_equal(create(&n, &bad, &prng), ERR_LIMIT);
    bad = good;
    bad.keyring = &keyring;
    bad.replication.gossip.name = "";
    assert_int_equal(create(&n, &bad, &prng), ERR_RANGE);
    assert_null(n);
}

static const struct hash_secret *secret_of(const struct node *n)
{
    return &node_state_config_of(n->state)->secret;
}

static void the_hash_secret_is_own_or_from_the_keyring(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 1);
    struct node_config config;
    struct gossip_keyring keyring;
    struct hash_secret shared;
    gossip_keyring_insecure(&keyring);
    gossip_keyring_hash_secret(&keyring, &shared);
    assert_int_equal(node_config_default(&config), ERR_OK);
    config.state.wall_ms = 1700000000000;
    struct node *alone[2], *several[2];
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(create(&alone[i], &config, &prng), ERR_OK);
        assert_null(alone[i]->replication);
        node_check(alone[i]);
    }
    assert_memory_not_equal(secret_of(alone[0]), secret_of(alone[1]), sizeof shared);
    config.keyring = &keyring;
    for (unsigned i = 0; i < 2; i++) {
        config.replication.gossip.name = i == 0 ? "a" : "b";
        assert_int_equal(create(&several[i], &config, &prng), ERR_OK);
        assert_non_null(several[i]->replication);
        assert_memory_equal(secret_of(several[i]), &shared, sizeof shared);
        node_check(several[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        node_destroy(alone[i]);
        node_destroy(several[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_parts),
        cmocka_unit_test(invalid_settings_are_refused_without_leaks),
        cmocka_unit_test(the_hash_secret_is_own_or_from_the_keyring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
