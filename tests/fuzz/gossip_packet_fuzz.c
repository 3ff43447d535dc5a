/* Any bytes as a packet of the sealed sessions. The first byte chooses the role of the bytes:
 *
 *    0  as they are, to every receiver of packets: never authentic, nothing changes
 *    1  as the payload of a hello sealed by a holder of the key
 *    2  as the payload of a welcome sealed by a holder of the key
 *    3  as a script with two sides: packets sealed, carried, lost, replayed, and time passes */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/wire.h"
#include "gossip/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROLOGUE SLICE("grapevine 1 datagrams")

struct side {
    struct gossip_session session;
    struct gossip_dial dial;
    uint32_t index;
};

static struct gossip_keyring ring;
static const struct gossip_identity identity_x = {.node = 1, .speaks = {1, 2}, .ident = SLICE("x")};
static const struct gossip_identity identity_y = {.node = 2, .speaks = {2, 7}, .ident = SLICE("y")};

static struct slice slice_of_bytes(const uint8_t *at, size_t len)
{
    return slice_of((const char *)at, len);
}

static const uint8_t *random32(void)
{
    static uint8_t bytes[32];
    static uint32_t calls;
    calls++;
    memcpy(bytes, &calls, sizeof calls);
    return bytes;
}

static void hello_write(struct side *s, uint8_t hello[GOSSIP_HELLO_BYTES])
{
    gossip_dial_begin(&s->dial, &ring, random32(), ++s->index, &identity_x, 1, hello);
}

static bool hello_take(struct side *s, const uint8_t *hello, uint64_t now_us, uint8_t *welcome)
{
    struct gossip_hello h;
    if (gossip_hello_open(&h, &ring, slice_of_bytes(hello, GOSSIP_HELLO_BYTES)) != ERR_OK)
        return false;
    return gossip_session_welcome(&s->session, &h, random32(), ++s->index, &identity_y, now_us,
                                  welcome) == ERR_OK;
}

static bool welcome_take(struct side *s, const uint8_t *welcome, uint64_t now_us)
{
    struct gossip_welcome w;
    if (gossip_dial_finish(&s->dial, slice_of_bytes(welcome, GOSSIP_WELCOME_BYTES), now_us, &w) !=
        ERR_OK)
        return false;
    gossip_session_install(&s->session, &w);
    return true;
}

static void feed_raw(struct slice bytes)
{
    struct side a = {.index = 10}, b = {.index = 20};
    uint8_t hello[GOSSIP_HELLO_BYTES], welcome[GOSSIP_WELCOME_BYTES];
    uint8_t out[4096];
    size_t len;
    struct gossip_hello h;
    struct gossip_welcome w;
    hello_write(&a, hello);
    CHECK(hello_take(&b, hello, 1, welcome) && welcome_take(&a, welcome, 1));
    hello_write(&a, hello);
    uint8_t before[sizeof a];
    memcpy(before, &a, sizeof a);
    if (bytes.len > sizeof out)
        return;
    CHECK(gossip_hello_open(&h, &ring, bytes) < 0);
    CHECK(gossip_dial_finish(&a.dial, bytes, 2, &w) < 0);
    CHECK(gossip_session_open(&a.session, bytes, 2, out, &len) < 0);
    CHECK(memcmp(before, (const uint8_t *)&a, sizeof a) == 0);
}

/* The fuzzer's bytes, then zeros. */
static struct slice padded(struct slice bytes, uint8_t *payload, size_t size)
{
    memset(payload, 0, size);
    if (bytes.len > 0)
        memcpy(payload, bytes.at, bytes.len < size ? bytes.len : size);
    return slice_of_bytes(payload, size);
}

static void feed_hello(struct slice bytes)
{
    uint8_t payload[GOSSIP_HELLO_PAYLOAD], packet[GOSSIP_HELLO_BYTES] = {GOSSIP_PACKET_HELLO};
    struct gossip_noise n;
    struct gossip_hello h;
    memcpy(packet + 1, ring.keys[0].id, 4);
    gossip_noise_begin(&n, PROLOGUE, ring.keys[0].psk);
    gossip_noise_hello_write(&n, random32(), padded(bytes, payload, sizeof payload), packet + 5);
    if (gossip_hello_open(&h, &ring, slice_of_bytes(packet, sizeof packet)) != ERR_OK)
        return;
    CHECK(h.ident_len <= GOSSIP_IDENT_MAX && h.peer_index > 0 && h.peer_index <= GOSSIP_INDEX_MAX);
    struct gossip_session s = {0};
    uint8_t welcome[GOSSIP_WELCOME_BYTES];
    CHECK(gossip_session_welcome(&s, &h, random32(), 5, &identity_y, 1, welcome) == ERR_OK);
    gossip_session_check(&s);
}

