/* Both ends of a call; the test carries the bytes, in pieces of any size. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "gossip/call.h"
#include "gossip/noise.h"
#include "gossip/session.h"

#define SLICE_OF(array) slice_of((const char *)(array), sizeof(array))

static const uint8_t random_client[32] = {1};
static const uint8_t random_server[32] = {2};
static const struct gossip_versions ours = {2, 3};

struct ends {
    struct gossip_keyring ring;
    struct gossip_call *client, *server;
    struct buf request; /* as received by the server */
    uint8_t kind;
    bool asked, done;
    struct buf answer; /* as received by the client */
    uint64_t to_send;  /* bytes of the answer still to be made */
    size_t out_max;    /* most bytes ever waiting at the server */
};

static void ends_open(struct ends *e, uint64_t answer_bytes)
{
    *e = (struct ends){.to_send = answer_bytes};
    gossip_keyring_insecure(&e->ring);
    assert_int_equal(
        gossip_call_open(&e->client, &e->ring, ours, random_client, 7, SLICE("what do you know?")),
        ERR_OK);
    assert_int_equal(gossip_call_accept(&e->server, &e->ring, ours, random_server), ERR_OK);
    assert_int_equal(gossip_call_out(e->server)->len, 0);
}

static void ends_close(struct ends *e)
{
    gossip_call_free(e->client);
    gossip_call_free(e->server);
    buf_free(&e->request);
    buf_free(&e->answer);
}

static int server_step(struct ends *e)
{
    enum gossip_call_step step = GOSSIP_CALL_REQUEST;
    int err = ERR_OK;
    while (err == ERR_OK && step != GOSSIP_CALL_WAIT) {
        struct slice chunk;
        err = gossip_call_step(e->server, &step, &e->kind, &chunk);
        if (err == ERR_OK && step == GOSSIP_CALL_REQUEST) {
            assert_false(e->asked);
            e->asked = true;
            assert_int_equal(buf_append_slice(&e->request, chunk), ERR_OK);
        }
    }
    return err;
}

static int client_step(struct ends *e)
{
    enum gossip_call_step step = GOSSIP_CALL_CHUNK;
    int err = ERR_OK;
    uint8_t kind = 0;
    while (err == ERR_OK && step != GOSSIP_CALL_WAIT) {
        struct slice chunk;
        err = gossip_call_step(e->client, &step, &kind, &chunk);
        if (err == ERR_OK && step == GOSSIP_CALL_CHUNK)
            assert_int_equal(buf_append_slice(&e->answer, chunk), ERR_OK);
        if (err == ERR_OK && step == GOSSIP_CALL_DONE)
            e->done = true;
    }
    return err;
}

static char answer_byte(uint64_t at)
{
    return (char)(hash_mix(at / 8) >> (at % 8 * 8));
}

static void server_answer(struct ends *e, uint64_t *made)
{
    static char chunk[GOSSIP_CALL_CHUNK_MAX];
    while (e->asked && gossip_call_wants(e->server)) {
        if (e->to_send == 0) {
            assert_int_equal(gossip_call_end(e->server), ERR_OK);
            break;
        }
        size_t len = e->to_send < sizeof chunk ? (size_t)e->to_send : sizeof chunk;
        for (size_t i = 0; i < len; i++)
            chunk[i] = answer_byte(*made + i);
        assert_int_equal(gossip_call_answer(e->server, slice_of(chunk, len)), ERR_OK);
        e->to_send -= len;
        *made += len;
    }
    if (gossip_call_out(e->server)->len > e->out_max)
        e->out_max = gossip_call_out(e->server)->len;
}

/* Moves at most `piece` waiting bytes from a call to the other call. */
static int carry(struct gossip_call *from, struct gossip_call *to, size_t piece)
{
    struct buf *out = gossip_call_out(from);
    size_t len = out->len < piece ? out->len : piece;
    int err = gossip_call_feed(to, slice_of(out->at, len));
    buf_consume(out, len);
    return err;
}

