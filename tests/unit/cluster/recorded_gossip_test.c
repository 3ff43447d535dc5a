/* Recorded frames and handshakes of each version (tests/unit/cluster/recorded/): every later build
 * must read the same values from them. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "gossip/frame.h"
#include "gossip/session.h"
#include "tests/lib/recorded.h"

static struct slice slice_of_bytes(const uint8_t *at, size_t len)
{
    return slice_of((const char *)at, len);
}

#define SLICE_OF(array) slice_of_bytes((array), sizeof(array))

/* --- frames ---------------------------------------------------------------------------------- */

static const uint64_t life = UINT64_C(1700000000123);
static const struct gossip_ranges ranges = {.count = 2, .at = {{3, 5}, {9, 300}}};

static void record_frames(struct recorded *out)
{
    uint8_t bytes[GOSSIP_PACKET_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
#define RECORD(call)                                                                               \
    assert_true(call);                                                                             \
    recorded_add(out, slice_of_bytes(bytes, wire_written(&w)));                                    \
    w = wire_writer_of(bytes, sizeof bytes)
    struct gossip_frame_delta delta = {
        .epoch = life, .seq = 300, .relayed = true, .author = 77, .bytes = SLICE("relayed")};
    RECORD(gossip_frame_write_delta(&w, &delta));
    delta = (struct gossip_frame_delta){.epoch = life,
                                        .seq = 1,
                                        .forward = true,
                                        .group = 3,
                                        .groups = 17,
                                        .bytes = SLICE("to be handed on")};
    RECORD(gossip_frame_write_delta(&w, &delta));
    struct gossip_frame_alive alive = {.incarnation = life << 16 | 2, .seq = 12345};
    RECORD(gossip_frame_write_alive(&w, &alive));
    alive.full = true;
    alive.vector = 0x1122334455667788;
    alive.members = 0x8877665544332211;
    alive.health = 3;
    alive.sent = 1000001;
    alive.echo = 999999;
    alive.held = 500;
    RECORD(gossip_frame_write_alive(&w, &alive));
    RECORD(gossip_frame_write_nack(&w, &(struct gossip_frame_nack){life, ranges}));
    RECORD(gossip_frame_write_gone(&w, &(struct gossip_frame_gone){life, 4711}));
    struct gossip_frame_member member = {
        .incarnation = life << 16,
        .state = GOSSIP_SUSPECT,
        .name = SLICE("router-1"),
        .meta = SLICE("meta"),
        .count = 2,
        .places = {{GOSSIP_PLACE_ADVERTISED, {{192, 0, 2, 7}, 9090, 4}},
                   {GOSSIP_PLACE_OBSERVED, {{0xfd, 9}, 9091, 6}}}};
    RECORD(gossip_frame_write_member(&w, &member));
    struct gossip_frame_ping ping = {.who = true, .nonce = 99, .target = 5};
    RECORD(gossip_frame_write_ping(&w, false, &ping));
    ping = (struct gossip_frame_ping){.nonce = 98, .origin = 6};
    RECORD(gossip_frame_write_ping(&w, true, &ping));
    struct gossip_frame_part part = {.epoch = life,
                                     .id = 12,
                                     .total = GOSSIP_PART_BYTES + 4,
                                     .index = 1,
                                     .vector = 0xabcdef,
                                     .bytes = SLICE("rest")};
    RECORD(gossip_frame_write_part(&w, &part));
    RECORD(gossip_frame_write_resend(&w, &(struct gossip_frame_resend){life, 12, true, ranges}));
    struct gossip_frame_entry entries[] = {{77, life, 300}, {78, life + 1, 0}};
    RECORD(gossip_frame_write_vector(&w, entries, 2) == 2);
    RECORD(gossip_frame_write_full(&w, &(struct gossip_frame_full){.limit = 512}));
#undef RECORD
}

static void check_ranges(const struct gossip_ranges *r)
{
    assert_int_equal(r->count, 2);
    assert_memory_equal(r->at, ranges.at, 2 * sizeof r->at[0]);
}

static void check_alive(const struct gossip_frame_alive *f)
{
    assert_true(f->incarnation == (life << 16 | 2) && f->seq == 12345);
    if (!f->full)
        return;
    assert_true(f->vector == 0x1122334455667788 && f->members == 0x8877665544332211);
    assert_true(f->health == 3 && f->sent == 1000001 && f->echo == 999999 && f->held == 500);
}

static void check_list(const struct gossip_frame_any *f)
{
    struct wire_reader body = wire_reader_of(f->body.at, f->body.len);
    struct gossip_frame_member member;
    struct gossip_frame_entry entry;
    if (f->type == GOSSIP_FRAME_MEMBERS) {
        assert_int_equal(gossip_frame_member(&body, &member), 1);
        assert_true(member.incarnation == life << 16 && member.state == GOSSIP_SUSPECT);
        assert_int_equal(member.count, 2);
        assert_true(member.places[0].kind == GOSSIP_PLACE_ADVERTISED &&
                    member.places[0].at.family == 4);
        assert_true(member.places[0].at.port == 9090 && member.places[0].at.ip[3] == 7);
        assert_true(member.places[1].kind == GOSSIP_PLACE_OBSERVED &&
                    member.places[1].at.family == 6);
        assert_true(member.places[1].at.port == 9091 && member.places[1].at.ip[1] == 9);
        assert_slice_equal(member.name, "router-1");
        assert_slice_equal(member.meta, "meta");
        assert_int_equal(gossip_frame_member(&body, &member), 0);
        return;
    }
    assert_int_equal(gossip_frame_entry(&body, &entry), 1);
    assert_true(entry.node == 77 && entry.epoch == life && entry.seq == 300);
    assert_int_equal(gossip_frame_entry(&body, &entry), 1);
    assert_true(entry.node == 78 && entry.epoch == life + 1 && entry.seq == 0);
    assert_int_equal(gossip_frame_entry(&body, &entry), 0);
}

static void check_frame(const struct gossip_frame_any *f)
{
    if (f->type == GOSSIP_FRAME_DELTA && f->delta.relayed) {
        assert_true(f->delta.author == 77 && f->delta.seq == 300 && f->delta.epoch == life);
        assert_slice_equal(f->delta.bytes, "relayed");
    } else if (f->type == GOSSIP_FRAME_DELTA) {
        assert_true(f->delta.forward && f->delta.group == 3 && f->delta.groups == 17);
        assert_slice_equal(f->delta.bytes, "to be handed on");
    } else if (f->type == GOSSIP_FRAME_ALIVE) {
        check_alive(&f->alive);
    } else if (f->type == GOSSIP_FRAME_NACK) {
        assert_true(f->nack.epoch == life);
        check_ranges(&f->nack.ranges);
    } else if (f->type == GOSSIP_FRAME_GONE) {
        assert_true(f->gone.epoch == life && f->gone.oldest == 4711);
    } else if (f->type == GOSSIP_FRAME_PING) {
        assert_true(f->ping.who && f->ping.nonce == 99 && f->ping.target == 5);
    } else if (f->type == GOSSIP_FRAME_ACK) {
        assert_true(!f->ping.who && f->ping.nonce == 98 && f->ping.origin == 6);
    } else if (f->type == GOSSIP_FRAME_PART) {
        assert_true(f->part.id == 12 && f->part.index == 1 && f->part.vector == 0xabcdef);
        assert_slice_equal(f->part.bytes, "rest");
    } else if (f->type == GOSSIP_FRAME_RESEND) {
        assert_true(f->resend.id == 12 && f->resend.done);
        check_ranges(&f->resend.ranges);
    } else if (f->type == GOSSIP_FRAME_FULL) {
        assert_int_equal(f->full.limit, 512);
    } else {
        check_list(f);
    }
}

/* Reads a frame; returns the type. */
static enum gossip_frame read_one(struct slice packet)
{
    struct wire_reader r = wire_reader_of(packet.at, packet.len);
    struct gossip_frame_any f;
    assert_int_equal(gossip_frame_packet_check(packet, false), 0);
    assert_int_equal(gossip_frame_read(&r, false, &f), 1);
    assert_true(f.type < GOSSIP_FRAMES && f.bytes == packet.len);
    check_frame(&f);
    return f.type;
}

static void frames_are_read(void **state)
{
    (void)state;
    struct recorded now = {0}, then;
    record_frames(&now);
    recorded_update(&now, RECORDED_VERSION, "frames");
    for (unsigned version = 1; version <= RECORDED_VERSION; version++) {
        unsigned types = 0;
        recorded_load(&then, version, "frames");
        for (unsigned i = 0; i < then.count; i++)
            types |= 1u << read_one(recorded_item(&then, i));
        assert_int_equal(types, (1u << GOSSIP_FRAMES) - 1); /* every frame type was recorded */
        recorded_free(&then);
    }
    recorded_free(&now);
}

/* The same frames with possible additions of a later version: flags, unknown frames in between, and
 * bytes behind the known bytes. If the frame carries the application's bytes, the head is longer,
 * otherwise the body. */
static void frames_may_be_longer(void **state)
{
    (void)state;
    static const char more[] = "\x2a more";
    struct recorded then;
    recorded_load(&then, RECORDED_VERSION, "frames");
    for (unsigned i = 0; i < then.count; i++) {
        uint8_t bytes[GOSSIP_PACKET_MAX];
        struct slice frame = recorded_item(&then, i);
        struct wire_reader r = wire_reader_of(frame.at, frame.len);
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        enum gossip_frame type = (enum gossip_frame)wire_read_u8(&r);
        struct slice body = wire_read_bytes(&r, wire_read_varint(&r));
        bool list = type == GOSSIP_FRAME_MEMBERS || type == GOSSIP_FRAME_VECTOR;
        bool headed = type == GOSSIP_FRAME_DELTA || type == GOSSIP_FRAME_PART;
        size_t added = list ? 0 : sizeof more;
        wire_write_u8(&w, (uint8_t)type);
        wire_write_varint(&w, body.len + added);
        size_t head = headed ? 1u + (uint8_t)body.at[0] : body.len;
        wire_write_bytes(&w, body.at, head);
        if (headed)
            w.at[-(ptrdiff_t)head] = (uint8_t)((uint8_t)body.at[0] + added);
        wire_write_bytes(&w, more, added);
        wire_write_bytes(&w, body.at + head, body.len - head);
        /* Sets unknown flags. */
        uint8_t *flags = w.start + 2 + (type == GOSSIP_FRAME_DELTA ? 1 : 0);
        if (type == GOSSIP_FRAME_DELTA || type == GOSSIP_FRAME_ALIVE || type == GOSSIP_FRAME_PING ||
            type == GOSSIP_FRAME_ACK)
            *flags |= 0xf0;
        assert_false(w.bad || r.bad);
        assert_int_equal(read_one(slice_of_bytes(bytes, wire_written(&w))), type);
        wire_write_bytes(&w, "\xc8\x03xyz", 5); /* type 200, 3 bytes */
        assert_int_equal(gossip_frame_packet_check(slice_of_bytes(bytes, wire_written(&w)), false),
                         0);
    }
    recorded_free(&then);
}

/* --- the handshake --------------------------------------------------------------------------- */

static const uint8_t random_hello[32] = {1, 2, 3}, random_welcome[32] = {4, 5, 6};
static const struct gossip_identity initiator = {
    .node = 0x1111, .speaks = {1, 1}, .ident = SLICE("one")};
static const struct gossip_identity responder = {
    .node = 0x2222, .speaks = {1, 3}, .ident = SLICE("two")};

static void record_handshake(struct recorded *out, const struct gossip_keyring *ring)
{
    struct gossip_dial dial = {0};
    uint8_t hello[GOSSIP_HELLO_BYTES], welcome[GOSSIP_WELCOME_BYTES];
    uint8_t data[GOSSIP_DATA_OVERHEAD + 5];
    gossip_dial_begin(&dial, ring, random_hello, 17, &initiator, 1234567, hello);
    recorded_add(out, SLICE_OF(hello));
    struct gossip_hello opened;
    struct gossip_session a = {0}, b = {0};
    assert_int_equal(gossip_hello_open(&opened, ring, SLICE_OF(hello)), 0);
    assert_int_equal(
        gossip_session_welcome(&b, &opened, random_welcome, 18, &responder, 0, welcome), 0);
    recorded_add(out, SLICE_OF(welcome));
    struct gossip_welcome got;
    assert_int_equal(gossip_dial_finish(&dial, SLICE_OF(welcome), 0, &got), 0);
    gossip_session_install(&a, &got);
    assert_int_equal(gossip_session_seal(&a, SLICE("first"), 0, data), 0);
    recorded_add(out, SLICE_OF(data));
}

/* The initiator's side of a recorded hello: the same secret and the same payload. */
static void dial_again(struct gossip_dial *dial, const struct gossip_keyring *ring,
                       struct slice hello)
{
    uint8_t payload[GOSSIP_HELLO_PAYLOAD], again[GOSSIP_HELLO_BYTES];
    struct slice message = slice_skip(hello, 5); /* type 1, key 4 */
    gossip_noise_begin(&dial->noise, SLICE("grapevine 1 datagrams"), ring->keys[0].psk);
    assert_int_equal(gossip_noise_hello_read(&dial->noise, message, payload), 0);
    gossip_noise_begin(&dial->noise, SLICE("grapevine 1 datagrams"), ring->keys[0].psk);
    gossip_noise_hello_write(&dial->noise, random_hello, SLICE_OF(payload), again);
    assert_memory_equal(again, message.at, message.len);
    dial->index = 17;
}

static void handshakes_are_read(void **state)
{
    (void)state;
    struct gossip_keyring ring = {0};
    struct recorded now = {0}, then;
    gossip_keyring_insecure(&ring);
    record_handshake(&now, &ring);
    recorded_update(&now, RECORDED_VERSION, "handshake");
    for (unsigned version = 1; version <= RECORDED_VERSION; version++) {
        recorded_load(&then, version, "handshake");
        struct slice packet = recorded_item(&then, 0);
        struct gossip_hello hello;
        assert_int_equal(gossip_hello_open(&hello, &ring, packet), 0);
        assert_true(hello.node == 0x1111 && hello.stamp == 1234567 && hello.peer_index == 17);
        assert_slice_equal(slice_of_bytes(hello.ident, hello.ident_len), "one");
        assert_true(hello.speaks.least == 1 && hello.speaks.greatest == 1);
        struct gossip_dial dial = {0};
        struct gossip_welcome welcome;
        dial_again(&dial, &ring, packet);
        assert_int_equal(gossip_dial_finish(&dial, recorded_item(&then, 1), 0, &welcome), 0);
        assert_true(welcome.node == 0x2222 && welcome.keys.peer_index == 18);
        assert_true(welcome.keys.speaks.least == 1 && welcome.keys.speaks.greatest == 3);
        /* Opens the first packet as the author of this welcome. */
        struct gossip_session b = {0};
        b.keys[0] = welcome.keys;
        memcpy(b.keys[0].open, welcome.keys.seal, sizeof b.keys[0].open);
        b.keys[0].own_index = 18;
        uint8_t plain[64];
        size_t len = 0;
        assert_int_equal(gossip_session_open(&b, recorded_item(&then, 2), 0, plain, &len), 0);
        assert_slice_equal(slice_of_bytes(plain, len), "first");
        recorded_free(&then);
    }
    recorded_free(&now);
}

/* A hello with zeros instead of versions, as builds from before versions made. */
static void a_hello_without_versions_is_version_0(void **state)
{
    (void)state;
    struct gossip_keyring ring = {0};
    gossip_keyring_insecure(&ring);
    struct gossip_identity old = {.node = 0x1111, .ident = SLICE("8 bytes.")};
    struct gossip_dial dial = {0};
    uint8_t bytes[GOSSIP_HELLO_BYTES];
    gossip_dial_begin(&dial, &ring, random_hello, 17, &old, 1, bytes);
    struct gossip_hello hello;
    assert_int_equal(gossip_hello_open(&hello, &ring, SLICE_OF(bytes)), 0);
    assert_true(hello.speaks.least == 0 && hello.speaks.greatest == 0);
    struct gossip_versions ours = {1, 9};
    assert_int_equal(gossip_versions_common(ours, hello.speaks), 0);
    assert_int_equal(gossip_versions_common(ours, (struct gossip_versions){9, 12}), 9);
    assert_int_equal(gossip_versions_common(ours, (struct gossip_versions){10, 12}), 0);
    assert_int_equal(gossip_versions_common(ours, (struct gossip_versions){2, 4}), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read),
        cmocka_unit_test(frames_may_be_longer),
        cmocka_unit_test(handshakes_are_read),
        cmocka_unit_test(a_hello_without_versions_is_version_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
