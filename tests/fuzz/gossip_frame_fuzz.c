/* Any bytes as the frames of an authenticated packet: frames read and written again read the same.
 * A gossip with such packets from a peer keeps all invariants and limits.
 *
 * Input: packets, each a length (2 bytes) and the bytes; the length's top bit lets time pass before
 * the packet. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "gossip/frame.h"
#include "gossip/gossip_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- the codec ------------------------------------------------------------------------------- */

static bool write_again(struct wire_writer *w, const struct gossip_frame_any *f)
{
    struct wire_reader body = wire_reader_of(f->body.at, f->body.len);
    struct gossip_frame_member member;
    struct gossip_frame_entry entry;
    switch (f->type) {
    case GOSSIP_FRAME_DELTA:
        return gossip_frame_write_delta(w, &f->delta);
    case GOSSIP_FRAME_ALIVE:
        return gossip_frame_write_alive(w, &f->alive);
    case GOSSIP_FRAME_NACK:
        return gossip_frame_write_nack(w, &f->nack);
    case GOSSIP_FRAME_GONE:
        return gossip_frame_write_gone(w, &f->gone);
    case GOSSIP_FRAME_PING:
    case GOSSIP_FRAME_ACK:
        return gossip_frame_write_ping(w, f->type == GOSSIP_FRAME_ACK, &f->ping);
    case GOSSIP_FRAME_PART:
        return gossip_frame_write_part(w, &f->part);
    case GOSSIP_FRAME_RESEND:
        return gossip_frame_write_resend(w, &f->resend);
    case GOSSIP_FRAME_FULL:
        return gossip_frame_write_full(w, &f->full);
    case GOSSIP_FRAME_MEMBERS:
        if (gossip_frame_member(&body, &member) != 1)
            return false;
        return gossip_frame_write_member(w, &member);
    case GOSSIP_FRAME_VECTOR:
        if (gossip_frame_entry(&body, &entry) != 1)
            return false;
        return gossip_frame_write_vector(w, &entry, 1) == 1;
    case GOSSIP_FRAMES:
        break;
    }
    return false;
}

static void codec(struct slice packet)
{
    struct wire_reader r = wire_reader_of(packet.at, packet.len);
    struct gossip_frame_any f;
    int status;
    while ((status = gossip_frame_read(&r, false, &f)) == 1) {
        uint8_t once[GOSSIP_PACKET_MAX + 64];
        uint8_t twice[GOSSIP_PACKET_MAX + 64];
        struct wire_writer w = wire_writer_of(once, sizeof once);
        if (!write_again(&w, &f))
            continue;
        struct wire_reader again = wire_reader_of(once, wire_written(&w));
        struct gossip_frame_any g;
        CHECK(gossip_frame_read(&again, false, &g) == 1 && g.type == f.type);
        struct wire_writer v = wire_writer_of(twice, sizeof twice);
        CHECK(write_again(&v, &g));
        CHECK(wire_written(&v) == wire_written(&w));
        CHECK(memcmp(once, twice, wire_written(&w)) == 0);
    }
    CHECK((status == 0) == (gossip_frame_packet_check(packet, false) == 0));
    CHECK(status < 0 || gossip_frame_packet_check(packet, true) == 0);
}

/* --- two gossips ----------------------------------------------------------------------------- */

enum { QUEUE = 4096, PORT = 7000 };

static struct world {
    struct gossip *node[2];
    struct prng prng;
    uint64_t now_us;
    unsigned first, count;
    struct {
        unsigned to;
        size_t len;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } queue[QUEUE];
} world;

static struct gossip_address address_of(unsigned i)
{
    return (struct gossip_address){.ip = {10, 0, 0, (uint8_t)i}, .port = PORT, .family = 4};
}

static void io_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    (void)context;
    CHECK(len <= GOSSIP_DATAGRAM_MAX);
    if (world.count == QUEUE || to->port != PORT || to->family != 4 || to->ip[0] != 10 ||
        to->ip[3] > 1)
        return;
    unsigned i = (world.first + world.count++) % QUEUE;
    world.queue[i].to = to->ip[3];
    world.queue[i].len = len;
    memcpy(world.queue[i].bytes, bytes, len);
}

static void io_random(void *context, void *out, size_t len)
{
    (void)context;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)prng_next(&world.prng);
}

static size_t app_produce(void *context, uint64_t now_us, uint8_t *out, size_t max)
{
    (void)context;
    (void)now_us;
    (void)max;
    if (prng_below(&world.prng, 2) == 0)
        return 0;
    memset(out, 0xaa, 20);
    return 20;
}