static void ends_run(struct ends *e, size_t piece)
{
    uint64_t made = 0;
    while (!e->done) {
        if (gossip_call_out(e->client)->len > 0) {
            assert_int_equal(carry(e->client, e->server, piece), ERR_OK);
            assert_int_equal(server_step(e), ERR_OK);
        }
        server_answer(e, &made);
        if (gossip_call_out(e->server)->len > 0) {
            assert_int_equal(carry(e->server, e->client, piece), ERR_OK);
            assert_int_equal(client_step(e), ERR_OK);
        }
    }
    assert_int_equal(e->kind, 7);
    assert_slice_equal(buf_slice(&e->request), "what do you know?");
    assert_int_equal(e->answer.len, made);
    for (size_t i = 0; i < e->answer.len; i++)
        if (e->answer.at[i] != answer_byte(i))
            fail_msg("byte %zu differs", i);
}

static void test_a_call_works_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 300; piece++) {
        struct ends e;
        ends_open(&e, piece % 3 * 61);
        ends_run(&e, piece);
        ends_close(&e);
    }
}

static void test_megabytes(void **state)
{
    (void)state;
    static const size_t pieces[] = {1447, 65536, GOSSIP_CALL_FEED_MAX};
    for (unsigned i = 0; i < 3; i++) {
        struct ends e;
        ends_open(&e, 5000000);
        ends_run(&e, pieces[i]);
        assert_true(e.out_max < GOSSIP_CALL_OUT_HIGH + GOSSIP_CALL_CHUNK_MAX + 100);
        ends_close(&e);
    }
}

