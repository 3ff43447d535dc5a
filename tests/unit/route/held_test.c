/* Beliefs about a cache after prompts never computed by the engine, and after answers with cached
 * tokens. */
#include "base/check.h"
#include "tests/lib/router_help.h"

static void end(struct node_router *r, const struct node_decision *d, enum node_outcome outcome,
                bool reported, uint64_t now_ms)
{
    node_router_finish(r, d->booking, outcome, reported ? &no_usage : NULL, now_ms);
    node_router_check(r);
}

/* The cache has room for 100,000 tokens. On a real engine, five refused prompts reduced a
 * conversation from 971 believed tokens to 274. */
static void refused_prompts_evict_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    double before = cached(r, prompt(1, 20000), START_MS + 200);
    assert_true(before > 19000);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t now = START_MS + 20000 + i * 1000ull;
        struct node_decision d = choose(r, prompt(10 + i, 90000), now);
        end(r, &d, NODE_OUTCOME_OK, false, now + 5); /* 400: the context is too long */
        assert_true(cached(r, prompt(1, 20000), now + 6) > 19000);
    }
    for (unsigned i = 0; i < 5; i++) { /* the same prompt again and again, over some generations */
        uint64_t now = START_MS + 30000 + i * 10000ull;
        struct node_decision d = choose(r, prompt(14, 90000), now);
        end(r, &d, NODE_OUTCOME_OK, false, now + 5);
        assert_true(cached(r, prompt(1, 20000), now + 6) > 19000);
    }
    /* The prompt still counts as cached at the replica: prompts with the same beginning stay
     * together. */
    assert_true(cached(r, prompt(14, 90000), START_MS + 80000) > 85000);
    /* Computed prompts count. */
    done(r, choose(r, prompt(20, 96000), START_MS + 90000), START_MS + 99000);
    assert_true(cached(r, prompt(1, 20000), START_MS + 99001) < before);
    alone_destroy(r);
}

static void abandoned_queued_prompts_evict_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    uint64_t now = START_MS + 20000;
    struct node_decision first = choose(r, prompt(2, 60000), now), second;
    second = choose(r, prompt(3, 60000), now);
    end(r, &second, NODE_OUTCOME_CLIENT_GONE, false, now + 1000);
    node_router_first_byte(r, first.booking, now + 6000);
    assert_true(cached(r, prompt(1, 20000), now + 6001) > 19000);
    /* A request whose answer began was computed, whatever happened to the client. */
    end(r, &first, NODE_OUTCOME_CLIENT_GONE, true, now + 7000);
    assert_true(cached(r, prompt(2, 60000), now + 7001) > 58000);
    alone_destroy(r);
}

/* Some engines omit cached tokens if there are none: then a miss taught nothing, and a single
 * reported hit turned the counters off. */
static void missing_cached_tokens_mean_zero_once_reported(void **state)
{
    (void)state;
    for (unsigned some = 0; some <= 1; some++) {
        struct node_router *r = make("cache_aware", 1);
        for (unsigned i = 0; i < 40; i++) {
            uint64_t now = START_MS + i * 1000ull;
            struct node_decision d = choose(r, prompt(1, 20000), now);
            node_router_first_byte(r, d.booking, now + 100);
            struct node_usage usage = {20000, some && i == 1 ? 19000 : -1, 10, {0}};
            node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now + 200);
        }
        double expected = cached(r, prompt(1, 20000), START_MS + 41000);
        assert_true(some ? expected < 5000 : expected > 19000);
        alone_destroy(r);
    }
}

/* Blocks of 1,024 tokens; the last block of a prompt is never whole. */
static void predictions_are_whole_blocks(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_scrape s = node_scrape_unknown;
    s.block_tokens = 1024;
    s.cache_tokens = 100000;
    s.running = 0;
    (void)node_router_scraped(r, 0, &s, START_MS);
    static const unsigned lengths[] = {900, 1024, 1100, 4096, 5000, 20000};
    static const double blocks[] = {0, 0, 1, 3, 4, 19};
    for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
        done(r, choose(r, prompt(1 + i, lengths[i]), START_MS), START_MS + 100);
        assert_near(cached(r, prompt(1 + i, lengths[i]), START_MS + 200), blocks[i] * 1024, 0);
    }
    alone_destroy(r);
}

/* No metrics: the common divisor of all reports is the engine's block. */
static void the_block_is_learned_from_answers(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 24; i++) {
        uint64_t now = START_MS + i * 1000ull;
        unsigned tokens = 3000 + i / 2 * 700;
        struct node_decision d = choose(r, prompt(1 + i / 2, tokens), now);
        node_router_first_byte(r, d.booking, now + 100);
        struct node_usage usage = {tokens, i % 2 ? (tokens - 1) / 528 * 528 : 0, 10, {0}};
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now + 200);
    }
    uint64_t now = START_MS + 60000;
    done(r, choose(r, prompt(100, 6000), now), now + 100);
    double expected = cached(r, prompt(100, 6000), now + 200);
    assert_near(expected, 11 * 528, 0.04);
    alone_destroy(r);
}