static int app_apply(void *context, const struct gossip_origin *origin, struct slice delta,
                     uint64_t now_us)
{
    (void)context;
    (void)now_us;
    CHECK(delta.len > 0 && delta.len <= GOSSIP_DELTA_MAX && origin->seq > 0);
    return delta.at[0] == 'x' ? -2 : 0;
}

static void app_member(void *context, const struct gossip_member *m, uint64_t now_us)
{
    (void)context;
    (void)now_us;
    CHECK(strlen(m->name) <= GOSSIP_NAME_MAX && m->meta_len <= GOSSIP_META_MAX);
}

static void app_lost(void *context, uint64_t node, uint64_t now_us)
{
    (void)context;
    (void)node;
    (void)now_us;
}

static void app_message(void *context, uint64_t peer, struct slice bytes, bool settled,
                        uint64_t now_us)
{
    (void)context;
    (void)peer;
    (void)settled;
    (void)now_us;
    CHECK(bytes.len > 0 && bytes.len <= GOSSIP_MESSAGE_MAX);
}

static void pass(uint64_t until_us)
{
    for (unsigned steps = 0; steps < 100000; steps++) {
        if (world.count > 0) {
            unsigned i = world.first;
            world.first = (world.first + 1) % QUEUE;
            world.count--;
            unsigned to = world.queue[i].to;
            struct gossip_address from = address_of(1 - to);
            gossip_datagram(world.node[to], &from, world.queue[i].bytes, world.queue[i].len,
                            world.now_us);
            continue;
        }
        uint64_t a = gossip_due_us(world.node[0]);
        uint64_t b = gossip_due_us(world.node[1]);
        uint64_t due = a < b ? a : b;
        if (due > until_us)
            break;
        if (due > world.now_us)
            world.now_us = due;
        gossip_run(world.node[a < b ? 0 : 1], world.now_us);
    }
    world.now_us = until_us;
}

static void start(void)
{
    static struct gossip_keyring keyring;
    gossip_keyring_insecure(&keyring);
    world.now_us = 1000000;
    world.first = world.count = 0;
    prng_seed(&world.prng, 1);
    static const struct gossip_app app = {.produce = app_produce,
                                          .apply = app_apply,
                                          .member = app_member,
                                          .lost = app_lost,
                                          .message = app_message};
    static const struct gossip_io io = {.send = io_send, .random = io_random};
    for (unsigned i = 0; i < 2; i++) {
        struct gossip_config config = {.name = i == 0 ? "a" : "b",
                                       .epoch = 1000 + i,
                                       .address = address_of(i),
                                       .ring_bytes = 4096,
                                       .message_bytes_max = 262144};
        CHECK(gossip_create(&world.node[i], &config, &keyring, &app, &io, world.now_us) == 0);
    }
    struct gossip_address seed = address_of(0);
    gossip_seeds(world.node[1], &seed, 1, world.now_us);
    pass(world.now_us + 10000);
    CHECK(gossip_member_count(world.node[0]) == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    codec(slice_of((const char *)data, size < GOSSIP_PACKET_MAX ? size : GOSSIP_PACKET_MAX));
    start();
    struct wire_reader r = wire_reader_of(data, size);
    for (unsigned packets = 0; packets < 64 && wire_left(&r) > 2; packets++) {
        uint16_t head = wire_read_u16(&r);
        size_t len = head & 0x7fff;
        len = len < GOSSIP_PACKET_MAX ? len : GOSSIP_PACKET_MAX;
        len = len < wire_left(&r) ? len : wire_left(&r);
        struct slice plain = wire_read_bytes(&r, len);
        codec(plain);
        if (head & 0x8000)
            pass(world.now_us + 40000);
        gossip_wake(world.node[0], world.now_us);
        /* Sealed by the peer, although the peer's code would never send these bytes. */
        struct gossip_peer *to = gossip_peer_find(world.node[1], gossip_self(world.node[0]));
        uint8_t sealed[GOSSIP_DATAGRAM_MAX];
        if (to == NULL || gossip_session_seal(&to->session, plain, world.now_us, sealed) < 0)
            break;
        struct gossip_address from = address_of(1);
        gossip_datagram(world.node[0], &from, sealed, plain.len + GOSSIP_DATA_OVERHEAD,
                        world.now_us);
        gossip_check(world.node[0]);
    }
    pass(world.now_us + 100000);
    gossip_check(world.node[0]);
    gossip_check(world.node[1]);
    gossip_destroy(world.node[0]);
    gossip_destroy(world.node[1]);
    return 0;
}
