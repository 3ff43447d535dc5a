#include "gossip/call.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "base/wire.h"
#include "gossip/noise.h"

/* A record is a length of two bytes, little-endian, and as many bytes:
 *
 *     client   key id 4 | Noise message 1, empty
 *     server   Noise message 2, empty
 *     client   sealed { 0 | length 1 (kind 1 | least 2 | greatest 2) | request }
 *     server   sealed { CHUNK 1 | bytes }, any number; sealed { END 1 },
 *              or sealed { REFUSED 1 | why 1 }
 *
 * Bytes beyond the known part are ignored, except in chunks and the request. In builds from before
 * versions, the first byte of a request is the kind, never 0.
 */
enum {
    LENGTH_BYTES = 2,
    KEY_ID_BYTES = 4,
    HELLO_RECORD = KEY_ID_BYTES + GOSSIP_NOISE_OVERHEAD,
    WELCOME_RECORD = GOSSIP_NOISE_OVERHEAD,
    SEALED_MIN = 1 + GOSSIP_NOISE_TAG,
    REQUEST_HEAD = 1 + 1 + 2 + 2,
    REQUEST_HEAD_MAX = 1 + UINT8_MAX,
    REQUEST_RECORD_MAX = SEALED_MIN + REQUEST_HEAD_MAX + GOSSIP_CALL_REQUEST_MAX,
    CHUNK_RECORD_MAX = SEALED_MIN + GOSSIP_CALL_CHUNK_MAX,
    /* A client's bytes waiting for step(): a part of a record, and the bytes fed after it. */
    IN_MAX = LENGTH_BYTES + CHUNK_RECORD_MAX + GOSSIP_CALL_FEED_MAX,
};
_Static_assert(CHUNK_RECORD_MAX <= UINT16_MAX, "the length of a record has two bytes");
_Static_assert(REQUEST_RECORD_MAX <= UINT16_MAX, "so has that of a request");

enum marker { MARKER_CHUNK, MARKER_END, MARKER_REFUSED };
enum refusal { REFUSED_VERSION = 1, REFUSED_KIND };

#define RECORDS_MAX ((uint64_t)1 << 32) /* records sealed per key */
#define PROLOGUE    SLICE("grapevine 1 calls")

/* The event for which a call waits, or the call's end. */
enum phase {
    SERVER_HELLO,
    SERVER_REQUEST,
    SERVER_ANSWER, /* waits for the application's next chunk */
    SERVER_DONE,
    CLIENT_WELCOME,
    CLIENT_ANSWER,
    CLIENT_DONE,
    BROKEN,
};

struct gossip_call {
    enum phase phase;
    struct gossip_keyring keyring; /* used by a server until the hello has arrived */
    struct gossip_noise noise;
    uint8_t random[32]; /* used by a server until the hello has arrived */
    uint8_t key_in[GOSSIP_NOISE_KEY];
    uint8_t key_out[GOSSIP_NOISE_KEY];
    uint64_t records_in;
    uint64_t records_out;
    struct gossip_versions speaks; /* this side's protocol versions */
    struct buf request;            /* client: the request with head, kept until the welcome has
                                    * arrived */
    struct buf in;
    size_t lent; /* bytes at the front of `in` still readable by the caller */
    struct buf out;
};

static struct slice slice_of_bytes(const uint8_t *at, size_t len)
{
    return slice_of((const char *)at, len);
}

/* --- records out ------------------------------------------------------------------------------ */

/* Makes room for a record in `out`; the caller fills the record and then calls record_done(). */
static int record_begin(struct gossip_call *c, size_t len, uint8_t **at)
{
    int err = buf_reserve(&c->out, LENGTH_BYTES + len);
    if (err != ERR_OK)
        return err;
    struct wire_writer w = wire_writer_of(c->out.at + c->out.len, LENGTH_BYTES);
    wire_write_u16(&w, (uint16_t)len);
    CHECK(!w.bad && len <= UINT16_MAX);
    *at = w.at;
    return ERR_OK;
}

static void record_done(struct gossip_call *c, size_t len)
{
    c->out.len += LENGTH_BYTES + len;
}

