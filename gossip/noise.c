#include "gossip/noise.h"

#include <sodium.h>

#include "base/err.h"
#include "base/wire.h"

static const char protocol_name[] = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

static const unsigned char *bytes_of(struct slice s)
{
    return (const unsigned char *)s.at;
}

static void hmac(uint8_t out[32], const uint8_t key[32], const uint8_t *in, size_t len)
{
    (void)crypto_auth_hmacsha256(out, in, len, key);
}

/* HKDF of the framework's section 4.3: `count` outputs of 32 bytes from the chaining key and `len`
 * new bytes. */
static void hkdf(const uint8_t chain[32], const uint8_t *material, size_t len,
                 uint8_t outputs[][32], unsigned count)
{
    uint8_t secret[32];
    uint8_t block[33];
    hmac(secret, chain, material, len);
    for (unsigned i = 0; i < count; i++) {
        size_t before = 0;
        if (i > 0) {
            memcpy(block, outputs[i - 1], 32);
            before = 32;
        }
        block[before] = (uint8_t)(i + 1);
        hmac(outputs[i], secret, block, before + 1);
    }
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(block, sizeof block);
}

static void hash_mix_in(struct gossip_noise *n, const void *bytes, size_t len)
{
    crypto_hash_sha256_state state;
    (void)crypto_hash_sha256_init(&state);
    (void)crypto_hash_sha256_update(&state, n->hash, sizeof n->hash);
    if (len > 0)
        (void)crypto_hash_sha256_update(&state, bytes, len);
    (void)crypto_hash_sha256_final(&state, n->hash);
}

static void key_mix_in(struct gossip_noise *n, const uint8_t material[32])
{
    uint8_t outputs[2][32];
    hkdf(n->chain, material, 32, outputs, 2);
    memcpy(n->chain, outputs[0], 32);
    memcpy(n->key, outputs[1], 32);
    n->nonce = 0;
    sodium_memzero(outputs, sizeof outputs);
}

static void psk_mix_in(struct gossip_noise *n, const uint8_t psk[32])
{
    uint8_t outputs[3][32];
    hkdf(n->chain, psk, 32, outputs, 3);
    memcpy(n->chain, outputs[0], 32);
    hash_mix_in(n, outputs[1], 32);
    memcpy(n->key, outputs[2], 32);
    n->nonce = 0;
    sodium_memzero(outputs, sizeof outputs);
}

/* The token "e". With a pre-shared key, an ephemeral public key goes into the chain too (section
 * 9.2), so that the first payload is sealed under a new key. */
static void public_mix_in(struct gossip_noise *n, const uint8_t public[32])
{
    hash_mix_in(n, public, 32);
    key_mix_in(n, public);
}

/* The token "ee". */
static int shared_mix_in(struct gossip_noise *n)
{
    uint8_t shared[32];
    int err = crypto_scalarmult(shared, n->own, n->remote) == 0 ? ERR_OK : ERR_DENIED;
    if (err == ERR_OK)
        key_mix_in(n, shared);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(n->own, sizeof n->own);
    return err;
}

static struct slice hash_slice(const struct gossip_noise *n)
{
    return slice_of((const char *)n->hash, sizeof n->hash);
}

static void payload_seal(struct gossip_noise *n, struct slice payload, uint8_t *out)
{
    gossip_noise_seal(n->key, n->nonce++, hash_slice(n), payload, out);
    hash_mix_in(n, out, payload.len + GOSSIP_NOISE_TAG);
}

static int payload_open(struct gossip_noise *n, struct slice sealed, uint8_t *payload)
{
    uint8_t hash[32];
    memcpy(hash, n->hash, sizeof hash);
    hash_mix_in(n, sealed.at, sealed.len); /* done now, because the payload may overwrite the sealed
                                            * bytes */
    return gossip_noise_open(n->key, n->nonce++, slice_of((const char *)hash, sizeof hash), sealed,
                             payload);
}

void gossip_noise_begin(struct gossip_noise *n, struct slice prologue, const uint8_t psk[32])
{
    memset(n, 0, sizeof *n);
    /* The name is longer than a hash, so the initial value is the name's hash. */
    (void)crypto_hash_sha256(n->hash, (const unsigned char *)protocol_name,
                             sizeof protocol_name - 1);
    memcpy(n->chain, n->hash, sizeof n->chain);
    hash_mix_in(n, prologue.at, prologue.len);
    psk_mix_in(n, psk); /* the token "psk", which begins the first message */
}

