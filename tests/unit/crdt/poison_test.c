/* Records of requests after which engines died: a bounded map with joins by the greater value and a
 * TTL. */
#include "tests/lib/test.h"

#include "base/prng.h"
#include "crdt/poison.h"
#include "tests/lib/fuzz_state.h"
#include "tests/lib/states.h"

enum { NOW = 1000000, SKEW = 135 };

static struct crdt_poison_row row(uint64_t hash, uint32_t until, unsigned level)
{
    return (struct crdt_poison_row){
        .hash = hash, .until = until, .level = (uint8_t)level, .last = hash + level};
}

static bool same(const struct crdt_poison *a, const struct crdt_poison *b)
{
    bool equal = a->count == b->count;
    for (unsigned i = 0; equal && i < a->count; i++)
        equal = a->row[i].hash == b->row[i].hash && a->row[i].until == b->row[i].until &&
                a->row[i].level == b->row[i].level && a->row[i].last == b->row[i].last;
    assert_int_equal(equal, a->digest == b->digest);
    return equal;
}

static void join_all(struct crdt_poison *to, const struct crdt_poison *from)
{
    for (unsigned i = 0; i < from->count; i++)
        DISCARD(crdt_poison_join(to, &from->row[i]));
    crdt_poison_check(to);
}

static void one_death_makes_a_suspect_two_make_poison(void **state)
{
    (void)state;
    struct crdt_poison p;
    crdt_poison_init(&p, NOW, SKEW);
    assert_null(crdt_poison_find(&p, 7));
    assert_int_equal(crdt_poison_set(&p, 7, CRDT_POISON_SUSPECT, 11, CRDT_SUSPECT_TTL_S), 1);
    const struct crdt_poison_row *r = crdt_poison_find(&p, 7);
    assert_int_equal(r->until, NOW + CRDT_SUSPECT_TTL_S);
    assert_int_equal(crdt_poison_set(&p, 7, CRDT_POISON_SURE, 12, CRDT_POISON_TTL_S), 1);
    r = crdt_poison_find(&p, 7);
    assert_int_equal(r->level, CRDT_POISON_SURE);
    assert_int_equal(r->last, 12);
    assert_int_equal(r->before, 11);
    crdt_poison_advance(&p, NOW + CRDT_POISON_TTL_S - 1);
    assert_non_null(crdt_poison_find(&p, 7));
    crdt_poison_advance(&p, NOW + CRDT_POISON_TTL_S);
    assert_null(crdt_poison_find(&p, 7));
    crdt_poison_check(&p);
}

static void forgiveness_lasts_until_another_death(void **state)
{
    (void)state;
    struct crdt_poison here, there;
    crdt_poison_init(&here, NOW, SKEW);
    crdt_poison_init(&there, NOW, SKEW);
    assert_int_equal(crdt_poison_set(&here, 7, CRDT_POISON_SURE, 11, CRDT_POISON_TTL_S), 1);
    join_all(&there, &here);
    assert_int_equal(crdt_poison_set(&there, 7, CRDT_POISON_FORGIVEN, 0, CRDT_POISON_TTL_S), 1);
    struct crdt_poison late = here;
    join_all(&here, &there);
    assert_int_equal(crdt_poison_find(&here, 7)->level, CRDT_POISON_FORGIVEN);
    join_all(&here, &late); /* the old row is joined again */
    assert_int_equal(crdt_poison_find(&here, 7)->level, CRDT_POISON_FORGIVEN);
    assert_int_equal(crdt_poison_set(&here, 7, CRDT_POISON_SUSPECT, 12, CRDT_SUSPECT_TTL_S), 1);
    join_all(&there, &here);
    assert_int_equal(crdt_poison_find(&there, 7)->level, CRDT_POISON_SUSPECT);
    assert_true(same(&here, &there));
}

