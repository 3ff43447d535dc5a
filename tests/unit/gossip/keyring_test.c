#include "tests/lib/test.h"

#include <stdio.h>

#include "base/err.h"
#include "gossip/keyring.h"

#define HEX_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define HEX_B "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f"
#define HEX_C "CAFEbabe00000000000000000000000000000000000000000000000000000001"

static int parse(struct gossip_keyring *k, const char *text, char *message)
{
    message[0] = '\0';
    return gossip_keyring_parse(k, slice_of_cstr(text), message);
}

static void assert_refused(const char *text, const char *why)
{
    struct gossip_keyring k, before;
    char message[160];
    memset(&k, 0x5a, sizeof k);
    before = k;
    assert_int_equal(parse(&k, text, message), ERR_SYNTAX);
    assert_string_equal(message, why);
    assert_memory_equal(&k, &before, sizeof k);
}

static void test_file(void **state)
{
    (void)state;
    struct gossip_keyring k, swapped;
    char message[160];
    assert_int_equal(
        parse(&k, "# keys\r\n\r\n key\t" HEX_B " # current\r\nhash " HEX_A "\n\nnext   " HEX_C "  ",
              message),
        ERR_OK);
    assert_int_equal(k.count, 2);
    assert_int_equal(parse(&swapped, "hash " HEX_A "\nnext " HEX_B "\nkey " HEX_C, message),
                     ERR_OK);
    assert_memory_equal(&k.keys[0], &swapped.keys[1], sizeof k.keys[0]);
    assert_memory_equal(&k.keys[1], &swapped.keys[0], sizeof k.keys[0]);
    assert_memory_equal(k.hash, swapped.hash, sizeof k.hash);
    assert_int_equal(parse(&k, "hash " HEX_A "\nold " HEX_B "\nkey " HEX_C, message), ERR_OK);
    assert_memory_equal(&k, &swapped, sizeof k); /* "old" and "key" both name the second key */
    assert_int_equal(parse(&k, "hash " HEX_A "\nkey " HEX_B, message), ERR_OK);
    assert_int_equal(k.count, 1);
}

/* Clusters with the same key file; without a name, keys are derived as in earlier builds. */
static void test_keys_depend_on_the_cluster_name(void **state)
{
    (void)state;
    struct gossip_keyring plain, blue, green, again;
    char message[160];
    assert_int_equal(parse(&plain, "hash " HEX_A "\nkey " HEX_B "\nold " HEX_C, message), ERR_OK);
    static const uint8_t id[] = {0x3f, 0xbd, 0x6e, 0xe9};
    assert_memory_equal(plain.keys[0].id, id, sizeof id);
    blue = green = again = plain;
    gossip_keyring_cluster(&again, SLICE(""));
    assert_memory_equal(&again, &plain, sizeof again);
    gossip_keyring_cluster(&blue, SLICE("blue"));
    gossip_keyring_cluster(&green, SLICE("green"));
    gossip_keyring_cluster(&again, SLICE("blue"));
    assert_memory_equal(&again, &blue, sizeof again);
    for (unsigned i = 0; i < plain.count; i++) {
        assert_memory_not_equal(blue.keys[i].psk, plain.keys[i].psk, GOSSIP_KEY_BYTES);
        assert_memory_not_equal(blue.keys[i].psk, green.keys[i].psk, GOSSIP_KEY_BYTES);
        assert_memory_not_equal(blue.keys[i].id, plain.keys[i].id, GOSSIP_KEY_ID_BYTES);
        assert_memory_not_equal(blue.keys[i].id, green.keys[i].id, GOSSIP_KEY_ID_BYTES);
        assert_memory_equal(blue.keys[i].id, green.keys[i].id, GOSSIP_KEY_ID_KEY);
    }
    assert_memory_equal(blue.hash, plain.hash, GOSSIP_KEY_BYTES);
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("", "there is no line `hash` with 64 hexadecimal digits");
    assert_refused("hash " HEX_A "\n", "there is no line `key` with 64 hexadecimal digits");
    assert_refused("key " HEX_A, "there is no line `hash` with 64 hexadecimal digits");
    assert_refused("hash " HEX_A "\nkeys " HEX_B,
                   "line 2: neither `hash` nor `key`, `next` or `old`");
    assert_refused(HEX_A, "line 1: neither `hash` nor `key`, `next` or `old`");
    assert_refused("next " HEX_A "\nold " HEX_B, "line 2: `next` and `old` do not go together");
    assert_refused("old " HEX_A "\nnext " HEX_B, "line 2: `next` and `old` do not go together");
    assert_refused("hash " HEX_A "\n\n#\nhash " HEX_B, "line 4: this kind of key was given before");
    assert_refused("hash " HEX_A "0", "line 1: a key is 64 hexadecimal digits");
    assert_refused("hash", "line 1: a key is 64 hexadecimal digits");
    assert_refused("hash g" HEX_A, "line 1: a key is 64 hexadecimal digits");
    assert_refused("hash 0x" HEX_A, "line 1: a key is 64 hexadecimal digits");
    assert_refused("hash " HEX_A " " HEX_B, "line 1: something follows the key");
    assert_refused("hash " HEX_A "\nkey " HEX_A, "line 2: the key is the same as one above");
    assert_refused("key 0000000000000000000000000000000000000000000000000000000000000000",
                   "line 1: the key is all zeros; `gvctl keygen` makes one");
}

