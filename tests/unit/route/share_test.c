/* Routers' reports of replicas to each other: loads changing without an event, and health. */
#include "node/route/share.h"

#include <stdio.h>

#include "base/check.h"
#include "http/prompt.h"
#include "http/skim.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"
#include "tests/lib/world/use.h"

enum { S = 1000000, ROUTERS = 3 };

/* --- publishing ----------------------------------------------------------------------------- */

/* Without streaming the end of the prefill is invisible. The others get it at the expected time, at
 * each beat of the router, not only when something happens there. */
static void a_published_queue_of_whole_answers_ends_by_time(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_replication_user user = node_router_replication_user(r);
    struct node_request request = request_of(prompt(1, 20000));
    request.answer_whole = true;
    struct node_decision d[2];
    for (unsigned i = 0; i < ARRAY_LEN(d); i++) {
        request.chain = prompt(1 + i, 20000);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[i]), ERR_OK);
    }
    const struct node_load *load = &r->replicas[0].load;
    uint64_t both = load->prefill_tokens;
    double both_ms = (double)both / r->replicas[0].believed.tokens_per_s * 1000;
    assert_true(both > 30000 && both_ms > 1000);
    for (unsigned i = 0; i < 4; i++) { /* many beats, before any news */
        user.collect(user.context, START_MS + i);
        assert_int_equal(load->prefill_tokens, both);
    }
    user.collect(user.context, START_MS + (uint64_t)(both_ms * 0.6));
    assert_true(load->prefill_tokens > 0 && load->prefill_tokens < 0.6 * both);
    user.collect(user.context, START_MS + (uint64_t)both_ms + 10);
    assert_int_equal(load->prefill_tokens, 0);
    assert_int_equal(load->requests, 2);
    for (unsigned i = 0; i < ARRAY_LEN(d); i++)
        done(r, d[i], START_MS + 60000);
    node_router_check(r);
    alone_destroy(r);
}

/* --- receiving ------------------------------------------------------------------------------ */

static struct node_router *router_at(struct world *w, unsigned router)
{
    return w->nodes[router].node->router;
}

/* The router names the replica, and sees it in the given state. The last router has not probed
 * yet. */
enum seen { SEEN_UP, SEEN_DOWN, SEEN_ASLEEP };
static void see(struct world *w, unsigned router, enum seen seen)
{
    struct node_router *r = router_at(w, router);
    assert_int_equal(node_router_name(r, SLICE("e:8000"), NODE_ENGINE_VLLM), 0);
    node_router_probed(r, 0,
                       (struct node_check){.ok = seen != SEEN_DOWN, .refused = seen == SEEN_DOWN},
                       world_ms(w));
    if (seen == SEEN_ASLEEP) {
        r->replicas[0].asleep = true;
        node_router_touch(r, 0);
    }
    world_touch(&w->nodes[router]);
}

/* Until the first own probe a router believes the majority. Routers that see a replica asleep count
 * it as down. */
static void the_majoritys_view_of_health_is_believed(void **state)
{
    (void)state;
    static const struct {
        enum seen first, second;
        enum node_health hint;
    } cases[] = {
        {SEEN_UP, SEEN_UP, NODE_HEALTH_UP},         {SEEN_DOWN, SEEN_DOWN, NODE_HEALTH_DOWN},
        {SEEN_ASLEEP, SEEN_DOWN, NODE_HEALTH_DOWN}, {SEEN_ASLEEP, SEEN_ASLEEP, NODE_HEALTH_DOWN},
        {SEEN_UP, SEEN_DOWN, NODE_HEALTH_UNKNOWN},  {SEEN_UP, SEEN_ASLEEP, NODE_HEALTH_UNKNOWN},
        {SEEN_DOWN, SEEN_UP, NODE_HEALTH_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        world_open(&w, ROUTERS, 1);
        for (unsigned n = 0; n < ROUTERS; n++)
            world_start(&w, n);
        world_settle(&w);
        see(&w, 0, cases[i].first);
        see(&w, 1, cases[i].second);
        world_run(&w, 2 * S);
        const struct node_replica *k = &router_at(&w, 2)->replicas[0];
        assert_false(k->absent);
        assert_int_equal(k->health, NODE_HEALTH_UNKNOWN);
        assert_int_equal(k->hint, cases[i].hint);
        world_close(&w);
    }
}

/* Sends a turn of a conversation with a changing first line, unseen by engines. Returns the tokens
 * believed cached. */
static double turn(struct world *w, unsigned router, uint64_t number, uint64_t cached)
{
    static struct http_prompt prompt;
    static struct chain chain;
    const struct node_client client = {SLICE("client"), "chat"};
    struct node_router *r = router_at(w, router);
    http_prompt_init(&prompt, &r->common->secret);
    http_prompt_open_head(&prompt, HTTP_PROMPT_SYSTEM, true);
    int len = snprintf(http_prompt_at(&prompt), 32, "turn %u\n", (unsigned)number);
    http_prompt_commit(&prompt, (size_t)len);
    http_prompt_atom(&prompt, (struct hash128){.low = 5}, 40000);
    http_prompt_close(&prompt);
    http_prompt_end(&prompt, (struct hash128){.low = 6}, (struct hash128){.low = 0});
    struct node_request request = {.chain = &chain, .replica_wanted = -1};
    node_router_render(r, &client, SLICE(""), &prompt.form, &prompt.chain, world_ms(w),
                       &request.rendered);
    http_prompt_join(&prompt.form, prompt.secret, request.rendered.rendering, &prompt.chain);
    chain = prompt.chain;
    request.body_bytes = chain.bytes;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, world_ms(w), &d), ERR_OK);
    node_router_used(r, d.booking, &chain, world_ms(w));
    const struct node_usage usage = {
        .prompt_tokens = 10000, .cached_tokens = (int64_t)cached, .completion_tokens = 1};
    double believed = node_bookings_get(r->bookings, d.booking)->work.cached_tokens;
    world_finish(w, router, d, &usage);
    return believed;
}

