/* Bytes from an engine that connects to publish KV events: the PUB side of ZMTP 3.1, as written by
 * libzmq 4.3. */
#ifndef TESTS_LIB_ZMTP_H
#define TESTS_LIB_ZMTP_H

#include "base/buf.h"
#include "base/check.h"

enum { ZMTP_GREETING_BYTES = 64 };
/* Padded with zeros. */
#define ZMTP_GREETING ((const char[ZMTP_GREETING_BYTES + 1]){"\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"})
#define ZMTP_READY    SLICE("\4\x26\5READY\x0bSocket-Type\0\0\0\3PUB\x08Identity\0\0\0\0")

static inline void zmtp_frame(struct buf *out, bool more, struct slice body)
{
    bool is_long = body.len > 255;
    CHECK(buf_append_char(out, (char)(more | is_long << 1)) == 0);
    for (int shift = is_long ? 56 : 0; shift >= 0; shift -= 8)
        CHECK(buf_append_char(out, (char)((uint64_t)body.len >> shift)) == 0);
    CHECK(buf_append_slice(out, body) == 0);
}

static inline void zmtp_message(struct buf *out, struct slice topic, uint64_t number,
                                struct slice payload)
{
    char bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(number >> (56 - 8 * i));
    zmtp_frame(out, true, topic);
    zmtp_frame(out, true, slice_of(bytes, sizeof bytes));
    zmtp_frame(out, false, payload);
}

#endif
