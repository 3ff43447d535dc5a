/* A router's file of state: the bytes, and the part still used after a restart. */
#include "node/cluster/keep.h"

#include "base/check.h"
#include "base/checkpoint.h"
#include "crdt/learned.h"
#include "crdt/reports.h"
#include "crdt/state.h"
#include "node/kv/readers.h"
#include "tests/lib/keep_help.h"
#include "tests/lib/test.h"

enum { GENERATION_MS = 8000, TTL_MS = 1600000, POINTS = 300 };

static const uint64_t wall_ms = 1700000000000;
static struct node_state *state;
static struct buf file;
static const char *why;

static struct node_state_config config_of(uint64_t seed, bool replicated, uint64_t later_ms)
{
    struct node_state_config c = {.self = 7,
                                  .replicated = replicated,
                                  .replicas_max = 16,
                                  .index_bytes = 4 << 20,
                                  .generation_ms = GENERATION_MS,
                                  .ttl_ms = TTL_MS,
                                  .wall_ms = wall_ms + later_ms,
                                  .now_ms = 1};
    hash_secret_from_seed(&c.secret, seed);
    return c;
}

static struct node_state *make(struct node_state_config config)
{
    struct node_state *s = NULL;
    assert_int_equal(node_state_create(&s, &config), ERR_OK);
    node_state_clock(s, 1);
    return s;
}

static bool on_learned(void *context, unsigned slot, struct crdt_learned *out)
{
    (void)context;
    *out = (struct crdt_learned){.rate = 1000 + slot, .rate_samples = 5};
    return slot != 1;
}

/* Writes values learned from answers, in two pieces. */
static int on_told(void *context, unsigned at[2], struct buf *out)
{
    (void)context;
    if (at[1] == 2)
        return 0;
    int err = buf_append_cstr(out, at[1]++ == 0 ? "told" : "more");
    return err == ERR_OK ? 1 : err;
}

static void on_kept_told(void *context, struct slice piece)
{
    assert_int_equal(buf_append_slice(context, piece), ERR_OK);
}

/* Two replicas with some prompts, and another router's reports about them. */
static void write_file(struct node_state_config config)
{
    state = make(config);
    struct crdt_state *c = node_state_crdt(state);
    int a = crdt_state_name(c, SLICE("a:1")), b = crdt_state_name(c, SLICE("b:1"));
    assert_true(a == 0 && b == 1);
    assert_true(crdt_state_restarted(c, 0, 12345));
    assert_int_equal(crdt_state_drain(c, 1, true), 1);
    for (unsigned i = 0; i < POINTS; i++)
        assert_int_equal(crdt_state_bind(c, hash_mix(i + 1), i % 2), 1);
    struct crdt_load load = {.requests = 4};
    crdt_state_load(c, 0, &load);
    const struct node_keep_source source = {.state = state, .learned = on_learned, .told = on_told};
    struct node_keep *keep;
    int more;
    buf_clear(&file);
    assert_int_equal(node_keep_begin(&keep, &source, 1), ERR_OK);
    while ((more = node_keep_next(keep, &file)) == 1)
        continue;
    assert_int_equal(more, 0);
    node_keep_end(keep);
}

static void end(void)
{
    node_state_destroy(state);
    buf_free(&file);
}

static struct crdt_digest digest_of(struct node_state *s)
{
    struct crdt_digest d;
    crdt_state_digest(node_state_crdt(s), 0, &d);
    return d;
}

static struct node_kept read_file(void)
{
    struct node_kept k;
    assert_int_equal(node_kept_read(&k, buf_slice(&file), &why), ERR_OK);
    return k;
}

static unsigned learned_of; /* replicas */

static void on_kept_learned(void *context, unsigned slot, const struct crdt_learned *l)
{
    (void)context;
    assert_true(l->rate == 1000 + slot && l->rate_samples == 5);
    learned_of |= 1u << slot;
}