/* The laws, on random tables with the same few hashes, and with more hashes than fit. */
static void joining_is_a_semilattice(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 5);
    for (unsigned round = 0; round < 300; round++) {
        struct crdt_poison t[3];
        unsigned hashes = round % 2 ? 6 : CRDT_POISON_MAX + 20;
        for (unsigned k = 0; k < 3; k++) {
            crdt_poison_init(&t[k], NOW, SKEW);
            unsigned rows = prng_below(&prng, 2 * hashes);
            for (unsigned i = 0; i < rows; i++) {
                struct crdt_poison_row r =
                    row(prng_below(&prng, hashes), NOW + 1 + prng_below(&prng, 8),
                        prng_below(&prng, 3));
                DISCARD(crdt_poison_join(&t[k], &r));
            }
            crdt_poison_check(&t[k]);
        }
        struct crdt_poison ab = t[0], ba = t[1], abc, bca = t[1], twice;
        join_all(&ab, &t[1]);
        join_all(&ba, &t[0]);
        assert_true(same(&ab, &ba)); /* commutative */
        abc = ab;
        join_all(&abc, &t[2]);
        join_all(&bca, &t[2]);
        join_all(&bca, &t[0]);
        assert_true(same(&abc, &bca)); /* associative */
        twice = abc;
        join_all(&twice, &ab);
        assert_true(same(&abc, &twice)); /* idempotent */
        /* Forgetting before joining equals forgetting afterwards. */
        struct crdt_poison before = t[0], other = t[1];
        crdt_poison_advance(&before, NOW + 4);
        crdt_poison_advance(&other, NOW + 4);
        join_all(&before, &other);
        crdt_poison_advance(&ab, NOW + 4);
        assert_true(same(&before, &ab));
    }
}

static void a_full_map_evicts_suspects_first(void **state)
{
    (void)state;
    struct crdt_poison p;
    crdt_poison_init(&p, NOW, SKEW);
    for (unsigned i = 0; i < CRDT_POISON_MAX - 1; i++)
        assert_int_equal(crdt_poison_set(&p, i, CRDT_POISON_SURE, 1, CRDT_POISON_TTL_S), 1);
    for (unsigned i = 0; i < 1000; i++)
        DISCARD(crdt_poison_set(&p, 10000 + i, CRDT_POISON_SUSPECT, 1, CRDT_SUSPECT_TTL_S));
    crdt_poison_check(&p);
    assert_int_equal(p.count, CRDT_POISON_MAX);
    for (unsigned i = 0; i < CRDT_POISON_MAX - 1; i++)
        assert_int_equal(crdt_poison_find(&p, i)->level, CRDT_POISON_SURE);
    assert_int_equal(crdt_poison_set(&p, 5000, CRDT_POISON_SURE, 1, CRDT_POISON_TTL_S), 1);
    assert_int_equal(p.count, CRDT_POISON_MAX);
    assert_null(crdt_poison_find(&p, 10999));
}

static void expired_or_future_rows_are_refused(void **state)
{
    (void)state;
    struct crdt_poison p;
    crdt_poison_init(&p, NOW, SKEW);
    struct crdt_poison_row r = row(1, NOW, 2);
    assert_int_equal(crdt_poison_join(&p, &r), ERR_STALE);
    r.until = NOW + CRDT_POISON_TTL_S + SKEW;
    assert_int_equal(crdt_poison_join(&p, &r), 1);
    assert_int_equal(crdt_poison_join(&p, &r), 0);
    r.until = UINT32_MAX;
    assert_int_equal(crdt_poison_join(&p, &r), ERR_RANGE);
    assert_int_equal(p.count, 1);
}

/* --- as a class of the state ------------------------------------------------------------------ */

static void poison(struct crdt_state *s, uint64_t hash)
{
    assert_int_equal(crdt_state_poisoned(s, hash, CRDT_POISON_SURE, 1, CRDT_POISON_TTL_S), 1);
}

static unsigned level(const struct crdt_state *s, uint64_t hash)
{
    const struct crdt_poison_row *r = crdt_poison_find(crdt_state_poison(s), hash);
    return r != NULL ? r->level : 99;
}

