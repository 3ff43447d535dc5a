#include "tests/lib/test.h"

#include "base/err.h"
#include "gossip/frame.h"

static uint8_t bytes[GOSSIP_PACKET_MAX];

static struct wire_writer writer(void)
{
    return wire_writer_of(bytes, sizeof bytes);
}

static int read_one(size_t len, struct gossip_frame_any *f)
{
    struct wire_reader r = wire_reader_of(bytes, len);
    return gossip_frame_read(&r, false, f);
}

static void test_a_delta_round_trips_and_the_largest_fits(void **state)
{
    (void)state;
    static char text[GOSSIP_DELTA_MAX];
    memset(text, 'd', sizeof text);
    struct gossip_frame_delta f = {.epoch = GOSSIP_EPOCH_LIMIT - 1,
                                   .seq = GOSSIP_SEQ_LIMIT - 1,
                                   .relayed = true,
                                   .author = UINT64_MAX,
                                   .bytes = slice_of(text, sizeof text)};
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_delta(&w, &f));
    struct gossip_frame_any out;
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_int_equal(out.type, GOSSIP_FRAME_DELTA);
    assert_true(out.delta.relayed && !out.delta.forward);
    assert_true(out.delta.author == UINT64_MAX && out.delta.seq == GOSSIP_SEQ_LIMIT - 1);
    assert_true(slice_equal(out.delta.bytes, f.bytes));
    f.relayed = false;
    f.forward = true;
    f.group = 1022;
    f.groups = 1023;
    w = writer();
    assert_true(gossip_frame_write_delta(&w, &f));
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_int_equal(out.delta.group, 1022);
    assert_false(gossip_frame_write_delta(&w, &f)); /* no room for two; the packet stays whole */
    assert_int_equal(gossip_frame_packet_check(slice_of((char *)bytes, wire_written(&w)), false),
                     0);
}

static void test_alive_round_trips_short_and_full(void **state)
{
    (void)state;
    struct gossip_frame_alive f = {.full = true,
                                   .incarnation = UINT64_C(1700000000000) << 16 | 3,
                                   .seq = 77,
                                   .vector = 5,
                                   .members = 6,
                                   .health = 7,
                                   .sent = 8,
                                   .echo = 9,
                                   .held = 10};
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_alive(&w, &f));
    assert_true(wire_written(&w) <= GOSSIP_ALIVE_BYTES);
    struct gossip_frame_any out;
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_true(out.alive.full && out.alive.incarnation == f.incarnation && out.alive.seq == 77);
    assert_true(out.alive.vector == 5 && out.alive.members == 6 && out.alive.health == 7);
    assert_true(out.alive.sent == 8 && out.alive.echo == 9 && out.alive.held == 10);
    f = (struct gossip_frame_alive){.incarnation = f.incarnation};
    w = writer();
    assert_true(gossip_frame_write_alive(&w, &f));
    assert_int_equal(wire_written(&w), 12);
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_true(!out.alive.full && out.alive.incarnation == f.incarnation && out.alive.seq == 0);
}

static void test_ranges_round_trip(void **state)
{
    (void)state;
    struct gossip_frame_nack f = {.epoch = 1, .ranges = {.count = GOSSIP_RANGES_MAX}};
    for (unsigned i = 0; i < GOSSIP_RANGES_MAX; i++)
        f.ranges.at[i] = (struct gossip_range){.first = 1 + 10 * i, .last = 1 + 10 * i + i % 9};
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_nack(&w, &f));
    struct gossip_frame_any out;
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_memory_equal(&out.nack.ranges, &f.ranges, sizeof f.ranges);
}

