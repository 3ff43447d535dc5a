/* The place of late system messages, and nothing else, is learned from engines that move them to
 * the head (docs/adr/0051). */
#include "tests/lib/rendering_world.h"

/* A late message changes no lead, but the cached text behind. */
static void moved_late_system_messages_are_learned(void **state)
{
    (void)state;
    const struct habit h = {.engine.late_first = 1, .late = 1};
    learns("a late system message in each turn", &h, LEARNED_WITHIN);
    learns("the same, other routers",
           &(struct habit){.engine.late_first = 1, .late = 1, .many_routers = true},
           LEARNED_WITHIN);
    learns("the same, caches that forget",
           &(struct habit){.engine.late_first = 1, .late = 1, .forgets = 30}, LEARNED_WITHIN);
    learns("in each third turn", &(struct habit){.engine.late_first = 1, .late = 3},
           LEARNED_WITHIN);
    learns("in each third turn, other routers",
           &(struct habit){.engine.late_first = 1, .late = 3, .many_routers = true},
           LEARNED_WITHIN);
    learns("in each turn, and a first line", /* learned one after the other */
           &(struct habit){.engine = {.lead = 1, .late_first = 1}, .line_changes = true, .late = 1},
           2 * LEARNED_WITHIN);
}

/* Sends the written prompt to replica 0, which has `cached` of the bytes; all but the last message
 * was recorded there. True if the reading changed. */
static bool found(double cached, double last, bool late_new)
{
    w.kind = node_renderings_kind(w.r, SLICE("client"), "chat", SLICE("model"), 1);
    struct node_rendered what = node_renderings_of(w.kind);
    node_renderings_print(w.r, w.kind, &prompt.form, &prompt.chain, &what);
    node_renderings_sent(w.r, &what, 0);
    if (late_new) /* the answer counts even if the first byte was missed */
        node_renderings_void(w.r, &what);
    what.late_new = late_new;
    static struct chain chain;
    joined(what.rendering, &chain);
    double all = (double)chain.bytes;
    return node_renderings_answered(
        w.r, &what,
        &(struct node_rendered_answer){.prompt_tokens = all / TOKEN_BYTES,
                                       .cached_tokens = cached / TOKEN_BYTES,
                                       .predicted_tokens = (all - last) / TOKEN_BYTES,
                                       .block_tokens = BLOCK_TOKENS,
                                       .sure = true});
}

/* A single such turn may be a conversation lost by a cache. */
static void two_turns_are_needed_as_evidence(void **state)
{
    (void)state;
    const struct habit before = {.late = 7}, late = {.late = 6}; /* the sixth message is the last */
    const double head = 12 * 900 + 61 + 500 + 24000;
    world_begin(&w, 1);
    for (unsigned session = 0; session < 2; session++) {
        write_prompt(&before, session, 5);
        assert_false(found(head, 6 * 12000, false));
        write_prompt(&late, session, 5);
        assert_true(found(head, 300, true) == (session == 1));
    }
    assert_true(w.kind->rendering.late_first);
    node_renderings_destroy(w.r);
}

/* A known client starts sending late system messages. */
static void the_first_late_system_message_begins_a_watch(void **state)
{
    (void)state;
    const struct habit none = {.engine.late_first = 1}, late = {.engine.late_first = 1, .late = 1};
    world_begin(&w, 1);
    for (unsigned i = 0; i < 70; i++)
        request(&w, &none);
    assert_int_equal(w.kind->watch, 0);
    assert_true(w.kind->quiet > LEARNED_WITHIN); /* a surprise would begin no watch before then */
    assert_in_range(learned_after(&w, &late, LEARNED_WITHIN), 1, LEARNED_WITHIN);
    node_renderings_destroy(w.r);
}

/* A conversation lost by a full cache looks like a conversation changed by a late message. */
static void unmoved_late_system_messages_stay_in_place(void **state)
{
    (void)state;
    const struct habit habits[] = {
        {.late = 1},
        {.late = 3, .many_routers = true},
        {.late = 2, .forgets = 95, .unsure = true},
        {.late = 1, .line_of_session = true, .new_sessions = true},
        {.late = 1, .forgets = 20},
    };
    for (size_t i = 0; i < ARRAY_LEN(habits); i++) {
        unsigned wrong = 0;
        for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
            if (seed % 2 == 0)
                warm_world_begin(&habits[i], seed);
            else
                world_begin(&w, seed);
            for (unsigned n = 0; n < 300; n++) {
                request(&w, &habits[i]);
                wrong += w.kind != NULL && w.kind->rendering.late_first;
            }
            node_renderings_destroy(w.r);
        }
        print_message("in place, habit %u: wrong for %u of 3000 requests\n", (unsigned)i, wrong);
        assert_int_equal(wrong, 0);
    }
}

static void moved_late_system_messages_are_unlearned(void **state)
{
    (void)state;
    const struct habit moves = {.engine.late_first = 1, .late = 1}, stays = {.late = 1};
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
        world_begin(&w, seed);
        assert_in_range(learned_after(&w, &moves, LEARNED_WITHIN), 1, LEARNED_WITHIN);
        for (unsigned i = 0; i < 300; i++)
            request(&w, &moves);
        for (unsigned i = 0; i < REPLICAS; i++) { /* a new version of every engine */
            w.caches[i].count = w.index[i].count = w.late_count[i] = 0;
            node_renderings_forget(w.r, i);
        }
        unsigned n = learned_after(&w, &stays, 3 * LEARNED_WITHIN);
        assert_in_range(n, 1, 3 * LEARNED_WITHIN);
        most = n > most ? n : most;
        node_renderings_destroy(w.r);
    }
    print_message("in place again: unlearned after %u requests at most\n", most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_late_system_messages_are_learned),
        cmocka_unit_test(two_turns_are_needed_as_evidence),
        cmocka_unit_test(the_first_late_system_message_begins_a_watch),
        cmocka_unit_test(unmoved_late_system_messages_stay_in_place),
        cmocka_unit_test(moved_late_system_messages_are_unlearned),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
