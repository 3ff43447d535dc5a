/* Learning how engines render prompts: from engines that drop the first line, sort the tools or
 * move them; and facts not to be learned. */
#include "tests/lib/rendering_world.h"

static void a_dropped_changing_first_line_is_left_out(void **state)
{
    (void)state;
    learns("first line", &(struct habit){.engine.lead = 1, .line_changes = true}, LEARNED_WITHIN);
    learns("first block",
           &(struct habit){.engine.lead = 2, .line_changes = true, .block_changes = true},
           LEARNED_WITHIN);
}

/* If conversations keep their lines, only first turns show that the lines do not count. */
static void a_dropped_line_per_conversation_is_left_out(void **state)
{
    (void)state;
    learns("line of a conversation",
           &(struct habit){.engine.lead = 1, .line_of_session = true, .new_sessions = true},
           LEARNED_WITHIN);
}

static void tool_and_argument_order_is_learned(void **state)
{
    (void)state;
    learns("sorted tools", &(struct habit){.engine.tools_sorted = 1, .tools_shuffled = true},
           LEARNED_WITHIN);
    learns("arguments", &(struct habit){.engine.no_arguments = 1, .arguments_change = true},
           LEARNED_WITHIN);
    learns("tools behind", &(struct habit){.engine.tools_after = 1, .tools_change = true},
           LEARNED_WITHIN);
    learns("line, and tools behind",
           &(struct habit){
               .engine = {.lead = 1, .tools_after = 1}, .line_changes = true, .tools_change = true},
           LEARNED_WITHIN);
}

static void noise_only_slows_learning(void **state)
{
    (void)state;
    learns("caches that forget",
           &(struct habit){.engine.lead = 1, .line_changes = true, .forgets = 30}, LEARNED_WITHIN);
    learns("two answers of three silent",
           &(struct habit){.engine.lead = 1, .line_changes = true, .silent = 67}, LEARNED_WITHIN);
    learns("other routers",
           &(struct habit){.engine.lead = 1, .line_changes = true, .many_routers = true},
           LEARNED_WITHIN);
}

/* An engine shows the model everything, whatever changes: no answer supports leaving a part out. */
static void parts_shown_to_the_model_are_kept(void **state)
{
    (void)state;
    const struct habit habits[] = {
        {.line_changes = true},
        {.line_changes = true, .block_changes = true, .forgets = 30},
        {.tools_shuffled = true, .many_routers = true},
        {.tools_change = true, .arguments_change = true, .silent = 50},
        {.arguments_change = true, .forgets = 70, .many_routers = true},
        {.forgets = 50, .many_routers = true},
        {.line_of_proxy = true, .new_sessions = true, .many_routers = true},
        {.line_of_session = true, .new_sessions = true, .forgets = 30},
    };
    for (size_t i = 0; i < ARRAY_LEN(habits); i++) {
        for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
            world_begin(&w, seed);
            for (unsigned n = 0; n < 500; n++)
                request(&w, &habits[i]);
            if (w.changes > 0)
                fail_msg("habit %u, seed %u: code %u after %u changes", (unsigned)i, (unsigned)seed,
                         rendering_code(w.kind->rendering), w.changes);
            node_renderings_destroy(w.r);
        }
    }
}

/* Each prompt has a different line, which counts. More is cached than the router knows, but for
 * another reason. */
static void warm_engines_do_not_mislead(void **state)
{
    (void)state;
    const struct habit h = {.line_of_session = true, .new_sessions = true};
    unsigned wrong = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(20); seed++) {
        warm_world_begin(&h, seed);
        for (unsigned n = 0; n < 500; n++) {
            request(&w, &h);
            wrong += rendering_code(w.kind->rendering) != 0;
        }
        assert_in_range(w.changes, 0, 4);
        node_renderings_destroy(w.r);
    }
    print_message("warm engines: wrong for %u of 10000 requests\n", wrong);
    assert_in_range(wrong, 0, 200);
}

/* A prompt may be all lead. The remaining text is so short that it explains any answer: such
 * prompts lost their places when a router began with warm engines. */
