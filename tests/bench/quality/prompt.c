#include "tests/bench/quality/prompt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "http/prompt.h"

/* Hash of everything up to the end of a unit. */
static uint64_t after(uint64_t before, uint64_t unit)
{
    return hash_mix(before * 0x9e3779b97f4a7c15u + unit + 1);
}

/* Hash of everything up to a place within a unit that ends with `whole`. */
static uint64_t within(uint64_t whole, uint64_t place)
{
    return hash_mix(whole + place * 0xd1b54a32d192ed03u);
}

bool prompt_continues(const struct prompt *p, const struct prompt *next)
{
    return p->space == next->space && p->unit_tokens == next->unit_tokens &&
           p->count <= next->count &&
           (p->count == 0 || memcmp(p->units, next->units, p->count * sizeof *p->units) == 0);
}

void prompt_names(const struct prompt *p, uint32_t block_tokens, bool any_place, uint64_t unique,
                  uint32_t dropped_tokens, struct sim_chain *out)
{
    uint64_t tokens = prompt_tokens(p);
    size_t count = (size_t)(tokens / block_tokens);
    CHECK(tokens > 0 && (!any_place || p->unit_tokens % block_tokens == 0));
    *out = (struct sim_chain){.block_tokens = block_tokens,
                              .block_left = block_tokens - (uint32_t)(tokens % block_tokens),
                              .tokens = tokens,
                              .block_count = count,
                              .block_cap = count + 1};
    out->blocks = malloc(out->block_cap * sizeof *out->blocks);
    CHECK(out->blocks != NULL);
    uint64_t lasting = tokens > dropped_tokens ? tokens - dropped_tokens : 0;
    uint64_t start = hash_mix(p->space + 1), hash = start, end = 0;
    size_t n = 0;
    for (uint32_t i = 0; i <= p->count; i++) {
        bool tail = i == p->count;
        hash = after(any_place ? start : hash, tail ? hash_mix(unique) : p->units[i]);
        end += tail ? p->tail_tokens : p->unit_tokens;
        for (; n < count && (n + 1) * block_tokens <= end; n++) {
            uint64_t at = (uint64_t)(n + 1) * block_tokens;
            out->blocks[n] = within(hash, end - at) ^ (at > lasting ? hash_mix(unique) : 0);
        }
    }
    out->hash = hash_mix(hash ^ unique);
}

/* An image is a row of units. */
static bool begins_image(const struct prompt *p, uint32_t i)
{
    return p->units[i] & PROMPT_IMAGE && (i == 0 || p->units[i] != p->units[i - 1] + 1);
}

uint64_t prompt_unit_bytes(const struct prompt *p, uint32_t i, double bytes_per_token)
{
    if (p->units[i] & PROMPT_IMAGE)
        return begins_image(p, i) ? CHAIN_MEDIUM_BYTES : 0;
    double varied = 0.8 + 0.4 * (double)(hash_mix(p->units[i]) >> 40) / (double)(1 << 24);
    return (uint64_t)llround(p->unit_tokens * bytes_per_token * varied);
}

void prompt_chain(const struct prompt *p, double bytes_per_token, struct chain *out)
{
    uint64_t hash = hash_mix(p->space + 1), end = 0;
    unsigned n = 0;
    out->length = 0;
    out->token_ids = out->chunks = false;
    out->content = (struct chain_content){0};
    for (uint32_t i = 0; i < p->count; i++) {
        hash = after(hash, p->units[i]);
        end += prompt_unit_bytes(p, i, bytes_per_token);
        out->content.media[CHAIN_IMAGE] =
            (uint16_t)(out->content.media[CHAIN_IMAGE] + begins_image(p, i));
        for (uint64_t at; n < CHECKPOINT_MAX; n++) {
            at = (uint64_t)checkpoint_blocks(n) * CHECKPOINT_BLOCK_BYTES;
            if (at > end)
                break;
            out->points[out->length++] =
                (struct chain_point){.id = within(hash, end - at),
                                     .blocks = checkpoint_blocks(n),
                                     .code = checkpoint_code(n),
                                     .media = (uint16_t)chain_media(&out->content)};
        }
    }
    out->bytes = end + (uint64_t)llround(p->tail_tokens * bytes_per_token);
}

/* Writes letters that represent a unit. */
static void write_unit(struct http_prompt *prompt, uint64_t unit, uint64_t bytes)
{
    uint64_t hash = hash_mix(unit + 1);
    while (bytes > 0) {
        size_t part = http_prompt_room(prompt);
        part = bytes < part ? (size_t)bytes : part;
        char *at = http_prompt_at(prompt);
        for (size_t i = 0; i < part; i++) {
            hash = hash * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
            at[i] = (char)('a' + (hash >> 59)); /* letters a to z, and the 6 bytes after z */
        }
        http_prompt_commit(prompt, part);
        bytes -= part;
    }
}

void prompt_chunks(const struct prompt *p, double bytes_per_token, uint64_t unique,
                   const struct hash_secret *secret, struct chain *out)
{
    static struct http_prompt prompt;
    http_prompt_init(&prompt, secret);
    http_prompt_by_chunks(&prompt);
    http_prompt_open(&prompt, HTTP_PROMPT_TEXT);
    for (uint32_t i = 0; i < p->count; i++) {
        CHECK((p->units[i] & PROMPT_IMAGE) == 0);
        write_unit(&prompt, p->units[i], prompt_unit_bytes(p, i, bytes_per_token));
    }
    write_unit(&prompt, hash_mix(unique), (uint64_t)llround(p->tail_tokens * bytes_per_token));
    http_prompt_close(&prompt);
    http_prompt_end(&prompt, (struct hash128){.low = p->space}, (struct hash128){.low = 0});
    http_prompt_join(&prompt.form, secret, (struct rendering){0}, &prompt.chain);
    *out = prompt.chain;
    out->content = (struct chain_content){0}; /* as in prompt_chain() */
}
