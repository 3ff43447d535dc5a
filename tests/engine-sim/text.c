#include "tests/engine-sim/text.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"

enum kind { SIGN, LETTER, DIGIT, BLANK };

/* Whatever is not listed is a sign. */
static const uint8_t kinds[256] = {
    [' '] = BLANK,          ['\n'] = BLANK,           ['\t'] = BLANK,
    ['\r'] = BLANK,         ['0' ... '9'] = DIGIT,    ['a' ... 'z'] = LETTER,
    ['A' ... 'Z'] = LETTER, [0x80 ... 0xff] = LETTER, ['_'] = LETTER,
};

static enum kind kind_of(char c)
{
    return (enum kind)kinds[(unsigned char)c];
}

static size_t run_of(struct slice s, size_t from, enum kind kind, size_t max)
{
    size_t n = from;
    while (n < s.len && n < max && kind_of(s.at[n]) == kind)
        n++;
    return n;
}

static size_t token_bytes(struct slice s)
{
    static const size_t most[] = {
        [LETTER] = 12, [DIGIT] = 3, [SIGN] = 4, [BLANK] = SIM_TOKEN_BYTES_MAX};
    bool space_first = s.at[0] == ' ' && s.len > 1 && kind_of(s.at[1]) != BLANK;
    enum kind kind = kind_of(s.at[space_first ? 1 : 0]);
    size_t n = run_of(s, space_first ? 1 : 0, kind, most[kind]);
    /* The last space of a run belongs to what follows. */
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

/* The same where 16 bytes may be read: most of the simulator's time is spent here. */
static uint32_t token_id_wide(const char *at, size_t len)
{
    uint64_t bytes[2];
    memcpy(bytes, at, sizeof bytes);
    if (len < 8)
        return id_of(bytes[0] & ((1ull << (8 * len)) - 1), 0, len);
    return id_of(bytes[0], len == 16 ? bytes[1] : bytes[1] & ((1ull << (8 * (len - 8))) - 1), len);
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
    *c = (struct sim_chain){.block_tokens = 0};
}

static void chain_close_block(struct sim_chain *c)
{
    if (c->block_count == c->block_cap) {
        c->block_cap = c->block_cap == 0 ? 64 : c->block_cap * 2;
        c->blocks = realloc(c->blocks, c->block_cap * sizeof *c->blocks);
        CHECK(c->blocks != NULL);
    }
    c->blocks[c->block_count++] = hash_mix(c->hash);
    c->block_left = c->block_tokens;
}

void sim_chain_add(struct sim_chain *c, uint32_t id)
{
    /* One multiplication a token; the bits are mixed when a block is named. */
    c->hash = (c->hash ^ (id + 1)) * 0x9e3779b97f4a7c15u;
    c->hash ^= c->hash >> 32;
    c->tokens++;
    if (--c->block_left == 0)
        chain_close_block(c);
}

void sim_chain_add_text(struct sim_chain *c, struct slice text)
{
    while (text.len > 0) {
        size_t n = token_bytes(text);
        sim_chain_add(c, text.len < SIM_TOKEN_BYTES_MAX ? sim_token_id(slice_of(text.at, n))
                                                        : token_id_wide(text.at, n));
        text.at += n;
        text.len -= n;
    }
}

void sim_chain_copy(struct sim_chain *to, const struct sim_chain *from)
{
    *to = *from;
    to->block_cap = from->block_count;
    to->blocks = malloc(from->block_count * sizeof *to->blocks + 1);
    CHECK(to->blocks != NULL);
    if (from->block_count > 0)
        memcpy(to->blocks, from->blocks, from->block_count * sizeof *to->blocks);
}

uint64_t sim_text_tokens(struct slice text)
{
    uint64_t n = 0;
    for (; text.len > 0; n++)
        (void)sim_token_cut(&text);
    return n;
}

/* Each with its leading space is one token. */
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