static void test_members_round_trip(void **state)
{
    (void)state;
    struct gossip_frame_member f = {
        .incarnation = 1 << 16,
        .state = GOSSIP_SUSPECT,
        .count = 2,
        .places = {{.kind = GOSSIP_PLACE_LEARNED,
                    .at = {.ip = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .port = 1, .family = 6}},
                   {.kind = GOSSIP_PLACE_YOURS,
                    .at = {.ip = {10, 0, 0, 7}, .port = 7490, .family = 4}}},
        .name = SLICE("router-1"),
        .meta = SLICE("\0binary")};
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_member(&w, &f));
    f.count = 0; /* not known */
    assert_true(gossip_frame_write_member(&w, &f));
    struct wire_reader r = wire_reader_of(bytes, wire_written(&w));
    for (unsigned i = 0; i < 2; i++) {
        struct gossip_frame_any out;
        struct gossip_frame_member m;
        assert_int_equal(gossip_frame_read(&r, false, &out), 1);
        struct wire_reader body = wire_reader_of(out.body.at, out.body.len);
        assert_int_equal(gossip_frame_member(&body, &m), 1);
        assert_true(m.incarnation == f.incarnation && m.state == f.state);
        assert_true(slice_equal(m.name, f.name) && slice_equal(m.meta, f.meta));
        assert_int_equal(m.count, 2 - 2 * i);
        if (i == 0)
            assert_memory_equal(m.places, f.places, sizeof f.places);
        assert_int_equal(gossip_frame_member(&body, &m), 0);
    }
}

/* An address of another kind, an address of another length, more addresses than are kept, and bytes
 * behind the known fields are all skipped. */
static void test_unknown_fields_of_members_are_skipped(void **state)
{
    (void)state;
    static const char entry[] = "\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01n\x00\x03"
                                "\x09\x06\x0a\x00\x00\x01\x42\x1d"
                                "\x01\x03xyz"
                                "\x01\x06\x0a\x00\x00\x02\x42\x1d"
                                "and more";
    struct wire_writer w = writer();
    wire_write_u8(&w, GOSSIP_FRAME_MEMBERS);
    wire_write_u8(&w, 2 * sizeof entry);
    for (unsigned i = 0; i < 2; i++) {
        wire_write_u8(&w, sizeof entry - 1);
        wire_write_bytes(&w, entry, sizeof entry - 1);
    }
    struct gossip_frame_any out;
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    struct wire_reader body = wire_reader_of(out.body.at, out.body.len);
    struct gossip_frame_member m;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(gossip_frame_member(&body, &m), 1);
        assert_true(m.incarnation == 1 << 16 && slice_equal(m.name, SLICE("n")));
        assert_int_equal(m.count, 1);
        assert_int_equal(m.places[0].at.ip[3], 2);
        assert_int_equal(m.places[0].at.port, 7490);
    }
    assert_int_equal(gossip_frame_member(&body, &m), 0);
    struct gossip_frame_member many = {.incarnation = 1 << 16, .name = SLICE("n")};
    many.count = GOSSIP_FRAME_PLACES_MAX;
    for (unsigned i = 0; i < many.count; i++)
        many.places[i] = (struct gossip_frame_place){
            .kind = GOSSIP_PLACE_ADVERTISED, .at = {.ip = {(uint8_t)i}, .port = 1, .family = 6}};
    w = writer();
    assert_true(gossip_frame_write_member(&w, &many));
    assert_int_equal(read_one(wire_written(&w), &out), 1);
}

static void test_a_refusal_round_trips(void **state)
{
    (void)state;
    struct gossip_frame_any out;
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_full(&w, &(struct gossip_frame_full){.limit = 512}));
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    assert_int_equal(out.type, GOSSIP_FRAME_FULL);
    assert_int_equal(out.full.limit, 512);
}

static void test_long_vectors_are_split_into_packets(void **state)
{
    (void)state;
    struct gossip_frame_entry entries[300];
    for (unsigned i = 0; i < 300; i++)
        entries[i] =
            (struct gossip_frame_entry){.node = i + 1, .epoch = 5, .seq = UINT64_C(1) << 40};
    unsigned done = 0;
    unsigned packets = 0;
    while (done < 300) {
        struct wire_writer w = writer();
        unsigned n = gossip_frame_write_vector(&w, entries + done, 300 - done);
        assert_true(n > 40);
        assert_int_equal(
            gossip_frame_packet_check(slice_of((char *)bytes, wire_written(&w)), false), 0);
        done += n;
        packets++;
    }
    assert_int_equal(packets, 5);
}

