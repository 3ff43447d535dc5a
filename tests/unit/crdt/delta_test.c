#include "crdt/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "crdt/outbox.h"
#include "crdt/record.h"
#include "crdt/run.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

enum { DELTA_MAX = 1160 };

static struct chain chain;

/* --- runs ----------------------------------------------------------------------------------- */

static size_t round_trip(const uint64_t *points, unsigned count, size_t room)
{
    uint8_t bytes[CRDT_RUN_MAX * 12];
    struct wire_writer w = wire_writer_of(bytes, room);
    unsigned written = crdt_run_write(&w, 77, 1234, points, count);
    assert_false(w.bad);
    struct wire_reader r = wire_reader_of(bytes, wire_written(&w));
    struct crdt_run run;
    uint64_t ids[CRDT_RUN_MAX];
    uint8_t codes[CRDT_RUN_MAX];
    uint64_t body = wire_read_varint(&r);
    assert_int_equal(body, wire_left(&r));
    crdt_run_read(&r, &run);
    assert_false(r.bad);
    assert_int_equal(run.rkey, 77);
    assert_int_equal(run.generation, 1234);
    assert_int_equal(run.count, written);
    crdt_run_unpack(&run, ids, codes);
    for (unsigned i = 0; i < written; i++)
        assert_int_equal(crdt_point(ids[i], codes[i]), points[i]);
    /* The length shows a cut at any place. */
    for (size_t cut = 0; cut < wire_written(&w); cut++) {
        r = wire_reader_of(bytes, cut);
        body = wire_read_varint(&r);
        assert_true(r.bad || body != wire_left(&r));
    }
    return written == count ? wire_written(&w) : 0;
}

static void test_codes_of_neighbouring_checkpoints_cost_next_to_nothing(void **state)
{
    (void)state;
    uint64_t points[CRDT_RUN_MAX];
    for (unsigned first = 0; first < 200; first += 13) {
        for (unsigned i = 0; i < 100; i++)
            points[i] = crdt_point(hash_mix(i), checkpoint_code(first + i));
        /* 100 ids and 10 bytes of header: a single piece, or two if the ordinal is unknown. */
        assert_in_range(round_trip(points, 100, sizeof points), 1, 600 + 10 + 6);
    }
    /* Three segments, each from the start of a prompt and with a separate end point. */
    unsigned n = 0;
    for (unsigned segment = 0; segment < 3; segment++) {
        for (unsigned i = 0; i < 50 + 40 * segment; i++, n++)
            points[n] = crdt_point(hash_mix(n), checkpoint_code(i));
        points[n] = crdt_point(hash_mix(n), (uint8_t)(7 - segment));
        n++;
    }
    assert_in_range(round_trip(points, n, sizeof points), 1, 6 * n + 10 + 20);
}

static void test_any_codes_survive_and_runs_are_cut_to_fit(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 4);
    uint64_t points[CRDT_RUN_MAX];
    for (unsigned round = 0; round < 300; round++) {
        unsigned count = 1 + (unsigned)prng_below(&p, CRDT_RUN_MAX);
        unsigned spread = 1 + (unsigned)prng_below(&p, 32);
        for (unsigned i = 0; i < count; i++)
            points[i] = crdt_point(prng_next(&p), (uint8_t)prng_below(&p, spread));
        assert_true(round_trip(points, count, CRDT_RUN_MAX * 12) > 0);
        (void)round_trip(points, count, 20 + prng_below(&p, 1200));
    }
}

/* --- the outbox ----------------------------------------------------------------------------- */

