/* KV-cache events at the router: tidings while some feeds are live, and the effect of the reader's
 * reports on decisions. */
#include "node/route/kv_events.h"

#include "base/check.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"
#include "tests/unit/route/kv_events_world.h"

enum { LIVE_MS = START_MS + 1000 };

/* --- input of a reader ----------------------------------------------------------------------- */

struct ear {
    unsigned paths, points, told;
    uint64_t last; /* id of the last point */
    bool joined;   /* each path began at the end of the path before */
    uint64_t parent;
    struct kv_told answer;
};

static void hear_path(void *context, const struct kv_path *path)
{
    struct ear *e = context;
    e->parent = path->parent;
    e->joined = e->paths == 0 || path->parent == e->last;
    e->paths++;
    e->points += path->count;
    e->last = path->ids[path->count - 1];
}

static void hear_told(void *context, const struct kv_told *told)
{
    struct ear *e = context;
    e->told++;
    e->answer = *told;
}

static void listen_at(struct node_router *r, struct ear *e)
{
    *e = (struct ear){0};
    const struct node_events_user user = {hear_path, hear_told, e, NULL};
    node_router_events_watch(r, &user);
}

static uint64_t id48(const struct chain *chain, unsigned point)
{
    return chain->points[point].id & 0xffffffffffff;
}

static void nothing_is_reported_without_live_events(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct ear e;
    listen_at(r, &e);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    assert_int_equal(e.paths + e.told, 0);
    node_router_events_live(r, 1, true);
    node_router_events_live(r, 1, false);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    assert_int_equal(e.paths + e.told, 0);
    assert_false(node_router_events_are_live(r, 1));
    alone_destroy(r);
}

/* Each checkpoint once, of any replica; again after a while. */
static void checkpoints_are_reported_once(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct ear e;
    listen_at(r, &e);
    node_router_events_live(r, 1, true);
    const struct chain *whole = prompt(1, 100000);
    unsigned points = whole->length;
    uint64_t last = id48(whole, points - 1);
    assert_true(points > KV_PATH_POINTS_MAX);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    unsigned first = e.points;
    assert_int_equal(e.paths, 1);
    assert_int_equal(e.parent, 0);
    assert_int_equal(first, prompt(1, 20000)->length);
    assert_int_equal(e.last, id48(prompt(1, 20000), first - 1));
    done(r, choose(r, prompt(1, 20000), START_MS + 1000), START_MS + 1100);
    assert_int_equal(e.paths, 1);
    done(r, choose(r, prompt(1, 100000), START_MS + 2000), START_MS + 2100);
    assert_true(e.joined && e.last == last);
    assert_int_equal(e.points, points); /* only the points behind the last point sent */
    assert_int_equal(e.told, 3);
    e.paths = e.points = 0;
    done(r, choose(r, prompt(1, 100000), START_MS + 200000), START_MS + 210000);
    assert_int_equal(e.points, points);
    assert_int_equal(e.paths, (points + KV_PATH_POINTS_MAX - 1) / KV_PATH_POINTS_MAX);
    assert_true(e.joined);
    node_router_events_watch(r, NULL);
    done(r, choose(r, prompt(2, 100000), START_MS + 200000), START_MS + 210000);
    assert_int_equal(e.points, points);
    alone_destroy(r);
}

