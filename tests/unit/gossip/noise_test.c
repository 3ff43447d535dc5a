/* The handshake against the published vectors, the primitives against Wycheproof's. */
#include "tests/lib/test.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>

#include "base/err.h"
#include "gossip/noise.h"
#include "tests/lib/files.h"

#define NAME "Noise_NNpsk0_25519_ChaChaPoly_SHA256"

static json_t *vectors_load(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

/* The bytes of a hexadecimal member; the caller frees them. */
static struct slice hex_member(const json_t *object, const char *name)
{
    const char *hex = json_string_value(json_object_get(object, name));
    assert_non_null(hex);
    size_t len = strlen(hex) / 2;
    char *at = malloc(len + 1);
    assert_non_null(at);
    assert_int_equal(sodium_hex2bin((uint8_t *)at, len + 1, hex, 2 * len, NULL, NULL, NULL), 0);
    return slice_of(at, len);
}

static void slice_free(struct slice s)
{
    free((char *)s.at);
}

static const uint8_t *bytes(struct slice s)
{
    return (const uint8_t *)s.at;
}

static void assert_bytes(const uint8_t *actual, struct slice expected)
{
    assert_memory_equal(actual, expected.at, expected.len);
}

static struct gossip_noise side_of(const json_t *vector, const char *prologue_name,
                                   const char *psks_name)
{
    struct gossip_noise n;
    json_t *psk_hex =
        json_pack("{s:O}", "psk", json_array_get(json_object_get(vector, psks_name), 0));
    struct slice prologue = hex_member(vector, prologue_name);
    struct slice psk = hex_member(psk_hex, "psk");
    gossip_noise_begin(&n, prologue, bytes(psk));
    slice_free(prologue);
    slice_free(psk);
    json_decref(psk_hex);
    return n;
}

static void handshake_run(const json_t *vector, struct gossip_noise *initiator,
                          struct gossip_noise *responder)
{
    uint8_t wire[512], payload[512];
    const json_t *messages = json_object_get(vector, "messages");
    for (unsigned i = 0; i < 2; i++) {
        const json_t *message = json_array_get(messages, i);
        struct slice plain = hex_member(message, "payload");
        struct slice expected = hex_member(message, "ciphertext");
        struct slice own = hex_member(vector, i == 0 ? "init_ephemeral" : "resp_ephemeral");
        assert_int_equal(expected.len, plain.len + GOSSIP_NOISE_OVERHEAD);
        if (i == 0) {
            gossip_noise_hello_write(initiator, bytes(own), plain, wire);
            assert_int_equal(gossip_noise_hello_read(responder, expected, payload), ERR_OK);
        } else {
            assert_int_equal(gossip_noise_welcome_write(responder, bytes(own), plain, wire),
                             ERR_OK);
            assert_int_equal(gossip_noise_welcome_read(initiator, expected, payload), ERR_OK);
        }
        assert_bytes(wire, expected);
        assert_bytes(payload, plain);
        slice_free(plain);
        slice_free(expected);
        slice_free(own);
    }
}

static void transport_run(const json_t *vector, uint8_t keys[2][GOSSIP_NOISE_KEY])
{
    uint8_t wire[512], payload[512];
    const json_t *messages = json_object_get(vector, "messages");
    for (unsigned i = 2; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        struct slice plain = hex_member(message, "payload");
        struct slice expected = hex_member(message, "ciphertext");
        uint64_t counter = (i - 2) / 2;
        gossip_noise_seal(keys[i % 2], counter, SLICE(""), plain, wire);
        assert_int_equal(expected.len, plain.len + GOSSIP_NOISE_TAG);
        assert_bytes(wire, expected);
        assert_int_equal(gossip_noise_open(keys[i % 2], counter, SLICE(""), expected, payload),
                         ERR_OK);
        assert_bytes(payload, plain);
        slice_free(plain);
        slice_free(expected);
    }
}

static void test_published_vectors(void **state)
{
    (void)state;
    json_t *root = vectors_load(VECTORS "/noise/vectors.json");
    const json_t *all = json_is_array(root) ? root : json_object_get(root, "vectors");
    unsigned ran = 0;
    size_t i;
    const json_t *vector;
    json_array_foreach(all, i, vector)
    {
        const json_t *name = json_object_get(vector, "protocol_name");
        if (name == NULL || strcmp(json_string_value(name), NAME) != 0)
            continue;
        struct gossip_noise initiator = side_of(vector, "init_prologue", "init_psks");
        struct gossip_noise responder = side_of(vector, "resp_prologue", "resp_psks");
        handshake_run(vector, &initiator, &responder);

        uint8_t ours[2][GOSSIP_NOISE_KEY], theirs[2][GOSSIP_NOISE_KEY], hash[32];
        gossip_noise_split(&initiator, ours[0], ours[1], hash);
        gossip_noise_split(&responder, theirs[0], theirs[1], NULL);
        assert_memory_equal(ours, theirs, sizeof ours);
        struct slice expected = hex_member(vector, "handshake_hash");
        assert_bytes(hash, expected);
        slice_free(expected);
        transport_run(vector, ours);
        ran++;
    }
    json_decref(root);
    assert_true(ran > 0);
}

/* A hello and a welcome between two sides, without packets around them. */
struct pair {
    struct gossip_noise initiator, responder;
    uint8_t hello[GOSSIP_NOISE_OVERHEAD + 9];
    uint8_t welcome[GOSSIP_NOISE_OVERHEAD + 5];
};

static const uint8_t psk[32] = {1, 2, 3};
static const uint8_t secret_a[32] = {4, 5, 6};
static const uint8_t secret_b[32] = {7, 8, 9};

static void pair_begin(struct pair *p, struct slice prologue_a, struct slice prologue_b)
{
    gossip_noise_begin(&p->initiator, prologue_a, psk);
    gossip_noise_begin(&p->responder, prologue_b, psk);
    gossip_noise_hello_write(&p->initiator, secret_a, SLICE("what I am"), p->hello);
}

#define SLICE_OF(array) slice_of((const char *)(array), sizeof(array))

static void test_other_prologue_or_key(void **state)
{
    (void)state;
    struct pair p;
    uint8_t payload[64], other[32] = {1, 2, 4};
    pair_begin(&p, SLICE("datagrams"), SLICE("calls"));
    assert_int_equal(gossip_noise_hello_read(&p.responder, SLICE_OF(p.hello), payload), ERR_DENIED);
    gossip_noise_begin(&p.responder, SLICE("datagrams"), other);
    assert_int_equal(gossip_noise_hello_read(&p.responder, SLICE_OF(p.hello), payload), ERR_DENIED);
    gossip_noise_begin(&p.responder, SLICE("datagrams"), psk);
    assert_int_equal(gossip_noise_hello_read(&p.responder, SLICE_OF(p.hello), payload), ERR_OK);
}

static void test_changed_messages_change_nothing(void **state)
{
    (void)state;
    struct pair p;
    uint8_t payload[64];
    pair_begin(&p, SLICE("x"), SLICE("x"));
    struct gossip_noise before = p.responder;
    for (size_t bit = 0; bit < 8 * sizeof p.hello; bit++) {
        p.hello[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int err = gossip_noise_hello_read(&p.responder, SLICE_OF(p.hello), payload);
        p.hello[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(err, ERR_DENIED);
        assert_memory_equal(&before, &p.responder, sizeof before);
    }
    for (size_t len = 0; len < sizeof p.hello; len++)
        assert_true(gossip_noise_hello_read(&p.responder, slice_of((char *)p.hello, len), payload) <
                    0);
    assert_int_equal(gossip_noise_hello_read(&p.responder, SLICE_OF(p.hello), payload), ERR_OK);
    assert_memory_equal(payload, "what I am", 9);

    assert_int_equal(gossip_noise_welcome_write(&p.responder, secret_b, SLICE("hello"), p.welcome),
                     ERR_OK);
    before = p.initiator;
    for (size_t bit = 0; bit < 8 * sizeof p.welcome; bit++) {
        p.welcome[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int err = gossip_noise_welcome_read(&p.initiator, SLICE_OF(p.welcome), payload);
        p.welcome[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(err, ERR_DENIED);
        assert_memory_equal(&before, &p.initiator, sizeof before);
    }
    for (size_t len = 0; len < sizeof p.welcome; len++)
        assert_true(
            gossip_noise_welcome_read(&p.initiator, slice_of((char *)p.welcome, len), payload) < 0);
    assert_int_equal(gossip_noise_welcome_read(&p.initiator, SLICE_OF(p.welcome), payload), ERR_OK);
}

/* If a holder of the key sends a point of low order, the session's keys would be predictable. */
static void test_low_order_points(void **state)
{
    (void)state;
    static const uint8_t one[32] = {1};
    static const uint8_t eight[32] = {0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae,
                                      0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
                                      0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd,
                                      0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00};
    static const uint8_t zero[32] = {0};
    const uint8_t *const points[] = {zero, one, eight};
    for (unsigned i = 0; i < 3; i++) {
        struct pair p;
        uint8_t out[GOSSIP_NOISE_OVERHEAD];
        pair_begin(&p, SLICE("x"), SLICE("x"));
        memcpy(p.responder.remote, points[i], 32);
        struct gossip_noise before = p.responder;
        assert_int_equal(gossip_noise_welcome_write(&p.responder, secret_b, SLICE(""), out),
                         ERR_DENIED);
        assert_memory_equal(&before, &p.responder, sizeof before);
    }
}

static void test_split_wipes(void **state)
{
    (void)state;
    static const struct gossip_noise wiped;
    struct pair p;
    uint8_t keys[2][32];
    pair_begin(&p, SLICE("x"), SLICE("x"));
    gossip_noise_split(&p.initiator, keys[0], keys[1], NULL);
    assert_memory_equal(&p.initiator, &wiped, sizeof wiped);
}

static void test_wycheproof_aead(void **state)
{
    (void)state;
    json_t *root = vectors_load(VECTORS "/wycheproof/chacha20_poly1305.json");
    unsigned ran = 0;
    size_t g, i;
    const json_t *group, *test;
    json_array_foreach(json_object_get(root, "testGroups"), g, group)
    {
        json_array_foreach(json_object_get(group, "tests"), i, test)
        {
            struct slice key = hex_member(test, "key"), iv = hex_member(test, "iv");
            struct slice aad = hex_member(test, "aad"), msg = hex_member(test, "msg");
            struct slice ct = hex_member(test, "ct"), tag = hex_member(test, "tag");
            bool valid = strcmp(json_string_value(json_object_get(test, "result")), "invalid") != 0;
            static const uint8_t zero[4];
            /* Our nonces begin with four zeros; the other vectors go to libsodium. */
            uint8_t sealed[2048], out[2048];
            assert_true(ct.len + tag.len <= sizeof sealed);
            memcpy(sealed, ct.at, ct.len);
            memcpy(sealed + ct.len, tag.at, tag.len);
            int bad;
            if (iv.len == 12 && memcmp(iv.at, zero, 4) == 0) {
                uint64_t counter = 0;
                memcpy(&counter, iv.at + 4, 8);
                bad = gossip_noise_open(bytes(key), counter, aad,
                                        slice_of((char *)sealed, ct.len + tag.len), out);
            } else if (iv.len == 12 && tag.len == 16) {
                bad = crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed,
                                                                ct.len + tag.len, bytes(aad),
                                                                aad.len, bytes(iv), bytes(key));
            } else {
                bad = 1;
                valid = false;
            }
            assert_int_equal(bad == 0, valid);
            if (valid)
                assert_bytes(out, msg);
            slice_free(key), slice_free(iv), slice_free(aad);
            slice_free(msg), slice_free(ct), slice_free(tag);
            ran++;
        }
    }
    json_decref(root);
    assert_true(ran > 100);
}

static void test_wycheproof_x25519(void **state)
{
    (void)state;
    static const uint8_t zero[32];
    json_t *root = vectors_load(VECTORS "/wycheproof/x25519.json");
    unsigned ran = 0;
    size_t g, i;
    const json_t *group, *test;
    json_array_foreach(json_object_get(root, "testGroups"), g, group)
    {
        json_array_foreach(json_object_get(group, "tests"), i, test)
        {
            struct slice public = hex_member(test, "public"), private = hex_member(test, "private");
            struct slice shared = hex_member(test, "shared");
            uint8_t out[32];
            int err = crypto_scalarmult(out, bytes(private), bytes(public));
            if (memcmp(shared.at, zero, 32) == 0)
                assert_int_not_equal(err, 0); /* invariant 4 rests on this */
            else {
                assert_int_equal(err, 0);
                assert_bytes(out, shared);
            }
            slice_free(public), slice_free(private), slice_free(shared);
            ran++;
        }
    }
    json_decref(root);
    assert_true(ran > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_other_prologue_or_key),
        cmocka_unit_test(test_changed_messages_change_nothing),
        cmocka_unit_test(test_low_order_points),
        cmocka_unit_test(test_split_wipes),
        cmocka_unit_test(test_wycheproof_aead),
        cmocka_unit_test(test_wycheproof_x25519),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
