/* Out of memory while a replicated state is made, changed, published, repaired and copied. */
#include "tests/lib/failmalloc.h"

#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "crdt/state.h"
#include "tests/lib/state_help.h"
#include "tests/lib/test.h"

static struct crdt_state_config config_of(uint64_t self)
{
    return (struct crdt_state_config){.index = {.bytes_max = 4 << 20,
                                                .replicas_max = 16,
                                                .ttl_generations = 12,
                                                .generation = 1000,
                                                .replicated = true},
                                      .self = self,
                                      .outbox_bytes = 1 << 16};
}

/* Returns NULL if there is no memory. */
static struct crdt_state *make(uint64_t self, bool may_fail)
{
    struct crdt_state *s = NULL;
    struct crdt_state_config config = config_of(self);
    int err = crdt_state_create(&s, &config);
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err != 0)
        return NULL;
    crdt_state_epoch(s, 1);
    crdt_state_router(s, 3 - self, 1);
    return s;
}

static void prompt(struct chain *chain, uint64_t seed)
{
    *chain = (struct chain){.length = 40, .bytes = 40 * 256};
    for (unsigned i = 0; i < chain->length; i++)
        chain->points[i] =
            (struct chain_point){.id = hash_mix(seed * 1000 + i), .blocks = i + 1, .code = 0};
}

static void check(const struct crdt_state *s)
{
    failmalloc_spare(true);
    crdt_state_check(s);
    failmalloc_spare(false);
}

/* Adds some of everything: replicas, observations, reports. */
static void change(struct crdt_state *s, uint64_t seed, bool may_fail)
{
    static struct chain chain;
    int slot = state_replica(s, SLICE("host-1:8000"));
    assert_true(slot == 0 || may_fail);
    if (slot < 0)
        return;
    for (unsigned i = 0; i < 8; i++) {
        prompt(&chain, seed + i);
        int err = crdt_state_observe(s, &chain, (unsigned)slot);
        assert_true(err >= 0 || may_fail);
    }
    struct crdt_load load = {.requests = 3, .prefill_tokens = 70};
    crdt_state_load(s, (unsigned)slot, &load);
    check(s);
}

/* Drops the deltas, but afterwards the reports have their numbers. */
static void produce_all(struct crdt_state *s)
{
    uint8_t bytes[1160];
    for (uint64_t seq = 1; crdt_state_produce(s, seq, bytes, sizeof bytes) > 0; seq++)
        continue;
}

/* With enough memory, repeats everything missed, except for the list of other routers, which comes
 * only once. */
static void recover(struct crdt_state *s, uint64_t seed)
{
    change(s, seed, false);
    produce_all(s);
}

static void creation(bool may_fail)
{
    crdt_state_destroy(make(1, may_fail));
}

static void deltas(bool may_fail)
{
    struct crdt_state *a = make(1, may_fail);
    struct crdt_state *b = make(2, may_fail);
    uint8_t bytes[1160];
    if (a != NULL && b != NULL) {
        change(a, 7, may_fail);
        size_t len;
        for (uint64_t seq = 1; (len = crdt_state_produce(a, seq, bytes, sizeof bytes)) > 0; seq++) {
            struct crdt_origin origin = {.router = 1, .epoch = 1, .seq = seq};
            int err = crdt_state_apply(b, &origin, slice_of((const char *)bytes, len));
            assert_true(err >= 0 || may_fail);
        }
        check(a);
        check(b);
    }
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static bool equal(const struct crdt_state *a, const struct crdt_state *b)
{
    struct crdt_digest x, y;
    crdt_state_digest(a, 0, &x);
    crdt_state_digest(b, 0, &y);
    return x.registry == y.registry && x.index == y.index && x.reports == y.reports;
}

/* An exchange between two states; the first error ends it, as at a router without memory. */
static void exchange(struct crdt_state *a, struct crdt_state *b, bool may_fail)
{
    struct buf message = {0};
    struct buf reply = {0};
    struct crdt_state *to = b;
    struct crdt_state *from = a;
    int err = crdt_state_summary(a, &message);
    for (unsigned i = 0; err >= 0 && message.len > 0; i++) {
        assert_true(i < 20);
        struct crdt_reconciled out;
        err = crdt_state_message(to, buf_slice(&message), true, &reply, &out);
        struct buf swap = message;
        message = reply;
        reply = swap;
        buf_clear(&reply);
        struct crdt_state *other = from;
        from = to;
        to = other;
    }
    assert_true(err >= 0 || (may_fail && err == ERR_NOMEM));
    buf_free(&message);
    buf_free(&reply);
    check(a);
    check(b);
}

static void anti_entropy(bool may_fail)
{
    struct crdt_state *a = make(1, may_fail);
    struct crdt_state *b = make(2, may_fail);
    if (a != NULL && b != NULL) {
        change(a, 7, may_fail);
        change(b, 100, may_fail);
        exchange(a, b, may_fail);
        failmalloc_enough();
        recover(a, 7);
        recover(b, 100);
        for (unsigned i = 0; i < 4 && !equal(a, b); i++) {
            exchange(a, b, false);
            exchange(b, a, false);
        }
        assert_true(equal(a, b));
    }
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static int copy(struct crdt_state *to, const struct crdt_state *from)
{
    struct crdt_snapshot c;
    struct buf chunk = {0};
    crdt_snapshot_begin(&c, 0);
    int err;
    while ((err = crdt_snapshot_next(from, &c, &chunk)) == 1) {
        err = crdt_snapshot_apply(to, buf_slice(&chunk));
        buf_clear(&chunk);
        if (err < 0)
            break;
    }
    buf_free(&chunk);
    return err;
}

static void snapshots(bool may_fail)
{
    struct crdt_state *a = make(1, may_fail);
    struct crdt_state *b = make(2, may_fail);
    if (a != NULL && b != NULL) {
        change(a, 7, may_fail);
        int err = copy(b, a);
        assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
        failmalloc_enough();
        recover(a, 7);
        assert_int_equal(copy(b, a), 0);
        check(b);
        assert_true(equal(a, b));
    }
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

#define EACH(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        print_message("%u allocations\n", failmalloc_each(name));                                  \
    }
EACH(creation)
EACH(deltas)
EACH(anti_entropy)
EACH(snapshots)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creation),
        cmocka_unit_test(test_deltas),
        cmocka_unit_test(test_anti_entropy),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