static void an_answer_is_reported_with_times_and_tokens(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct ear e;
    listen_at(r, &e);
    node_router_events_live(r, 0, true);
    struct chain *chain = prompt(1, 20000);
    chain->bytes = (uint64_t)chain->points[chain->length - 1].blocks * 256 + 77;
    uint64_t end = id48(chain, chain->length - 1);
    struct node_decision d = choose(r, chain, START_MS);
    node_router_first_byte(r, d.booking, START_MS + 300);
    const struct node_usage usage = {20000, 128, 10, {0}};
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + 900);
    assert_int_equal(e.told, 1);
    const struct kv_told *t = &e.answer;
    assert_true(t->slot == 0 && t->end == end && t->tail_bytes == 77 && t->well);
    assert_int_equal(t->sent_ms, node_state_cluster_ms(r->state, START_MS));
    assert_int_equal(t->first_ms - t->sent_ms, 300);
    assert_int_equal(t->ended_ms - t->sent_ms, 900);
    assert_true(t->prompt_tokens == 20000 && t->cached_tokens == 128 && t->output_tokens == 10);
    /* Without usage, cut short. */
    d = choose(r, prompt(1, 20000), START_MS + 2000);
    node_router_first_byte(r, d.booking, START_MS + 2100);
    node_router_finish(r, d.booking, NODE_OUTCOME_CLIENT_GONE, &no_usage, START_MS + 2200);
    assert_int_equal(e.told, 2);
    assert_true(t->prompt_tokens == KV_UNTOLD && t->output_tokens == KV_UNTOLD && !t->well);
    /* Usage adds up the tokens of several answers, which have separate blocks. */
    struct node_request request = request_of(prompt(1, 20000));
    request.several = true;
    struct node_decision both;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS + 2500, &both), ERR_OK);
    node_router_finish(r, both.booking, NODE_OUTCOME_OK, &usage, START_MS + 2600);
    assert_int_equal(e.told, 3);
    assert_true(t->prompt_tokens == 20000 && t->output_tokens == KV_UNTOLD && t->well);
    /* Refused: nothing was computed. Chunks have no prefix. */
    d = choose(r, prompt(2, 20000), START_MS + 3000);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, NULL, START_MS + 3100);
    unsigned paths = e.paths;
    chain = prompt(3, 20000);
    chain->chunks = true;
    done(r, choose(r, chain, START_MS + 4000), START_MS + 4100);
    assert_true(e.told == 3 && e.paths == paths);
    alone_destroy(r);
}

/* --- effects of its reports ------------------------------------------------------------------ */

/* Answers for which an engine with blocks of 16 tokens must store a block, so that the feed must
 * report the block. The answers are counted whether events are live or not. */
static void answers_that_store_blocks_are_counted(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    const struct node_usage computed = {33, 0, 10, {0}}, short_one = {32, 0, 10, {0}};
    const struct node_usage cached = {20000, 19968, 10, {0}}, untold = {-1, -1, -1, {0}};
    done_with(r, choose(r, prompt(1, 20000), START_MS), &computed, START_MS);
    assert_int_equal(node_router_events_stored(r, 0), 0); /* the block size is unknown */
    r->replicas[0].scrape.block_tokens = 16;
    const struct node_usage *const none[] = {&short_one, &cached, &untold};
    for (unsigned i = 0; i < ARRAY_LEN(none); i++)
        done_with(r, choose(r, prompt(1, 20000), START_MS), none[i], START_MS);
    assert_int_equal(node_router_events_stored(r, 0), 0);
    done_with(r, choose(r, prompt(1, 20000), START_MS), &computed, START_MS);
    assert_int_equal(node_router_events_stored(r, 0), 1);
    alone_destroy(r);
}

static void gone_from(struct node_router *r, const struct chain *chain, unsigned point)
{
    for (unsigned i = point; i < chain->length; i++)
        assert_true(node_router_events_gone(r, 0, id48(chain, i), chain->points[i].code) >= 0);
}

