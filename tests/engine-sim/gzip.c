#include "tests/engine-sim/gzip.h"

#include "base/check.h"

enum { STORED_MAX = 65535 };

static void put(struct buf *out, const void *bytes, size_t len)
{
    CHECK(buf_append(out, bytes, len) == 0);
}

static void begin(struct sim_gzip *z, struct buf *out)
{
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    if (!z->begun)
        put(out, head, sizeof head);
    z->begun = true;
}

static void put_block(bool last, struct slice bytes, struct buf *out)
{
    unsigned n = (unsigned)bytes.len;
    const unsigned char head[] = {last, n & 255, n >> 8, ~n & 255, (~n >> 8) & 255};
    put(out, head, sizeof head);
    put(out, bytes.at, bytes.len);
}

static uint32_t crc_add(uint32_t crc, struct slice bytes)
{
    crc = ~crc;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (unsigned char)bytes.at[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

void sim_gzip_write(struct sim_gzip *z, struct slice bytes, struct buf *out)
{
    begin(z, out);
    z->crc = crc_add(z->crc, bytes);
    z->length += (uint32_t)bytes.len;
    while (bytes.len > 0) {
        size_t n = bytes.len < STORED_MAX ? bytes.len : STORED_MAX;
        put_block(false, slice_of(bytes.at, n), out);
        bytes = slice_skip(bytes, n);
    }
}

void sim_gzip_end(struct sim_gzip *z, struct buf *out)
{
    unsigned char tail[8];
    begin(z, out);
    put_block(true, slice_of("", 0), out);
    for (unsigned i = 0; i < 4; i++) {
        tail[i] = (unsigned char)(z->crc >> 8 * i);
        tail[4 + i] = (unsigned char)(z->length >> 8 * i);
    }
    put(out, tail, sizeof tail);
}