static void a_prompt_without_other_text_is_kept(void **state)
{
    (void)state;
    const unsigned behind[] = {8, 300};
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
        const struct habit h = {.plain = behind[seed % 2]};
        warm_world_begin(&h, seed);
        for (unsigned n = 0; n < 300; n++)
            request(&w, &h);
        assert_int_equal(w.changes, 0);
        node_renderings_destroy(w.r);
    }
    const struct habit h = {.plain = behind[0]};
    static struct chain chain;
    for (unsigned lead = 0; lead < RENDERING_LEADS; lead++) {
        write_prompt(&h, 0, 0);
        joined((struct rendering){.lead = lead & 3U}, &chain);
        assert_true(chain.bytes >= 1600);
    }
}

/* With warm engines the router learns changing parts as fast as with others. */
static void warm_engines_do_not_hinder(void **state)
{
    (void)state;
    const struct habit h = {.engine.lead = 1, .line_changes = true, .forgets = 30};
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(20); seed++) {
        warm_world_begin(&h, seed);
        unsigned n = learned_after(&w, &h, LEARNED_WITHIN);
        assert_in_range(n, 1, LEARNED_WITHIN);
        most = n > most ? n : most;
        node_renderings_destroy(w.r);
    }
    print_message("warm engines that forget: learned after %u requests at most\n", most);
}

static void a_rendering_is_unlearned(void **state)
{
    (void)state;
    const struct habit drops = {.engine.lead = 1, .line_changes = true};
    const struct habit counts = {.line_changes = true};
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
        world_begin(&w, seed);
        assert_in_range(learned_after(&w, &drops, LEARNED_WITHIN), 1, LEARNED_WITHIN);
        for (unsigned i = 0; i < 300; i++)
            request(&w, &drops);
        for (unsigned i = 0; i < REPLICAS; i++) /* a new version of every engine */
            w.caches[i].count = w.index[i].count = 0;
        for (unsigned i = 0; i < REPLICAS; i++)
            node_renderings_forget(w.r, i);
        assert_in_range(learned_after(&w, &counts, 3 * LEARNED_WITHIN), 1, 3 * LEARNED_WITHIN);
        node_renderings_destroy(w.r);
    }
}

static void a_mixed_fleet_does_not_oscillate(void **state)
{
    (void)state;
    const struct habit h = {.engine.lead = 1, .mixed = true, .line_changes = true};
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(5); seed++) {
        world_begin(&w, seed);
        for (unsigned n = 0; n < 2000; n++)
            request(&w, &h);
        assert_in_range(w.changes, 0, 4);
        node_renderings_destroy(w.r);
    }
}

/* Known clients cost nothing: no more prints are made. */
static void a_watch_ends(void **state)
{
    (void)state;
    const struct habit h = {.line_changes = false};
    world_begin(&w, 1);
    for (unsigned n = 0; n < 100; n++)
        request(&w, &h);
    assert_int_equal(w.kind->watch, 0);
    struct node_rendered what = {.key = 0};
    write_prompt(&h, 0, 0);
    node_renderings_print(w.r, w.kind, &prompt.form, &prompt.chain, &what);
    assert_int_equal(what.stamp, 0);
    /* The watch begins again if answers contradict, and then again much later. */
    const struct habit drops = {.engine.lead = 1, .line_changes = true};
    assert_in_range(learned_after(&w, &drops, 2 * LEARNED_WITHIN + 64), 1, 2 * LEARNED_WITHIN + 64);
    node_renderings_destroy(w.r);
}

static void kinds_are_bounded(void **state)
{
    (void)state;
    world_begin(&w, 1);
    char name[16];
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "agent%u", i);
        struct node_client_kind *k =
            node_renderings_kind(w.r, slice_of_cstr(name), "chat", SLICE("model"), 1000 + i);
        struct node_rendered what = node_renderings_of(k);
        write_prompt(&(struct habit){.line_changes = true}, 0, 0);
        node_renderings_print(w.r, k, &prompt.form, &prompt.chain, &what);
        node_renderings_sent(w.r, &what, 0);
        node_renderings_check(w.r);
    }
    struct node_renderings_stats stats = node_renderings_stats(w.r);
    assert_int_equal(stats.kinds, NODE_KINDS_MAX);
    assert_int_equal(stats.displaced, 100 - NODE_KINDS_MAX);
    const struct node_client_kind *latest = node_renderings_latest(w.r, SLICE("model"));
    assert_slice_equal(slice_of(latest->agent, latest->agent_len), "agent99");
    assert_null(node_renderings_latest(w.r, SLICE("other")));
    node_renderings_destroy(w.r);
}

