/* Noise_NNpsk0_25519_ChaChaPoly_SHA256 (The Noise Protocol Framework, revision 34), built from
 * libsodium's primitives: crypto_scalarmult, crypto_hash_sha256, crypto_auth_hmacsha256,
 * crypto_aead_chacha20poly1305_ietf.
 *
 *     -> psk, e          hello:   32 bytes of key, the sealed payload, 16 bytes of tag
 *     <- e, ee           welcome: the same
 *
 * When the first message opens, the receiver knows that the writer has the pre-shared key. No
 * Diffie-Hellman is computed before, so a forged hello costs the receiver only a few hashes. Keys
 * are forward secret: the pre-shared key alone does not open recorded traffic.
 *
 * Invariants:
 *   1. A failed read leaves the handshake as it was.
 *   2. Every secret is wiped once it is no longer needed: the ephemeral secret after the last use,
 *      everything else by gossip_noise_split() or gossip_noise_wipe().
 *   3. An ephemeral secret is 32 fresh random bytes from the caller and is never used twice.
 *   4. An all-zero result of Diffie-Hellman (a point of low order) is refused.
 *
 * A process should call sodium_init() first, because it selects the fast implementations.
 */
#ifndef GOSSIP_NOISE_H
#define GOSSIP_NOISE_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    GOSSIP_NOISE_KEY = 32,
    GOSSIP_NOISE_TAG = 16,
    GOSSIP_NOISE_OVERHEAD = GOSSIP_NOISE_KEY + GOSSIP_NOISE_TAG, /* per handshake message */
};

struct gossip_noise {
    uint8_t chain[GOSSIP_NOISE_KEY];
    uint8_t hash[GOSSIP_NOISE_KEY];
    uint8_t key[GOSSIP_NOISE_KEY];
    uint8_t own[GOSSIP_NOISE_KEY];    /* secret of the initiator's ephemeral key */
    uint8_t remote[GOSSIP_NOISE_KEY]; /* the other side's ephemeral key */
    uint64_t nonce;
};

/* Both sides call this first, with the same prologue. A prologue keeps protocols with the same key
 * from accepting each other's messages. */
void gossip_noise_begin(struct gossip_noise *n, struct slice prologue,
                        const uint8_t psk[GOSSIP_NOISE_KEY]);
void gossip_noise_wipe(struct gossip_noise *n);

/* Writes payload.len + GOSSIP_NOISE_OVERHEAD bytes. */
void gossip_noise_hello_write(struct gossip_noise *n, const uint8_t ephemeral[GOSSIP_NOISE_KEY],
                              struct slice payload, uint8_t *out);
/* Writes message.len - GOSSIP_NOISE_OVERHEAD bytes of payload. ERR_SYNTAX: too short. ERR_DENIED:
 * the writer does not have the key, or the bytes were changed. */
MUST_USE int gossip_noise_hello_read(struct gossip_noise *n, struct slice message,
                                     uint8_t *payload);
/* ERR_DENIED in _write(): the initiator's key is of low order. */
MUST_USE int gossip_noise_welcome_write(struct gossip_noise *n,
                                        const uint8_t ephemeral[GOSSIP_NOISE_KEY],
                                        struct slice payload, uint8_t *out);
MUST_USE int gossip_noise_welcome_read(struct gossip_noise *n, struct slice message,
                                       uint8_t *payload);

/* Gives the two transport keys, and wipes the handshake. `hash` gets the handshake hash (32 bytes)
 * unless NULL. */
void gossip_noise_split(struct gossip_noise *n, uint8_t from_initiator[GOSSIP_NOISE_KEY],
                        uint8_t from_responder[GOSSIP_NOISE_KEY], uint8_t *hash);

/* Transport messages: the nonce is 32 zero bits and the counter, little-endian (section 12 of the
 * framework). A key never seals two messages with the same counter. seal() writes plain.len +
 * GOSSIP_NOISE_TAG bytes. Both functions work in place. open() may return ERR_SYNTAX or ERR_DENIED;
 * the contents of `out` are then undefined. */
void gossip_noise_seal(const uint8_t key[GOSSIP_NOISE_KEY], uint64_t counter, struct slice aad,
                       struct slice plain, uint8_t *out);
MUST_USE int gossip_noise_open(const uint8_t key[GOSSIP_NOISE_KEY], uint64_t counter,
                               struct slice aad, struct slice sealed, uint8_t *out);

#endif
