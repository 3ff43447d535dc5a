/* The wire and the digests of reports, byte by byte: during an update, routers of two releases are
 * in the same cluster. A change of these numbers changes the routers' agreement. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/record.h"
#include "crdt/state.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static const struct crdt_learned sample = {.cache_tokens = 400000,
                                           .prompt_tokens = 123456789012,
                                           .predicted_tokens = 98765432109,
                                           .told = 54321,
                                           .grown_ppm = 700000,
                                           .shrunk_ppm = 1300000,
                                           .believed_ppm = 912345,
                                           .believed_rkey = 0x7abcdef1,
                                           .rate = 8192,
                                           .rate_samples = 250,
                                           .step_base_ns = 9500000,
                                           .step_context_fs = 123456,
                                           .pace_samples = 127,
                                           .bytes_per_token_milli = 4096,
                                           .bytes_samples = 128,
                                           .scrapes = 321,
                                           .engine_started_ms = 1700000000126,
                                           .engine_running = 17,
                                           .engine_waiting = 5,
                                           .engine_usage_ppm = 430001,
                                           .engine_queries = 987654321,
                                           .engine_hits = 876543210,
                                           .engine_prompt = 987654322,
                                           .engine_generated = 12345678,
                                           .size_ppm = 812345,
                                           .size_weight_milli = 4321,
                                           .void_blocks = 1234567};

static void assert_hex(const uint8_t *bytes, size_t len, const char *want)
{
    char text[2 * 256 + 1] = "";
    assert_true(len <= 256);
    for (size_t i = 0; i < len; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(text, want);
}

static void the_wire_format_is_unchanged(void **state)
{
    (void)state;
    const struct {
        struct crdt_report row;
        bool dump;
        const char *want;
    } cases[] = {
        {{.kind = CRDT_REPORT_LOAD, .value.load = {7, 70000, 8000000, 900}},
         false,
         "021066554433221107f0a20480a4e8038407"},
        {{.kind = CRDT_REPORT_LOAD, .value.load = {7, 70000, 8000000, 900, 0xfedcba98, 300}},
         false,
         "021766554433221107f0a20480a4e803840798f5f2f60fac02"},
        {{.kind = CRDT_REPORT_SIGHT, .value.sight = {true, 2, 3, true, 11, 4, 0, 0}},
         false,
         "030b6655443322110302030b04"},
        {{.kind = CRDT_REPORT_SIGHT, .value.sight = {true, 2, 3, true, 11, 4, 7, 0}},
         false,
         "030c6655443322110302030b0407"},
        {{.kind = CRDT_REPORT_SIGHT, .value.sight = {true, 2, 3, true, 11, 4, 0, 1 << 9}},
         false,
         "030e6655443322110302030b04000002"},
        {{.kind = CRDT_REPORT_LEARNED, .value.learned = {.prompt_tokens = 1, .engine_work = 300}},
         false,
         "042466554433221100000000000000000000010000000000000000000000000000000000ac02"},
        {{.kind = CRDT_REPORT_LEARNED, .value.learned = sample},
         false,
         "045f66554433221180b518d9d737f1bdf3d5078040fa01e0eac304c0c4077f8020800194b4e4f4cb03adca83f"
         "7ef02b1a803e0dc2aa0ac4f"
         "c102fed095ffbc311105b19f1ab1d1f9d603eaf9fba103b2d1f9d603cec2f105b9ca31e1210087ad4b"},
        {{.kind = CRDT_REPORT_LEARNED, .seq = 300, .value.learned = sample},
         true,
         "0461665544332211ac0280b518d9d737f1bdf3d5078040fa01e0eac304c0c4077f8020800194b4e4f4cb03adc"
         "a83f7ef02b1a803e0dc2aa0ac4f"
         "c102fed095ffbc311105b19f1ab1d1f9d603eaf9fba103b2d1f9d603cec2f105b9ca31e1210087ad4b"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t bytes[256];
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        crdt_record_write_report(&w, 0x112233445566, &cases[i].row, cases[i].dump);
        assert_false(w.bad);
        assert_hex(bytes, wire_written(&w), cases[i].want);
    }
}

static void the_digests_are_unchanged(void **state)
{
    (void)state;
    struct crdt_state *s = states_make(&(struct states_setting){.self = 1});
    unsigned slot = states_replica(s, 1);
    uint64_t loads, others;
    crdt_state_learned(s, slot, &sample);
    (void)states_tell_nobody(s, 5);
    crdt_reports_digest(crdt_state_reports(s), &loads, &others);
    assert_int_equal(loads, 0);
    assert_int_equal(others, 0xea5ca5f6603342a7);
    crdt_state_load(s, slot, &(struct crdt_load){7, 70000, 8000000, 900, 0, 0});
    crdt_state_sight(s, slot, &(struct crdt_sight){true, 2, 3, true, 0, 0, 0, 0, 0});
    (void)states_tell_nobody(s, 6);
    crdt_reports_digest(crdt_state_reports(s), &loads, &others);
    assert_int_equal(loads, 0xb94fc99a305bb449);
    assert_int_equal(others, 0xe614995ae526afc6);
    crdt_state_destroy(s);
}

/* The least value above 1,000 reported again; ALONG: none. */
enum { CHANGED = 1001, MOVED = 1021, DOUBLED = 2001, ALONG = INT32_MAX };

static void a_field_is_reported_again_by_its_rule(void **state)
{
    (void)state;
    struct crdt_learned before, now;
#define FILL(width, name, when) before.name = 1000;
    CRDT_LEARNED_FIELDS(FILL)
#define JUDGE(width, name, when)                                                                   \
    now = before;                                                                                  \
    now.name = (when)-1;                                                                           \
    assert_false(crdt_learned_moved(&before, &now));                                               \
    now.name = (when);                                                                             \
    assert_true(crdt_learned_moved(&before, &now) == ((when) != ALONG));
    CRDT_LEARNED_FIELDS(JUDGE)
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wire_format_is_unchanged),
        cmocka_unit_test(the_digests_are_unchanged),
        cmocka_unit_test(a_field_is_reported_again_by_its_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