static void test_the_outbox_keeps_order_and_drops_the_oldest(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 9);
    struct crdt_outbox o;
    assert_int_equal(crdt_outbox_init(&o, 100 * sizeof(uint64_t)), 0);
    uint64_t pushed = 0;
    uint64_t taken = 0;
    uint64_t expected = 0;
    for (unsigned step = 0; step < 20000; step++) {
        if (prng_below(&p, 5) < 3) {
            for (uint64_t n = prng_below(&p, 12); n > 0; n--, pushed++)
                crdt_outbox_push(&o, 1 + (uint32_t)(pushed / 40 % 3), 5, pushed);
        } else {
            struct crdt_outbox_run run;
            crdt_outbox_peek(&o, &run);
            unsigned count = run.count == 0 ? 0 : 1 + (unsigned)prng_below(&p, run.count);
            assert_true(count == 0 || run.points[0] >= expected);
            for (unsigned i = 0; i < count; i++) {
                assert_int_equal(run.points[i], run.points[0] + i);
                assert_int_equal(run.rkey, 1 + run.points[i] / 40 % 3);
            }
            if (count > 0) {
                crdt_outbox_take(&o, count);
                expected = run.points[0] + count;
            }
            taken += count;
        }
        crdt_outbox_check(&o);
        assert_true(taken + o.dropped <= pushed);
    }
    assert_true(o.dropped > 0 && taken > 1000);
    crdt_outbox_free(&o);
}

/* --- deltas --------------------------------------------------------------------------------- */

static int apply(struct crdt_state *s, uint64_t router, uint64_t seq, const uint8_t *bytes,
                 size_t len)
{
    struct crdt_origin origin = {.router = router, .epoch = 1, .seq = seq};
    return crdt_state_apply(s, &origin, slice_of((const char *)bytes, len));
}

static void test_an_observation_costs_seven_bytes_with_headers(void **state)
{
    (void)state;
    struct crdt_state *a = states_make(&(struct states_setting){.self = 1});
    struct crdt_state *b = states_make(&(struct states_setting){.self = 2});
    for (unsigned i = 0; i < 16; i++)
        (void)states_replica(a, i);
    uint8_t bytes[DELTA_MAX];
    uint64_t seq = 0;
    uint64_t wire = 0;
    uint64_t observations = 0;
    for (unsigned i = 0; i < 200; i++) {
        states_prompt(&chain, i, 165);
        assert_int_equal(crdt_state_observe(a, &chain, i % 16), 165);
        crdt_state_load(a, i % 16,
                        &(struct crdt_load){.requests = 1 + i,
                                            .prefill_tokens = 100 * i,
                                            .context_tokens = 100 * i});
        size_t len;
        while ((len = crdt_state_produce(a, ++seq, bytes, sizeof bytes)) > 0) {
            assert_int_equal(apply(b, 1, seq, bytes, len), 0);
            wire += i < 16 ? 0 : len + 28 + 24 + 16; /* IP and UDP, seal, frame */
        }
        observations += i < 16 ? 0 : 165;
    }
    assert_true(wire <= 7 * observations);
    assert_true(states_equal(a, b, 0));
    assert_false(crdt_state_has_news(a));
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static void test_known_observations_are_not_resent(void **state)
{
    (void)state;
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1});
    unsigned slot = states_replica(s, 1);
    states_prompt(&chain, 1, 50);
    assert_int_equal(crdt_state_observe(s, &chain, slot), 50);
    (void)states_tell_nobody(s, 0);
    assert_int_equal(crdt_state_observe(s, &chain, slot), 0);
    assert_false(crdt_state_has_news(s));
    state_advance(s, 1001);
    assert_int_equal(crdt_state_observe(s, &chain, slot), 50);
    assert_true(crdt_state_has_news(s));
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    assert_int_equal(stats.observations_out, 100);
    crdt_state_destroy(s);
}

static void test_state_set_back_is_published(void **state)
{
    (void)state;
    struct crdt_state *ahead = states_make(&(struct states_setting){.self = 1, .now = 1005});
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1});
    unsigned slot = states_replica(ahead, 1);
    assert_int_equal(states_replica(s, 1), slot);
    states_prompt(&chain, 1, 50);
    assert_int_equal(crdt_state_observe(ahead, &chain, slot), 50);
    (void)states_tell_nobody(s, 0);
    assert_false(crdt_state_has_news(s));
    crdt_state_copy_future(s, ahead);
    assert_true(crdt_state_has_news(s));
    assert_int_equal(crdt_state_observe(s, &chain, slot), 0); /* the copy counts as of now */
    crdt_state_destroy(ahead);
    crdt_state_destroy(s);
}

