/* Shared by the pieces of the fuzz target of whole sessions: the routers, the other end of each
 * wire, the packets between routers, and choices by the input. Functions are static.
 *
 * Marks. Each answer of an engine, and each prompt, carries the client's mark. An engine's answer
 * belongs to the client that uses the engine's connection at this moment, according to the proxy. A
 * mark contains a checksum, so neither a changed byte nor the fuzzer makes another client's mark by
 * chance. */
#ifndef TESTS_FUZZ_LIB_SESSION_H
#define TESTS_FUZZ_LIB_SESSION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "node/proxy/exchange/exchange.h"
#include "tests/fuzz/lib/proxy_read.h"
#include "tests/lib/proxy_world.h"

enum {
    ROUTERS = 2,
    STEPS_MAX = 250,
    PACKETS_MAX = 32,
    CALLS_MAX = 8,
    ENGINES = 4,      /* names that the operator may use */
    PIECE_MAX = 4096, /* raw bytes in a step */
    MARK_BYTES = 10,
    NOBODY = -1, /* no request uses or used the connection */
    LATE = -2,   /* no request uses the connection now, but an earlier one did */
};

/* The other end of a wire. */
struct peer {
    struct wire *wire;
    struct buf pending; /* bytes made, and not sent yet */
    int owner;          /* the present or last answer's owner: a client's wire, NOBODY, LATE */
    int owner_before;   /* at the last look */
    size_t read;        /* bytes of wire->out read by the engine */
    size_t looked;      /* bytes of wire->out read by the checks */
    bool gone;          /* ended or broken */
    bool slow;          /* the kernel took little at some time */
    /* A client: */
    enum proxy_port port;
    bool raw;       /* sent bytes outside the grammar of requests */
    unsigned asked; /* number of whole requests sent, without raw bytes */
    unsigned made;  /* number of whole requests made, sent or pending */
};

struct packet {
    unsigned to;
    struct buf bytes; /* empty: there is none */
};

struct call {
    bool used, deaf;
    unsigned from, to;
    uint32_t id;
    uint8_t kind;
    struct buf request;
    struct node_serve *serve; /* the answer has begun */
};

struct router {
    struct proxy_world world;
    struct peer peers[WORLD_WIRES_MAX];
    struct session *session;
    unsigned number;
    bool up;
    bool drained;
    int source; /* number of the source in discover */
};

struct session {
    const uint8_t *at, *end;
    struct router routers[ROUTERS];
    unsigned router_count; /* routers that are up */
    struct prng random;
    const char *settings[80];
    bool probes, keys, clustered;
    struct packet packets[PACKETS_MAX];
    struct call calls[CALLS_MAX];
    bool held;    /* packets and calls wait for a step to release them */
    bool spoiled; /* a router's bytes were changed on the way */
};

/* --- choices ---------------------------------------------------------------------------------- */