/* Appends a sealed record of the byte `first` and the bytes `rest`. */
static int record_seal(struct gossip_call *c, uint8_t first, struct slice rest)
{
    if (c->records_out >= RECORDS_MAX)
        return ERR_LIMIT;
    uint8_t *at = NULL;
    size_t len = SEALED_MIN + rest.len;
    int err = record_begin(c, len, &at);
    if (err != ERR_OK)
        return err;
    at[0] = first;
    if (rest.len > 0)
        memcpy(at + 1, rest.at, rest.len);
    gossip_noise_seal(c->key_out, c->records_out++, slice_of(NULL, 0),
                      slice_of_bytes(at, 1 + rest.len), at);
    record_done(c, len);
    return ERR_OK;
}

/* --- making and freeing ----------------------------------------------------------------------- */

static struct gossip_call *call_new(enum phase phase)
{
    struct gossip_call *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->phase = phase;
    return c;
}

static void buf_wipe(struct buf *b)
{
    if (b->cap > 0)
        sodium_memzero(b->at, b->cap);
    buf_free(b);
}

void gossip_call_free(struct gossip_call *c)
{
    if (c == NULL)
        return;
    buf_wipe(&c->request);
    buf_wipe(&c->in); /* holds decrypted bytes, because records are opened in place */
    buf_free(&c->out);
    sodium_memzero(c, sizeof *c);
    free(c);
}

static int hello_write(struct gossip_call *c, const struct gossip_key *key,
                       const uint8_t random[32])
{
    uint8_t *at = NULL;
    int err = record_begin(c, HELLO_RECORD, &at);
    if (err != ERR_OK)
        return err;
    memcpy(at, key->id, KEY_ID_BYTES);
    gossip_noise_begin(&c->noise, PROLOGUE, key->psk);
    gossip_noise_hello_write(&c->noise, random, slice_of(NULL, 0), at + KEY_ID_BYTES);
    record_done(c, HELLO_RECORD);
    return ERR_OK;
}

static int request_make(struct gossip_call *c, uint8_t kind, struct slice request)
{
    uint8_t head[REQUEST_HEAD];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    wire_write_u8(&w, REQUEST_HEAD - 1 + (FUTURE ? FUTURE_HEAD_BYTES.len : 0));
    wire_write_u8(&w, kind);
    wire_write_u16(&w, c->speaks.least);
    wire_write_u16(&w, c->speaks.greatest);
    CHECK(!w.bad);
    int err = buf_append(&c->request, head, sizeof head);
    if (FUTURE && err == ERR_OK)
        err = buf_append_slice(&c->request, FUTURE_HEAD_BYTES);
    return err == ERR_OK ? buf_append_slice(&c->request, request) : err;
}

int gossip_call_open(struct gossip_call **out, const struct gossip_keyring *keyring,
                     struct gossip_versions speaks, const uint8_t random[32], uint8_t kind,
                     struct slice request)
{
    CHECK(keyring->count > 0);
    if (request.len > GOSSIP_CALL_REQUEST_MAX)
        return ERR_LIMIT;
    struct gossip_call *c = call_new(CLIENT_WELCOME);
    if (c == NULL)
        return ERR_NOMEM;
    c->speaks = speaks;
    int err = request_make(c, kind, request);
    if (err == ERR_OK)
        err = hello_write(c, &keyring->keys[0], random);
    if (err != ERR_OK) {
        gossip_call_free(c);
        return err;
    }
    *out = c;
    return ERR_OK;
}

int gossip_call_accept(struct gossip_call **out, const struct gossip_keyring *keyring,
                       struct gossip_versions speaks, const uint8_t random[32])
{
    CHECK(keyring->count > 0);
    struct gossip_call *c = call_new(SERVER_HELLO);
    if (c == NULL)
        return ERR_NOMEM;
    c->keyring = *keyring;
    c->speaks = speaks;
    memcpy(c->random, random, sizeof c->random);
    *out = c;
    return ERR_OK;
}

struct buf *gossip_call_out(struct gossip_call *c)
{
    return &c->out;
}

/* --- bytes in --------------------------------------------------------------------------------- */

/* Limit of `in`. Until the client has proved the key, `in` takes a single hello. */
static size_t in_max(const struct gossip_call *c)
{
    switch (c->phase) {
    case SERVER_HELLO:
        return LENGTH_BYTES + HELLO_RECORD;
    case SERVER_REQUEST:
        return LENGTH_BYTES + REQUEST_RECORD_MAX;
    case CLIENT_WELCOME:
        return LENGTH_BYTES + WELCOME_RECORD;
    case CLIENT_ANSWER:
        return IN_MAX;
    default:
        return 0;
    }
}

static void lent_back(struct gossip_call *c)
{
    buf_consume(&c->in, c->lent);
    c->lent = 0;
}

