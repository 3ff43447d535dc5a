#include "node/replica/model.h"

#include <stdio.h>

#include "base/err.h"
#include "tests/lib/test.h"

static struct node_models *make(void)
{
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    struct node_models *m;
    assert_int_equal(node_models_create(&m, &secret, 4, 256), ERR_OK);
    return m;
}

static bool serves(const struct node_models *m, const char *name, unsigned replica)
{
    struct node_replica_set set;
    node_models_serving(m, slice_of_cstr(name), &set);
    return node_replica_set_has(&set, replica);
}

static void a_replica_without_a_list_may_serve_any_model(void **state)
{
    (void)state;
    struct node_models *m = make();
    assert_true(serves(m, "any", 0));
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    assert_true(serves(m, "a", 0) && serves(m, "b", 0) && !serves(m, "any", 0));
    assert_true(serves(m, "", 0));
    assert_true(serves(m, "any", 1));
    assert_true(node_models_known(m, SLICE("a")) && !node_models_known(m, SLICE("any")));
    node_models_check(m);
    node_models_destroy(m);
}

static void a_new_list_replaces_the_old_one(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice first[] = {SLICE("a"), SLICE("b")}, second[] = {SLICE("b"), SLICE("c")};
    assert_int_equal(node_models_set(m, 70, first, 2), ERR_OK);
    assert_int_equal(node_models_set(m, 3, first, 1), ERR_OK);
    assert_int_equal(node_models_set(m, 70, second, 2), ERR_OK);
    assert_true(!serves(m, "a", 70) && serves(m, "b", 70) && serves(m, "c", 70));
    assert_true(serves(m, "a", 3));
    assert_int_equal(node_models_set(m, 70, NULL, 0), ERR_OK);
    assert_true(!serves(m, "b", 70));
    assert_false(node_models_known(m, SLICE("c")));
    node_models_check(m);
    node_models_destroy(m);
}

static void unserved_rows_are_evicted(void **state)
{
    (void)state;
    struct node_models *m = make();
    char names[NODE_MODELS_MAX + 1][16];
    struct slice ids[NODE_MODELS_MAX + 1];
    for (unsigned i = 0; i <= NODE_MODELS_MAX; i++) {
        int len = snprintf(names[i], sizeof names[i], "model-%u", i);
        ids[i] = slice_of(names[i], (size_t)len);
    }
    assert_int_equal(node_models_set(m, 0, ids, NODE_MODELS_MAX), ERR_OK);
    assert_int_equal(node_models_set(m, 1, &ids[NODE_MODELS_MAX], 1), ERR_FULL);
    node_models_check(m);
    assert_int_equal(node_models_set(m, 0, ids, 1), ERR_OK);
    assert_int_equal(node_models_set(m, 1, &ids[NODE_MODELS_MAX], 1), ERR_OK);
    assert_true(serves(m, names[NODE_MODELS_MAX], 1) && serves(m, names[0], 0));
    node_models_check(m);
    node_models_destroy(m);
}

static void invalid_names_are_skipped(void **state)
{
    (void)state;
    struct node_models *m = make();
    char text[NODE_MODEL_NAME_MAX + 1];
    memset(text, 'x', sizeof text);
    struct slice ids[] = {slice_of(text, sizeof text), SLICE(""), slice_of(text, sizeof text - 1)};
    assert_int_equal(node_models_set(m, 0, ids, 3), ERR_OK);
    struct node_replica_set set;
    node_models_serving(m, ids[0], &set);
    assert_false(node_replica_set_has(&set, 0));
    node_models_serving(m, ids[2], &set);
    assert_true(node_replica_set_has(&set, 0));
    node_models_check(m);
    node_models_destroy(m);
}

static void learned_values_belong_to_the_model(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    struct node_model *a = node_models_row(m, ids[0]);
    node_ratio_add(&a->bytes_per_token, 30000, 10000);
    assert_true(node_ratio_value(&a->bytes_per_token) < 4);
    assert_true(node_ratio_value(&node_models_row(m, ids[1])->bytes_per_token) == 4);
    assert_ptr_equal(node_models_row_at(m, node_models_row_number(m, a)), a);
    struct node_model *common = node_models_row(m, SLICE("nobody lists this"));
    assert_ptr_equal(common, node_models_row(m, SLICE("")));
    node_models_destroy(m);
}