static void test_request_sizes(void **state)
{
    (void)state;
    static char bytes[GOSSIP_CALL_REQUEST_MAX + 1];
    struct ends e;
    ends_open(&e, 0);
    struct gossip_call *c = NULL;
    assert_int_equal(gossip_call_open(&c, &e.ring, ours, random_client, 1, SLICE_OF(bytes)),
                     ERR_LIMIT);
    assert_null(c);
    gossip_call_free(e.client);
    assert_int_equal(gossip_call_open(&e.client, &e.ring, ours, random_client, 1,
                                      slice_of(bytes, GOSSIP_CALL_REQUEST_MAX)),
                     ERR_OK);
    assert_int_equal(carry(e.client, e.server, 10000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_OK);
    assert_int_equal(carry(e.server, e.client, 10000), ERR_OK);
    assert_int_equal(client_step(&e), ERR_OK);
    assert_int_equal(carry(e.client, e.server, 100000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_OK);
    assert_int_equal(e.request.len, GOSSIP_CALL_REQUEST_MAX);
    ends_close(&e);
}

/* The first messages of client and server, with each byte changed: refused without an answer. */
static void test_changed_handshake(void **state)
{
    (void)state;
    for (size_t i = 0; i < 54; i++) {
        struct ends e;
        ends_open(&e, 0);
        gossip_call_out(e.client)->at[i] ^= 0x20;
        int err = carry(e.client, e.server, 1000);
        if (err == ERR_OK)
            err = server_step(&e);
        assert_true(err < 0);
        assert_int_equal(gossip_call_out(e.server)->len, 0);
        assert_true(server_step(&e) < 0); /* and the call stays broken */
        assert_false(gossip_call_wants(e.server));
        assert_int_equal(gossip_call_answer(e.server, SLICE("x")), ERR_CLOSED);
        ends_close(&e);
    }
    for (size_t i = 0; i < 50; i++) {
        struct ends e;
        ends_open(&e, 0);
        assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
        assert_int_equal(server_step(&e), ERR_OK);
        assert_int_equal(gossip_call_out(e.server)->len, 50);
        gossip_call_out(e.server)->at[i] ^= 0x20;
        int err = carry(e.server, e.client, 1000);
        if (err == ERR_OK)
            err = client_step(&e);
        assert_true(err < 0);
        assert_int_equal(gossip_call_out(e.client)->len, 0);
        ends_close(&e);
    }
}

static void ends_shake(struct ends *e)
{
    assert_int_equal(carry(e->client, e->server, 1000), ERR_OK);
    assert_int_equal(server_step(e), ERR_OK);
    assert_int_equal(carry(e->server, e->client, 1000), ERR_OK);
    assert_int_equal(client_step(e), ERR_OK);
}

static void test_changed_records(void **state)
{
    (void)state;
    size_t request_len = 2 + 1 + 6 + 17 + 16;
    for (size_t i = 0; i < request_len; i++) {
        struct ends e;
        ends_open(&e, 0);
        ends_shake(&e);
        assert_int_equal(gossip_call_out(e.client)->len, request_len);
        gossip_call_out(e.client)->at[i] ^= 1;
        int err = carry(e.client, e.server, 1000);
        if (err == ERR_OK)
            err = server_step(&e);
        /* A greater length waits for missing bytes. */
        assert_false(e.asked);
        if (err < 0) /* and the call stays refused */
            assert_true(gossip_call_feed(e.server, SLICE("x")) < 0);
        ends_close(&e);
    }
    for (size_t i = 0; i < 2 + 17 + 3 + 2 + 17; i++) {
        struct ends e;
        ends_open(&e, 0);
        ends_shake(&e);
        assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
        assert_int_equal(server_step(&e), ERR_OK);
        assert_int_equal(gossip_call_answer(e.server, SLICE("abc")), ERR_OK);
        assert_int_equal(gossip_call_end(e.server), ERR_OK);
        gossip_call_out(e.server)->at[i] ^= 1;
        if (carry(e.server, e.client, 1000) == ERR_OK)
            (void)client_step(&e);
        assert_false(e.done);
        ends_close(&e);
    }
}

/* A cut answer is never mistaken for a whole answer. */
static void test_early_close(void **state)
{
    (void)state;
    for (size_t keep = 0; keep < 2 + 17 + 3 + 2 + 17; keep++) {
        struct ends e;
        ends_open(&e, 0);
        ends_shake(&e);
        assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
        assert_int_equal(server_step(&e), ERR_OK);
        assert_int_equal(gossip_call_answer(e.server, SLICE("abc")), ERR_OK);
        assert_int_equal(gossip_call_end(e.server), ERR_OK);
        assert_int_equal(carry(e.server, e.client, keep), ERR_OK);
        assert_int_equal(client_step(&e), ERR_OK);
        assert_false(e.done);
        ends_close(&e);
    }
}

/* A recorded client's stream, sent to a server again, gets only a welcome. */
static void test_replayed_stream(void **state)
{
    (void)state;
    static const uint8_t other[32] = {9};
    struct ends e;
    struct buf said = {0};
    ends_open(&e, 0);
    assert_int_equal(buf_append_slice(&said, buf_slice(gossip_call_out(e.client))), ERR_OK);
    ends_shake(&e);
    size_t hello_len = said.len;
    assert_int_equal(buf_append_slice(&said, buf_slice(gossip_call_out(e.client))), ERR_OK);

    gossip_call_free(e.server);
    assert_int_equal(gossip_call_accept(&e.server, &e.ring, ours, other), ERR_OK);
    assert_int_equal(gossip_call_feed(e.server, slice_of(said.at, hello_len)), ERR_OK);
    assert_int_equal(server_step(&e), ERR_OK);
    assert_int_equal(gossip_call_feed(e.server, slice_skip(buf_slice(&said), hello_len)), ERR_OK);
    assert_int_equal(server_step(&e), ERR_DENIED);
    assert_int_equal(gossip_call_out(e.server)->len, 50);
    assert_false(e.asked);
    buf_free(&said);
    ends_close(&e);
}

/* Bytes beyond the limit are refused before they are copied. */
static void test_oversized(void **state)
{
    (void)state;
    static char bytes[GOSSIP_CALL_FEED_MAX];
    struct ends e;
    ends_open(&e, 0);
    assert_int_equal(gossip_call_feed(e.server, slice_of(bytes, 55)), ERR_SYNTAX);
    ends_close(&e);

    ends_open(&e, 0); /* any length but a hello's is refused at once */
    assert_int_equal(gossip_call_feed(e.server, SLICE("\xff\xff")), ERR_OK);
    assert_int_equal(server_step(&e), ERR_SYNTAX);
    ends_close(&e);

    ends_open(&e, 0);
    ends_shake(&e);
    assert_int_equal(gossip_call_feed(e.server, SLICE("\xff\xff")), ERR_OK);
    assert_int_equal(server_step(&e), ERR_SYNTAX);
    ends_close(&e);

    ends_open(&e, 0);
    ends_shake(&e);
    assert_int_equal(gossip_call_feed(e.server, slice_of(bytes, 70000)), ERR_SYNTAX);
    ends_close(&e);

    ends_open(&e, 0); /* the longest record, but never stepped */
    ends_shake(&e);
    int err = ERR_OK;
    for (unsigned i = 0; i < 3 && err == ERR_OK; i++)
        err = gossip_call_feed(e.client, SLICE_OF(bytes));
    assert_int_equal(err, ERR_LIMIT);
    ends_close(&e);
}

/* A client sends more after the request, or a server sends more after the end. */
static void test_bytes_after_the_end_are_errors(void **state)
{
    (void)state;
    struct ends e;
    ends_open(&e, 0);
    ends_shake(&e);
    assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_OK);
    assert_int_equal(gossip_call_feed(e.server, SLICE("x")), ERR_SYNTAX);
    assert_int_equal(gossip_call_answer(e.server, SLICE("x")), ERR_CLOSED);
    assert_int_equal(gossip_call_end(e.server), ERR_CLOSED);
    ends_close(&e);

    ends_open(&e, 0); /* together with the request */
    ends_shake(&e);
    assert_int_equal(buf_append_char(gossip_call_out(e.client), 'x'), ERR_OK);
    assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_SYNTAX);
    ends_close(&e);

    ends_open(&e, 0);
    ends_run(&e, 1000);
    assert_int_equal(gossip_call_feed(e.client, SLICE("x")), ERR_SYNTAX);
    ends_close(&e);
}