void gossip_noise_wipe(struct gossip_noise *n)
{
    sodium_memzero(n, sizeof *n);
}

void gossip_noise_hello_write(struct gossip_noise *n, const uint8_t ephemeral[32],
                              struct slice payload, uint8_t *out)
{
    memcpy(n->own, ephemeral, sizeof n->own);
    (void)crypto_scalarmult_base(out, n->own);
    public_mix_in(n, out);
    payload_seal(n, payload, out + GOSSIP_NOISE_KEY);
}

int gossip_noise_hello_read(struct gossip_noise *n, struct slice message, uint8_t *payload)
{
    if (message.len < GOSSIP_NOISE_OVERHEAD)
        return ERR_SYNTAX;
    struct gossip_noise next = *n;
    memcpy(next.remote, message.at, sizeof next.remote);
    public_mix_in(&next, next.remote);
    int err = payload_open(&next, slice_skip(message, GOSSIP_NOISE_KEY), payload);
    if (err == ERR_OK)
        *n = next;
    gossip_noise_wipe(&next);
    return err;
}

int gossip_noise_welcome_write(struct gossip_noise *n, const uint8_t ephemeral[32],
                               struct slice payload, uint8_t *out)
{
    struct gossip_noise next = *n;
    uint8_t public[GOSSIP_NOISE_KEY];
    memcpy(next.own, ephemeral, sizeof next.own);
    (void)crypto_scalarmult_base(public, next.own);
    public_mix_in(&next, public);
    int err = shared_mix_in(&next);
    if (err == ERR_OK) {
        memcpy(out, public, sizeof public);
        payload_seal(&next, payload, out + GOSSIP_NOISE_KEY);
        *n = next;
    }
    gossip_noise_wipe(&next);
    return err;
}

int gossip_noise_welcome_read(struct gossip_noise *n, struct slice message, uint8_t *payload)
{
    if (message.len < GOSSIP_NOISE_OVERHEAD)
        return ERR_SYNTAX;
    struct gossip_noise next = *n;
    memcpy(next.remote, message.at, sizeof next.remote);
    public_mix_in(&next, next.remote);
    int err = shared_mix_in(&next);
    if (err == ERR_OK)
        err = payload_open(&next, slice_skip(message, GOSSIP_NOISE_KEY), payload);
    if (err == ERR_OK)
        *n = next;
    gossip_noise_wipe(&next);
    return err;
}

void gossip_noise_split(struct gossip_noise *n, uint8_t from_initiator[32],
                        uint8_t from_responder[32], uint8_t *hash)
{
    uint8_t outputs[2][32];
    hkdf(n->chain, NULL, 0, outputs, 2);
    memcpy(from_initiator, outputs[0], 32);
    memcpy(from_responder, outputs[1], 32);
    if (hash != NULL)
        memcpy(hash, n->hash, sizeof n->hash);
    sodium_memzero(outputs, sizeof outputs);
    gossip_noise_wipe(n);
}

static void nonce_of(uint64_t counter, uint8_t nonce[12])
{
    struct wire_writer w = wire_writer_of(nonce, 12);
    wire_write_u32(&w, 0);
    wire_write_u64(&w, counter);
}

void gossip_noise_seal(const uint8_t key[32], uint64_t counter, struct slice aad,
                       struct slice plain, uint8_t *out)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    nonce_of(counter, nonce);
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, bytes_of(plain), plain.len,
                                                    bytes_of(aad), aad.len, NULL, nonce, key);
}

int gossip_noise_open(const uint8_t key[32], uint64_t counter, struct slice aad,
                      struct slice sealed, uint8_t *out)
{
    if (sealed.len < GOSSIP_NOISE_TAG)
        return ERR_SYNTAX;
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    nonce_of(counter, nonce);
    int bad = crypto_aead_chacha20poly1305_ietf_decrypt(
        out, NULL, NULL, bytes_of(sealed), sealed.len, bytes_of(aad), aad.len, nonce, key);
    return bad == 0 ? ERR_OK : ERR_DENIED;
}
