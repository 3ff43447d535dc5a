/* A connection with an engine which publishes and connects: ZMTP 3. */
#include "node/kv/zmtp.h"

#include <stdlib.h>

#include "tests/lib/test.h"
#include "tests/lib/zmtp.h"

static struct kv_zmtp z;
static size_t piece; /* bytes coming at a time */

/* The events up to the end of `bytes`, a letter each: reply, message, odd, or an error. */
static const char *events(struct slice bytes)
{
    static char said[64];
    size_t count = 0;
    while (bytes.len > 0) {
        struct slice in = slice_of(bytes.at, bytes.len < piece ? bytes.len : piece);
        bytes = slice_skip(bytes, in.len);
        while (in.len > 0 && count + 1 < sizeof said) {
            int event = kv_zmtp_take(&z, &in);
            if (event == KV_ZMTP_MORE)
                continue;
            said[count++] = event == KV_ZMTP_REPLY     ? 'r'
                            : event == KV_ZMTP_MESSAGE ? 'm'
                            : event == KV_ZMTP_ODD     ? 'o'
                            : event == ERR_SYNTAX      ? 'S'
                            : event == ERR_LIMIT       ? 'L'
                                                       : '?';
            if (event < 0) {
                said[count] = '\0';
                return said;
            }
        }
    }
    said[count] = '\0';
    return said;
}

static void begin(size_t at_a_time)
{
    kv_zmtp_free(&z);
    kv_zmtp_begin(&z);
    piece = at_a_time;
    assert_string_equal(events(slice_of(ZMTP_GREETING, ZMTP_GREETING_BYTES)), "r");
    assert_memory_equal(z.reply.at, "\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB", 27);
    assert_false(kv_zmtp_is_ready(&z));
    assert_string_equal(events(ZMTP_READY), "r");
    assert_true(slice_equal(z.reply, SLICE("\0\1\1")));
    assert_true(kv_zmtp_is_ready(&z));
}

static void test_messages(void **state)
{
    (void)state;
    for (piece = 1; piece <= 64; piece *= 8) {
        size_t at_a_time = piece;
        begin(at_a_time);
        struct buf out = {.at = NULL};
        zmtp_message(&out, SLICE("kv@a"), 0x0102030405060708, SLICE("payload"));
        assert_string_equal(events(buf_slice(&out)), "m");
        assert_true(slice_equal(kv_zmtp_topic(&z), SLICE("kv@a")));
        assert_true(kv_zmtp_number(&z) == 0x0102030405060708);
        assert_true(slice_equal(kv_zmtp_payload(&z), SLICE("payload")));
        buf_clear(&out);
        char large[300];
        memset(large, 'x', sizeof large);
        zmtp_message(&out, SLICE(""), 0, slice_of(large, sizeof large));
        zmtp_message(&out, SLICE(""), 1, SLICE("b"));
        assert_string_equal(events(buf_slice(&out)), "mm");
        assert_true(kv_zmtp_number(&z) == 1 && kv_zmtp_topic(&z).len == 0);
        assert_true(slice_equal(kv_zmtp_payload(&z), SLICE("b")));
        buf_free(&out);
    }
}

static void test_other_messages_are_skipped(void **state)
{
    (void)state;
    begin(3);
    assert_string_equal(events(SLICE("\0\1x")), "o"); /* a single part */
    assert_string_equal(events(SLICE("\1\0\1\7"
                                     "1234567\0\1x")),
                        "o"); /* a number of 7 bytes */
    assert_string_equal(events(SLICE("\1\0\1\x09"
                                     "123456789\0\1x")),
                        "o");
    assert_string_equal(events(SLICE("\1\0\1\x08"
                                     "12345678\1\1x\0\1y")),
                        "o"); /* four parts */
    assert_string_equal(events(SLICE("\1\0\1\x08"
                                     "12345678\0\0")),
                        "o"); /* empty */
    char topic[KV_TOPIC_MAX + 1];
    struct buf out = {.at = NULL};
    memset(topic, 't', sizeof topic);
    zmtp_message(&out, slice_of(topic, sizeof topic), 1, SLICE("x"));
    zmtp_message(&out, slice_of(topic, KV_TOPIC_MAX), 2, SLICE("x"));
    assert_string_equal(events(buf_slice(&out)), "om");
    buf_free(&out);
}