/* A client with other versions, and a client from before versions. */
static void test_a_client_with_an_unknown_version_gets_an_error(void **state)
{
    (void)state;
    static const struct {
        struct gossip_versions speaks;
        int err;
    } cases[] = {{{1, 1}, ERR_VERSION}, {{4, 9}, ERR_VERSION}, {{1, 2}, ERR_OK}, {{3, 7}, ERR_OK}};
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct ends e = {0};
        gossip_keyring_insecure(&e.ring);
        assert_int_equal(gossip_call_open(&e.client, &e.ring, cases[i].speaks, random_client, 7,
                                          SLICE("what do you know?")),
                         ERR_OK);
        assert_int_equal(gossip_call_accept(&e.server, &e.ring, ours, random_server), ERR_OK);
        ends_shake(&e);
        assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
        enum gossip_call_step step;
        uint8_t kind = 0;
        struct slice bytes;
        assert_int_equal(gossip_call_step(e.server, &step, &kind, &bytes), ERR_OK);
        if (cases[i].err == ERR_OK) {
            assert_int_equal(step, GOSSIP_CALL_REQUEST);
            assert_int_equal(kind, 7);
            assert_slice_equal(bytes, "what do you know?");
        } else {
            assert_int_equal(step, GOSSIP_CALL_REFUSED);
            assert_false(gossip_call_wants(e.server));
            assert_int_equal(carry(e.server, e.client, 1000), ERR_OK);
            assert_int_equal(client_step(&e), cases[i].err);
        }
        ends_close(&e);
    }
}

/* A server with the key breaks the protocol: each record, and the client's reaction. */
static void test_server_misbehaves(void **state)
{
    (void)state;
    static const struct {
        const char *record;
        size_t len, behind;
        int err;
    } cases[] = {{"\1", 1, 0, ERR_OK},
                 {"\1", 1, 1, ERR_SYNTAX},
                 {"\1 of later", 10, 0, ERR_OK},
                 {"\2\1", 2, 0, ERR_VERSION},
                 {"\2\2", 2, 0, ERR_UNSUPPORTED},
                 {"\3", 1, 0, ERR_SYNTAX}};
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct ends e;
        struct gossip_noise n;
        uint8_t keys[2][32], wire[64] = {0};
        ends_open(&e, 0);
        const struct buf *hello = gossip_call_out(e.client);
        gossip_noise_begin(&n, SLICE("grapevine 1 calls"), e.ring.keys[0].psk);
        assert_int_equal(gossip_noise_hello_read(&n, slice_of(hello->at + 6, 48), wire), ERR_OK);
        wire[0] = GOSSIP_NOISE_OVERHEAD;
        assert_int_equal(gossip_noise_welcome_write(&n, random_server, SLICE(""), wire + 2),
                         ERR_OK);
        gossip_noise_split(&n, keys[0], keys[1], NULL);
        assert_int_equal(gossip_call_feed(e.client, slice_of((char *)wire, 50)), ERR_OK);
        assert_int_equal(client_step(&e), ERR_OK);

        wire[0] = (uint8_t)(cases[i].len + GOSSIP_NOISE_TAG);
        gossip_noise_seal(keys[1], 0, SLICE(""), slice_of(cases[i].record, cases[i].len), wire + 2);
        assert_int_equal(
            gossip_call_feed(e.client, slice_of((char *)wire, 2u + wire[0] + cases[i].behind)),
            ERR_OK);
        assert_int_equal(client_step(&e), cases[i].err);
        assert_int_equal(e.done, cases[i].err == ERR_OK);
        ends_close(&e);
    }
}