int gossip_call_feed(struct gossip_call *c, struct slice bytes)
{
    lent_back(c);
    size_t max = in_max(c);
    if (c->in.len > max || bytes.len > max - c->in.len) {
        int err = c->phase == CLIENT_ANSWER ? ERR_LIMIT : ERR_SYNTAX;
        c->phase = BROKEN;
        return err;
    }
    return buf_append_slice(&c->in, bytes);
}

/* Gives the record at the front of `in`. ERR_AGAIN: the record is not complete yet. */
static int record_front(const struct gossip_call *c, size_t min, size_t max, struct slice *record)
{
    struct wire_reader r = wire_reader_of(c->in.at, c->in.len);
    size_t len = wire_read_u16(&r);
    if (r.bad)
        return ERR_AGAIN;
    if (len < min || len > max)
        return ERR_SYNTAX;
    *record = wire_read_bytes(&r, len);
    return r.bad ? ERR_AGAIN : ERR_OK;
}

/* Opens the sealed record at the front of `in` in place. Gives the first byte and the rest. */
static int record_open(struct gossip_call *c, size_t max, uint8_t *first, struct slice *rest)
{
    struct slice record = slice_of(NULL, 0);
    int err = record_front(c, SEALED_MIN, max, &record);
    if (err != ERR_OK)
        return err;
    if (c->records_in >= RECORDS_MAX)
        return ERR_LIMIT;
    uint8_t *at = (uint8_t *)c->in.at + LENGTH_BYTES;
    err = gossip_noise_open(c->key_in, c->records_in, slice_of(NULL, 0), record, at);
    if (err != ERR_OK)
        return err;
    c->records_in++;
    *first = at[0];
    *rest = slice_of_bytes(at + 1, record.len - SEALED_MIN);
    c->lent = LENGTH_BYTES + record.len;
    return ERR_OK;
}

static int hello_read(struct gossip_call *c, struct slice record)
{
    uint8_t none[1];
    int err = ERR_DENIED;
    for (unsigned i = 0; i < c->keyring.count && err == ERR_DENIED; i++) {
        const struct gossip_key *key = &c->keyring.keys[i];
        if (memcmp(key->id, record.at, KEY_ID_BYTES) != 0)
            continue;
        gossip_noise_begin(&c->noise, PROLOGUE, key->psk);
        err = gossip_noise_hello_read(&c->noise, slice_skip(record, KEY_ID_BYTES), none);
    }
    return err;
}

static int server_hello(struct gossip_call *c)
{
    struct slice record = slice_of(NULL, 0);
    uint8_t *at = NULL;
    int err = record_front(c, HELLO_RECORD, HELLO_RECORD, &record);
    if (err == ERR_OK)
        err = hello_read(c, record);
    if (err == ERR_OK)
        err = record_begin(c, WELCOME_RECORD, &at);
    if (err == ERR_OK)
        err = gossip_noise_welcome_write(&c->noise, c->random, slice_of(NULL, 0), at);
    if (err != ERR_OK)
        return err;
    record_done(c, WELCOME_RECORD);
    gossip_noise_split(&c->noise, c->key_in, c->key_out, NULL);
    sodium_memzero(&c->keyring, sizeof c->keyring);
    sodium_memzero(c->random, sizeof c->random);
    buf_consume(&c->in, LENGTH_BYTES + record.len);
    c->phase = SERVER_REQUEST;
    return ERR_AGAIN; /* the client waits for the welcome */
}

static int server_request(struct gossip_call *c, enum gossip_call_step *step, uint8_t *kind,
                          struct slice *request)
{
    uint8_t first = 0;
    struct slice bytes = slice_of(NULL, 0);
    int err = record_open(c, REQUEST_RECORD_MAX, &first, &bytes);
    if (err != ERR_OK)
        return err;
    if (c->in.len > c->lent)
        return ERR_SYNTAX; /* a client sends nothing after the request */
    c->phase = SERVER_ANSWER;
    struct wire_reader r = wire_reader_of(bytes.at, first == 0 ? bytes.len : 0);
    struct slice head = wire_read_bytes(&r, first == 0 ? wire_read_u8(&r) : 0);
    struct wire_reader h = wire_reader_of(head.at, head.len);
    uint8_t asked = wire_read_u8(&h);
    struct gossip_versions speaks = {.least = wire_read_u16(&h)};
    speaks.greatest = wire_read_u16(&h);
    if (first == 0 && (r.bad || h.bad))
        return ERR_SYNTAX;
    if (first != 0 || gossip_versions_common(c->speaks, speaks) == 0) {
        *step = GOSSIP_CALL_REFUSED;
        return gossip_call_refuse(c, ERR_VERSION);
    }
    *kind = asked;
    *request = wire_read_bytes(&r, wire_left(&r));
    *step = GOSSIP_CALL_REQUEST;
    return ERR_OK;
}

