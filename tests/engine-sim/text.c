#include "tests/engine-sim/text.h"

#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "base/hash.h"

enum kind { SIGN, LETTER, DIGIT, BLANK };

/* Bytes missing here are signs. */
static const uint8_t kind_table[256] = {
    [' '] = BLANK,          ['\n'] = BLANK,           ['\t'] = BLANK,
    ['\r'] = BLANK,         ['0' ... '9'] = DIGIT,    ['a' ... 'z'] = LETTER,
    ['A' ... 'Z'] = LETTER, [0x80 ... 0xff] = LETTER, ['_'] = LETTER,
};

static enum kind kind_of(char c)
{
    return (enum kind)kind_table[(unsigned char)c];
}

static size_t run_of(struct slice s, size_t from, enum kind kind, size_t max)
{
    size_t n = from;
    while (n < s.len && n < max && kind_of(s.at[n]) == kind)
        n++;
    return n;
}

/* Longest token of each kind, including the leading space. */
static const uint8_t most[] = {
    [SIGN] = 4, [LETTER] = 12, [DIGIT] = 3, [BLANK] = SIM_TOKEN_BYTES_MAX};

static size_t token_bytes(struct slice s)
{
    bool space_first = s.at[0] == ' ' && s.len > 1 && kind_of(s.at[1]) != BLANK;
    enum kind kind = kind_of(s.at[space_first ? 1 : 0]);
    size_t n = run_of(s, space_first ? 1 : 0, kind, most[kind]);
    /* The last space of a run belongs to the next token. */
    if (kind == BLANK && n > 1 && n < s.len && s.at[n - 1] == ' ' && kind_of(s.at[n]) != BLANK)
        n--;
    return n;
}

struct slice sim_token_cut(struct slice *text)
{
    CHECK(text->len > 0);
    size_t n = token_bytes(*text);
    struct slice token = slice_of(text->at, n);
    *text = slice_skip(*text, n);
    return token;
}

static uint32_t id_of(uint64_t low, uint64_t high, size_t len)
{
    return (uint32_t)(hash_mix(low * 17 + high * 0x9e3779b97f4a7c15u + len) % SIM_VOCABULARY);
}

uint32_t sim_token_id(struct slice token)
{
    uint64_t bytes[2] = {0, 0};
    CHECK(token.len <= sizeof bytes);
    memcpy(bytes, token.at, token.len);
    return id_of(bytes[0], bytes[1], token.len);
}

/* As sim_token_id(), if 16 bytes may be read. Has no branch on the length, which is
 * unpredictable. */
static uint32_t token_id_wide(const char *at, size_t len)
{
    static const char ones[32] = "\xff\xff\xff\xff\xff\xff\xff\xff"
                                 "\xff\xff\xff\xff\xff\xff\xff\xff";
    uint64_t bytes[2];
    uint64_t keep[2];
    memcpy(bytes, at, sizeof bytes);
    memcpy(keep, ones + SIM_TOKEN_BYTES_MAX - len, sizeof keep);
    return id_of(bytes[0] & keep[0], bytes[1] & keep[1], len);
}

void sim_chain_init(struct sim_chain *c, uint32_t block_tokens, uint64_t salt)
{
    CHECK(block_tokens > 0);
    *c = (struct sim_chain){
        .block_tokens = block_tokens, .block_left = block_tokens, .hash = hash_mix(salt + 1)};
}

void sim_chain_free(struct sim_chain *c)
{
    free(c->blocks);
    free(c->ids);
    *c = (struct sim_chain){.block_tokens = 0};
}

static void chain_close_block(struct sim_chain *c)
{
    if (c->block_count == c->block_cap) {
        c->block_cap = c->block_cap == 0 ? 64 : c->block_cap * 2;
        c->blocks = realloc(c->blocks, c->block_cap * sizeof *c->blocks);
        CHECK(c->blocks != NULL);
    }
    bool is_known = c->block_count < c->ahead_count;
    c->blocks[c->block_count] = is_known ? c->ahead[c->block_count] : hash_mix(c->hash);
    c->block_count++;
    c->block_left = c->block_tokens;
}

static void keep_id(struct sim_chain *c, uint32_t id)
{
    if (c->tokens == c->id_cap) {
        c->id_cap = c->id_cap == 0 ? 256 : c->id_cap * 2;
        c->ids = realloc(c->ids, c->id_cap * sizeof *c->ids);
        CHECK(c->ids != NULL);
    }
    c->ids[c->tokens] = id;
}

void sim_chain_add(struct sim_chain *c, uint32_t id)
{
    if (c->keeps_ids)
        keep_id(c, id);
    /* A single multiplication per token; the bits are mixed when a block is named. */
    c->hash = (c->hash ^ (id + 1)) * 0x9e3779b97f4a7c15u;
    c->hash ^= c->hash >> 32;
    c->tokens++;
    if (--c->block_left == 0)
        chain_close_block(c);
}

/* --- long texts -------------------------------------------------------------------------------
 *
 * Prompts have hundreds of kilobytes. The starts of tokens are computed for 64 bytes at a time, as
 * a bit per byte, with the same result as token_bytes(). */

enum { WINDOW = 64, AHEAD = WINDOW + SIM_TOKEN_BYTES_MAX };

struct masks {
    uint64_t letter;
    uint64_t digit;
    uint64_t blank;
    uint64_t space;
};

#ifdef __SSE2__
static uint64_t bits(__m128i bytes)
{
    return (unsigned)_mm_movemask_epi8(bytes);
}