static void test_malformed_frames_are_refused(void **state)
{
    (void)state;
#define BAD(text)                                                                                  \
    assert_int_equal(gossip_frame_packet_check(slice_of((text), sizeof(text) - 1), false),         \
                     ERR_SYNTAX)
    BAD("\x00");                                                  /* no length */
    BAD("\x00\x05xx");                                            /* longer than the packet */
    BAD("\x00\x09\x08\x00\x01\x00\x00\x00\x00\x00\x01");          /* delta: no bytes */
    BAD("\x00\x0a\x09\x04\x01\x00\x00\x00\x00\x00\x01x");         /* only a head */
    BAD("\x00\x0a\x07\x00\x01\x00\x00\x00\x00\x00\x01x");         /* no number in the head */
    BAD("\x00\x0a\x08\x00\x00\x00\x00\x00\x00\x00\x01x");         /* epoch 0 */
    BAD("\x00\x0a\x08\x00\x01\x00\x00\x00\x00\x00\x00x");         /* number 0 */
    BAD("\x00\x0c\x0a\x02\x01\x00\x00\x00\x00\x00\x01\x03\x03x"); /* group 3 of 3 */
    BAD("\x02\x09\x01\x00\x00\x00\x00\x00\x01\x00\x00");          /* nack: a range of length 0 */
    BAD("\x02\x07\x01\x00\x00\x00\x00\x00\x21");                  /* 33 ranges */
    BAD("\x03\x06\x01\x00\x00\x00\x00\x00");                      /* gone: no number */
    /* Members: no name, state 4, port 0, a cut entry. */
    BAD("\x04\x0d\x0c\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    BAD("\x04\x0e\x0d\x00\x00\x01\x00\x00\x00\x00\x00\x04\x01n\x00\x00");
    BAD("\x04\x16\x15\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01n\x00\x01\x01\x06\x0a\x00\x00\x01\x00"
        "\x00");
    BAD("\x04\x0d\x0d\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01n\x00");
    BAD("\x05\x05\x02\x01\x00\x00\x00"); /* no target */
    BAD("\x07\x13\x11\x01\x00\x00\x00\x00\x00\x01\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00zz");
#undef BAD
    /* A part must have exactly the length required at the index. */
    struct gossip_frame_part f = {
        .epoch = 1, .id = 1, .total = 1165, .index = 1, .bytes = SLICE("12345")};
    struct wire_writer w = writer();
    assert_true(gossip_frame_write_part(&w, &f));
    struct gossip_frame_any out;
    assert_int_equal(read_one(wire_written(&w), &out), 1);
    /* behind type, length, length of the head, epoch, id, total */
    uint8_t *index = w.start + 1 + 1 + 1 + 6 + 1 + 2;
    assert_int_equal(*index, 1);
    *index = 0;
    assert_int_equal(read_one(wire_written(&w), &out), ERR_SYNTAX);
    *index = 2;
    assert_int_equal(read_one(wire_written(&w), &out), ERR_SYNTAX);
}

static void test_unknown_types_are_skipped(void **state)
{
    (void)state;
    struct wire_reader r = wire_reader_of("\xc8\x03xyz\x05\x05\x01\x01\x00\x00\x00", 12);
    struct gossip_frame_any f;
    assert_int_equal(gossip_frame_read(&r, false, &f), 1);
    assert_int_equal(f.type, GOSSIP_FRAMES);
    assert_int_equal(gossip_frame_read(&r, false, &f), 1);
    assert_int_equal(f.type, GOSSIP_FRAME_PING);
    assert_true(f.ping.who && f.ping.nonce == 1);
    assert_int_equal(gossip_frame_read(&r, false, &f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_delta_round_trips_and_the_largest_fits),
        cmocka_unit_test(test_alive_round_trips_short_and_full),
        cmocka_unit_test(test_ranges_round_trip),
        cmocka_unit_test(test_members_round_trip),
        cmocka_unit_test(test_unknown_fields_of_members_are_skipped),
        cmocka_unit_test(test_a_refusal_round_trips),
        cmocka_unit_test(test_long_vectors_are_split_into_packets),
        cmocka_unit_test(test_malformed_frames_are_refused),
        cmocka_unit_test(test_unknown_types_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
