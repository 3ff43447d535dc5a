#include "base/check.h"
#include "node/kv/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

static void each(void *context, const struct kv_event *e)
{
    uint64_t *blocks = context;
    CHECK(e->change <= KV_CLEARED && e->medium <= KV_OTHER && e->kind <= KV_IGNORED);
    CHECK(e->count == 0 || e->hashes != NULL);
    CHECK(e->digests == NULL || (e->change == KV_STORED && e->block_tokens > 0));
    for (uint32_t i = 0; i < e->count; i++)
        sum += e->hashes[i] + (e->digests != NULL ? e->digests[i] : 0); /* all can be read */
    *blocks += e->count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hash_secret secret;
    struct kv_decoder *d;
    struct kv_batch batch;
    uint64_t blocks = 0;
    hash_secret_from_seed(&secret, 1);
    CHECK(kv_decoder_create(&d, &secret) == 0);
    int err = kv_batch_decode(d, slice_of((const char *)data, size), each, &blocks, &batch);
    CHECK(err == 0 || err == ERR_SYNTAX || err == ERR_LIMIT);
    CHECK(err == 0 || blocks == 0);
    CHECK(err != 0 || (batch.rank >= -1 && blocks <= size && batch.events + batch.skipped <= size));
    kv_decoder_destroy(d);
    return 0;
}
