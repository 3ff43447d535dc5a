/* chunk_aware: a replica is credited with the cached parts of a prompt, in any place. */
#include "base/checkpoint.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { CHUNK_BLOCKS = 4, CHUNKS_PER_DOCUMENT = 20 };

/* A prompt of the given documents, in this order. */
static struct chain *documents(const unsigned *which, unsigned count)
{
    static struct chain chain;
    chain = (struct chain){.chunks = true};
    for (unsigned d = 0; d < count; d++)
        for (unsigned i = 0; i < CHUNKS_PER_DOCUMENT; i++)
            chain.points[chain.length++] = (struct chain_point){
                .id = hash_mix(which[d] * 1000ull + i + 1),
                .blocks = (chain.length + 1u) * CHUNK_BLOCKS,
                .code = 3,
            };
    chain.bytes = (uint64_t)chain.length * CHUNK_BLOCKS * CHECKPOINT_BLOCK_BYTES;
    return &chain;
}

static void documents_are_found_in_any_order(void **state)
{
    (void)state;
    assert_int_equal(checkpoint_weight(3), CHUNK_BLOCKS);
    struct node_router *r = make("chunk_aware", 4);
    assert_true(node_router_policy(r)->wants_chunks);
    struct node_decision first = choose(r, documents((unsigned[]){1, 2, 3}, 3), START_MS);
    assert_int_equal(first.cached_tokens, 0);
    done(r, first, START_MS + 500);
    struct node_decision second = choose(r, documents((unsigned[]){3, 9, 1}, 3), START_MS + 1000);
    assert_int_equal(second.replica, first.replica);
    assert_near((double)second.cached_tokens, second.prompt_tokens * 2.0 / 3, 0.02);
    done(r, second, START_MS + 1500);
    node_router_check(r);
    alone_destroy(r);
}

/* A prompt without a chain, between two prompts with a chain: no credit remains from the first. */
static void a_prompt_without_chunks_gets_no_credit(void **state)
{
    (void)state;
    struct node_router *r = make("chunk_aware", 2);
    done(r, choose(r, documents((unsigned[]){1}, 1), START_MS), START_MS + 100);
    done(r, choose(r, documents((unsigned[]){1}, 1), START_MS + 200), START_MS + 300);
    struct chain empty = {.bytes = 2000, .chunks = true};
    struct node_decision d = choose(r, &empty, START_MS + 400);
    assert_int_equal(d.cached_tokens, 0);
    done(r, d, START_MS + 500);
    alone_destroy(r);
}

/* The policy changes while the router runs: no credit remains from the prefix matched before. */
static void chunks_after_a_prefix(void **state)
{
    (void)state;
    struct node_router *r = make("chunk_aware", 2);
    struct chain *prefix = documents((unsigned[]){1, 2}, 2);
    prefix->chunks = false;
    done(r, choose(r, prefix, START_MS), START_MS + 100);
    done(r, choose(r, prefix, START_MS + 200), START_MS + 300);
    assert_true(r->deepest.id != 0);
    struct node_decision d = choose(r, documents((unsigned[]){7, 8, 9}, 3), START_MS + 400);
    assert_int_equal(d.cached_tokens, 0);
    assert_true(r->deepest.id == 0);
    done(r, d, START_MS + 500);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_found_in_any_order),
        cmocka_unit_test(a_prompt_without_chunks_gets_no_credit),
        cmocka_unit_test(chunks_after_a_prefix),
    };
    return cmocka_run_group_tests_name("route/chunks", tests, NULL, NULL);
}