static void feed_welcome(struct slice bytes)
{
    uint8_t payload[GOSSIP_WELCOME_PAYLOAD], packet[GOSSIP_WELCOME_BYTES] = {GOSSIP_PACKET_WELCOME};
    uint8_t hello[GOSSIP_HELLO_BYTES];
    struct side a = {.index = 10};
    struct gossip_hello h;
    struct gossip_welcome w;
    hello_write(&a, hello);
    CHECK(gossip_hello_open(&h, &ring, slice_of_bytes(hello, sizeof hello)) == ERR_OK);
    packet[1] = (uint8_t)a.dial.index;
    CHECK(gossip_noise_welcome_write(&h.noise, random32(), padded(bytes, payload, sizeof payload),
                                     packet + 4) == ERR_OK);
    if (gossip_dial_finish(&a.dial, slice_of_bytes(packet, sizeof packet), 1, &w) == ERR_OK) {
        CHECK(w.ident_len <= GOSSIP_IDENT_MAX && w.keys.peer_index > 0);
        gossip_session_install(&a.session, &w);
        gossip_session_check(&a.session);
    }
    CHECK(a.dial.index == 0);
}

enum { KEPT = 8 };

struct kept {
    uint8_t bytes[GOSSIP_DATA_OVERHEAD + 8];
    bool to_a, valid, opened;
};

/* In any case a packet opens at most once, to exactly the sealed bytes. */
static void kept_open(struct side *to, struct kept *k, uint8_t number, uint64_t now_us)
{
    uint8_t out[8];
    size_t len = 0;
    if (!k->valid)
        return;
    if (gossip_session_open(&to->session, slice_of_bytes(k->bytes, sizeof k->bytes), now_us, out,
                            &len) != ERR_OK)
        return;
    CHECK(!k->opened && len == 8 && out[0] == number);
    k->opened = true;
}

static void feed_script(struct slice bytes)
{
    struct side sides[2] = {{.index = 10}, {.index = 1000000}};
    uint8_t hello[2][GOSSIP_HELLO_BYTES] = {{0}}, welcome[2][GOSSIP_WELCOME_BYTES] = {{0}};
    struct kept kept[KEPT] = {{.valid = false}};
    uint64_t now_us = 1000000;
    for (size_t i = 0; i < bytes.len && i < 200; i++) {
        uint8_t op = (uint8_t)bytes.at[i];
        unsigned who = op >> 7, number = op & 7;
        struct side *s = &sides[who];
        struct kept *k = &kept[number];
        switch (op >> 3 & 15) {
        case 0:
            hello_write(s, hello[who]);
            break;
        case 1:
            (void)hello_take(s, hello[1 - who], now_us, welcome[who]);
            break;
        case 2:
            (void)welcome_take(s, welcome[1 - who], now_us);
            break;
        case 3: {
            uint8_t plain[8] = {(uint8_t)number};
            k->valid = gossip_session_seal(&s->session, slice_of_bytes(plain, 8), now_us,
                                           k->bytes) == ERR_OK;
            k->to_a = who == 1;
            k->opened = false;
            break;
        }
        case 4:
            kept_open(&sides[k->to_a ? 0 : 1], k, (uint8_t)number, now_us);
            break;
        case 5:
            now_us += (uint64_t)number * 20000000;
            break;
        default:
            (void)gossip_session_age(&s->session, now_us);
            break;
        }
        gossip_session_check(&s->session);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    gossip_keyring_insecure(&ring);
    struct slice bytes = slice_of_bytes(data + 1, size - 1);
    switch (data[0] & 3) {
    case 0:
        feed_raw(bytes);
        break;
    case 1:
        feed_hello(bytes);
        break;
    case 2:
        feed_welcome(bytes);
        break;
    default:
        feed_script(bytes);
        break;
    }
    return 0;
}
