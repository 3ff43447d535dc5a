/* Two sides; the test carries the packets. Every test ends with both sessions checked. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "gossip/session.h"
#include "gossip/stamps.h"

#define SECOND          1000000u
#define SLICE_OF(array) slice_of((const char *)(array), sizeof(array))

struct side {
    uint64_t node;
    struct gossip_keyring keyring;
    struct gossip_session session;
    struct gossip_dial dial;
    struct gossip_stamps *stamps;
    uint64_t stamp;
    uint32_t next_index;
};

struct world {
    struct side a, b;
    uint64_t now_us;
};

/* Different in each call; more is not required here. */
static const uint8_t *random32(void)
{
    static uint8_t bytes[32];
    static uint32_t calls;
    calls++;
    memcpy(bytes + 8, &calls, sizeof calls);
    return bytes;
}

static struct gossip_keyring ring_of(const char *key, const char *next)
{
    struct gossip_keyring k;
    char text[400], message[160];
    (void)snprintf(text, sizeof text, "hash %064d\nkey %s%s%s\n", 1, key, next ? "\nnext " : "",
                   next ? next : "");
    assert_int_equal(gossip_keyring_parse(&k, slice_of_cstr(text), message), ERR_OK);
    return k;
}

#define KEY_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define KEY_2 "2222222222222222222222222222222222222222222222222222222222222222"

static void side_begin(struct side *s, uint64_t node)
{
    *s = (struct side){.node = node, .next_index = (uint32_t)node << 16};
    s->keyring = ring_of(KEY_1, NULL);
    s->stamps = calloc(1, sizeof *s->stamps);
    assert_non_null(s->stamps);
}

static int world_make(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->now_us = 1000 * (uint64_t)SECOND;
    side_begin(&w->a, 1);
    side_begin(&w->b, 2);
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    gossip_session_check(&w->a.session);
    gossip_session_check(&w->b.session);
    free(w->a.stamps);
    free(w->b.stamps);
    free(w);
    return 0;
}

struct hello_packet {
    uint8_t bytes[GOSSIP_HELLO_BYTES];
};
struct welcome_packet {
    uint8_t bytes[GOSSIP_WELCOME_BYTES];
};
struct data_packet {
    uint8_t bytes[GOSSIP_DATA_OVERHEAD + 64];
    size_t len;
};

static struct hello_packet dial(struct world *w, struct side *s)
{
    struct hello_packet p;
    s->stamp = gossip_stamp_next(s->stamp, w->now_us / 1000);
    const struct gossip_identity self = {
        .node = s->node, .speaks = {1, 4}, .ident = SLICE("ident")};
    gossip_dial_begin(&s->dial, &s->keyring, random32(), ++s->next_index, &self, s->stamp, p.bytes);
    return p;
}

static int answer(struct world *w, struct side *s, const struct hello_packet *in,
                  struct welcome_packet *out)
{
    struct gossip_hello hello;
    int err = gossip_hello_open(&hello, &s->keyring, SLICE_OF(in->bytes));
    if (err == ERR_OK)
        err = gossip_stamps_take(s->stamps, hello.node, hello.stamp, true, 0);
    if (err != ERR_OK)
        return err;
    assert_int_equal(hello.node, 3 - s->node);
    assert_slice_equal(slice_of((char *)hello.ident, hello.ident_len), "ident");
    const struct gossip_identity self = {
        .node = s->node, .speaks = {2, 7}, .ident = SLICE("me too")};
    return gossip_session_welcome(&s->session, &hello, random32(), ++s->next_index, &self,
                                  w->now_us, out->bytes);
}

static int finish(struct world *w, struct side *s, const struct welcome_packet *in)
{
    struct gossip_welcome welcome;
    int err = gossip_dial_finish(&s->dial, SLICE_OF(in->bytes), w->now_us, &welcome);
    if (err != ERR_OK)
        return err;
    assert_int_equal(welcome.node, 3 - s->node);
    assert_slice_equal(slice_of((char *)welcome.ident, welcome.ident_len), "me too");
    gossip_session_install(&s->session, &welcome);
    return ERR_OK;
}

static int seal(struct world *w, struct side *s, const char *text, struct data_packet *out)
{
    out->len = strlen(text) + GOSSIP_DATA_OVERHEAD;
    return gossip_session_seal(&s->session, slice_of_cstr(text), w->now_us, out->bytes);
}