/* SGLang lists only the base and takes `base:adapter` in requests. */
static void the_base_model_precedes_the_first_colon(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("qwen"), SLICE("llama:8b")};
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    assert_slice_equal(node_models_base(m, SLICE("qwen:poems")), "qwen");
    assert_slice_equal(node_models_base(m, SLICE("qwen:poems:2")), "qwen");
    assert_slice_equal(node_models_base(m, SLICE("qwen")), "");
    assert_slice_equal(node_models_base(m, SLICE("llama:8b")), "");
    assert_slice_equal(node_models_base(m, SLICE("llama:poems")), "");
    assert_slice_equal(node_models_base(m, SLICE(":poems")), "");
    assert_slice_equal(node_models_base(m, SLICE("")), "");
    assert_ptr_equal(node_models_row(m, SLICE("qwen:poems")), node_models_row(m, ids[0]));
    assert_ptr_equal(node_models_row(m, SLICE("who:poems")), node_models_row(m, SLICE("who")));
    node_models_destroy(m);
}

static void the_range_covers_served_models(void **state)
{
    (void)state;
    struct node_models *m = make();
    assert_true(node_models_range(m).bytes_per_token_min == 4);
    assert_true(node_models_range(m).output_tokens_max == 256);
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    node_ratio_add(&node_models_row(m, ids[0])->bytes_per_token, 2e6, 1e6);
    struct node_models_range range = node_models_range(m);
    assert_true(range.bytes_per_token_min < 2.1 && range.bytes_per_token_max == 4);
    assert_int_equal(node_models_set(m, 0, &ids[1], 1), ERR_OK);
    assert_true(node_models_range(m).bytes_per_token_min == 4);
    node_models_destroy(m);
}

static bool denied(const struct node_models *m, const char *name, unsigned replica, uint64_t now_ms)
{
    return node_models_denied(m, replica, slice_of_cstr(name), now_ms);
}

/* Engines with a required API key do not list models to a router without a key. */
static void models_are_learned_from_clients_requests(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice listed = SLICE("listed");
    assert_int_equal(node_models_set(m, 1, &listed, 1), ERR_OK);
    node_models_learn(m, 0, SLICE("a"), false);
    node_models_learn(m, 1, SLICE("a"), false); /* replica 1 has listed: the list counts */
    assert_true(node_models_known(m, SLICE("a")));
    assert_true(serves(m, "a", 0) && serves(m, "b", 0) && !serves(m, "a", 1));
    node_models_deny(m, 0, SLICE("b"), 1000);
    assert_true(denied(m, "b", 0, 1000) && !denied(m, "a", 0, 1000) && !denied(m, "b", 2, 1000));
    assert_true(denied(m, "b", 0, 1000 + NODE_MODELS_DENIED_MS - 1));
    assert_false(denied(m, "b", 0, 1000 + NODE_MODELS_DENIED_MS));
    node_models_deny(m, 0, SLICE("a"), 2000);
    assert_false(node_models_known(m, SLICE("a")));
    node_models_learn(m, 0, SLICE("a"), false); /* loaded after all */
    assert_false(denied(m, "a", 0, 2000));
    node_models_check(m);
    node_models_destroy(m);
}

/* A list shows the past. The 404 counts until the replica lists the model again on a later
 * request. */
static void a_listed_model_may_be_denied(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("base"), SLICE("adapter")};
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(node_models_set(m, k, ids, 2), ERR_OK);
    node_models_deny(m, 0, ids[1], 1000);
    assert_true(denied(m, "adapter", 0, 1000) && !denied(m, "adapter", 1, 1000));
    assert_true(node_models_denied(m, 0, ids[1], 1000) && !node_models_denied(m, 0, ids[0], 1000));
    assert_false(denied(m, "base", 0, 1000));
    node_models_listed_anew(m, 0, 999); /* requested before the 404 */
    node_models_listed_anew(m, 1, 1001);
    assert_true(denied(m, "adapter", 0, 1001));
    node_models_listed_anew(m, 0, 1000);
    assert_false(denied(m, "adapter", 0, 1001));
    node_models_check(m);
    node_models_destroy(m);
}