static void a_delta_carries_poison(void **state)
{
    (void)state;
    struct crdt_state *a = fuzz_state(1), *b = fuzz_state(2);
    fuzz_tell(a);
    assert_false(crdt_state_has_news(a));
    poison(a, 77);
    assert_true(crdt_state_has_news(a));
    uint8_t delta[512];
    size_t len = crdt_state_produce(a, 1, delta, sizeof delta);
    assert_int_equal(len, 2 + CRDT_POISON_ROW_BYTES);
    assert_int_equal(
        crdt_state_apply(b, &(struct crdt_origin){1, 1, 1}, slice_of((char *)delta, len)), 0);
    assert_int_equal(level(b, 77), CRDT_POISON_SURE);
    assert_int_equal(crdt_poison_find(crdt_state_poison(b), 77)->last,
                     crdt_registry_at(crdt_state_registry(a), 1)->key);
    assert_false(crdt_state_has_news(a));
    crdt_state_check(b);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static void anti_entropy_repairs_lost_rows(void **state)
{
    (void)state;
    struct crdt_state *a = fuzz_state(1), *b = fuzz_state(2);
    poison(a, 1);
    poison(a, 2);
    poison(b, 3);
    assert_int_equal(crdt_state_poisoned(b, 2, CRDT_POISON_FORGIVEN, -1, CRDT_POISON_TTL_S + 1), 1);
    fuzz_tell(a); /* all deltas are lost */
    fuzz_tell(b);
    (void)states_reconcile(a, b, true);
    for (unsigned i = 0; i < 2; i++) {
        const struct crdt_state *s = i == 0 ? a : b;
        assert_int_equal(level(s, 1), CRDT_POISON_SURE);
        assert_int_equal(level(s, 2), CRDT_POISON_FORGIVEN);
        assert_int_equal(level(s, 3), CRDT_POISON_SURE);
        crdt_state_check(s);
    }
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static void a_full_table_fits_a_message_and_a_chunk(void **state)
{
    (void)state;
    struct crdt_state *a = fuzz_state(1), *b = fuzz_state(2), *c = fuzz_state(3);
    for (uint64_t i = 0; i < CRDT_POISON_MAX; i++)
        poison(a, hash_mix(i));
    fuzz_tell(a);
    (void)states_reconcile(b, a, true);
    assert_int_equal(crdt_state_poison(b)->count, CRDT_POISON_MAX);
    struct crdt_snapshot cursor;
    crdt_snapshot_begin(&cursor, 0);
    struct buf chunk = {0};
    while (crdt_snapshot_next(a, &cursor, &chunk) == 1) {
        assert_int_equal(crdt_snapshot_apply(c, buf_slice(&chunk)), 0);
        buf_clear(&chunk);
    }
    buf_free(&chunk);
    assert_int_equal(crdt_state_poison(c)->count, CRDT_POISON_MAX);
    assert_true(crdt_state_poison(c)->digest == crdt_state_poison(a)->digest);
    crdt_state_clock(c, (uint64_t)(crdt_state_poison(c)->now_s + CRDT_POISON_TTL_S) * 1000);
    assert_int_equal(crdt_state_poison(c)->count, 0);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
    crdt_state_destroy(c);
}

/* A router from before poison sends summaries without the class: they count as equal. */
static void a_summary_without_poison_is_understood(void **state)
{
    (void)state;
    struct crdt_state *a = fuzz_state(1);
    fuzz_tell(a);
    struct buf summary = {0}, reply = {0};
    assert_int_equal(crdt_state_summary(a, &summary), 0);
    poison(a, 5);
    for (unsigned i = 0; i < 8; i++)
        summary.at[summary.len - 8 + i] = 0x7f; /* another digest */
    struct crdt_reconciled r;
    assert_int_equal(crdt_state_message(a, buf_slice(&summary), true, &reply, &r), 0);
    assert_false(r.equal);
    assert_true(reply.len > 0);
    buf_clear(&reply);
    uint32_t len = (uint32_t)summary.len - 5 - 8;
    summary.len -= 8;
    for (unsigned i = 0; i < 4; i++)
        summary.at[1 + i] = (char)(len >> (8 * i));
    assert_int_equal(crdt_state_message(a, buf_slice(&summary), true, &reply, &r), 0);
    assert_true(r.equal);
    buf_free(&summary);
    buf_free(&reply);
    crdt_state_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_death_makes_a_suspect_two_make_poison),
        cmocka_unit_test(forgiveness_lasts_until_another_death),
        cmocka_unit_test(joining_is_a_semilattice),
        cmocka_unit_test(a_full_map_evicts_suspects_first),
        cmocka_unit_test(expired_or_future_rows_are_refused),
        cmocka_unit_test(a_delta_carries_poison),
        cmocka_unit_test(anti_entropy_repairs_lost_rows),
        cmocka_unit_test(a_full_table_fits_a_message_and_a_chunk),
        cmocka_unit_test(a_summary_without_poison_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