static int opened(struct world *w, struct side *s, const struct data_packet *in, const char *text)
{
    uint8_t out[64];
    size_t len = 0;
    int err = gossip_session_open(&s->session, slice_of((const char *)in->bytes, in->len),
                                  w->now_us, out, &len);
    if (err == ERR_OK)
        assert_slice_equal(slice_of((char *)out, len), text);
    return err;
}

static int carry(struct world *w, struct side *from, struct side *to)
{
    struct data_packet p;
    int err = seal(w, from, "carried", &p);
    return err != ERR_OK ? err : opened(w, to, &p, "carried");
}

static void handshake(struct world *w, struct side *from, struct side *to)
{
    struct welcome_packet welcome;
    struct hello_packet hello = dial(w, from);
    assert_int_equal(answer(w, to, &hello, &welcome), ERR_OK);
    assert_int_equal(finish(w, from, &welcome), ERR_OK);
}

static void test_begin(void **state)
{
    struct world *w = *state;
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_NONE);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_NOT_FOUND);
    handshake(w, &w->a, &w->b);
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_FRESH);
    /* The responder waits for proof of the welcome's arrival. */
    assert_int_equal(gossip_session_age(&w->b.session, w->now_us), GOSSIP_SESSION_AWAITED);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_NOT_FOUND);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    struct data_packet empty;
    assert_int_equal(seal(w, &w->b, "", &empty), ERR_OK);
    assert_int_equal(opened(w, &w->a, &empty, ""), ERR_OK);
}

static void test_replayed_hello(void **state)
{
    struct world *w = *state;
    struct welcome_packet welcome;
    struct hello_packet first = dial(w, &w->a);
    struct hello_packet second = dial(w, &w->a); /* the clock has not moved */
    assert_int_equal(answer(w, &w->b, &second, &welcome), ERR_OK);
    assert_int_equal(answer(w, &w->b, &second, &welcome), ERR_STALE);
    assert_int_equal(answer(w, &w->b, &first, &welcome), ERR_STALE);

    /* The peer forgot the stamps: the peer answers, and never sends on the resulting session. */
    assert_int_equal(finish(w, &w->a, &welcome), ERR_OK);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    memset(w->b.stamps, 0, sizeof *w->b.stamps);
    assert_int_equal(answer(w, &w->b, &first, &welcome), ERR_OK);
    assert_int_equal(finish(w, &w->a, &welcome), ERR_NOT_FOUND);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
}

static void test_replayed_and_reordered_data(void **state)
{
    struct world *w = *state;
    struct data_packet p[3];
    handshake(w, &w->a, &w->b);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(seal(w, &w->a, "x", &p[i]), ERR_OK);
    assert_int_equal(opened(w, &w->b, &p[2], "x"), ERR_OK);
    assert_int_equal(opened(w, &w->b, &p[0], "x"), ERR_OK);
    assert_int_equal(opened(w, &w->b, &p[2], "x"), ERR_STALE);
    assert_int_equal(opened(w, &w->b, &p[0], "x"), ERR_STALE);
    for (unsigned i = 0; i < GOSSIP_REPLAY_WINDOW; i++)
        assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(opened(w, &w->b, &p[1], "x"), ERR_STALE);
    /* Reflected to the sender: a packet does not open in the other direction. */
    assert_true(opened(w, &w->a, &p[1], "x") < 0);
}

/* Old and new keys both open packets while the packets of a rekey are on the way. */
static void test_rekey_overlap(void **state)
{
    struct world *w = *state;
    struct data_packet late_a, late_b, new_a;
    struct welcome_packet welcome;
    handshake(w, &w->a, &w->b);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(seal(w, &w->a, "late", &late_a), ERR_OK);
    assert_int_equal(seal(w, &w->b, "late", &late_b), ERR_OK);

    struct hello_packet hello = dial(w, &w->a);
    assert_int_equal(answer(w, &w->b, &hello, &welcome), ERR_OK);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK); /* still on the old keys */
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(finish(w, &w->a, &welcome), ERR_OK);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    uint32_t old = w->b.session.sending;
    assert_int_equal(seal(w, &w->a, "new", &new_a), ERR_OK);
    assert_int_equal(opened(w, &w->b, &new_a, "new"), ERR_OK);
    assert_int_not_equal(w->b.session.sending, old);
    assert_int_equal(opened(w, &w->b, &late_a, "late"), ERR_OK);
    assert_int_equal(opened(w, &w->a, &late_b, "late"), ERR_OK);
    assert_int_not_equal(w->b.session.sending, old); /* a late packet does not reverse it */
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
}