/* Other routers ignore anything older than the replica's name. This router differed from all until
 * the entry expired, an hour later. (Simulation, seed 59, long: a young cluster, and a clock set
 * back.) */
static void test_state_set_back_is_not_older_than_its_name(void **state)
{
    (void)state;
    const struct states_setting past = {.self = 1, .now = 1000, .ttl = 200};
    const struct states_setting future = {.self = 1, .now = 1001, .ttl = 200};
    struct crdt_state *s = states_make(&past), *ahead = states_make(&future);
    struct crdt_state *other = states_make(&(struct states_setting){.self = 2, .ttl = 200});
    unsigned slot = states_replica(s, 1);
    assert_int_equal(states_replica(ahead, 1), slot);
    (void)states_replica(other, 1);
    states_prompt(&chain, 1, 50);
    assert_int_equal(crdt_state_observe(ahead, &chain, slot), 50);
    state_advance(ahead, 1050);
    crdt_state_copy_future(s, ahead);
    (void)states_reconcile(s, other, true);
    assert_true(states_equal(s, other, crdt_index_floor(crdt_state_index(s))));
    crdt_state_destroy(other);
    crdt_state_destroy(ahead);
    crdt_state_destroy(s);
}

static void test_stale_records_are_skipped_and_counted(void **state)
{
    (void)state;
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1});
    unsigned slot = states_replica(s, 1);
    const struct crdt_replica *replica = crdt_registry_at(crdt_state_registry(s), slot);
    uint32_t old = replica->rkey;
    assert_true(crdt_state_restarted(s, slot, 0));
    uint64_t points[3] = {1, 2, 3};
    uint8_t bytes[DELTA_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    const uint32_t cases[][2] = {{old, 1000}, {replica->rkey, 987}, {replica->rkey, 1002}};
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(crdt_record_write_run(&w, cases[i][0], cases[i][1], points, 3), 3);
    struct crdt_report load = {.kind = CRDT_REPORT_LOAD, .value.load.requests = 1};
    crdt_record_write_report(&w, replica->key, &load, false);
    crdt_record_write_report(&w, 0x123456, &load, false);
    assert_int_equal(apply(s, 44, 1, bytes, wire_written(&w)), 0);
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    assert_int_equal(stats.unknown_replica, 3 + 1);
    assert_int_equal(stats.stale, 3);
    assert_int_equal(stats.future, 3);
    assert_int_equal(stats.unknown_router, 1);
    assert_int_equal(stats.observations_new, 0);
    assert_int_equal(crdt_index_blocks_total(crdt_state_index(s), slot), 0);
    crdt_state_check(s);
    crdt_state_destroy(s);
}

static bool keep_learned(void *context, uint64_t router, const struct crdt_load *load,
                         const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    (void)load;
    (void)sight;
    if (router == 1 && learned)
        *(struct crdt_learned *)context = *learned;
    return true;
}

#define GREATEST_u64 (UINT64_MAX >> 1)
#define GREATEST_u32 UINT32_MAX

/* Every field arrives as sent, even at the greatest value. */
static void test_learned_figures_arrive_unchanged(void **state)
{
    (void)state;
    for (unsigned greatest = 0; greatest < 2; greatest++) {
        struct crdt_state *a = states_make(&(struct states_setting){.self = 1});
        struct crdt_state *b = states_make(&(struct states_setting){.self = 2});
        unsigned slot = states_replica(a, 1), number = 0;
        (void)states_replica(b, 1);
        struct crdt_learned sent = {0}, got = {0};
#define SET(width, name, when) sent.name = greatest ? GREATEST_##width : ++number;
        CRDT_LEARNED_FIELDS(SET)
        crdt_state_learned(a, slot, &sent);
        uint8_t bytes[DELTA_MAX];
        size_t len = crdt_state_produce(a, 1, bytes, sizeof bytes);
        assert_int_equal(apply(b, 1, 1, bytes, len), 0);
        crdt_reports_each(crdt_state_reports(b), slot, keep_learned, &got);
#define SAME(width, name, when) assert_int_equal(got.name, sent.name);
        CRDT_LEARNED_FIELDS(SAME)
        crdt_state_destroy(a);
        crdt_state_destroy(b);
    }
}

