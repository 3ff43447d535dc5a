/* Skims bodies whole or in pieces, and compares the chains. */
#ifndef TESTS_LIB_SKIM_HELP_H
#define TESTS_LIB_SKIM_HELP_H

#include <stdlib.h>

#include "http/skim.h"
#include "tests/lib/test.h"

static struct hash_secret secret;
static struct http_skim skim;
static struct rendering skim_rendering; /* rendering of the chains */

static inline int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 42);
    return 0;
}

/* Skims a body cut at `cut` and then every `step` bytes (0 = not again). */
static inline void skim_split(const char *body, size_t len, size_t cut, size_t step)
{
    memset(&skim, 0xa5, sizeof skim); /* no code may rely on zeroes */
    http_skim_init(&skim, &secret);
    for (size_t at = 0; at < len;) {
        size_t n = at == 0 && cut > 0 ? cut : step > 0 ? step : len - at;
        n = n < len - at ? n : len - at;
        char *part = malloc(n); /* so that ASan sees reads beyond the end */
        memcpy(part, body + at, n);
        http_skim_feed(&skim, part, n);
        free(part);
        at += n;
    }
    http_skim_end(&skim);
    http_skim_join(&skim, skim_rendering);
}

static inline void skim_whole(const char *body)
{
    skim_split(body, strlen(body), 0, 0);
}

static inline void chain_of(const char *body, struct chain *out)
{
    skim_whole(body);
    assert_true(skim.understood);
    *out = *http_skim_chain(&skim);
}

static inline bool chain_equal(const struct chain *a, const struct chain *b)
{
    if (a->bytes != b->bytes || a->length != b->length || a->token_ids != b->token_ids ||
        memcmp(&a->content, &b->content, sizeof a->content) != 0)
        return false;
    for (unsigned i = 0; i < a->length; i++)
        if (a->points[i].id != b->points[i].id || a->points[i].blocks != b->points[i].blocks ||
            a->points[i].code != b->points[i].code || a->points[i].media != b->points[i].media)
            return false;
    return true;
}

static inline unsigned chain_shared(const struct chain *a, const struct chain *b)
{
    unsigned n = 0;
    while (n < a->length && n < b->length && a->points[n].id == b->points[n].id)
        n++;
    return n;
}

#endif
