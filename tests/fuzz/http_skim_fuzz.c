/* The skimmer: two splits of the same body give the same results, and chains of prefixes and of
 * chunks are in order, in any rendering. */
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "http/skim.h"

/* A learnable rendering, chosen by the body's size. */
static struct rendering rendering_by(size_t size)
{
    struct rendering r = rendering_of((uint8_t)(size % RENDERING_CODES));
    r.lead = r.lead < RENDERING_LEADS ? r.lead : 0;
    return r;
}

static void run(struct http_skim *s, const struct hash_secret *secret, const uint8_t *data,
                size_t size, size_t step, bool chunks)
{
    http_skim_init(s, secret);
    if (chunks)
        http_skim_by_chunks(s);
    for (size_t at = 0; at < size; at += step)
        http_skim_feed(s, data + at, size - at < step ? size - at : step);
    http_skim_end(s);
    http_skim_join(s, rendering_by(size));
}

static void check_same(const struct http_skim *a, const struct http_skim *b)
{
    CHECK(a->understood == b->understood);
    if (!a->understood)
        return;
    const struct chain *x = http_skim_chain(a);
    const struct chain *y = http_skim_chain(b);
    CHECK(x->bytes == y->bytes && x->length == y->length && x->token_ids == y->token_ids);
    for (unsigned i = 0; i < x->length; i++) {
        CHECK(x->points[i].id == y->points[i].id && x->points[i].blocks == y->points[i].blocks);
        uint32_t before = i == 0 ? 0 : x->points[i - 1].blocks;
        CHECK(x->points[i].blocks - before == checkpoint_weight(x->points[i].code));
    }
    for (int i = 0; i < HTTP_SKIM_NAMES; i++)
        CHECK(slice_equal(http_skim_field(a, (enum http_skim_name)i),
                          http_skim_field(b, (enum http_skim_name)i)));
    CHECK(http_skim_output_max(a) == http_skim_output_max(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_skim whole;
    static struct http_skim split;
    static struct hash_secret secret;
    hash_secret_from_seed(&secret, 5);
    for (int chunks = 0; chunks < 2; chunks++) {
        run(&whole, &secret, data, size, size + 1, chunks);
        run(&split, &secret, data, size, 1, chunks);
        check_same(&whole, &split);
        run(&split, &secret, data, size, 33, chunks);
        check_same(&whole, &split);
    }
    return 0;
}