/* Marks the bytes of `c` from `first` to `first` + `count` - 1. */
static __m128i in_range(__m128i c, char first, char count)
{
    __m128i shifted = _mm_sub_epi8(c, _mm_set1_epi8((char)(first + 128)));
    return _mm_cmplt_epi8(shifted, _mm_set1_epi8((char)(count - 128)));
}

static struct masks masks_of(const char *at)
{
    struct masks m = {0, 0, 0, 0};
    for (unsigned i = 0; i < WINDOW; i += 16) {
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i lower = _mm_or_si128(c, _mm_set1_epi8(0x20));
        __m128i space = _mm_cmpeq_epi8(c, _mm_set1_epi8(' '));
        __m128i line = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('\n')),
                                    _mm_cmpeq_epi8(c, _mm_set1_epi8('\r')));
        __m128i tab = _mm_cmpeq_epi8(c, _mm_set1_epi8('\t'));
        __m128i under = _mm_cmpeq_epi8(c, _mm_set1_epi8('_'));
        m.letter |= (bits(_mm_or_si128(in_range(lower, 'a', 26), under)) | bits(c)) << i;
        m.digit |= bits(in_range(c, '0', 10)) << i;
        m.blank |= bits(_mm_or_si128(_mm_or_si128(space, line), tab)) << i;
        m.space |= bits(space) << i;
    }
    return m;
}
#else
static struct masks masks_of(const char *at)
{
    struct masks m = {0, 0, 0, 0};
    for (unsigned i = 0; i < WINDOW; i++) {
        uint64_t bit = 1ull << i;
        enum kind kind = kind_of(at[i]);
        m.letter |= kind == LETTER ? bit : 0;
        m.digit |= kind == DIGIT ? bit : 0;
        m.blank |= kind == BLANK ? bit : 0;
        m.space |= at[i] == ' ' ? bit : 0;
    }
    return m;
}
#endif

/* Bits of the bytes where a token begins. `before` has the masks of the window before, `next` is
 * the byte after this window. A space before a byte other than a blank begins this byte's token. */
static uint64_t starts_of(struct masks m, struct masks before, char next)
{
    uint64_t letter = m.letter << 1 | before.letter >> 63;
    uint64_t digit = m.digit << 1 | before.digit >> 63;
    uint64_t blank = m.blank << 1 | before.blank >> 63;
    uint64_t changes = (m.letter ^ letter) | (m.digit ^ digit) | (m.blank ^ blank);
    uint64_t next_blank = m.blank >> 1 | (kind_of(next) == BLANK ? 1ull << 63 : 0);
    uint64_t joins = m.space & ~next_blank;
    bool joined = before.space >> 63 != 0 && (m.blank & 1) == 0;
    return (changes & ~(joins << 1 | joined)) | joins;
}

static void add_run(struct sim_chain *c, const char *at, size_t len)
{
    size_t part = most[kind_of(at[at[0] == ' ' && len > 1])];
    for (; len > part; at += part, len -= part)
        sim_chain_add(c, token_id_wide(at, part));
    sim_chain_add(c, token_id_wide(at, len));
}

void sim_chain_add_text(struct sim_chain *c, struct slice text)
{
    struct masks before = {0, 0, 0, 0};
    size_t from = 0; /* start of the present token */
    for (size_t at = 0; at + AHEAD <= text.len; at += WINDOW) {
        struct masks m = masks_of(text.at + at);
        uint64_t starts = starts_of(m, before, text.at[at + WINDOW]);
        for (; starts != 0; starts &= starts - 1) {
            size_t to = at + (size_t)__builtin_ctzll(starts);
            if (to > from)
                add_run(c, text.at + from, to - from);
            from = to;
        }
        before = m;
    }
    text = slice_skip(text, from);
    while (text.len > 0)
        sim_chain_add(c, sim_token_id(sim_token_cut(&text)));
}

void sim_chain_copy(struct sim_chain *to, const struct sim_chain *from)
{
    *to = *from;
    to->block_cap = from->block_count;
    to->blocks = malloc(from->block_count * sizeof *to->blocks + 1);
    CHECK(to->blocks != NULL);
    if (from->block_count > 0)
        memcpy(to->blocks, from->blocks, from->block_count * sizeof *to->blocks);
    to->id_cap = from->ids != NULL ? from->tokens : 0;
    to->ids = from->ids != NULL ? malloc(from->tokens * sizeof *to->ids + 1) : NULL;
    CHECK(from->ids == NULL || to->ids != NULL);
    if (from->ids != NULL)
        memcpy(to->ids, from->ids, from->tokens * sizeof *to->ids);
}

uint64_t sim_text_tokens(struct slice text)
{
    uint64_t n = 0;
    for (; text.len > 0; n++)
        (void)sim_token_cut(&text);
    return n;
}

/* Each word is a token, together with the leading space. */
static const char *const words[] = {
    " the",    " prompt", " cache",  " of",    " a",      " router", " holds", " what",
    " engine", " said",   " before", " and",   " then",   " sends",  " it",    " back",
    " token",  " by",     " token",  " while", " other",  " work",   " waits", " in",
    " line",   " so",     " that",   " each",  " answer", " comes",  " from",  " where",
    " its",    " prefix", " still",  " lives", " and",    " no",     " block", " is",
    " read",   " twice",  " when",   " one",   " copy",   " will",   " do",    " for",
    " all",    " of",     " them",   " at",    " once",   " which",  " saves", " time",
    " and",    " power",  " but",    " asks",  " for",    " care",   " with",  " space",
};

struct slice sim_output_token(uint64_t seed, uint64_t index)
{
    struct slice word =
        slice_of_cstr(words[hash_mix(seed + index * 0x9e3779b97f4a7c15u) % ARRAY_LEN(words)]);
    return index == 0 ? slice_skip(word, 1) : word;
}
