#include "tests/lib/kv_believed.h"

#include "base/buf.h"
#include "base/check.h"
#include "node/kv/batch.h"
#include "tests/engine-sim/kv_events.h"

static void on_event(void *context, const struct kv_event *e)
{
    struct believed *b = context;
    kv_tree_apply(b->tree, e);
}

static int on_message(void *context, struct slice payload)
{
    struct believed *b = context;
    struct kv_batch batch;
    int err = kv_batch_decode(b->decoder, payload, on_event, b, &batch);
    b->rank = batch.rank;
    return err;
}

static void on_missed(void *context)
{
    struct believed *b = context;
    kv_tree_doubt(b->tree);
}

static void on_began(void *context, bool again)
{
    (void)again;
    struct believed *b = context;
    kv_tree_clear(b->tree);
}

static void on_replay(void *context, uint64_t from)
{
    struct believed *b = context;
    b->replay(b->context, from);
}

void believed_open(struct believed *b, uint64_t seed, void (*replay)(void *, uint64_t),
                   void *context)
{
    *b = (struct believed){.user = {on_message, on_missed, on_began, on_replay, b},
                           .replay = replay,
                           .context = context};
    hash_secret_from_seed(&b->secret, seed);
    CHECK(kv_decoder_create(&b->decoder, &b->secret) == 0);
    CHECK(kv_tree_create(&b->tree, NULL, &b->secret, 4096) == 0);
    CHECK(kv_feed_create(&b->feed, &b->user, &b->secret, replay != NULL) == 0);
}

void believed_close(struct believed *b)
{
    kv_feed_destroy(b->feed);
    kv_tree_destroy(b->tree);
    kv_decoder_destroy(b->decoder);
}

static void on_own(void *context, const struct kv_event *e)
{
    struct believed_chains *c = context;
    uint64_t chain =
        c->count > 0 ? c->at[c->count - 1] : kv_chain_root(c->secret, e->block_tokens, e->space);
    CHECK(c->count + e->count <= BELIEVED_BLOCKS_MAX);
    for (uint32_t i = 0; i < e->count; i++)
        c->at[c->count++] = chain = kv_chain(c->secret, chain, e->digests[i]);
}

struct believed_chains believed_chains(struct believed *b, const char *form,
                                       const struct sim_chain *prompt)
{
    struct believed_chains c = {.secret = &b->secret};
    struct buf payload = {.at = NULL};
    struct kv_batch batch;
    struct sim_kv_events *own = sim_kv_events_create(form, 0, false);
    const struct sim_model_watch *watch = sim_kv_events_watch(own);
    watch->stored(watch->context, prompt, 0, prompt->block_count);
    CHECK(sim_kv_events_take(own, 1, &payload));
    CHECK(kv_batch_decode(b->decoder, buf_slice(&payload), on_own, &c, &batch) == 0);
    buf_free(&payload);
    sim_kv_events_destroy(own);
    return c;
}

/* Each chain is looked up separately, because an unknown chain says nothing about the blocks
 * before. */
struct kv_held believed_held(const struct believed *b, const struct believed_chains *c)
{
    struct kv_held all = {0, c->count, KV_GPU};
    for (uint32_t len = c->count; len > 0; len--) {
        struct kv_held h = kv_tree_held(b->tree, c->at[len - 1], len);
        all.surely = h.surely > all.surely ? h.surely : all.surely;
        if (h.perhaps < len && h.perhaps < all.perhaps)
            all.perhaps = h.perhaps;
    }
    return all;
}