static void blocks_reported_gone_do_not_count(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    const struct chain *chain = prompt(1, 20000);
    double all = cached(r, chain, LIVE_MS), before = all + 1;
    assert_true(all > 19000);
    for (unsigned left = chain->length; left-- > 0;) {
        gone_from(r, chain, left);
        assert_near(cached(r, chain, LIVE_MS), all, 0); /* no report says they count */
        node_router_events_live(r, 0, true);
        double held = cached(r, chain, LIVE_MS);
        uint32_t blocks = left > 0 ? chain->points[left - 1].blocks : 0;
        assert_int_equal(r->lengths[0], left);
        assert_int_equal(r->held_blocks[0], blocks);
        assert_true(held < before);
        before = held;
        node_router_events_live(r, 0, false);
    }
    node_router_events_live(r, 0, true);
    assert_near(cached(r, chain, LIVE_MS), 0, 0);
    for (unsigned i = 0; i < chain->length / 2; i++)
        assert_int_equal(node_router_events_present(r, 0, id48(chain, i), chain->points[i].code),
                         1);
    (void)cached(r, chain, LIVE_MS);
    assert_int_equal(r->lengths[0], chain->length / 2);
    node_router_check(r);
    alone_destroy(r);
}

/* The learned share of reuse, from the time of inference, does not count. */
static void the_learned_reuse_share_does_not_apply_to_events(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    double all = cached(r, prompt(1, 20000), LIVE_MS);
    r->replicas[0].cache.evidence.share = 0.5;
    assert_near(cached(r, prompt(1, 20000), LIVE_MS), all / 2, 1e-9);
    node_router_events_live(r, 0, true);
    assert_near(cached(r, prompt(1, 20000), LIVE_MS), all, 1e-9);
    alone_destroy(r);
}

/* By inference the prompt was evicted; the engine's events deny it. */
static void blocks_reported_present_count_at_any_age(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    done(r, choose(r, prompt(1, 20000), START_MS), START_MS + 100);
    for (unsigned i = 0; i < 3; i++)
        done(r, choose(r, prompt(10 + i, 60000), START_MS + 20000 * (i + 1)),
             START_MS + 20000 * (i + 1) + 9000);
    uint64_t now = START_MS + 80000;
    node_router_events_live(r, 0, true);
    assert_near(cached(r, prompt(1, 20000), now), 0, 0);
    const struct chain *chain = prompt(1, 20000);
    for (unsigned i = 0; i < chain->length; i++) {
        assert_int_equal(node_router_events_present(r, 0, id48(chain, i), chain->points[i].code),
                         1);
        assert_int_equal(node_router_events_present(r, 0, id48(chain, i), chain->points[i].code),
                         0);
    }
    assert_true(cached(r, prompt(1, 20000), now) > 19000);
    alone_destroy(r);
}

/* If a cache turns over within a generation, inference believes nothing cached. Evictions show how
 * far back the cache reaches. */
static void a_fast_cache_is_measured_by_evictions(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 5; i++)
        done(r, choose(r, prompt(10 + i, 60000), START_MS + 100 * i), START_MS + 100 * i + 50);
    assert_near(cached(r, prompt(14, 60000), START_MS + 1000), 0, 0);
    node_router_events_live(r, 0, true);
    gone_from(r, prompt(10, 60000), 0);
    assert_near(cached(r, prompt(10, 60000), START_MS + 1000), 0, 0);
    assert_true(cached(r, prompt(14, 60000), START_MS + 1000) > 59000);
    alone_destroy(r);
}

