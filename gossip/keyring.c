#include "gossip/keyring.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"

enum { MESSAGE_BYTES = 160, KDF_BYTES_MAX = crypto_kdf_BYTES_MAX };

/* Contexts of the derivations: every use of a key has another context. */
static const char context_psk[crypto_kdf_CONTEXTBYTES] = "gv-psk-1";
static const char context_id[crypto_kdf_CONTEXTBYTES] = "gv-kid-1";
static const char context_hash[crypto_kdf_CONTEXTBYTES] = "gv-hash1";

_Static_assert(crypto_kdf_KEYBYTES == GOSSIP_KEY_BYTES, "a key of the file is a key of the KDF");
_Static_assert(HASH_SECRET_BYTES % KDF_BYTES_MAX == 0, "the secret of hashes is whole blocks");

/* The first words of lines; each may have a key. */
enum word { WORD_HASH, WORD_KEY, WORD_NEXT, WORD_OLD, WORDS };
static const char *const word_text[WORDS] = {"hash", "key", "next", "old"};

struct raw {
    uint8_t bytes[WORDS][GOSSIP_KEY_BYTES];
    bool given[WORDS];
};

static int complain(char *message, unsigned line, const char *what)
{
    /* Never quotes the line, which may hold a key. */
    (void)snprintf(message, MESSAGE_BYTES, "line %u: %s", line, what);
    return ERR_SYNTAX;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the next word off the front of the line; empty at the end of the line. */
static struct slice word_cut(struct slice *line)
{
    size_t from = 0;
    while (from < line->len && is_blank(line->at[from]))
        from++;
    size_t to = from;
    while (to < line->len && !is_blank(line->at[to]))
        to++;
    struct slice word = slice_of(line->at + from, to - from);
    *line = slice_skip(*line, to);
    return word;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool key_read(struct slice hex, uint8_t out[GOSSIP_KEY_BYTES])
{
    if (hex.len != (size_t)2 * GOSSIP_KEY_BYTES)
        return false;
    for (size_t i = 0; i < GOSSIP_KEY_BYTES; i++) {
        int high = hex_digit(hex.at[2 * i]);
        int low = hex_digit(hex.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool same(const uint8_t a[GOSSIP_KEY_BYTES], const uint8_t b[GOSSIP_KEY_BYTES])
{
    return sodium_memcmp(a, b, GOSSIP_KEY_BYTES) == 0;
}

static int line_read(struct raw *raw, struct slice line, unsigned number, char *message)
{
    static const uint8_t zero[GOSSIP_KEY_BYTES];
    line.len = slice_find(line, '#');
    struct slice name = word_cut(&line);
    if (name.len == 0)
        return ERR_OK;
    unsigned word = 0;
    while (word < WORDS && !slice_equal(name, slice_of_cstr(word_text[word])))
        word++;
    if (word == WORDS)
        return complain(message, number, "neither `hash` nor `key`, `next` or `old`");
    if (raw->given[word])
        return complain(message, number, "this kind of key was given before");
    if ((word == WORD_NEXT && raw->given[WORD_OLD]) || (word == WORD_OLD && raw->given[WORD_NEXT]))
        return complain(message, number, "`next` and `old` do not go together");
    if (!key_read(word_cut(&line), raw->bytes[word]))
        return complain(message, number, "a key is 64 hexadecimal digits");
    if (word_cut(&line).len > 0)
        return complain(message, number, "something follows the key");
    if (same(raw->bytes[word], zero))
        return complain(message, number, "the key is all zeros; `gvctl keygen` makes one");
    for (unsigned other = 0; other < WORDS; other++)
        if (raw->given[other] && same(raw->bytes[word], raw->bytes[other]))
            return complain(message, number, "the key is the same as one above");
    raw->given[word] = true;
    return ERR_OK;
}

static int file_read_lines(struct raw *raw, struct slice text, char *message)
{
    unsigned number = 0;
    while (text.len > 0) {
        size_t end = slice_find(text, '\n');
        int err = line_read(raw, slice_of(text.at, end), ++number, message);
        if (err != ERR_OK)
            return err;
        text = slice_skip(text, end < text.len ? end + 1 : end);
    }
    if (raw->given[WORD_HASH] && raw->given[WORD_KEY])
        return ERR_OK;
    (void)snprintf(message, MESSAGE_BYTES, "there is no line `%s` with 64 hexadecimal digits",
                   word_text[raw->given[WORD_HASH] ? WORD_KEY : WORD_HASH]);
    return ERR_SYNTAX;
}

static void key_derive(struct gossip_key *out, const uint8_t from[GOSSIP_KEY_BYTES])
{
    uint8_t id[crypto_kdf_BYTES_MIN];
    (void)crypto_kdf_derive_from_key(out->psk, sizeof out->psk, 1, context_psk, from);
    (void)crypto_kdf_derive_from_key(id, sizeof id, 1, context_id, from);
    memcpy(out->id, id, sizeof out->id);
    memcpy(out->shown, id, sizeof out->shown);
}

static void ring_derive(struct gossip_keyring *out, const struct raw *raw)
{
    memset(out, 0, sizeof *out);
    memcpy(out->hash, raw->bytes[WORD_HASH], sizeof out->hash);
    for (unsigned word = WORD_KEY; word <= WORD_OLD; word++)
        if (raw->given[word])
            key_derive(&out->keys[out->count++], raw->bytes[word]);
}

int gossip_keyring_parse(struct gossip_keyring *out, struct slice text, char *message)
{
    struct raw raw = {0};
    int err = file_read_lines(&raw, text, message);
    if (err == ERR_OK)
        ring_derive(out, &raw);
    sodium_memzero(&raw, sizeof raw);
    return err;
}

void gossip_keyring_insecure(struct gossip_keyring *out)
{
    static const char hash[] = "grapevine --insecure-gossip hash";
    static const char key[] = "grapevine --insecure-gossip key ";
    struct raw raw = {.given = {[WORD_HASH] = true, [WORD_KEY] = true}};
    _Static_assert(sizeof hash - 1 == GOSSIP_KEY_BYTES && sizeof key - 1 == GOSSIP_KEY_BYTES,
                   "as long as a key");
    memcpy(raw.bytes[WORD_HASH], hash, GOSSIP_KEY_BYTES);
    memcpy(raw.bytes[WORD_KEY], key, GOSSIP_KEY_BYTES);
    ring_derive(out, &raw);
}

void gossip_keyring_cluster(struct gossip_keyring *k, struct slice name)
{
    static const char context[] = "gv-cluster-name-1";
    for (unsigned i = 0; i < k->count && name.len > 0; i++) {
        uint8_t made[GOSSIP_KEY_BYTES + GOSSIP_KEY_ID_BYTES];
        crypto_generichash_state state;
        (void)crypto_generichash_init(&state, k->keys[i].psk, GOSSIP_KEY_BYTES, sizeof made);
        (void)crypto_generichash_update(&state, (const uint8_t *)context, sizeof context);
        (void)crypto_generichash_update(&state, (const uint8_t *)name.at, name.len);
        (void)crypto_generichash_final(&state, made, sizeof made);
        memcpy(k->keys[i].psk, made, GOSSIP_KEY_BYTES);
        memcpy(k->keys[i].id + GOSSIP_KEY_ID_KEY, made + GOSSIP_KEY_BYTES,
               GOSSIP_KEY_ID_BYTES - GOSSIP_KEY_ID_KEY);
        sodium_memzero(made, sizeof made);
        sodium_memzero(&state, sizeof state);
    }
}

void gossip_keyring_turn(const struct gossip_keyring *k, unsigned first, struct gossip_keyring *out)
{
    *out = *k;
    for (unsigned i = 0; i < k->count; i++)
        out->keys[i] = k->keys[(first + i) % k->count];
}

void gossip_keyring_hash_secret(const struct gossip_keyring *k, struct hash_secret *out)
{
    for (unsigned block = 0; block < HASH_SECRET_BYTES / KDF_BYTES_MAX; block++)
        (void)crypto_kdf_derive_from_key(out->bytes + (size_t)block * KDF_BYTES_MAX, KDF_BYTES_MAX,
                                         block + 1, context_hash, k->hash);
}

static void hex_write(const uint8_t bytes[GOSSIP_KEY_BYTES], char out[2 * GOSSIP_KEY_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < GOSSIP_KEY_BYTES; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[(size_t)2 * GOSSIP_KEY_BYTES] = '\0';
}

void gossip_keyring_format(const uint8_t random[2 * GOSSIP_KEY_BYTES], char *out, unsigned out_size)
{
    char hash[2 * GOSSIP_KEY_BYTES + 1];
    char key[2 * GOSSIP_KEY_BYTES + 1];
    hex_write(random, hash);
    hex_write(random + GOSSIP_KEY_BYTES, key);
    int len =
        snprintf(out, out_size,
                 "# Keys of a Grapevine cluster: the same file on every router, readable by it "
                 "alone.\n"
                 "# `hash` stays for the life of the cluster. To change `key`: gvctl keygen --next "
                 "FILE,\n"
                 "# then --promote, then --finish; after each, this file to all.\n"
                 "hash %s\n"
                 "key %s\n",
                 hash, key);
    CHECK(len > 0 && (unsigned)len < out_size);
    sodium_memzero(hash, sizeof hash);
    sodium_memzero(key, sizeof key);
}
