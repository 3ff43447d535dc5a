/* The cluster's keys, as the key file has them and as everything else uses them.
 *
 * The file is text, made by `gvctl keygen`; lines in any order, # begins a comment:
 *
 *     hash 64 hex digits     keys the hashing of prompts; fixed for the life of the cluster
 *     key  64 hex digits     the current key of the gossip
 *     next 64 hex digits     optional: accepted too, not used to begin sessions
 *     old  64 hex digits     the same, instead of `next`: the name says which step comes
 *
 * Rotation: add a `next` everywhere; make it `key`, and what was `key` the `old`, everywhere;
 * remove `old` everywhere (`gvctl keygen --next`, `--promote`, `--finish`). At each step all
 * members understand each other and no session breaks. Hellos try the keys in turn until one is
 * answered, so two routers meet as long as they share one key. That holds even if one router is two
 * steps ahead: it started with a file that the other has not read yet. The second key has two names
 * so that no step can be taken twice or left out unseen.
 *
 * Keys are never used as they are: the pre-shared key of handshakes and the secret of prompt hashes
 * are derived from them with different contexts (libsodium crypto_kdf: BLAKE2b).
 *
 * The name of a cluster keeps clusters with one key file apart: it is hashed into the derived key
 * and into the second half of its id. The first half depends on the key alone. So a router tells a
 * hello of another cluster with the same file from one with another file (and errs once in 65,536).
 * The empty name changes nothing.
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
    GOSSIP_KEY_ID_KEY = 2, /* bytes of it that the cluster's name does not change */
};

struct gossip_key {
    uint8_t psk[GOSSIP_KEY_BYTES];      /* derived */
    uint8_t id[GOSSIP_KEY_ID_BYTES];    /* derived; stands in clear in front of a handshake */
    uint8_t shown[GOSSIP_KEY_ID_BYTES]; /* the same without a cluster's name, for people */
};

struct gossip_keyring {
    struct gossip_key keys[GOSSIP_KEYS_MAX]; /* the first begins sessions, then the others; all are
                                                accepted */
    unsigned count;
    uint8_t hash[GOSSIP_KEY_BYTES];
};

/* The ring with key `first` (modulo their count) in front. */
void gossip_keyring_turn(const struct gossip_keyring *k, unsigned first,
                         struct gossip_keyring *out);
/* ERR_SYNTAX with `message` (at least 160 bytes) saying what is wrong and in which line. */
MUST_USE int gossip_keyring_parse(struct gossip_keyring *out, struct slice text, char *message);
/* The keys of --insecure-gossip: known to everybody. */
void gossip_keyring_insecure(struct gossip_keyring *out);
/* The keys are those of the cluster of that name, from now on. Once for a ring. */
void gossip_keyring_cluster(struct gossip_keyring *k, struct slice name);
/* The secret of prompt hashes (base/hash.h), expanded from the hash key. */
void gossip_keyring_hash_secret(const struct gossip_keyring *k, struct hash_secret *out);
/* The text of a new file from 64 random bytes. */
void gossip_keyring_format(const uint8_t random[2 * GOSSIP_KEY_BYTES], char *out,
                           unsigned out_size);

#endif