/* Misses of recorded prompts shrink the believed cache; not if the events are live. */
static void no_cache_size_is_learned_with_live_events(void **state)
{
    (void)state;
    for (unsigned live = 0; live < 2; live++) {
        struct node_router *r = make("cache_aware", 1);
        node_router_events_live(r, 0, live);
        for (unsigned i = 0; i < 60; i++) {
            uint64_t now = START_MS + i * 20000ull;
            struct node_decision d = choose(r, prompt(1 + i % 3, 30000), now);
            node_router_first_byte(r, d.booking, now + 100);
            const struct node_usage usage = {30000, 0, 10, {0}};
            node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now + 200);
        }
        json_t *root = replicas_json(r, START_MS + 1300000);
        const json_t *cache = json_object_get(json_array_get(root, 0), "cache");
        const char *from = json_string_value(json_object_get(cache, "from"));
        assert_string_equal(from, live ? "events" : "answers");
        json_decref(root);
        assert_int_equal(r->replicas[0].cache.size_learned, !live);
        assert_int_equal((int)metric(r, "grapevine_replica_events_live"), live);
        const struct node_cache *c = &r->replicas[0].cache; /* 30,000 expected of some, none came */
        assert_int_equal(c->by_events.off > 0, live);
        assert_int_equal(c->by_usage.off - c->by_events.off > 0, !live);
        static const char *const off[] = {"grapevine_prediction_cached_tokens_off_total{replica="
                                          "\"host-0:8000\",source=\"usage\"}",
                                          "grapevine_prediction_cached_tokens_off_total{replica="
                                          "\"host-0:8000\",source=\"events\"}"};
        assert_true(metric(r, off[live]) > 0);
        assert_near(metric(r, off[!live]), 0, 0);
        alone_destroy(r);
    }
}

static struct node_decision choose_again(struct node_router *r, struct node_decision last,
                                         const struct node_request *request)
{
    struct node_decision d;
    node_router_finish(r, last.booking, NODE_OUTCOME_CLIENT_GONE, NULL, START_MS);
    assert_int_equal(node_router_place(r, request, NULL, START_MS, &d), ERR_OK);
    return d;
}

/* Tokens are requested from a vLLM with live events, if all parents of the blocks are known here;
 * the reader gets the tokens. */
static void tokens_are_requested_only_with_live_events(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct ear e;
    listen_at(r, &e);
    r->replicas[0].scrape.block_tokens = 16;
    struct chain *chain = prompt(1, 20000);
    struct node_request request = request_of(chain);
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(node_router_events_asks(r, &d), 0);
    r->replicas[0].engine = NODE_ENGINE_OTHER;
    node_router_events_live(r, 0, true);
    assert_int_equal(node_router_events_asks(r, &d), 0);
    assert_false(node_router_events_can_ask(r));
    r->replicas[0].engine = NODE_ENGINE_VLLM;
    assert_int_equal(node_router_events_asks(r, &d), 16);
    node_router_events_live(r, 0, true);
    assert_true(node_router_events_can_ask(r));
    r->replicas[0].engine = NODE_ENGINE_SGLANG;
    assert_int_equal(node_router_events_asks(r, &d), 0);
    r->replicas[0].engine = NODE_ENGINE_VLLM;
    r->replicas[0].server.packs = true;
    assert_int_equal(node_router_events_asks(r, &d), 0);
    r->replicas[0].server.packs = false;
    r->replicas[0].scrape.block_tokens = -1;
    assert_int_equal(node_router_events_asks(r, &d), 0);
    r->replicas[0].scrape.block_tokens = 16;
    request.lora = SLICE("french");
    d = choose_again(r, d, &request);
    assert_int_equal(node_router_events_asks(r, &d), 0);
    request.lora = SLICE("");
    request.continues = true;
    d = choose_again(r, d, &request);
    assert_int_equal(node_router_events_asks(r, &d), 0);
    request.continues = false;
    chain->content.media[CHAIN_IMAGE] = 1;
    d = choose_again(r, d, &request);
    assert_int_equal(node_router_events_asks(r, &d), 0);
    chain->content.media[CHAIN_IMAGE] = 0;
    d = choose_again(r, d, &request);
    assert_int_equal(node_router_events_asks(r, &d), 16);
    const struct hash_secret secret = {.bytes = {0}};
    struct kv_asked asked;
    kv_asked_begin(&asked, &secret, 16);
    for (uint32_t i = 0; i < 200; i++)
        kv_asked_token(&asked, i);
    node_router_events_tokens(r, &d, chain, &asked, 128);
    const struct node_usage usage = {20000, 128, 10, {0}};
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + 900);
    assert_true(e.answer.asked_block == 16 && e.answer.asked_chain == asked.chain);
    assert_true(e.answer.fronts.count == 1 && e.answer.fronts.at[0].blocks == 8);
    kv_asked_end(&asked);
    alone_destroy(r);
}