static unsigned byte(struct session *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Mostly a small number, sometimes a large one. */
static size_t amount(struct session *s)
{
    unsigned b = byte(s);
    return b < 64    ? b + 1
           : b < 128 ? (size_t)(b - 63) * 37
           : b < 250 ? (size_t)(b - 127) * 700
                     : 300000;
}

/* Bytes of the input as they are: a length, and the bytes. */
static struct slice piece(struct session *s)
{
    size_t n = byte(s), left = (size_t)(s->end - s->at);
    n = n < 128 ? n : (n - 127) * 32;
    n = n < left ? n : left;
    struct slice bytes = slice_of((const char *)s->at, n);
    s->at += n;
    return bytes;
}

/* Changes up to four bytes of the text from `front` on. */
static void mutate(struct session *s, struct buf *text, size_t front)
{
    unsigned times = 1 + byte(s) % 4;
    for (unsigned i = 0; i < times && text->len > front; i++) {
        size_t at = byte(s);
        at = front + (at << 8 | byte(s)) % (text->len - front);
        text->at[at] = (char)byte(s);
    }
}

/* --- marks ----------------------------------------------------------------------------------- */

#define MARK_PLACE "@@@@@@@@@@"

static void mark_write(char out[MARK_BYTES + 1], int owner)
{
    unsigned check = (unsigned)(hash_mix((uint64_t)(unsigned)owner + 77) & 0xffff);
    (void)snprintf(out, MARK_BYTES + 1, "ZQ%03x%04xZ", (unsigned)owner & 0xfff, check);
}

/* Puts the mark into every place for a mark. */
static void mark(struct buf *text, int owner)
{
    char own[MARK_BYTES + 1] = "----------";
    if (owner != NOBODY)
        mark_write(own, owner);
    char *at = text->at, *end = text->len > 0 ? at + text->len : at;
    while (text->len > 0 && at != NULL && end - at >= MARK_BYTES) {
        at = memmem(at, (size_t)(end - at), MARK_PLACE, MARK_BYTES);
        if (at != NULL)
            memcpy(at, own, MARK_BYTES);
    }
}

/* All marks in these bytes are of this client, or of the other. */
static void marks_check(struct slice text, int owner, int other)
{
    char own[MARK_BYTES + 1], others[MARK_BYTES + 1], seen[MARK_BYTES + 1] = {0};
    mark_write(own, owner);
    mark_write(others, other);
    const char *at = text.at, *end = text.at + text.len;
    while (at != NULL && end - at >= MARK_BYTES) {
        at = memmem(at, (size_t)(end - at), "ZQ", 2);
        if (at == NULL || end - at < MARK_BYTES)
            return;
        memcpy(seen, at, MARK_BYTES);
        at += 2;
        int id = (int)strtoul((char[]){seen[2], seen[3], seen[4], '\0'}, NULL, 16);
        char right[MARK_BYTES + 1];
        for (int k = 0; k < 2; k++) {
            mark_write(right, k == 0 ? id : id - 0x1000);
            CHECK(strcmp(seen, right) != 0 || strcmp(seen, own) == 0 || strcmp(seen, others) == 0);
        }
    }
}

/* --- wires ----------------------------------------------------------------------------------- */

/* The client's wire whose request uses this engine's wire. */
static int owner_of(const struct router *r, const struct wire *engine)
{
    const struct proxy_world *w = &r->world;
    for (unsigned i = 0; i < w->wire_count; i++) {
        const struct wire *wire = &w->wires[i];
        if (!wire->used || wire->replica >= 0 || wire->closed)
            continue;
        const struct client *c = wire->stream.owner;
        if (c->exchange != NULL && c->exchange->now.upstream != NULL &&
            c->exchange->now.upstream->stream == &engine->stream)
            return (int)(r->number * WORLD_WIRES_MAX + i);
    }
    return NOBODY;
}

/* Bytes made for a request are dropped with the request. */
static void own(struct router *r, struct peer *p)
{
    int now = owner_of(r, p->wire);
    if (now == NOBODY && p->owner != NOBODY)
        now = LATE;
    if (now != p->owner)
        buf_clear(&p->pending);
    p->owner = now;
}

static void send_some(struct router *r, struct peer *p, size_t bytes)
{
    if (p->gone || p->wire->closing || p->wire->connecting)
        return;
    if (p->wire->replica >= 0)
        own(r, p);
    size_t n = p->pending.len < bytes ? p->pending.len : bytes;
    if (n == 0)
        return;
    char *copy = malloc(n); /* a copy, so that ASan sees reads beyond the end */
    CHECK(copy != NULL);
    memcpy(copy, p->pending.at, n);
    buf_consume(&p->pending, n);
    if (p->pending.len == 0)
        p->asked = p->made;
    proxy_world_send(&r->world, p->wire, slice_of(copy, n));
    free(copy);
}

/* A wire chosen by the input: of a client, or of an engine. NULL: none. */
static struct peer *pick(struct session *s, struct router **router, bool client)
{
    unsigned b = byte(s), count = 0;
    struct router *r = *router = &s->routers[b / 128 % s->router_count];
    struct peer *open[WORLD_WIRES_MAX];
    for (unsigned i = 0; i < r->world.wire_count; i++) {
        const struct wire *w = &r->world.wires[i];
        if (w->used && !w->closing && (w->replica < 0) == client)
            open[count++] = &r->peers[i];
    }
    return count == 0 ? NULL : open[count - 1 - b % 128 % count]; /* the last first */
}

#endif