/* Crossing hellos: for each order of arrivals, and each loss of a packet, the sessions then carry
 * packets both ways. */
static void crossing_run(struct world *w, unsigned order, unsigned lost)
{
    struct welcome_packet to_a, to_b;
    struct hello_packet from_a = dial(w, &w->a);
    struct hello_packet from_b = dial(w, &w->b);
    bool a_answered = false, b_answered = false;
    for (unsigned i = 0; i < 4; i++) {
        /* 0: b gets the hello, 1: a gets the hello, 2: a gets the welcome, 3: b gets the
         * welcome. */
        static const uint8_t orders[6][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {1, 0, 2, 3},
                                             {1, 0, 3, 2}, {0, 2, 1, 3}, {1, 3, 0, 2}};
        unsigned what = orders[order][i];
        if (what == lost)
            continue;
        if (what == 0)
            b_answered = answer(w, &w->b, &from_a, &to_a) == ERR_OK;
        else if (what == 1)
            a_answered = answer(w, &w->a, &from_b, &to_b) == ERR_OK;
        else if (what == 2 && b_answered)
            assert_int_equal(finish(w, &w->a, &to_a), ERR_OK);
        else if (what == 3 && a_answered)
            assert_int_equal(finish(w, &w->b, &to_b), ERR_OK);
        gossip_session_check(&w->a.session);
        gossip_session_check(&w->b.session);
    }
    /* The new initiator speaks; then both can. */
    (void)carry(w, &w->a, &w->b);
    (void)carry(w, &w->b, &w->a);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
        assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    }
}

static void test_crossing_hellos(void **state)
{
    struct world *w = *state;
    for (unsigned lost = 0; lost <= 4; lost++)
        for (unsigned order = 0; order < 6; order++) {
            gossip_session_wipe(&w->a.session);
            gossip_session_wipe(&w->b.session);
            crossing_run(w, order, lost);
            crossing_run(w, (order + 1) % 6, lost); /* once more, as a rekey */
        }
}

/* An older set of keys, confirmed late, opens packets, and is not used to send. */
static void test_late_confirmation(void **state)
{
    struct world *w = *state;
    struct welcome_packet to_a, to_b;
    struct hello_packet from_b = dial(w, &w->b);
    assert_int_equal(answer(w, &w->a, &from_b, &to_b), ERR_OK);
    struct hello_packet from_a = dial(w, &w->a);
    assert_int_equal(answer(w, &w->b, &from_a, &to_a), ERR_OK);
    assert_int_equal(finish(w, &w->a, &to_a), ERR_OK);
    assert_int_equal(finish(w, &w->b, &to_b), ERR_OK);
    uint32_t newest = w->a.session.sending;
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    assert_int_equal(w->a.session.sending, newest);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
}

/* A restarted peer has no former keys. */
static void test_restart(void **state)
{
    struct world *w = *state;
    handshake(w, &w->a, &w->b);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    gossip_session_wipe(&w->a.session);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_NOT_FOUND);
    handshake(w, &w->a, &w->b);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
}

static void test_ages(void **state)
{
    struct world *w = *state;
    handshake(w, &w->a, &w->b);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    uint64_t begun_us = w->now_us;
    w->now_us = begun_us + GOSSIP_SESSION_REKEY_US - GOSSIP_SESSION_REKEY_SPREAD_US - 1;
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_FRESH);
    w->now_us = begun_us + GOSSIP_SESSION_REKEY_US;
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_OLD);
    assert_int_equal(gossip_session_age(&w->b.session, w->now_us), GOSSIP_SESSION_FRESH);
    w->now_us = begun_us + GOSSIP_SESSION_REKEY_RESPONDER_US;
    assert_int_equal(gossip_session_age(&w->b.session, w->now_us), GOSSIP_SESSION_OLD);
    w->now_us = begun_us + GOSSIP_SESSION_REJECT_US - 1;
    struct data_packet last;
    assert_int_equal(seal(w, &w->a, "last", &last), ERR_OK);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    w->now_us++;
    assert_int_equal(opened(w, &w->b, &last, "last"), ERR_NOT_FOUND);
    assert_int_equal(seal(w, &w->a, "more", &last), ERR_NOT_FOUND);
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_NONE);
    static const struct gossip_keys wiped;
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++)
        assert_memory_equal(&w->a.session.keys[i], &wiped, sizeof wiped);
}