/* vLLM with --disable-log-stats does not report the cache's size. A real cache of 1,248 tokens was
 * believed to have 1,480: the settings' 400,000 had a weight of 2 %, whatever the evidence. */
static void an_unreported_cache_size_is_learned(void **state)
{
    (void)state;
    enum { CACHE = 1248, PROMPT = 304, ANSWER = 16, DOCUMENTS = 12, REQUESTS = 600 };
    struct node_router *r = make("cache_aware", 1);
    unsigned used[DOCUMENTS] = {0};
    uint64_t random = 1, now = START_MS;
    for (unsigned i = 1; i <= REQUESTS; i++, now += 100) {
        random = hash_mix(random);
        unsigned document =
            (unsigned)((random % DOCUMENTS) * (random / DOCUMENTS % DOCUMENTS) / DOCUMENTS);
        unsigned newer = 0;
        for (unsigned k = 0; k < DOCUMENTS; k++)
            newer += used[k] > used[document] ? PROMPT + ANSWER : 0;
        unsigned left = used[document] > 0 && newer < CACHE ? CACHE - newer : 0;
        used[document] = i;
        struct node_decision d = choose(r, prompt(1 + document, PROMPT), now);
        node_router_first_byte(r, d.booking, now + 5);
        struct node_usage usage = {
            PROMPT, (left < PROMPT ? left : PROMPT - 1) / 32 * 32, ANSWER, {0}};
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now + 10);
    }
    json_t *root = replicas_json(r, now);
    json_t *cache = json_object_get(json_array_get(root, 0), "cache");
    double size = json_number_value(json_object_get(cache, "tokens")) *
                  json_number_value(json_object_get(cache, "size_factor"));
    json_decref(root);
    assert_near(size, CACHE, 0.15);
    alone_destroy(r);
}

/* vLLM with --kv-cache-metrics: evicted blocks had been unused for a minute. So the cache has
 * everything used within a minute, whatever the reported size. */
static void evictions_show_the_size(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_scrape s = node_scrape_unknown;
    s.cache_tokens = 100000;
    s.running = s.evicted = s.evicted_idle_s = 0;
    uint64_t now = START_MS;
    for (unsigned i = 0; i < 60; i++) { /* 1,000 tokens a second */
        now += 5000;
        done(r, choose(r, prompt(1 + i, 5000), now), now + 100);
        s.evicted += i > 12 ? 3 : 0;
        s.evicted_idle_s += i > 12 ? 180 : 0;
        (void)node_router_scraped(r, 0, &s, now + 200);
    }
    json_t *root = replicas_json(r, now);
    json_t *cache = json_object_get(json_array_get(root, 0), "cache");
    double factor = json_number_value(json_object_get(cache, "size_factor"));
    json_decref(root);
    if (fabs(factor - 0.6) > 0.07)
        fail_msg("%g", factor);
    alone_destroy(r);
}

/* A system prompt of 1,000 tokens, four images of 256 tokens each, which weigh 16 blocks each for
 * the router, and a question. */
static struct chain *chat_with_images(uint64_t seed, unsigned question_tokens)
{
    enum { SYSTEM_BLOCKS = 16, IMAGE_BLOCKS = 16, IMAGES = 4 };
    struct chain *chain = prompt(seed, 1000 + IMAGES * 1024 + question_tokens);
    for (unsigned i = 0; i < chain->length; i++) {
        unsigned behind = chain->points[i].blocks < SYSTEM_BLOCKS
                              ? 0
                              : (chain->points[i].blocks - SYSTEM_BLOCKS) / IMAGE_BLOCKS + 1;
        chain->points[i].media = (uint16_t)(behind < IMAGES ? behind : IMAGES);
        if (chain->points[i].blocks > SYSTEM_BLOCKS + IMAGES * IMAGE_BLOCKS)
            chain->points[i].id = hash_mix(chain->points[i].id + question_tokens);
    }
    chain->content.letters = 4 * (1000 + question_tokens);
    chain->content.media[CHAIN_IMAGE] = IMAGES;
    return chain;
}

/* The images were believed to have as many tokens as their blocks have as text. */
static void images_are_weighed_in_tokens(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 30; i++) {
        uint64_t now = START_MS + i * 1000ull;
        struct node_usage usage = {1000 + 4 * 256 + 4000, 0, 10, {4 * 256, 0, 0}};
        done_with(r, choose(r, chat_with_images(10 + i, 4000), now), &usage, now + 100);
    }
    uint64_t now = START_MS + 40000;
    done(r, choose(r, chat_with_images(1, 4000), now), now + 100);
    struct node_request request = request_of(chat_with_images(1, 4001));
    json_t *root = explain(r, &request, now + 200);
    assert_near(json_number_value(json_object_get(root, "prompt_tokens")), 6025, 0.025);
    double tokens = explained(root, 0, "cached_tokens");
    if (fabs(tokens - 2024) > 150)
        fail_msg("%g", tokens);
    json_decref(root);
    alone_destroy(r);
}

