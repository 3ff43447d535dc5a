/* Wire cursors: readers return the written values, and no input makes a reader leave the given
 * bytes. */
#include "base/prng.h"
#include "base/wire.h"
#include "tests/lib/test.h"

static void written_fields_are_read_back(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u8(&w, 0xfe);
    wire_write_u16(&w, 0xfedc);
    wire_write_u32(&w, 0xfedcba98);
    wire_write_u48(&w, 0xfedcba987654);
    wire_write_u64(&w, UINT64_C(0xfedcba9876543210));
    wire_write_varint(&w, UINT64_MAX);
    wire_write_bytes(&w, "abc", 3);
    assert_false(w.bad);
    assert_int_equal(bytes[1], 0xdc); /* little-endian */
    struct wire_reader r = wire_reader_of(bytes, wire_written(&w));
    assert_int_equal(wire_read_u8(&r), 0xfe);
    assert_int_equal(wire_read_u16(&r), 0xfedc);
    assert_int_equal(wire_read_u32(&r), 0xfedcba98);
    assert_true(wire_read_u48(&r) == UINT64_C(0xfedcba987654));
    assert_true(wire_read_u64(&r) == UINT64_C(0xfedcba9876543210));
    assert_true(wire_read_varint(&r) == UINT64_MAX);
    assert_true(slice_equal(wire_read_bytes(&r, 3), slice_of("abc", 3)));
    assert_int_equal(wire_left(&r), 0);
    assert_false(r.bad);
}

static void varints_have_their_predicted_length(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 1);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t value = prng_next(&prng) >> prng_below(&prng, 64);
        uint8_t bytes[WIRE_VARINT_MAX];
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        wire_write_varint(&w, value);
        assert_int_equal(wire_written(&w), wire_varint_bytes(value));
        struct wire_reader r = wire_reader_of(bytes, wire_written(&w));
        assert_true(wire_read_varint(&r) == value && !r.bad);
        struct wire_reader cut = wire_reader_of(bytes, wire_written(&w) - 1);
        assert_true(wire_read_varint(&cut) == 0 && cut.bad);
    }
}

static void overlong_varints_are_bad(void **state)
{
    (void)state;
    static const uint8_t bad[][11] = {
        {0x80, 0x00},
        {0x80, 0x80, 0x00},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wire_reader r = wire_reader_of(bad[i], sizeof bad[i]);
        assert_true(wire_read_varint(&r) == 0 && r.bad);
    }
}

static void reading_beyond_the_end_is_a_lasting_error(void **state)
{
    (void)state;
    uint8_t bytes[4] = {1, 2, 3, 4};
    struct wire_reader r = wire_reader_of(bytes, sizeof bytes);
    (void)wire_read_u64(&r);
    assert_true(r.bad);
    assert_int_equal(wire_read_u8(&r), 0);
    assert_int_equal(wire_left(&r), 0);
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u64(&w, 9);
    wire_write_u8(&w, 9);
    assert_true(w.bad);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(wire_written(&w), 0);
    struct wire_reader limit = wire_reader_of(bytes, sizeof bytes);
    assert_int_equal(wire_read_varint_max(&limit, 0), 0);
    assert_true(limit.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_fields_are_read_back),
        cmocka_unit_test(varints_have_their_predicted_length),
        cmocka_unit_test(overlong_varints_are_bad),
        cmocka_unit_test(reading_beyond_the_end_is_a_lasting_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