static void test_packet_limits(void **state)
{
    struct world *w = *state;
    handshake(w, &w->a, &w->b);
    struct gossip_keys *keys = &w->a.session.keys[0];
    keys->sealed = GOSSIP_SESSION_REKEY_PACKETS - 1;
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_FRESH);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_OLD);
    keys->sealed = GOSSIP_SESSION_PACKETS_MAX - 1;
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_NOT_FOUND);
    assert_int_equal(gossip_session_age(&w->a.session, w->now_us), GOSSIP_SESSION_NONE);
}

/* The rolling change of keys in keyring.h, each step in both orders. */
static void test_rotation(void **state)
{
    struct world *w = *state;
    const struct gossip_keyring steps[] = {ring_of(KEY_1, NULL), ring_of(KEY_1, KEY_2),
                                           ring_of(KEY_2, KEY_1), ring_of(KEY_2, NULL)};
    handshake(w, &w->a, &w->b);
    for (unsigned step = 1; step < 4; step++)
        for (unsigned first = 0; first < 2; first++) {
            struct side *ahead = first == 0 ? &w->a : &w->b;
            struct side *behind = first == 0 ? &w->b : &w->a;
            ahead->keyring = steps[step];
            behind->keyring = steps[step - 1];
            assert_int_equal(carry(w, &w->a, &w->b), ERR_OK); /* no session breaks */
            handshake(w, &w->a, &w->b);
            assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
            handshake(w, &w->b, &w->a);
            assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
        }
    /* If a step is left out, the two sides have no common key. */
    struct welcome_packet welcome;
    w->a.keyring = steps[0];
    w->b.keyring = steps[3];
    struct hello_packet hello = dial(w, &w->a);
    assert_int_equal(answer(w, &w->b, &hello, &welcome), ERR_DENIED);
}

/* The id of the key is sent in clear, so a stranger can copy it. */
static void test_wrong_key(void **state)
{
    struct world *w = *state;
    struct welcome_packet welcome;
    w->a.keyring = ring_of(KEY_2, NULL);
    memcpy(w->a.keyring.keys[0].id, w->b.keyring.keys[0].id, 4);
    struct hello_packet hello = dial(w, &w->a);
    assert_int_equal(answer(w, &w->b, &hello, &welcome), ERR_DENIED);
}

/* Each byte of each packet, flipped and cut: refused without a change. */
static void test_changed_hello(void **state)
{
    struct world *w = *state;
    static const struct gossip_hello wiped;
    struct hello_packet hello = dial(w, &w->a);
    struct gossip_hello out;
    for (size_t i = 0; i < sizeof hello.bytes; i++) {
        hello.bytes[i] ^= 0x10;
        assert_true(gossip_hello_open(&out, &w->b.keyring, SLICE_OF(hello.bytes)) < 0);
        assert_memory_equal(&out, &wiped, sizeof out);
        hello.bytes[i] ^= 0x10;
        assert_true(gossip_hello_open(&out, &w->b.keyring, slice_of((char *)hello.bytes, i)) < 0);
    }
    uint8_t longer[GOSSIP_HELLO_BYTES + 1] = {0};
    memcpy(longer, hello.bytes, sizeof hello.bytes);
    assert_int_equal(gossip_hello_open(&out, &w->b.keyring, SLICE_OF(longer)), ERR_SYNTAX);
    assert_int_equal(gossip_hello_open(&out, &w->b.keyring, SLICE_OF(hello.bytes)), ERR_OK);
    gossip_hello_wipe(&out);
}

static void test_changed_welcome(void **state)
{
    struct world *w = *state;
    struct welcome_packet p;
    struct gossip_welcome out;
    struct hello_packet hello = dial(w, &w->a);
    assert_int_equal(answer(w, &w->b, &hello, &p), ERR_OK);
    struct gossip_dial before = w->a.dial;
    for (size_t i = 0; i < sizeof p.bytes; i++) {
        p.bytes[i] ^= 0x04;
        assert_true(gossip_dial_finish(&w->a.dial, SLICE_OF(p.bytes), w->now_us, &out) < 0);
        p.bytes[i] ^= 0x04;
        assert_true(gossip_dial_finish(&w->a.dial, slice_of((char *)p.bytes, i), w->now_us, &out) <
                    0);
        assert_memory_equal(&before, &w->a.dial, sizeof before);
    }
    assert_int_equal(finish(w, &w->a, &p), ERR_OK);
    assert_int_equal(finish(w, &w->a, &p), ERR_NOT_FOUND); /* once */
}

