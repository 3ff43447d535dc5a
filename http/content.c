#include "http/content.h"

#include <stdint.h>
#include <string.h>

#include "base/wide.h"

/* 32 bytes to process at once: as one vector if the machine has wide vectors (base/wide.h), else as
 * two vectors of 16 bytes. */
typedef unsigned char bytes32 __attribute__((vector_size(32)));
typedef signed char signed32 __attribute__((vector_size(32)));

enum {
    WORDS = sizeof(bytes32) / sizeof(uint64_t),
    /* Most vectors that may be counted: then a byte cannot overflow when sum_of() adds the
     * words. */
    VECTORS_MAX = UINT8_MAX / WORDS,
};

/* For each byte of `c`: all bits set if the byte is one of the `count` values from `first` on, else
 * 0. All vector units have signed comparisons, so the range is moved to the lowest signed
 * values. */
#define WITHIN(c, first, count)                                                                    \
    ((bytes32)((signed32)((c) + (unsigned char)(0x80 - (first))) < (signed char)(0x80 + (count))))

/* Per byte of a vector: how many vectors so far had each class at this position. */
struct counts {
    bytes32 letters, spaces, digits;
    bytes32 any; /* OR of all bytes so far */
};

struct wide_counts {
    bytes32 wide;
    bytes32 inner; /* bytes beyond ASCII, except the first bytes of characters of three bytes or
                    * more */
};

/* Sum of all bytes. Adds bytes in pairs, so that no sum exceeds 16 bits. The top 16 bits of the
 * product are the sum of four pairs. */
static WIDE_INLINED uint32_t sum_of(const bytes32 *counts)
{
    const uint64_t low = 0x00ff00ff00ff00ff, ones = 0x0001000100010001;
    uint64_t words[WORDS];
    memcpy(words, counts, sizeof words);
    uint64_t sums = words[0] + words[1] + words[2] + words[3];
    return (uint32_t)(((sums & low) + (sums >> 8 & low)) * ones >> 48);
}

static WIDE_INLINED bool any_wide(const bytes32 *any)
{
    uint64_t words[WORDS];
    memcpy(words, any, sizeof words);
    return ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080) != 0;
}

static WIDE_INLINED void count_vector(struct counts *n, const void *at)
{
    bytes32 c;
    memcpy(&c, at, sizeof c);
    n->letters -= WITHIN(c | 0x20, 'a', 26);
    n->spaces -= (bytes32)(c == ' ');
    n->digits -= WITHIN(c, '0', 10);
    n->any |= c;
}

static WIDE_INLINED void count_wide(struct wide_counts *n, const void *at)
{
    bytes32 c;
    memcpy(&c, at, sizeof c);
    n->wide -= (bytes32)((signed32)c < 0);
    n->inner -= (bytes32)((signed32)c < (signed char)0xe0);
}

/* Counts `vectors` whole vectors, at most VECTORS_MAX, and `rest` bytes of another vector. Most
 * texts are ASCII, so only texts with other bytes are read twice. */
static WIDE_INLINED void count(struct chain_content *content, const char *at, size_t vectors,
                               size_t rest)
{
    struct counts n = {.letters = {0}};
    unsigned char last[sizeof(bytes32)] = {0}; /* zeros after the rest count in no class */
    size_t len = vectors * sizeof(bytes32);
    for (size_t i = 0; i < len; i += sizeof(bytes32))
        count_vector(&n, at + i);
    if (rest > 0) {
        memcpy(last, at + len, rest);
        count_vector(&n, last);
    }
    uint32_t letters = sum_of(&n.letters), spaces = sum_of(&n.spaces), digits = sum_of(&n.digits);
    content->letters += letters;
    content->spaces += spaces;
    content->digits += digits;
    content->marks += (uint32_t)(len + rest) - letters - spaces - digits;
    if (!any_wide(&n.any))
        return;
    struct wide_counts w = {.wide = {0}};
    for (size_t i = 0; i < len; i += sizeof(bytes32))
        count_wide(&w, at + i);
    count_wide(&w, last);
    uint32_t wide = sum_of(&w.wide);
    content->marks -= wide;
    content->wide += wide;
    content->leads += wide - sum_of(&w.inner);
}

static WIDE_INLINED void count_all(struct chain_content *content, const char *at, size_t len)
{
    enum { ROUND = (VECTORS_MAX - 1) * sizeof(bytes32) }; /* leaves a vector for the rest */
    for (; len > ROUND; at += ROUND, len -= ROUND)
        count(content, at, VECTORS_MAX - 1, 0);
    count(content, at, len / sizeof(bytes32), len % sizeof(bytes32));
}

WIDE_TARGET static void count_wide_machine(struct chain_content *content, const char *at,
                                           size_t len)
{
    count_all(content, at, len);
}

void http_content_count(struct chain_content *content, const char *at, size_t len)
{
    if (wide_has())
        count_wide_machine(content, at, len);
    else
        count_all(content, at, len);
}