static void a_restart_restores_the_state(void **context)
{
    (void)context;
    write_file(config_of(1, true, 0));
    struct node_kept k = read_file();
    assert_false(k.alone);
    struct node_state *next = make(config_of(1, true, 60000));
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), ERR_OK);
    struct crdt_digest before = digest_of(state), after = digest_of(next);
    assert_true(before.index == after.index && before.registry == after.registry);
    for (unsigned i = 0; i < POINTS; i++)
        assert_int_equal(crdt_state_bound(node_state_crdt(next), hash_mix(i + 1)), i % 2);
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(next));
    assert_true(crdt_registry_at(registry, 0)->incarnation.started == 12345);
    assert_true(crdt_registry_at(registry, 1)->draining);
    assert_false(crdt_registry_at(registry, 0)->ours); /* only the settings name replicas "ours" */
    learned_of = 0;
    node_kept_learned(&k, next, on_kept_learned, NULL);
    assert_int_equal(learned_of, 1);
    struct buf told = {0};
    node_kept_told(&k, on_kept_told, &told);
    assert_true(slice_equal(buf_slice(&told), SLICE("toldmore")));
    buf_free(&told);
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), ERR_OK); /* again: no change */
    struct crdt_digest again = digest_of(next);
    assert_true(again.index == after.index && again.registry == after.registry);
    node_state_check(next);
    node_state_destroy(next);
    end();
}

static void loads_are_not_restored(void **context)
{
    (void)context;
    write_file(config_of(1, true, 0));
    struct node_kept k = read_file();
    struct node_state_config other = config_of(1, true, 0);
    other.self = 8; /* to router 8 the file's author is another router */
    struct node_state *next = make(other);
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), ERR_OK);
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(node_state_crdt(next)), 0, &sum);
    assert_int_equal(sum.requests, 0);
    node_state_destroy(next);
    end();
}

static void a_single_router_keeps_its_hash_secret(void **context)
{
    (void)context;
    write_file(config_of(3, false, 0));
    struct node_kept k = read_file();
    struct node_state_config c = config_of(4, false, 0);
    assert_true(k.alone);
    c.secret = k.secret;
    struct node_state *next = make(c);
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), ERR_OK);
    assert_int_equal(crdt_state_bound(node_state_crdt(next), hash_mix(1)), 0);
    node_state_destroy(next);
    end();
}

static void refused(struct node_state_config config, int err, const char *words)
{
    struct node_kept k = read_file();
    struct node_state *next = make(config);
    struct crdt_digest before = digest_of(next);
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), err);
    assert_non_null(strstr(why, words));
    struct crdt_digest after = digest_of(next);
    assert_memory_equal(&before, &after, sizeof before);
    node_state_destroy(next);
}

static void a_file_with_other_settings_is_refused(void **context)
{
    (void)context;
    write_file(config_of(1, true, 0));
    refused(config_of(2, true, 0), ERR_DENIED, "another cluster");
    struct node_state_config c = config_of(1, true, 0);
    c.generation_ms = 4000;
    refused(c, ERR_RANGE, "settings");
    c = config_of(1, true, 0);
    c.index_bytes = 3 << 20;
    refused(c, ERR_RANGE, "settings");
    refused(config_of(1, true, TTL_MS + 1), ERR_STALE, "older");
    c = config_of(1, true, 0);
    c.wall_ms -= NODE_KEEP_FUTURE_MS + 1;
    refused(c, ERR_RANGE, "future");
    end();
}

/* The join refuses everything in a file whose names have all expired. */
static void expired_names_are_not_restored(void **context)
{
    (void)context;
    write_file(config_of(1, true, 0));
    struct node_kept k = read_file();
    struct node_state_config c = config_of(1, true, (CRDT_NAMES_TTL_S + 10) * UINT64_C(1000));
    struct node_state *next = make(c);
    assert_int_equal(node_kept_join(&k, next, NULL, 1, &why), ERR_OK);
    assert_int_equal(crdt_registry_count(crdt_state_registry(node_state_crdt(next))), 0);
    assert_int_equal(crdt_state_bound(node_state_crdt(next), hash_mix(1)), -1);
    node_state_destroy(next);
    end();
}

static void a_truncated_file_is_refused(void **context)
{
    (void)context;
    struct node_kept k;
    write_file(config_of(1, false, 0));
    for (size_t len = 0; len < file.len; len++)
        assert_true(node_kept_read(&k, slice_of(file.at, len), &why) < 0);
    assert_int_equal(buf_append_char(&file, 'x'), ERR_OK); /* a byte too many */
    assert_true(node_kept_read(&k, buf_slice(&file), &why) < 0);
    end();
}