/* --- several routers ------------------------------------------------------------------------- */

static void all_routers_inform_and_believe_the_reader(void **state)
{
    (void)state;
    struct world w;
    struct ear e;
    world_open(&w, ROUTERS, 1);
    for (unsigned n = 0; n < ROUTERS; n++)
        world_start(&w, n);
    world_settle(&w);
    for (unsigned n = 0; n < ROUTERS; n++)
        assert_int_equal(world_replica(&w, n, "e:8000"), 0);
    world_run(&w, 2 * S);
    struct node_router *reader = router_at(&w, 0), *other = router_at(&w, 1);
    listen_at(reader, &e);
    static struct chain chain;
    world_prompt(&chain, 1, 20000);
    world_finish(&w, 1, world_choose(&w, 1, &chain), &no_usage);
    world_run(&w, S);
    assert_int_equal(e.paths + e.told, 0);

    node_router_events_reads(reader, 0, NODE_READS_TURN);
    node_router_events_live(reader, 0, true);
    world_touch(&w.nodes[0]);
    world_run(&w, 3 * S);
    assert_true(node_router_events_are_live(other, 0));
    assert_true(node_router_events_are_live(router_at(&w, 2), 0));
    struct crdt_state_stats before, after;
    crdt_state_stats(reader->crdt, &before);
    assert_int_equal(before.tidings_out, 0);
    world_finish(&w, 1, world_choose(&w, 1, &chain), &(struct node_usage){20000, 1, 2, {0}});
    world_run(&w, S);
    assert_int_equal(e.points, chain.length);
    assert_int_equal(e.last, id48(&chain, chain.length - 1));
    assert_true(e.told == 1 && e.answer.slot == 0 && e.answer.prompt_tokens == 20000);
    assert_int_equal(e.answer.end, e.last);
    assert_int_equal(reader->events.passed_over, 0);
    /* The reader sends no tidings of own requests: no other router reads. */
    world_finish(&w, 0, world_choose(&w, 0, &chain), &no_usage);
    crdt_state_stats(reader->crdt, &after);
    assert_int_equal(e.told, 2);
    assert_int_equal(after.tidings_out, 0);

    struct node_request request = request_of(&chain);
    for (unsigned i = chain.length / 2; i < chain.length; i++)
        assert_int_equal(node_router_events_gone(reader, 0, id48(&chain, i), chain.points[i].code),
                         1);
    world_touch(&w.nodes[0]);
    world_run(&w, S);
    json_decref(explain(other, &request, world_ms(&w)));
    assert_int_equal(other->lengths[0], chain.length / 2);
    assert_true(world_agrees(&w));

    /* Tidings of no replica here, or invalid tidings. */
    const struct kv_told told = {.sent_ms = 1, .ended_ms = 1};
    uint8_t bytes[KV_TOLD_BYTES_MAX];
    struct wire_writer out = wire_writer_of(bytes, sizeof bytes);
    kv_told_write(&told, 4711, &out);
    crdt_state_tell(other->crdt, KV_TIDING_TOLD, slice_of((const char *)bytes, wire_written(&out)));
    crdt_state_tell(other->crdt, KV_TIDING_PATH, SLICE("x"));
    crdt_state_tell(other->crdt, 200, SLICE("of later"));
    world_touch(&w.nodes[1]);
    world_run(&w, S);
    assert_int_equal(reader->events.passed_over, 3);
    assert_int_equal(e.told, 2);

    /* The reader dies: the reports stay, and do not count. */
    world_kill(&w, 0);
    world_run(&w, 10 * S);
    assert_false(node_router_events_are_live(other, 0));
    json_decref(explain(other, &request, world_ms(&w)));
    assert_int_equal(other->lengths[0], chain.length);
    world_close(&w);
}

