/* The cluster's keys, as read from the key file and as derived for use.
 *
 * The file is text, made by `gvctl keygen`; lines in any order, # begins a comment:
 *
 *     hash 64 hex digits     keys the hashing of prompts; fixed for the life of the cluster
 *     key  64 hex digits     the current key of the gossip
 *     next 64 hex digits     optional: accepted; new sessions try `key` first
 *     old  64 hex digits     like `next`, and instead of it: the word shows the next step
 *
 * Rotation: add a `next` on all routers; rename `key` to `old` and `next` to `key` on all; remove
 * `old` on all (`gvctl keygen --next`, `--promote`, `--finish`). At each step all members share a
 * key, and no session breaks. Hellos try the keys in turn until a hello is answered, so two routers
 * meet as long as they share a key. They do so even if a router is two steps ahead, because it
 * started with a file not yet read by the other router. The second key has two names so that no
 * step can be taken twice or left out unnoticed.
 *
 * Keys are never used directly: the pre-shared key of handshakes and the secret of prompt hashes
 * are derived from them with different contexts (libsodium crypto_kdf: BLAKE2b).
 *
 * A cluster's name separates clusters with the same key file: the name is hashed into the derived
 * key and into the second half of the key's id. The first half depends on the key alone. So a
 * router recognises a hello of another cluster with the same key file, with an error of 1 in
 * 65,536. An empty name changes nothing.
 */
#ifndef GOSSIP_KEYRING_H
#define GOSSIP_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

enum {
    GOSSIP_KEY_BYTES = 32,
    GOSSIP_KEYS_MAX = 2,
    GOSSIP_KEY_ID_BYTES = 4,
    GOSSIP_KEY_ID_KEY = 2, /* first bytes of an id, independent of the cluster's name */
};

struct gossip_key {
    uint8_t psk[GOSSIP_KEY_BYTES];      /* derived */
    uint8_t id[GOSSIP_KEY_ID_BYTES];    /* derived; sent in clear before a handshake */
    uint8_t shown[GOSSIP_KEY_ID_BYTES]; /* id without a cluster's name, shown to operators */
};

struct gossip_keyring {
    struct gossip_key keys[GOSSIP_KEYS_MAX]; /* all are accepted; sessions begin with the first,
                                              * then with the others */
    unsigned count;
    uint8_t hash[GOSSIP_KEY_BYTES];
};

/* Gives the ring with key number `first` (modulo the number of keys) in the first place. */
void gossip_keyring_turn(const struct gossip_keyring *k, unsigned first,
                         struct gossip_keyring *out);
/* ERR_SYNTAX with `message` (at least 160 bytes) saying what is wrong and in which line. */
MUST_USE int gossip_keyring_parse(struct gossip_keyring *out, struct slice text, char *message);
/* The keys of --insecure-gossip: publicly known. */
void gossip_keyring_insecure(struct gossip_keyring *out);
/* Derives the keys of the named cluster. Call it once for a ring. */
void gossip_keyring_cluster(struct gossip_keyring *k, struct slice name);
/* The secret of prompt hashes (base/hash.h), expanded from the hash key. */
void gossip_keyring_hash_secret(const struct gossip_keyring *k, struct hash_secret *out);
/* Writes the text of a new key file, made from 64 random bytes. */
void gossip_keyring_format(const uint8_t random[2 * GOSSIP_KEY_BYTES], char *out,
                           unsigned out_size);

#endif
