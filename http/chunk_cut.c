#include "http/chunk_cut.h"

#include <stdint.h>

/* About 1 in 1,024 positions meets the condition for a cut. */
enum { WINDOW = 64, CUT_BITS = 10 };

size_t http_chunk_cut(const char *at, size_t len)
{
    size_t end = len < HTTP_CHUNK_BYTES_MAX ? len : HTTP_CHUNK_BYTES_MAX;
    uint64_t hash = 0;
    for (size_t i = HTTP_CHUNK_BYTES_MIN - WINDOW; i < end; i++) {
        /* Bytes older than the window have been shifted out. */
        hash = (hash << 1) + (1 + (uint64_t)(unsigned char)at[i]) * UINT64_C(0x9e3779b97f4a7c15);
        if (hash >> (64 - CUT_BITS) == 0 && i + 1 >= HTTP_CHUNK_BYTES_MIN)
            return i + 1;
    }
    return len >= HTTP_CHUNK_BYTES_MAX ? HTTP_CHUNK_BYTES_MAX : 0;
}