/* The engine counts the whole conversation, but the request has only the last turn. */
static void continued_stored_responses_are_not_learned_from(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_request request = request_of(prompt(1, 1000));
    json_t *before = explain(r, &request, START_MS);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t now = START_MS + i * 1000ull;
        request = request_of(prompt(10 + i, 1000));
        request.continues = true;
        struct node_decision d;
        assert_int_equal(node_router_place(r, &request, NULL, now, &d), ERR_OK);
        done_with(r, d, &(struct node_usage){30000, 28000, 10, {0}}, now + 100);
    }
    request = request_of(prompt(1, 1000));
    json_t *after = explain(r, &request, START_MS + 30000);
    assert_near(json_number_value(json_object_get(after, "prompt_tokens")),
                json_number_value(json_object_get(before, "prompt_tokens")), 0);
    json_decref(before);
    json_decref(after);
    alone_destroy(r);
}

/* Some of a prompt's tokens are estimated; the tokens of a beginning reported by an answer are
 * exact. */
static void reported_tokens_make_predictions_exact(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    done_with(r, d, &(struct node_usage){17001, 0, 501, {0}}, START_MS + 100);
    /* The next turn repeats prompt and answer, except for the last token, which was not
     * computed. */
    assert_near(cached(r, prompt(1, 24000), START_MS + 1000), 17501, 0);
    /* The same prompt again: the last token is always computed. */
    assert_true(cached(r, prompt(1, 20000), START_MS + 1000) <= 17001);
    alone_destroy(r);
}

/* The same prompt with other text behind the first points. */
static struct chain *parted(unsigned points, uint64_t other)
{
    struct chain *chain = prompt(1, 20000);
    for (unsigned i = points; i < chain->length; i++)
        chain->points[i].id ^= other << 20;
    return chain;
}

/* A shared system text: the first prompt to leave the text reported the length. */
static void a_reported_fork_makes_predictions_exact(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    const unsigned points = prompt(1, 20000)->length / 2;
    double least = prompt(1, 20000)->points[points - 1].blocks * 64.0;
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    done_with(r, d, &(struct node_usage){20000, 0, 50, {0}}, START_MS + 100);
    d = choose(r, parted(points, 1), START_MS + 1000);
    int64_t told = (int64_t)least + 17;
    done_with(r, d, &(struct node_usage){20000, told, 50, {0}}, START_MS + 1100);
    assert_near(cached(r, parted(points, 2), START_MS + 2000), (double)told, 0);
    /* A prompt with the same end is no evidence about the fork of others. */
    struct chain *end = prompt(1, 20000);
    end->length = (uint16_t)points;
    d = choose(r, end, START_MS + 3000);
    done_with(r, d, &(struct node_usage){12000, told, 50, {0}}, START_MS + 3100);
    assert_near(cached(r, parted(points, 3), START_MS + 4000), (double)told, 0);
    alone_destroy(r);
}

static void parts_with(struct node_router *r, unsigned points, uint64_t other, int64_t told,
                       uint64_t now_ms)
{
    struct node_decision d = choose(r, parted(points, other), now_ms);
    done_with(r, d, &(struct node_usage){20000, told, 50, {0}}, now_ms + 100);
}

/* With two real vLLM, an answer found half of a shared text. From then on all other prompts were
 * expected to find half. */
static void an_eviction_does_not_move_a_fork(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    const unsigned points = prompt(1, 20000)->length / 2;
    int64_t told = prompt(1, 20000)->points[points - 1].blocks * 64 + 17;
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    parts_with(r, points, 1, told, START_MS + 1000);
    /* The end of the shared text had been evicted; the next prompt finds the whole text again. */
    parts_with(r, points, 2, told - 30, START_MS + 2000);
    assert_near(cached(r, parted(points, 9), START_MS + 2500), (double)told - 30, 0);
    parts_with(r, points, 3, told, START_MS + 3000);
    assert_near(cached(r, parted(points, 9), START_MS + 3500), (double)told, 0);
    /* Only a part of the first prompt's own text is still cached. Others go on from the shared text
     * as before. */
    done(r, choose(r, prompt(2, 80000), START_MS + 30000), START_MS + 31000);
    parts_with(r, points, 4, told, START_MS + 60000);
    assert_near(cached(r, parted(points, 1), START_MS + 60500), (double)told, 0);
    parts_with(r, points, 1, told + 40, START_MS + 61000);
    assert_near(cached(r, parted(points, 9), START_MS + 61500), (double)told, 0);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_prompts_evict_nothing),
        cmocka_unit_test(abandoned_queued_prompts_evict_nothing),
        cmocka_unit_test(missing_cached_tokens_mean_zero_once_reported),
        cmocka_unit_test(predictions_are_whole_blocks),
        cmocka_unit_test(the_block_is_learned_from_answers),
        cmocka_unit_test(evictions_show_the_size),
        cmocka_unit_test(an_unreported_cache_size_is_learned),
        cmocka_unit_test(images_are_weighed_in_tokens),
        cmocka_unit_test(continued_stored_responses_are_not_learned_from),
        cmocka_unit_test(reported_tokens_make_predictions_exact),
        cmocka_unit_test(a_reported_fork_makes_predictions_exact),
        cmocka_unit_test(an_eviction_does_not_move_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