/* Answers that come after another kind took the place are no evidence about the new kind. */
static void answers_for_an_evicted_kind_are_ignored(void **state)
{
    (void)state;
    world_begin(&w, 1);
    const struct node_client_kind *k =
        node_renderings_kind(w.r, SLICE("old"), "chat", SLICE("model"), 1);
    struct node_rendered what = node_renderings_of(k);
    const struct node_rendered_answer odd = {
        .prompt_tokens = 10000, .block_tokens = 16, .sure = 1, .predicted_tokens = 10000};
    assert_false(node_renderings_answered(w.r, &what, &odd));
    assert_true(k->surprise > 0);
    char name[16];
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        (void)snprintf(name, sizeof name, "agent%u", i);
        (void)node_renderings_kind(w.r, slice_of_cstr(name), "chat", SLICE("model"), 3 + i);
    }
    assert_false(node_renderings_answered(w.r, &what, &odd));
    assert_null(node_renderings_find(w.r, what.key));
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++)
        assert_true(node_renderings_kind_at(w.r, i)->surprise <= 0);
    node_renderings_destroy(w.r);
}

static unsigned chains_seen;

static void see(void *context, const struct chain *chain, unsigned replica)
{
    const struct chain *wanted = context;
    assert_int_equal(replica, 3);
    assert_int_equal(chain->length, wanted->length);
    for (unsigned i = 0; i < chain->length; i++)
        assert_true(chain->points[i].id == wanted->points[i].id);
    chains_seen++;
}

/* Prompts recorded again under another rendering equal new prompts. */
static void prompts_are_recorded_again_under_another_rendering(void **state)
{
    (void)state;
    world_begin(&w, 1);
    struct node_client_kind *k =
        node_renderings_kind(w.r, SLICE("client"), "chat", SLICE("model"), 1);
    struct node_rendered what = {.key = 0};
    write_prompt(&(struct habit){.line_changes = true, .late = 1}, 0, 1);
    node_renderings_print(w.r, k, &prompt.form, &prompt.chain, &what);
    static struct chain wanted;
    for (unsigned code = 0; code < RENDERING_CODES; code++) {
        if (rendering_of((uint8_t)code).lead >= RENDERING_LEADS)
            continue;
        node_renderings_set(w.r, k, rendering_of((uint8_t)code), NODE_RENDERING_ROUTER);
        joined(k->rendering, &wanted);
        node_renderings_sent(w.r, &what, 3);
        node_renderings_each(w.r, k, 10, see, &wanted);
    }
    assert_int_equal(chains_seen, RENDERING_LEADS * RENDERING_CODES / 4);
    node_renderings_void(w.r, &what);
    node_renderings_each(w.r, k, 10, see, &wanted);
    assert_int_equal(chains_seen, RENDERING_LEADS * RENDERING_CODES / 4);
    node_renderings_destroy(w.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dropped_changing_first_line_is_left_out),
        cmocka_unit_test(a_dropped_line_per_conversation_is_left_out),
        cmocka_unit_test(tool_and_argument_order_is_learned),
        cmocka_unit_test(noise_only_slows_learning),
        cmocka_unit_test(parts_shown_to_the_model_are_kept),
        cmocka_unit_test(warm_engines_do_not_mislead),
        cmocka_unit_test(a_prompt_without_other_text_is_kept),
        cmocka_unit_test(warm_engines_do_not_hinder),
        cmocka_unit_test(a_rendering_is_unlearned),
        cmocka_unit_test(a_mixed_fleet_does_not_oscillate),
        cmocka_unit_test(a_watch_ends),
        cmocka_unit_test(kinds_are_bounded),
        cmocka_unit_test(answers_for_an_evicted_kind_are_ignored),
        cmocka_unit_test(prompts_are_recorded_again_under_another_rendering),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