/* A router that begins to read gets everything again that only this router had read. */
static void a_new_reader_gets_all_checkpoints_again(void **state)
{
    (void)state;
    struct world w;
    struct ear e;
    static struct chain chain;
    world_open(&w, 2, 1);
    world_start(&w, 0);
    world_start(&w, 1);
    world_settle(&w);
    for (unsigned n = 0; n < 2; n++) {
        assert_int_equal(world_replica(&w, n, "e:8000"), 0);
        assert_int_equal(world_replica(&w, n, "f:8000"), 1);
    }
    node_router_events_live(router_at(&w, 1), 0, true);
    world_prompt(&chain, 1, 20000);
    world_finish(&w, 1, world_choose(&w, 1, &chain), &no_usage);
    listen_at(router_at(&w, 0), &e);
    node_router_events_reads(router_at(&w, 0), 1, NODE_READS_TURN);
    node_router_events_live(router_at(&w, 0), 1, true);
    world_touch(&w.nodes[0]);
    world_run(&w, 3 * S);
    assert_int_equal(e.points, 0);
    world_finish(&w, 1, world_choose(&w, 1, &chain), &no_usage);
    world_run(&w, S);
    assert_int_equal(e.points, chain.length);
    world_finish(&w, 1, world_choose(&w, 1, &chain), &no_usage);
    world_run(&w, S);
    assert_int_equal(e.points, chain.length);
    world_close(&w);
}

/* With a single engine, no router knew the requests of the reader when it died. */
static void a_standby_hears_of_the_readers_requests(void **state)
{
    (void)state;
    struct world w;
    struct ear e;
    static struct chain chain;
    readers_open(&w, 2);
    listen_at(router_at(&w, 1), &e);
    node_router_events_live(router_at(&w, 0), 0, true);
    all_hear(&w, 2);
    world_prompt(&chain, 1, 20000);
    world_finish(&w, 0, world_choose(&w, 0, &chain), &no_usage);
    world_run(&w, S);
    assert_int_equal(e.points, chain.length);
    assert_int_equal(e.told, 1);
    world_close(&w);
}

/* After a cache is lost, another router's report of live events no longer counts. */
static void a_report_ends_with_the_cache(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, 2, 1);
    world_start(&w, 0);
    world_start(&w, 1);
    world_settle(&w);
    for (unsigned n = 0; n < 2; n++)
        assert_int_equal(world_replica(&w, n, "e:8000"), 0);
    node_router_events_live(router_at(&w, 0), 0, true);
    world_touch(&w.nodes[0]);
    world_run(&w, 3 * S);
    assert_true(node_router_events_are_live(router_at(&w, 1), 0));
    node_router_cache_reset(router_at(&w, 1), 0, world_ms(&w));
    assert_false(node_router_events_are_live(router_at(&w, 1), 0));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_reported_without_live_events),
        cmocka_unit_test(checkpoints_are_reported_once),
        cmocka_unit_test(an_answer_is_reported_with_times_and_tokens),
        cmocka_unit_test(answers_that_store_blocks_are_counted),
        cmocka_unit_test(blocks_reported_gone_do_not_count),
        cmocka_unit_test(a_fast_cache_is_measured_by_evictions),
        cmocka_unit_test(the_learned_reuse_share_does_not_apply_to_events),
        cmocka_unit_test(blocks_reported_present_count_at_any_age),
        cmocka_unit_test(no_cache_size_is_learned_with_live_events),
        cmocka_unit_test(tokens_are_requested_only_with_live_events),
        cmocka_unit_test(all_routers_inform_and_believe_the_reader),
        cmocka_unit_test(a_new_reader_gets_all_checkpoints_again),
        cmocka_unit_test(a_standby_hears_of_the_readers_requests),
        cmocka_unit_test(a_report_ends_with_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