/* Otherwise each list would send another request there. */
static void a_list_contradicted_by_denials_is_distrusted(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice id = SLICE("lost");
    assert_int_equal(node_models_set(m, 0, &id, 1), ERR_OK);
    node_models_deny(m, 0, id, 1000);
    node_models_deny(m, 0, id, 1001); /* under way at the same time */
    node_models_listed_anew(m, 0, 1010);
    assert_false(denied(m, "lost", 0, 1010));
    node_models_deny(m, 0, id, 2000);
    node_models_listed_anew(m, 0, 3000);
    assert_true(denied(m, "lost", 0, 3000));
    assert_true(denied(m, "lost", 0, 2000 + NODE_MODELS_DENIED_MS - 1));
    assert_false(denied(m, "lost", 0, 2000 + NODE_MODELS_DENIED_MS));
    /* Long after, a denial counts as the first again. */
    uint64_t later = 2000 + 2 * NODE_MODELS_DENIED_MS;
    node_models_deny(m, 0, id, later);
    node_models_listed_anew(m, 0, later);
    assert_false(denied(m, "lost", 0, later));
    node_models_destroy(m);
}

/* Reports to operators, and their end. */
static void repeated_denials_of_a_listed_model_are_reported(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("base"), SLICE("lost"), SLICE("gone")};
    const uint64_t minute = NODE_MODELS_DENIED_MS;
    assert_int_equal(node_models_set(m, 0, ids, 3), ERR_OK);
    assert_false(node_models_denied_any(m));
    assert_false(node_models_deny(m, 0, ids[1], 1000)); /* the list may be old */
    assert_false(node_models_deny(m, 0, ids[1], 1001));
    node_models_listed_anew(m, 0, 1010);
    node_models_unlisted_let_go(m, 0);
    assert_int_equal(node_models_denials(m, 0).held, 0);
    uint64_t later = 1010 + 5 * minute; /* however few requests come */
    assert_true(node_models_deny(m, 0, ids[1], later));
    assert_int_equal(node_models_denials(m, 0).until_ms, later + minute);
    node_models_listed_anew(m, 0, later + 1);
    assert_false(node_models_deny(m, 0, ids[1], later + 2)); /* reported once */
    node_models_unlisted_let_go(m, 0);
    assert_int_equal(node_models_denials(m, 0).held, 1);
    assert_int_equal(node_models_denials(m, 1).held, 0);
    /* An earlier success, or a success among denials, proves little. */
    assert_false(node_models_accepted(m, 0, ids[1], later, later + 3 * minute));
    assert_false(node_models_accepted(m, 0, ids[1], later + 3, later + 3));
    assert_false(node_models_accepted(m, 0, ids[0], later + 2 * minute, later + 2 * minute));
    assert_int_equal(node_models_denials(m, 0).held, 1);
    assert_true(node_models_accepted(m, 0, ids[1], later + 2 * minute, later + 2 * minute));
    assert_false(node_models_accepted(m, 0, ids[1], later + 2 * minute, later + 2 * minute));
    assert_int_equal(node_models_denials(m, 0).held, 0);
    /* The model worked since, so a denial counts as the first. */
    later += 3 * minute;
    for (unsigned i = 1; i < 3; i++) {
        assert_false(node_models_deny(m, 0, ids[i], later));
        node_models_listed_anew(m, 0, later);
        assert_true(node_models_deny(m, 0, ids[i], later));
    }
    assert_int_equal(node_models_denials(m, 0).held, 2);
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    node_models_unlisted_let_go(m, 0);
    assert_int_equal(node_models_denials(m, 0).held, 1); /* "gone" is off the list */
    node_models_unlist(m, 0);
    assert_int_equal(node_models_denials(m, 0).held, 0);
    node_models_destroy(m);
}

/* Unlisted names are mistakes of clients. */
static void denials_of_unlisted_models_are_not_reported(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice base = SLICE("base"), typo = SLICE("typo");
    for (unsigned i = 0; i < 3; i++)
        assert_false(node_models_deny(m, 0, base, 1000 + i)); /* lists nothing */
    assert_int_equal(node_models_set(m, 1, &base, 1), ERR_OK);
    node_models_on_demand(m, 1, true);
    for (unsigned i = 0; i < 3; i++)
        assert_false(node_models_deny(m, 1, typo, 1000 + i));
    assert_int_equal(node_models_denials(m, 0).held + node_models_denials(m, 1).held, 0);
    node_models_destroy(m);
}