static void a_file_with_one_wrong_bit_is_refused(void **context)
{
    (void)context;
    struct node_kept k;
    write_file(config_of(1, false, 0));
    for (size_t i = 0; i < file.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            file.at[i] = (char)(file.at[i] ^ 1 << bit);
            assert_true(node_kept_read(&k, buf_slice(&file), &why) < 0);
            file.at[i] = (char)(file.at[i] ^ 1 << bit);
        }
    }
    (void)read_file();
    end();
}

/* All these files have correct checksums. */
static void misordered_frames_are_refused(void **context)
{
    (void)context;
    write_file(config_of(1, false, 0));
    struct slice body[3];
    uint8_t kind[3];
    size_t at = KEEP_MAGIC;
    for (unsigned i = 0; i < 3; i++)
        body[i] = keep_body(buf_slice(&file), &at, &kind[i]);
    assert_int_equal(kind[0], 1);
    static const struct {
        unsigned frame[4], count;
        int err;
    } orders[] = {{{0, 1, 3}, 3, ERR_OK},     {{0, 3}, 2, ERR_OK},     {{1, 0, 3}, 3, ERR_SYNTAX},
                  {{0, 0, 3}, 3, ERR_SYNTAX}, {{0, 1}, 2, ERR_SYNTAX}, {{3}, 1, ERR_SYNTAX},
                  {{0, 3, 1}, 3, ERR_SYNTAX}, {{0}, 1, ERR_SYNTAX}};
    for (unsigned n = 0; n < ARRAY_LEN(orders); n++) {
        struct buf made = {0};
        uint64_t check = 0;
        struct node_kept k;
        assert_int_equal(buf_append(&made, file.at, KEEP_MAGIC), ERR_OK);
        for (unsigned i = 0; i < orders[n].count; i++) {
            unsigned which = orders[n].frame[i];
            bool is_end = which == 3;
            keep_frame(&made, &check, is_end ? KEEP_END : kind[which],
                       is_end ? slice_of(NULL, 0) : body[which]);
        }
        assert_int_equal(node_kept_read(&k, buf_slice(&made), &why), orders[n].err);
        buf_free(&made);
    }
    end();
}

static void a_file_of_another_version_is_refused(void **context)
{
    (void)context;
    write_file(config_of(1, false, 0));
    size_t at = KEEP_MAGIC;
    uint8_t kind;
    struct slice head = keep_body(buf_slice(&file), &at, &kind);
    struct buf body = {0}, made = {0};
    uint64_t check = 0;
    struct node_kept k;
    assert_int_equal(buf_append_slice(&body, head), ERR_OK);
    body.at[0]++;
    assert_int_equal(buf_append(&made, file.at, KEEP_MAGIC), ERR_OK);
    keep_frame(&made, &check, 1, buf_slice(&body));
    keep_frame(&made, &check, 6, slice_of(NULL, 0));
    assert_int_equal(node_kept_read(&k, buf_slice(&made), &why), ERR_VERSION);
    assert_non_null(strstr(why, "another version"));
    buf_free(&body);
    buf_free(&made);
    end();
}

static void setting_the_clock_back_aborts_the_file(void **context)
{
    (void)context;
    write_file(config_of(1, true, 0));
    const struct node_keep_source source = {.state = state};
    struct node_keep *keep;
    assert_int_equal(node_keep_begin(&keep, &source, 1), ERR_OK);
    buf_clear(&file);
    assert_int_equal(node_keep_next(keep, &file), 1);
    assert_int_equal(node_state_rewind(state, 100000, 200000), ERR_OK);
    assert_int_equal(node_keep_next(keep, &file), ERR_STALE);
    node_keep_end(keep);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_restores_the_state),
        cmocka_unit_test(loads_are_not_restored),
        cmocka_unit_test(a_single_router_keeps_its_hash_secret),
        cmocka_unit_test(a_file_with_other_settings_is_refused),
        cmocka_unit_test(expired_names_are_not_restored),
        cmocka_unit_test(a_truncated_file_is_refused),
        cmocka_unit_test(a_file_with_one_wrong_bit_is_refused),
        cmocka_unit_test(misordered_frames_are_refused),
        cmocka_unit_test(a_file_of_another_version_is_refused),
        cmocka_unit_test(setting_the_clock_back_aborts_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