static void test_commands(void **state)
{
    (void)state;
    begin(2);
    assert_string_equal(events(SLICE("\4\x0b\4PING\0\x0a"
                                     "beat")),
                        "r");
    assert_true(slice_equal(z.reply, SLICE("\4\x09\4PONG"
                                           "beat")));
    assert_string_equal(events(SLICE("\4\4\3ABC")), "");   /* not known */
    assert_string_equal(events(SLICE("\4\5\4PING")), "S"); /* without a time to live */
    begin(64);
    assert_string_equal(events(SLICE("\4\x18\4PING\0\1"
                                     "12345678901234567")),
                        "S"); /* a context of 17 bytes */
    begin(64);
    assert_string_equal(events(SLICE("\4\2\5A")), "S"); /* the name ends behind the frame */
    begin(64);
    assert_string_equal(events(SLICE("\1\0\4\4\3ABC")), "S"); /* within a message */
    begin(64);
    assert_string_equal(events(SLICE("\6\0\0\0\0\0\0\4\1")), "L");
    begin(64);
    assert_string_equal(events(SLICE("\x08\1x")), "S"); /* an undefined flag */
}

/* A peer other than a PUB with ZMTP 3 is refused at the first bytes. */
static void test_strangers(void **state)
{
    (void)state;
    char hello[ZMTP_GREETING_BYTES];
    const struct {
        size_t at;
        char byte;
    } wrong[] = {{0, 'G'}, {9, 1}, {10, 2}, {12, 'P'}, {31, 'x'}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        memcpy(hello, ZMTP_GREETING, sizeof hello);
        hello[wrong[i].at] = wrong[i].byte;
        kv_zmtp_free(&z);
        kv_zmtp_begin(&z);
        piece = 64;
        assert_string_equal(events(slice_of(hello, sizeof hello)), "S");
    }
    static const struct slice readies[] = {
        {.at = "\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB", .len = 27},
        {.at = "\4\x19\5OTHER\x0bSocket-Type\0\0\0\3PUB", .len = 27},
        {.at = "\4\6\5READY", .len = 8},
        {.at = "\4\x19\5READY\x0bSocket-Type\0\0\0\4PUB", .len = 27},
        {.at = "\4\7\5READY\1", .len = 9},
        {.at = "\0\1x", .len = 3},
        {.at = "\4\0", .len = 2},
        {.at = "\x0c\0", .len = 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(readies); i++) {
        kv_zmtp_free(&z);
        kv_zmtp_begin(&z);
        piece = 64;
        assert_string_equal(events(slice_of(ZMTP_GREETING, ZMTP_GREETING_BYTES)), "r");
        assert_string_equal(events(readies[i]), "S");
    }
}

/* A length alone takes no memory, and a length beyond the limit ends the connection. */
static void test_lengths(void **state)
{
    (void)state;
    begin(64);
    assert_string_equal(events(SLICE("\1\0\1\x08"
                                     "12345678\2\0\0\0\0\1\0\0\0x")),
                        "");
    assert_true(kv_zmtp_held(&z) < 4096);
    begin(64);
    assert_string_equal(events(SLICE("\2\0\0\0\0\1\0\0\1")), "L");
    begin(64);
    assert_string_equal(events(SLICE("\2\xff\xff\xff\xff\xff\xff\xff\xff")), "L");
    begin(65536);
    size_t len = 1 << 20;
    char *large = calloc(1, len);
    assert_non_null(large);
    struct buf out = {.at = NULL};
    zmtp_message(&out, SLICE(""), 1, slice_of(large, len));
    assert_string_equal(events(buf_slice(&out)), "m");
    assert_true(kv_zmtp_payload(&z).len == len && kv_zmtp_held(&z) >= len);
    assert_string_equal(events(SLICE("\1")), "");
    assert_true(kv_zmtp_held(&z) == 0); /* the memory is free again */
    buf_free(&out);
    free(large);
}

static int end(void **state)
{
    (void)state;
    kv_zmtp_free(&z);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_other_messages_are_skipped),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