/* An engine refuses from now on: the last list is the best knowledge. */
static void a_replica_that_stops_listing_may_serve_any_model(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    assert_int_equal(node_models_set(m, 0, ids, 1), ERR_OK);
    assert_true(node_models_listed(m, 0) && !serves(m, "b", 0));
    node_models_unlist(m, 0);
    assert_true(!node_models_listed(m, 0) && serves(m, "a", 0) && serves(m, "b", 0));
    assert_true(node_models_known(m, SLICE("a")));
    assert_int_equal(node_models_set(m, 0, &ids[1], 1), ERR_OK);
    assert_true(!serves(m, "a", 0) && serves(m, "b", 0));
    node_models_check(m);
    node_models_destroy(m);
}

/* Names made up by clients, at an engine accepting any name. */
static bool is_sure(const struct node_models *m, const char *name, unsigned replica)
{
    return node_replica_set_has(node_models_surely(m, slice_of_cstr(name)), replica);
}

/* The earlier list and the answered models were another engine's. */
static void another_engine_loses_the_known_models(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    assert_int_equal(node_models_set(m, 0, ids, 2), ERR_OK);
    node_models_learn(m, 1, SLICE("a"), false);
    node_models_doubt(m, 0, SLICE("a")); /* the list has the name */
    assert_true(is_sure(m, "a", 0) && is_sure(m, "a", 1));
    node_models_doubt(m, 1, SLICE("a"));
    node_models_doubt(m, 1, SLICE("never heard"));
    assert_true(is_sure(m, "a", 0) && !is_sure(m, "a", 1) && serves(m, "a", 1));
    node_models_learn(m, 1, SLICE("a"), false);
    node_models_unknow(m, 0);
    assert_true(!is_sure(m, "a", 0) && !is_sure(m, "b", 0) && is_sure(m, "a", 1));
    assert_true(!node_models_listed(m, 0) && serves(m, "a", 0) && serves(m, "any", 0));
    node_models_check(m);
    node_models_destroy(m);
}

static void models_learned_from_clients_are_bounded(void **state)
{
    (void)state;
    struct node_models *m = make();
    struct slice listed = SLICE("listed"), late[] = {SLICE("late"), SLICE("later")};
    assert_int_equal(node_models_set(m, 1, &listed, 1), ERR_OK);
    char name[32];
    for (unsigned i = 0; i < 3 * NODE_MODELS_MAX; i++) {
        int len = snprintf(name, sizeof name, "made-up-%u", i);
        node_models_learn(m, 0, slice_of(name, (size_t)len), false);
    }
    node_models_check(m);
    assert_true(node_models_known(m, listed) && serves(m, "listed", 1));
    assert_true(node_models_known(m, slice_of_cstr(name)));
    assert_false(node_models_known(m, SLICE("made-up-0")));
    assert_int_equal(node_models_set(m, 2, late, 2), ERR_OK); /* lists have priority */
    assert_true(node_models_known(m, late[0]) && node_models_known(m, late[1]));
    for (unsigned i = 0; i < 3 * NODE_MODELS_DENIALS; i++) {
        int len = snprintf(name, sizeof name, "bogus-%u", i);
        node_models_deny(m, 0, slice_of(name, (size_t)len), i);
    }
    assert_true(denied(m, name, 0, 3 * NODE_MODELS_DENIALS));
    node_models_check(m);
    node_models_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_without_a_list_may_serve_any_model),
        cmocka_unit_test(a_listed_model_may_be_denied),
        cmocka_unit_test(a_list_contradicted_by_denials_is_distrusted),
        cmocka_unit_test(repeated_denials_of_a_listed_model_are_reported),
        cmocka_unit_test(denials_of_unlisted_models_are_not_reported),
        cmocka_unit_test(a_new_list_replaces_the_old_one),
        cmocka_unit_test(unserved_rows_are_evicted),
        cmocka_unit_test(invalid_names_are_skipped),
        cmocka_unit_test(learned_values_belong_to_the_model),
        cmocka_unit_test(the_base_model_precedes_the_first_colon),
        cmocka_unit_test(the_range_covers_served_models),
        cmocka_unit_test(models_are_learned_from_clients_requests),
        cmocka_unit_test(a_replica_that_stops_listing_may_serve_any_model),
        cmocka_unit_test(another_engine_loses_the_known_models),
        cmocka_unit_test(models_learned_from_clients_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