/* Messages name the error but not the text: they end up in logs. */
static void test_no_key_in_messages(void **state)
{
    (void)state;
    static const char *const texts[] = {HEX_A, "kye " HEX_A, "key " HEX_A " x", "key x" HEX_A};
    for (unsigned i = 0; i < 4; i++) {
        struct gossip_keyring k;
        char message[160];
        assert_int_equal(parse(&k, texts[i], message), ERR_SYNTAX);
        assert_null(strstr(message, "0001"));
    }
}

static void test_derived(void **state)
{
    (void)state;
    struct gossip_keyring k;
    char message[160];
    assert_int_equal(parse(&k, "hash " HEX_A "\nkey " HEX_B, message), ERR_OK);
    uint8_t raw[32];
    for (unsigned i = 0; i < 32; i++)
        raw[i] = (uint8_t)i;
    assert_memory_equal(k.hash, raw, 32);
    assert_memory_not_equal(k.keys[0].psk, k.keys[0].id, 4);
    static const uint8_t raw_b[4] = {0xf0, 0xe1, 0xd2, 0xc3};
    assert_memory_not_equal(k.keys[0].psk, raw_b, 4);

    /* Computed with another BLAKE2b. Fixed for the life of the format: a change empties every index
     * and splits every cluster. */
    static const uint8_t id[4] = {0x3f, 0xbd, 0x6e, 0xe9};
    static const uint8_t secret_head[8] = {0x5a, 0xf5, 0x33, 0x3b, 0x65, 0x5b, 0xa9, 0xbb};
    struct hash_secret secret;
    gossip_keyring_hash_secret(&k, &secret);
    assert_memory_equal(k.keys[0].id, id, 4);
    assert_memory_equal(secret.bytes, secret_head, 8);
    assert_memory_not_equal(secret.bytes, secret.bytes + 64, 64);
    assert_memory_not_equal(secret.bytes + 64, secret.bytes + 128, 64);
}

static void test_format(void **state)
{
    (void)state;
    uint8_t random[64];
    for (unsigned i = 0; i < 64; i++)
        random[i] = (uint8_t)(i < 32 ? i : 3 * i);
    char text[1024], message[160];
    gossip_keyring_format(random, text, sizeof text);
    struct gossip_keyring k;
    assert_int_equal(parse(&k, text, message), ERR_OK);
    assert_int_equal(k.count, 1);
    assert_memory_equal(k.hash, random, 32);
}

static void test_insecure(void **state)
{
    (void)state;
    struct gossip_keyring a, b;
    gossip_keyring_insecure(&a);
    gossip_keyring_insecure(&b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(a.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_keys_depend_on_the_cluster_name),
        cmocka_unit_test(test_no_key_in_messages),
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_insecure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