static void test_broken_deltas_change_nothing(void **state)
{
    (void)state;
    struct crdt_state *a = states_make(&(struct states_setting){.self = 1});
    struct crdt_state *b = states_make(&(struct states_setting){.self = 2});
    unsigned slot = states_replica(a, 1);
    states_prompt(&chain, 1, 60);
    DISCARD(crdt_state_observe(a, &chain, slot));
    crdt_state_load(a, slot, &(struct crdt_load){.requests = 9});
    crdt_state_learned(a, slot, &(struct crdt_learned){.rate = 77});
    uint8_t bytes[DELTA_MAX];
    size_t len = crdt_state_produce(a, 1, bytes, sizeof bytes);
    struct prng p;
    prng_seed(&p, 1);
    for (unsigned i = 0; i < 4000; i++) {
        size_t cut = i < len ? i : prng_below(&p, len + 1);
        char *copy = malloc(cut > 0 ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        if (i >= len && cut > 0)
            copy[prng_below(&p, cut)] ^= (char)(1 << prng_below(&p, 8));
        struct crdt_digest before;
        struct crdt_digest after;
        crdt_state_digest(b, 0, &before);
        int err = apply(b, 1, 1, (uint8_t *)copy, cut);
        crdt_state_digest(b, 0, &after);
        assert_true(err == 0 || err == ERR_SYNTAX);
        assert_true(err == 0 || memcmp(&before, &after, sizeof before) == 0);
        free(copy);
    }
    crdt_state_check(b);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* --- several routers ------------------------------------------------------------------------ */

enum { NODES = 3, FLIGHT = 64 };

/* Deltas on the way: lost, repeated, and delivered in any order. */
struct flight {
    unsigned to;
    uint64_t router, seq;
    uint8_t bytes[DELTA_MAX];
    size_t len;
};

struct cluster {
    struct prng prng;
    struct crdt_state *node[NODES];
    uint64_t seq[NODES];
    uint32_t now;
    struct flight flight[FLIGHT];
    unsigned flights;
};

static void deliver(struct cluster *c, unsigned at)
{
    struct flight *f = &c->flight[at];
    assert_int_equal(apply(c->node[f->to], f->router, f->seq, f->bytes, f->len), 0);
    if (prng_below(&c->prng, 10) != 0) /* otherwise the delta is delivered again later */
        *f = c->flight[--c->flights];
}

static void tell(struct cluster *c, unsigned from, unsigned loss_percent)
{
    uint8_t bytes[DELTA_MAX];
    size_t len;
    while ((len = crdt_state_produce(c->node[from], c->seq[from] + 1, bytes,
                                     512 + prng_below(&c->prng, DELTA_MAX - 511))) > 0) {
        c->seq[from]++;
        for (unsigned to = 0; to < NODES; to++) {
            if (to == from || prng_below(&c->prng, 100) < loss_percent)
                continue;
            while (c->flights == FLIGHT)
                deliver(c, (unsigned)prng_below(&c->prng, FLIGHT));
            struct flight *f = &c->flight[c->flights++];
            *f = (struct flight){.to = to, .router = from + 1, .seq = c->seq[from], .len = len};
            memcpy(f->bytes, bytes, len);
        }
    }
}

static void act(struct cluster *c)
{
    struct prng *p = &c->prng;
    unsigned who = (unsigned)prng_below(p, NODES);
    struct crdt_state *s = c->node[who];
    unsigned slot = states_replica(s, (unsigned)prng_below(p, 12));
    switch (prng_below(p, 12)) {
    case 0:
        crdt_state_load(s, slot, &(struct crdt_load){.requests = (uint32_t)prng_below(p, 4)});
        break;
    case 1:
        crdt_state_sight(s, slot, &(struct crdt_sight){.health = (uint8_t)prng_below(p, 4)});
        break;
    case 2:
        crdt_state_learned(s, slot, &(struct crdt_learned){.rate = (uint32_t)prng_below(p, 9)});
        break;
    case 3:
        DISCARD(crdt_state_wish(s, slot, (enum crdt_wish)prng_below(p, 3)));
        DISCARD(crdt_state_drain(s, slot, prng_below(p, 2)));
        break;
    case 4:
        if (prng_below(p, 8) == 0)
            (void)crdt_state_restarted(s, slot, prng_below(p, 2) * c->now);
        break;
    case 5:
        c->now += prng_below(p, 20) == 0;
        state_advance(s, c->now - (uint32_t)prng_below(p, 2));
        break;
    case 6:
        assert_true(crdt_state_bind(s, hash_mix(1 + prng_below(p, 30)), slot) >= 0);
        break;
    case 7: /* the sweeper is about a lap further than last time */
        (void)crdt_index_sweep(crdt_state_index(s), UINT32_MAX);
        (void)states_reconcile(s, c->node[prng_below(p, NODES)], prng_below(p, 2));
        break;
    default:
        states_prompt(&chain, prng_below(p, 20), (unsigned)prng_below(p, 120));
        assert_true(crdt_state_observe(s, &chain, slot) >= 0);
    }
}

static void run_cluster(uint64_t seed, unsigned loss_percent)
{
    struct cluster *c = calloc(1, sizeof *c);
    assert_non_null(c);
    prng_seed(&c->prng, seed);
    c->now = 1000;
    for (unsigned i = 0; i < NODES; i++)
        c->node[i] = states_make(&(struct states_setting){
            .self = i + 1,
            .bytes_max = 2 << 20, /* the table is swept from end to end a hundred times */
            .outbox_bytes = i == 1 ? 4096 : 0});
    for (unsigned step = 0; step < 1500; step++) {
        act(c);
        if (prng_below(&c->prng, 4) == 0)
            tell(c, (unsigned)prng_below(&c->prng, NODES), loss_percent);
        if (c->flights > 0 && prng_below(&c->prng, 2) == 0)
            deliver(c, (unsigned)prng_below(&c->prng, c->flights));
        if (step % 100 == 0)
            for (unsigned i = 0; i < NODES; i++)
                crdt_state_check(c->node[i]);
    }
    for (unsigned i = 0; i < NODES; i++) {
        tell(c, i, loss_percent);
        state_advance(c->node[i], c->now);
    }
    while (c->flights > 0)
        deliver(c, (unsigned)prng_below(&c->prng, c->flights));
    /* At rest a few exchanges make all states equal. They may report losses of caches; the sweeper
     * removes the lost entries before sketches are compared again. */
    for (unsigned i = 0; i < 4 * NODES; i++) {
        struct crdt_state *one = c->node[i % NODES], *other = c->node[(i + 1) % NODES];
        (void)states_reconcile(one, other, true);
        (void)crdt_index_sweep(crdt_state_index(one), UINT32_MAX);
        (void)crdt_index_sweep(crdt_state_index(other), UINT32_MAX);
    }
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(states_equal(c->node[i], c->node[(i + 1) % NODES], 0));
        assert_true(states_reconcile(c->node[i], c->node[(i + 1) % NODES], true).equal);
        crdt_state_check(c->node[i]);
    }
    for (unsigned i = 0; i < NODES; i++)
        crdt_state_destroy(c->node[i]);
    free(c);
}

static void test_routers_agree_despite_lost_packets(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(20); seed++)
        run_cluster(seed, seed % 4 * 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_of_neighbouring_checkpoints_cost_next_to_nothing),
        cmocka_unit_test(test_any_codes_survive_and_runs_are_cut_to_fit),
        cmocka_unit_test(test_the_outbox_keeps_order_and_drops_the_oldest),
        cmocka_unit_test(test_an_observation_costs_seven_bytes_with_headers),
        cmocka_unit_test(test_known_observations_are_not_resent),
        cmocka_unit_test(test_state_set_back_is_published),
        cmocka_unit_test(test_state_set_back_is_not_older_than_its_name),
        cmocka_unit_test(test_stale_records_are_skipped_and_counted),
        cmocka_unit_test(test_learned_figures_arrive_unchanged),
        cmocka_unit_test(test_broken_deltas_change_nothing),
        cmocka_unit_test(test_routers_agree_despite_lost_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