static int client_welcome(struct gossip_call *c)
{
    struct slice record = slice_of(NULL, 0);
    uint8_t none[1];
    int err = record_front(c, WELCOME_RECORD, WELCOME_RECORD, &record);
    if (err == ERR_OK)
        err = gossip_noise_welcome_read(&c->noise, record, none);
    if (err != ERR_OK)
        return err;
    gossip_noise_split(&c->noise, c->key_out, c->key_in, NULL);
    buf_consume(&c->in, LENGTH_BYTES + record.len);
    c->phase = CLIENT_ANSWER;
    err = record_seal(c, 0, buf_slice(&c->request));
    buf_wipe(&c->request);
    return err == ERR_OK ? ERR_AGAIN : err;
}

static int client_answer(struct gossip_call *c, enum gossip_call_step *step, struct slice *chunk)
{
    uint8_t marker = 0;
    int err = record_open(c, CHUNK_RECORD_MAX, &marker, chunk);
    if (err != ERR_OK)
        return err;
    if (marker == MARKER_CHUNK) {
        *step = GOSSIP_CALL_CHUNK;
        return ERR_OK;
    }
    if (marker == MARKER_REFUSED)
        return chunk->len > 0 && chunk->at[0] == REFUSED_VERSION ? ERR_VERSION : ERR_UNSUPPORTED;
    if (marker != MARKER_END || c->in.len > c->lent)
        return ERR_SYNTAX;
    *chunk = slice_of(NULL, 0);
    c->phase = CLIENT_DONE;
    *step = GOSSIP_CALL_DONE;
    return ERR_OK;
}

int gossip_call_step(struct gossip_call *c, enum gossip_call_step *step, uint8_t *kind,
                     struct slice *chunk)
{
    int err = ERR_AGAIN;
    lent_back(c);
    *step = GOSSIP_CALL_WAIT;
    *chunk = slice_of(NULL, 0);
    switch (c->phase) {
    case SERVER_HELLO:
        err = server_hello(c);
        break;
    case SERVER_REQUEST:
        err = server_request(c, step, kind, chunk);
        break;
    case CLIENT_WELCOME:
        err = client_welcome(c);
        break;
    case CLIENT_ANSWER:
        err = client_answer(c, step, chunk);
        break;
    case BROKEN:
        return ERR_SYNTAX;
    default:
        break;
    }
    if (err == ERR_OK || err == ERR_AGAIN)
        return ERR_OK;
    c->phase = BROKEN;
    *step = GOSSIP_CALL_WAIT;
    *chunk = slice_of(NULL, 0);
    return err;
}

/* --- the server's answer ---------------------------------------------------------------------- */

bool gossip_call_wants(const struct gossip_call *c)
{
    return c->phase == SERVER_ANSWER && c->out.len < GOSSIP_CALL_OUT_HIGH;
}

int gossip_call_answer(struct gossip_call *c, struct slice chunk)
{
    CHECK(chunk.len <= GOSSIP_CALL_CHUNK_MAX);
    if (c->phase != SERVER_ANSWER)
        return ERR_CLOSED;
    if (c->out.len >= GOSSIP_CALL_OUT_HIGH)
        return ERR_FULL;
    return record_seal(c, MARKER_CHUNK, chunk);
}

int gossip_call_end(struct gossip_call *c)
{
    if (c->phase != SERVER_ANSWER)
        return ERR_CLOSED;
    int err = record_seal(c, MARKER_END, slice_of(NULL, 0));
    if (err == ERR_OK)
        c->phase = SERVER_DONE;
    return err;
}

int gossip_call_refuse(struct gossip_call *c, int why)
{
    if (c->phase != SERVER_ANSWER)
        return ERR_CLOSED;
    char reason = why == ERR_VERSION ? REFUSED_VERSION : REFUSED_KIND;
    int err = record_seal(c, MARKER_REFUSED, slice_of(&reason, 1));
    if (err == ERR_OK)
        c->phase = SERVER_DONE;
    return err;
}
