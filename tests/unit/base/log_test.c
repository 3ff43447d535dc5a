#include "tests/lib/test.h"

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

static struct log logger;
static struct buf written;
static uint64_t now_ms;
static unsigned lines;

static void take(void *context, struct slice line)
{
    assert_ptr_equal(context, &written);
    assert_int_equal(buf_append_slice(&written, line), 0);
    lines++;
}

static uint64_t clock_ms(void *context)
{
    (void)context;
    return now_ms;
}

static int setup(void **state)
{
    (void)state;
    log_init(&logger, take, clock_ms, &written);
    now_ms = 1767225600123; /* 2026-01-01T00:00:00.123Z */
    lines = 0;
    buf_clear(&written);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_free(&written);
    return 0;
}

static void test_text(void **state)
{
    (void)state;
    log_event(&logger, LOG_INFO, "replica_up", LOG_CSTR("replica", "10.0.0.1:8000"),
              LOG_INT("after_ms", -12), LOG_UINT("n", UINT64_MAX), LOG_FLOAT("share", 0.25),
              LOG_BOOL("first", true));
    assert_slice_equal(buf_slice(&written),
                       "2026-01-01T00:00:00.123Z info  replica_up replica=10.0.0.1:8000 "
                       "after_ms=-12 n=18446744073709551615 share=0.25 first=true\n");
    buf_clear(&written);
    logger.color = true;
    log_event(&logger, LOG_ERROR, "x", LOG_BOOL("b", false));
    assert_slice_equal(buf_slice(&written),
                       "2026-01-01T00:00:00.123Z \x1b[31merror\x1b[0m x b=false\n");
}

static void test_json(void **state)
{
    (void)state;
    logger.json = true;
    log_event(&logger, LOG_WARN, "odd", LOG_CSTR("text", "a \"b\"\n\\\x7f"), LOG_INT("n", 3),
              LOG_FLOAT("nan", __builtin_nan("")));
    assert_slice_equal(buf_slice(&written),
                       "{\"time\":\"2026-01-01T00:00:00.123Z\",\"level\":\"warn\",\"event\":"
                       "\"odd\",\"text\":\"a \\\"b\\\"\\n\\\\\\u007f\",\"n\":3,\"nan\":null}\n");
}

static void test_text_values_are_unambiguous(void **state)
{
    (void)state;
    log_event(&logger, LOG_INFO, "x", LOG_CSTR("empty", ""), LOG_CSTR("spaced", "a b"),
              LOG_CSTR("equals", "a=b"), LOG_CSTR("forged", "a\n2026 error y"),
              LOG_CSTR("escape", "\x1b[31m"), LOG_CSTR("c1", "\xc2\x9b\x33"));
    assert_slice_equal(buf_slice(&written),
                       "2026-01-01T00:00:00.123Z info  x empty=\"\" spaced=\"a b\" "
                       "equals=\"a=b\" forged=\"a\\n2026 error y\" escape=\"\\u001b[31m\" "
                       "c1=\"\\u009b3\"\n");
}

static unsigned evaluated;

static int count_evaluation(void)
{
    return (int)++evaluated;
}

static void test_levels(void **state)
{
    (void)state;
    evaluated = 0;
    log_event(&logger, LOG_DEBUG, "x", LOG_INT("n", count_evaluation()));
    assert_int_equal(lines, 0);
    assert_int_equal(evaluated, 0); /* a disabled level costs nothing */
    logger.level = LOG_DEBUG;
    log_event(&logger, LOG_DEBUG, "x", LOG_INT("n", count_evaluation()));
    assert_int_equal(lines, 1);
    logger.level = LOG_ERROR;
    log_event(&logger, LOG_WARN, "x", LOG_INT("n", 1));
    assert_int_equal(lines, 1);

    enum log_level level;
    for (unsigned i = LOG_ERROR; i <= LOG_DEBUG; i++) {
        assert_int_equal(log_level_parse(slice_of_cstr(log_level_name(i)), &level), 0);
        assert_int_equal(level, i);
    }
    assert_int_equal(log_level_parse(SLICE("loud"), &level), ERR_NOT_FOUND);
}

static void test_flood(void **state)
{
    (void)state;
    logger.burst = 3;
    for (int i = 0; i < 10; i++)
        log_event(&logger, LOG_WARN, "flood", LOG_INT("i", i));
    log_event(&logger, LOG_WARN, "other", LOG_INT("i", 0)); /* the flood suppresses only "flood" */
    assert_int_equal(lines, 4);
    assert_int_equal(logger.suppressed_total, 7);
    now_ms += 1000;
    buf_clear(&written);
    log_event(&logger, LOG_WARN, "flood", LOG_INT("i", 10));
    assert_slice_equal(buf_slice(&written),
                       "2026-01-01T00:00:01.123Z warn  flood suppressed=7 i=10\n");
    buf_clear(&written);
    log_event(&logger, LOG_WARN, "flood", LOG_INT("i", 11));
    assert_slice_equal(buf_slice(&written), "2026-01-01T00:00:01.123Z warn  flood i=11\n");
}