static void test_the_output_buffer_is_bounded(void **state)
{
    (void)state;
    static char chunk[GOSSIP_CALL_CHUNK_MAX];
    struct ends e;
    ends_open(&e, 0);
    ends_shake(&e);
    assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_OK);
    int err = ERR_OK;
    while (err == ERR_OK)
        err = gossip_call_answer(e.server, SLICE_OF(chunk));
    assert_int_equal(err, ERR_FULL);
    assert_false(gossip_call_wants(e.server));
    buf_clear(gossip_call_out(e.server));
    assert_true(gossip_call_wants(e.server));
    assert_int_equal(gossip_call_answer(e.server, SLICE_OF(chunk)), ERR_OK);
    ends_close(&e);
}

static void test_wrong_and_next_key(void **state)
{
    (void)state;
    struct ends e;
    struct gossip_keyring other;
    char text[400], message[160];
    uint8_t random[64];
    for (unsigned i = 0; i < 64; i++)
        random[i] = (uint8_t)(i + 1);
    gossip_keyring_format(random, text, sizeof text);
    assert_int_equal(gossip_keyring_parse(&other, slice_of_cstr(text), message), ERR_OK);

    ends_open(&e, 0);
    gossip_call_free(e.server);
    assert_int_equal(gossip_call_accept(&e.server, &other, ours, random_server), ERR_OK);
    assert_int_equal(carry(e.client, e.server, 1000), ERR_OK);
    assert_int_equal(server_step(&e), ERR_DENIED);
    ends_close(&e);

    ends_open(&e, 0);
    gossip_call_free(e.server);
    other.keys[1] = e.ring.keys[0];
    other.count = 2;
    assert_int_equal(gossip_call_accept(&e.server, &other, ours, random_server), ERR_OK);
    ends_run(&e, 1000);
    ends_close(&e);
}

/* The same keys and the same pattern: only the prologue distinguishes a call's hello from a
 * datagram's. */
static void test_calls_and_datagrams_have_separate_keys(void **state)
{
    (void)state;
    struct ends e;
    uint8_t packet[GOSSIP_HELLO_BYTES], record[2 + 52], none[GOSSIP_HELLO_PAYLOAD];
    struct gossip_dial d = {0};
    struct gossip_noise n;
    ends_open(&e, 0);
    struct buf *out = gossip_call_out(e.client);
    assert_int_equal(out->len, sizeof record);
    gossip_noise_begin(&n, SLICE("grapevine 1 datagrams"), e.ring.keys[0].psk);
    assert_int_equal(gossip_noise_hello_read(&n, slice_of(out->at + 6, 48), none), ERR_DENIED);
    gossip_dial_begin(&d, &e.ring, random_client, 1, &(struct gossip_identity){.node = 1}, 1,
                      packet);
    gossip_noise_begin(&n, SLICE("grapevine 1 calls"), e.ring.keys[0].psk);
    assert_int_equal(gossip_noise_hello_read(&n, slice_skip(SLICE_OF(packet), 5), none),
                     ERR_DENIED);
    gossip_noise_begin(&n, SLICE("grapevine 1 datagrams"), e.ring.keys[0].psk);
    assert_int_equal(gossip_noise_hello_read(&n, slice_skip(SLICE_OF(packet), 5), none), ERR_OK);
    ends_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_works_in_pieces_of_any_size),
        cmocka_unit_test(test_megabytes),
        cmocka_unit_test(test_request_sizes),
        cmocka_unit_test(test_changed_handshake),
        cmocka_unit_test(test_changed_records),
        cmocka_unit_test(test_early_close),
        cmocka_unit_test(test_replayed_stream),
        cmocka_unit_test(test_oversized),
        cmocka_unit_test(test_bytes_after_the_end_are_errors),
        cmocka_unit_test(test_a_client_with_an_unknown_version_gets_an_error),
        cmocka_unit_test(test_server_misbehaves),
        cmocka_unit_test(test_the_output_buffer_is_bounded),
        cmocka_unit_test(test_wrong_and_next_key),
        cmocka_unit_test(test_calls_and_datagrams_have_separate_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