static void test_changed_data(void **state)
{
    struct world *w = *state;
    struct data_packet p;
    uint8_t out[64];
    size_t len;
    handshake(w, &w->a, &w->b);
    assert_int_equal(seal(w, &w->a, "what is said", &p), ERR_OK);
    struct gossip_session before = w->b.session;
    for (size_t i = 0; i < p.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            p.bytes[i] ^= (uint8_t)(1 << bit);
            assert_true(opened(w, &w->b, &p, "") < 0);
            p.bytes[i] ^= (uint8_t)(1 << bit);
        }
        assert_true(gossip_session_open(&w->b.session, slice_of((char *)p.bytes, i), w->now_us, out,
                                        &len) < 0);
        assert_memory_equal(&before, &w->b.session, sizeof before);
    }
    assert_int_equal(opened(w, &w->b, &p, "what is said"), ERR_OK);
}

static void test_peek(void **state)
{
    struct world *w = *state;
    uint32_t index;
    struct hello_packet hello = dial(w, &w->a);
    assert_int_equal(gossip_packet_peek(SLICE_OF(hello.bytes), &index), GOSSIP_PACKET_HELLO);
    assert_int_equal(index, 0);
    struct welcome_packet welcome;
    assert_int_equal(answer(w, &w->b, &hello, &welcome), ERR_OK);
    assert_int_equal(gossip_packet_peek(SLICE_OF(welcome.bytes), &index), GOSSIP_PACKET_WELCOME);
    assert_int_equal(index, w->a.dial.index);
    assert_int_equal(finish(w, &w->a, &welcome), ERR_OK);
    struct data_packet p;
    assert_int_equal(seal(w, &w->a, "", &p), ERR_OK);
    assert_int_equal(gossip_packet_peek(slice_of((char *)p.bytes, p.len), &index),
                     GOSSIP_PACKET_DATA);
    assert_true(gossip_session_owns(&w->b.session, index));
    assert_false(gossip_session_owns(&w->b.session, 0));
    assert_int_equal(gossip_packet_peek(slice_of((char *)p.bytes, p.len - 1), &index), 0);
    assert_int_equal(gossip_packet_peek(SLICE(""), &index), 0);
}

/* Sealed in place, as in the gossip engine. */
static void test_in_place(void **state)
{
    struct world *w = *state;
    struct data_packet p = {.len = GOSSIP_DATA_OVERHEAD + 5};
    handshake(w, &w->a, &w->b);
    memcpy(p.bytes + GOSSIP_DATA_HEADER, "place", 5);
    assert_int_equal(gossip_session_seal(&w->a.session,
                                         slice_of((char *)p.bytes + GOSSIP_DATA_HEADER, 5),
                                         w->now_us, p.bytes),
                     ERR_OK);
    assert_int_equal(opened(w, &w->b, &p, "place"), ERR_OK);
}

/* Many hellos without a follow-up do not displace the keys in use. */
static void test_unconfirmed_do_not_displace(void **state)
{
    struct world *w = *state;
    struct welcome_packet welcome;
    handshake(w, &w->a, &w->b);
    assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
    handshake(w, &w->b, &w->a);
    assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    for (unsigned i = 0; i < 20; i++) {
        struct hello_packet hello = dial(w, &w->a);
        assert_int_equal(answer(w, &w->b, &hello, &welcome), ERR_OK);
        gossip_session_check(&w->b.session);
        assert_int_equal(carry(w, &w->a, &w->b), ERR_OK);
        assert_int_equal(carry(w, &w->b, &w->a), ERR_OK);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_begin),
        TEST(test_replayed_hello),
        TEST(test_replayed_and_reordered_data),
        TEST(test_rekey_overlap),
        TEST(test_crossing_hellos),
        TEST(test_late_confirmation),
        TEST(test_restart),
        TEST(test_ages),
        TEST(test_packet_limits),
        TEST(test_rotation),
        TEST(test_wrong_key),
        TEST(test_changed_hello),
        TEST(test_changed_welcome),
        TEST(test_changed_data),
        TEST(test_peek),
        TEST(test_in_place),
        TEST(test_unconfirmed_do_not_displace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
