/* The gzip format (RFC 1952) without compression: stored blocks (RFC 1951, 3.2.4). Pure. */
#ifndef TESTS_ENGINE_SIM_GZIP_H
#define TESTS_ENGINE_SIM_GZIP_H

#include "base/buf.h"

struct sim_gzip {
    bool begun;
    uint32_t crc;
    uint32_t length;
};

/* Appends the bytes, coded such that a reader can decode all of them at once. */
void sim_gzip_write(struct sim_gzip *z, struct slice bytes, struct buf *out);
void sim_gzip_end(struct sim_gzip *z, struct buf *out);

#endif