/* All routers read a client's prompts alike soon after a first router learned how, even if none
 * came there since. */
static void learned_renderings_are_adopted_by_all(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, ROUTERS, 1);
    for (unsigned n = 0; n < ROUTERS; n++)
        world_start(&w, n);
    world_settle(&w);
    for (unsigned n = 0; n < ROUTERS; n++)
        see(&w, n, SEEN_UP);
    world_run(&w, 2 * S);
    (void)turn(&w, 1, 1, 0);
    (void)turn(&w, 0, 2, 9900);
    assert_true(turn(&w, 0, 3, 9900) <= 0);
    assert_int_equal(node_renderings_stats(router_at(&w, 0)->renderings).learned, 1);
    assert_int_equal(node_renderings_stats(router_at(&w, 1)->renderings).adopted, 0);
    world_run(&w, 3 * S);
    assert_int_equal(node_renderings_stats(router_at(&w, 1)->renderings).adopted, 1);
    /* Earlier prompts are also known in the new reading. */
    assert_true(turn(&w, 1, 4, 9900) > 9000);
    assert_true(turn(&w, 2, 5, 9900) > 9000);
    world_close(&w);
}

/* Sends a prompt with a late system message at the end; true if to the router that message is the
 * replica's first. */
static bool brings_late(struct world *w, unsigned router, char note)
{
    static struct http_skim skim;
    char body[600];
    (void)snprintf(body, sizeof body,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"%0300d\"},"
                   "{\"role\":\"system\",\"content\":\"note %c\"}]}",
                   0, note);
    struct node_router *r = router_at(w, router);
    http_skim_init(&skim, &r->common->secret);
    http_skim_feed(&skim, body, strlen(body));
    http_skim_end(&skim);
    const struct node_client client = {SLICE("client"), "messages"};
    struct node_request request = {.chain = http_skim_chain(&skim), .replica_wanted = -1};
    node_router_render(r, &client, SLICE(""), http_skim_form(&skim), request.chain, world_ms(w),
                       &request.rendered);
    http_skim_join(&skim, request.rendered.rendering);
    request.body_bytes = request.chain->bytes;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, world_ms(w), &d), ERR_OK);
    bool late_new = node_bookings_get(r->bookings, d.booking)->work.rendered.late_new;
    node_router_used(r, d.booking, request.chain, world_ms(w));
    world_finish(w, router, d, &(struct node_usage){.prompt_tokens = 100, .cached_tokens = 0});
    return late_new;
}

/* A late system message is new to a replica once, whichever router sends it. */
static void sent_late_messages_are_shared(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, ROUTERS, 1);
    for (unsigned n = 0; n < ROUTERS; n++)
        world_start(&w, n);
    world_settle(&w);
    for (unsigned n = 0; n < ROUTERS; n++)
        see(&w, n, SEEN_UP);
    world_run(&w, 2 * S);
    assert_true(brings_late(&w, 0, '1'));
    assert_false(brings_late(&w, 0, '1'));
    world_run(&w, 2 * S);
    assert_false(brings_late(&w, 1, '1'));
    assert_true(brings_late(&w, 1, '2'));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_published_queue_of_whole_answers_ends_by_time),
        cmocka_unit_test(the_majoritys_view_of_health_is_believed),
        cmocka_unit_test(learned_renderings_are_adopted_by_all),
        cmocka_unit_test(sent_late_messages_are_shared),
    };
    return cmocka_run_group_tests_name("route/share", tests, NULL, NULL);
}
