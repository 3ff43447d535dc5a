#include "http/content.h"

#include <stdint.h>
#include <string.h>

typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef signed char signed16 __attribute__((vector_size(16)));

enum { VECTORS_MAX = 255 }; /* a byte counts so many */

/* Per byte of a vector: so many in that place of the vectors before. */
struct counts {
    bytes16 letters, spaces, digits, wide;
    bytes16 inner; /* wide ones that begin no character of three bytes or more */
};

/* Pairs of bytes first, so that no sum leaves its 16 bits. A product has the sum of the four of
 * them at its top. */
static uint32_t sum_of(bytes16 counts)
{
    const uint64_t low = 0x00ff00ff00ff00ff, ones = 0x0001000100010001;
    uint64_t halves[2];
    memcpy(halves, &counts, sizeof halves);
    uint64_t pairs =
        (halves[0] & low) + (halves[0] >> 8 & low) + (halves[1] & low) + (halves[1] >> 8 & low);
    return (uint32_t)(pairs * ones >> 48);
}

/* From `first` on, so many values. Signed comparisons are what every vector unit has: the range is
 * moved to the lowest of them. */
static inline bytes16 within(bytes16 c, unsigned char first, unsigned char count)
{
    const unsigned char lowest = 0x80;
    bytes16 moved = c + (unsigned char)(lowest - first);
    return (bytes16)((signed16)moved < (signed char)(lowest + count));
}

static inline void count16(struct counts *n, bytes16 c)
{
    n->letters -= within(c | 0x20, 'a', 26);
    n->spaces -= (bytes16)(c == ' ');
    n->digits -= within(c, '0', 10);
    n->wide -= (bytes16)((signed16)c < 0);
    n->inner -= (bytes16)((signed16)c < (signed char)0xe0);
}

static void take(struct chain_content *content, const struct counts *n, size_t len)
{
    uint32_t letters = sum_of(n->letters), spaces = sum_of(n->spaces), digits = sum_of(n->digits);
    uint32_t wide = sum_of(n->wide);
    content->letters += letters;
    content->spaces += spaces;
    content->digits += digits;
    content->marks += (uint32_t)len - letters - spaces - digits - wide;
    content->wide += wide;
    content->leads += wide - sum_of(n->inner);
}

void http_content_count(struct chain_content *content, const char *at, size_t len)
{
    while (len > 0) {
        struct counts n = {.letters = {0}};
        size_t vectors = len / sizeof(bytes16);
        if (vectors > VECTORS_MAX)
            vectors = VECTORS_MAX;
        for (size_t i = 0; i < vectors; i++) {
            bytes16 c;
            memcpy(&c, at + i * sizeof c, sizeof c);
            count16(&n, c);
        }
        size_t done = vectors * sizeof(bytes16);
        if (vectors < VECTORS_MAX && done < len) { /* the last: zeros behind it count as nothing */
            bytes16 c = {0};
            memcpy(&c, at + done, len - done);
            count16(&n, c);
            done = len;
        }
        take(content, &n, done);
        at += done;
        len -= done;
    }
}