static void test_flush_reports_suppressed_events(void **state)
{
    (void)state;
    logger.burst = 1;
    for (int i = 0; i < 5; i++)
        log_event(&logger, LOG_INFO, "flood", LOG_INT("i", i));
    buf_clear(&written);
    log_flush(&logger);
    assert_slice_equal(buf_slice(&written), "2026-01-01T00:00:00.123Z warn  flood suppressed=4\n");
    buf_clear(&written);
    log_flush(&logger);
    assert_int_equal(written.len, 0);
}

static void test_excess_event_names_share_a_limit(void **state)
{
    (void)state;
    static char names[200][16];
    logger.burst = 2;
    for (int i = 0; i < 200; i++) {
        (void)snprintf(names[i], sizeof names[i], "e%d", i);
        log_event(&logger, LOG_INFO, names[i], LOG_INT("i", i));
    }
    assert_int_equal(lines, LOG_EVENTS_MAX - 1 + 2);
}

/* Any bytes become a line of valid JSON, with the same string up to the cut. */
static void check_json_line(struct slice value, bool whole)
{
    char line[LOG_LINE_MAX];
    struct log_field fields[] = {LOG_STR("v", value), LOG_INT("n", 1)};
    logger.json = true;
    size_t len = log_format(&logger, LOG_INFO, "e", fields, 2, now_ms, line);
    assert_in_range(len, 1, LOG_LINE_MAX);
    assert_int_equal(line[len - 1], '\n');
    for (size_t i = 0; i + 1 < len; i++)
        assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
    json_error_t at;
    json_t *json = json_loadb(line, len, JSON_ALLOW_NUL, &at);
    if (json == NULL)
        fail_msg("no JSON: %.*s", (int)len, line);
    if (whole) {
        json_t *v = json_object_get(json, "v");
        assert_true(slice_equal(slice_of(json_string_value(v), json_string_length(v)), value));
        assert_int_equal(json_integer_value(json_object_get(json, "n")), 1);
    }
    json_decref(json);
    logger.json = false;
    len = log_format(&logger, LOG_INFO, "e", fields, 2, now_ms, line);
    assert_int_equal(line[len - 1], '\n');
    assert_null(memchr(line, '\n', len - 1));
}

static void test_any_bytes_give_valid_json(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char bytes[4] = {(char)a, (char)b, (char)0x80, (char)0x80};
            for (size_t n = 1; n <= sizeof bytes; n++)
                check_json_line(slice_of(bytes, n), n == 1 && a < 0x80);
        }
    }
    check_json_line(SLICE("\xe2\x80\xa8 \xf0\x9f\x98\x80 \xc3\xa9"), true);
    check_json_line((struct slice){0}, true);
}

static void test_long_lines_are_cut(void **state)
{
    (void)state;
    static char big[3 * LOG_LINE_MAX];
    memset(big, 1, sizeof big); /* each byte takes six in the output */
    check_json_line(slice_of(big, sizeof big), false);
    struct log_field fields[24];
    for (unsigned i = 0; i < 24; i++)
        fields[i] = LOG_STR("value", slice_of(big, 100 + i * 7));
    for (unsigned json = 0; json < 2; json++) {
        for (unsigned count = 1; count <= 24; count++) {
            char line[LOG_LINE_MAX];
            logger.json = json == 1;
            size_t len = log_format(&logger, LOG_INFO, "e", fields, count, now_ms, line);
            assert_in_range(len, 1, LOG_LINE_MAX);
            assert_int_equal(line[len - 1], '\n');
            bool cut = memmem(line, len, "cut", 3) != NULL;
            assert_int_equal(cut, count > 5);
            json_t *parsed = logger.json ? json_loadb(line, len, 0, NULL) : NULL;
            assert_int_equal(parsed != NULL, logger.json);
            json_decref(parsed);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static unsigned tapped;

static void tap(void *context, enum log_level level, const char *event,
                const struct log_field *fields, unsigned count, uint64_t now)
{
    assert_ptr_equal(context, &tapped);
    assert_int_equal(level, LOG_INFO);
    assert_string_equal(event, "flood");
    assert_string_equal(fields[0].name, "i");
    assert_int_equal(count, 1);
    assert_int_equal(now, now_ms);
    tapped++;
}

/* A tap gets all events at any level or rate, except for debug events. */
static void test_a_tap_gets_suppressed_events(void **state)
{
    (void)state;
    logger.level = LOG_ERROR;
    logger.burst = 1;
    logger.tap = tap;
    logger.tap_context = &tapped;
    for (unsigned i = 0; i < 7; i++)
        log_event(&logger, LOG_INFO, "flood", LOG_INT("i", i));
    log_event(&logger, LOG_DEBUG, "flood", LOG_INT("i", 0));
    assert_int_equal(tapped, 7);
    assert_int_equal(written.len, 0);
    assert_int_equal(logger.suppressed_total, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_text),
        TEST(test_json),
        TEST(test_text_values_are_unambiguous),
        TEST(test_levels),
        TEST(test_flood),
        TEST(test_flush_reports_suppressed_events),
        TEST(test_excess_event_names_share_a_limit),
        TEST(test_any_bytes_give_valid_json),
        TEST(test_long_lines_are_cut),
        TEST(test_a_tap_gets_suppressed_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
