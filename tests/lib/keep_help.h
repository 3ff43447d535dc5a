/* Files of state (node/cluster/keep.h) with frames made by the test, with valid checksums. */
#ifndef TESTS_LIB_KEEP_HELP_H
#define TESTS_LIB_KEEP_HELP_H

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/wire.h"

enum { KEEP_MAGIC = 16, KEEP_FRAME = 5, KEEP_CHECK = 8, KEEP_END = 7 };

static inline void keep_frame(struct buf *out, uint64_t *check, uint8_t kind, struct slice body)
{
    uint8_t bytes[8];
    size_t start = out->len;
    struct hash_secret secret;
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u8(&w, kind);
    wire_write_u32(&w, (uint32_t)body.len);
    CHECK(buf_append(out, bytes, KEEP_FRAME) == ERR_OK);
    CHECK(buf_append_slice(out, body) == ERR_OK);
    hash_secret_from_seed(&secret, 0x67726170);
    *check = hash_mix(*check ^ hash64(&secret, out->at + start, out->len - start));
    w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u64(&w, *check);
    CHECK(buf_append(out, bytes, KEEP_CHECK) == ERR_OK);
}

/* The frame at `*at` of a complete file; moves `*at` past the frame. */
static inline struct slice keep_body(struct slice file, size_t *at, uint8_t *kind)
{
    struct wire_reader r = wire_reader_of(file.at + *at, file.len - *at);
    *kind = wire_read_u8(&r);
    struct slice body = wire_read_bytes(&r, wire_read_u32(&r));
    *at += KEEP_FRAME + body.len + KEEP_CHECK;
    return body;
}

#endif
