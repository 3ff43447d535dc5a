/* What is learned of how engines render prompts: from engines that drop the first line, sort the
 * tools, put them elsewhere; and what must not be learned. */
#include "node/replica/renderings.h"

#include <stdio.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/test.h"

enum {
    REPLICAS = 6,
    SESSIONS = 18,
    TURNS = 20,
    HELD_MAX = 400,
    TOKEN_BYTES = 4,
    BLOCK_TOKENS = 16,
    LEARNED_WITHIN = 50, /* requests of a client that is not known: docs/routing.md */
};

static struct hash_secret secret;
static struct prng prng;
static struct http_prompt prompt;

/* How clients and engines behave in a test. */
struct habit {
    struct rendering engine, other; /* `other`: of the odd replicas */
    bool mixed;
    bool line_of_session, line_of_proxy, new_sessions, line_changes, block_changes, tools_shuffled,
        tools_change, arguments_change;
    unsigned late;     /* behind each so many messages a system message comes; 0: never */
    unsigned forgets;  /* percent of prompts that a cache has lost */
    unsigned silent;   /* percent of answers that report nothing */
    bool unsure;       /* and what is recorded is deep in the cache */
    bool many_routers; /* half of the prompts come by another one */
};

struct world {
    struct node_renderings *r;
    struct node_client_kind *kind;
    unsigned turns[SESSIONS];
    struct store {
        struct held {
            unsigned length;
            struct chain_point points[256];
        } held[HELD_MAX];
        unsigned count;
    } caches[REPLICAS], index[REPLICAS]; /* of the engines; of the router */
    struct hash128 lates[REPLICAS][HELD_MAX];
    unsigned late_count[REPLICAS];
    uint64_t now_ms;
    unsigned changes, requests;
};

static void text(uint64_t seed, size_t len)
{
    while (len > 0) {
        char *at = http_prompt_at(&prompt);
        size_t n = http_prompt_room(&prompt) < len ? http_prompt_room(&prompt) : len;
        for (size_t i = 0; i < n; i++)
            at[i] = (char)('a' + hash_mix(seed + (len - i)) % 26);
        http_prompt_commit(&prompt, n);
        len -= n;
    }
}

static void line_end(void)
{
    *http_prompt_at(&prompt) = '\n';
    http_prompt_commit(&prompt, 1);
}

static void say(enum http_prompt_by by, uint64_t seed, size_t len)
{
    const struct http_prompt_mark from = http_prompt_mark(&prompt);
    text(hash_mix(seed), len);
    http_prompt_said(&prompt, by, &from);
}

/* A conversation of a client with twelve tools and a system text of 24 KB. */
static void write_prompt(const struct habit *h, unsigned session, unsigned turns)
{
    http_prompt_init(&prompt, &secret);
    http_prompt_open(&prompt, HTTP_PROMPT_TOOLS);
    unsigned first = h->tools_shuffled ? (unsigned)prng_below(&prng, 12) : 0;
    uint64_t odd = h->tools_change ? prng_next(&prng) : 0;
    for (unsigned i = 0; i < 12; i++) {
        uint64_t tool = (first + i) % 12 + (i == 0 ? odd : 0);
        http_prompt_atom(&prompt, hash128(&secret, &tool, sizeof tool), 900);
    }
    http_prompt_close(&prompt);
    http_prompt_open_head(&prompt, HTTP_PROMPT_SYSTEM, true);
    text(h->line_changes      ? prng_next(&prng)
         : h->line_of_proxy   ? prng_below(&prng, 4)
         : h->line_of_session ? 100 + session
                              : 1,
         60);
    line_end();
    text(h->block_changes ? prng_next(&prng) : 2, 500);
    http_prompt_text_end(&prompt);
    text(3, 24000);
    http_prompt_close(&prompt);
    http_prompt_open(&prompt, HTTP_PROMPT_TEXT);
    for (unsigned i = 0; i <= turns; i++) {
        say(i == 0 ? HTTP_PROMPT_BY_USER : HTTP_PROMPT_BY_OTHER, session * 1000 + i,
            h->late > 0 ? 12000 : 2000);
        if (h->late > 0 && (i + 1) % h->late == 0)
            say(HTTP_PROMPT_BY_SYSTEM, session * 1000 + 500 + i, 300);
    }
    http_prompt_close(&prompt);
    uint64_t argument = h->arguments_change ? prng_next(&prng) : 4;
    http_prompt_end(&prompt, (struct hash128){.low = 7},
                    hash128(&secret, &argument, sizeof argument));
}

static void joined(struct rendering rendering, struct chain *out)
{
    *out = prompt.chain;
    http_prompt_join(&prompt.form, &secret, rendering, out);
}

/* Prompts that are held somewhere. */
static double find(const struct store *store, const struct chain *chain)
{
    unsigned best = 0;
    for (unsigned i = 0; i < store->count && i < HELD_MAX; i++) {
        const struct held *held = &store->held[i];
        unsigned n = 0;
        while (n < chain->length && n < held->length && chain->points[n].id == held->points[n].id)
            n++;
        best = n > best ? n : best;
    }
    return best == 0
               ? 0
               : (double)chain->points[best - 1].blocks * CHECKPOINT_BLOCK_BYTES / TOKEN_BYTES;
}

static void keep(struct store *store, const struct chain *chain)
{
    struct held *new = &store->held[store->count++ % HELD_MAX];
    new->length = chain->length < 256 ? chain->length : 256;
    memcpy(new->points, chain->points, new->length * sizeof chain->points[0]);
}

/* What the engine finds in its cache, and puts there. */
static struct node_rendered_answer serve(struct world *w, const struct habit *h, unsigned replica)
{
    static struct chain chain;
    joined(h->mixed && replica % 2 == 1 ? h->other : h->engine, &chain);
    double cached = find(&w->caches[replica], &chain);
    if (prng_below(&prng, 100) < h->forgets)
        cached = 0;
    keep(&w->caches[replica], &chain);
    uint64_t blocks = (uint64_t)cached / BLOCK_TOKENS;
    cached = (double)(blocks * BLOCK_TOKENS);
    return (struct node_rendered_answer){.prompt_tokens = (double)chain.bytes / TOKEN_BYTES,
                                         .cached_tokens = cached,
                                         .block_tokens = BLOCK_TOKENS,
                                         .sure = !h->unsure};
}

/* What is said in a session after its last turn: the same again; where late messages tell
 * something, something else. */
static unsigned talk_of(const struct world *w, const struct habit *h, unsigned session)
{
    return session + (h->late > 0 ? SESSIONS * (w->turns[session] / TURNS) : 0);
}

/* Whether the replica had not been sent the late system messages that it is sent now. */
static bool brings_late(struct world *w, unsigned replica)
{
    const struct hash128 *late = &prompt.form.late;
    struct hash128 *sent = w->lates[replica];
    for (unsigned i = 0; i < w->late_count[replica] && i < HELD_MAX; i++) {
        if (sent[i].low == late->low)
            return false;
    }
    sent[w->late_count[replica]++ % HELD_MAX] = *late;
    return http_prompt_has_late(&prompt.form);
}

static void request(struct world *w, const struct habit *h)
{
    unsigned session = (unsigned)prng_below(&prng, SESSIONS);
    unsigned replica = (unsigned)prng_below(&prng, REPLICAS);
    if (h->late > 0 && prng_below(&prng, 4) > 0) /* where it was, mostly */
        replica = session % REPLICAS;
    if (h->new_sessions && prng_below(&prng, 4) == 0)
        write_prompt(h, 1000 + w->requests, 0);
    else
        write_prompt(h, talk_of(w, h, session), w->turns[session]++ % TURNS);
    w->now_ms += 100;
    static struct chain chain;
    if (h->many_routers && prng_below(&prng, 2) == 0) { /* all that is heard of it is its chain */
        (void)serve(w, h, replica);
        (void)brings_late(w, replica);
        joined(w->kind != NULL ? w->kind->rendering : (struct rendering){0}, &chain);
        keep(&w->index[replica], &chain);
        return;
    }
    w->requests++;
    w->kind = node_renderings_kind(w->r, SLICE("client"), "chat", SLICE("model"), w->now_ms);
    struct node_rendered what = node_renderings_of(w->r, w->kind);
    node_renderings_print(w->r, w->kind, &prompt.form, &prompt.chain, &what);
    node_renderings_sent(w->r, &what, replica);
    what.late_new = brings_late(w, replica);
    joined(what.rendering, &chain);
    double predicted = find(&w->index[replica], &chain);
    keep(&w->index[replica], &chain);
    struct node_rendered_answer answer = serve(w, h, replica);
    answer.predicted_tokens = predicted;
    if (prng_below(&prng, 100) >= h->silent)
        w->changes += node_renderings_answered(w->r, &what, &answer, w->now_ms);
    node_renderings_check(w->r);
}

static void world_begin(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    prng_seed(&prng, seed);
    assert_int_equal(node_renderings_create(&w->r, &secret), ERR_OK);
    w->now_ms = 1;
}

/* Requests until the rendering is that of the engine; more than `max`: it is not. */
static unsigned learned_after(struct world *w, const struct habit *h, unsigned max)
{
    w->requests = 0;
    while (w->requests <= max) {
        request(w, h);
        if (w->kind != NULL && rendering_code(w->kind->rendering) == rendering_code(h->engine))
            return w->requests;
    }
    return max + 1;
}

static struct world w;

static void learns(const char *what, const struct habit *h, unsigned within)
{
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(20); seed++) {
        world_begin(&w, seed);
        unsigned n = learned_after(&w, h, within);
        if (n > within)
            fail_msg("%s: not learned after %u requests, seed %u: code %u", what, n, (unsigned)seed,
                     rendering_code(w.kind->rendering));
        most = n > most ? n : most;
        for (unsigned i = 0; i < 200; i++)
            request(&w, h);
        assert_int_equal(rendering_code(w.kind->rendering), rendering_code(h->engine));
        node_renderings_destroy(w.r);
    }
    print_message("%s: learned after %u requests at most\n", what, most);
}

/* A router begins anew beside engines that hold its clients' conversations. */
static void warm_world_begin(const struct habit *h, uint64_t seed)
{
    world_begin(&w, seed);
    for (unsigned n = 0; n < 300; n++) {
        unsigned session = (unsigned)prng_below(&prng, SESSIONS);
        write_prompt(h, talk_of(&w, h, session), w.turns[session]++ % TURNS);
        (void)serve(&w, h, (unsigned)prng_below(&prng, REPLICAS));
    }
}

static void what_leads_and_changes_is_left_out(void **state)
{
    (void)state;
    learns("first line", &(struct habit){.engine.lead = 1, .line_changes = true}, LEARNED_WITHIN);
    learns("first block",
           &(struct habit){.engine.lead = 2, .line_changes = true, .block_changes = true},
           LEARNED_WITHIN);
}

/* Where conversations keep their lines, first turns alone tell that they do not count. */
static void a_line_of_a_conversation_is_left_out_too(void **state)
{
    (void)state;
    learns("line of a conversation",
           &(struct habit){.engine.lead = 1, .line_of_session = true, .new_sessions = true},
           LEARNED_WITHIN);
}

static void tools_and_arguments_are_learned_too(void **state)
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

/* A message that changes nothing that leads, but what is cached behind it. */
static void late_system_messages_are_learned_too(void **state)
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
           3 * LEARNED_WITHIN);
    learns("in each turn, and a first line", /* one is learned after the other */
           &(struct habit){.engine = {.lead = 1, .late_first = 1}, .line_changes = true, .late = 1},
           2 * LEARNED_WITHIN);
}

/* A conversation that a full cache has lost looks like one that a late message has changed. */
static void late_system_messages_that_stay_are_left_in_place(void **state)
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
        for (uint64_t seed = 1; seed <= 20; seed++) {
            if (seed % 2 == 0)
                warm_world_begin(&habits[i], seed);
            else
                world_begin(&w, seed);
            for (unsigned n = 0; n < 500; n++) {
                request(&w, &habits[i]);
                wrong += w.kind != NULL && w.kind->rendering.late_first;
            }
            node_renderings_destroy(w.r);
        }
        print_message("in place, habit %u: wrong for %u of 10000 requests\n", (unsigned)i, wrong);
        assert_in_range(wrong, 0, habits[i].forgets > 0 && !habits[i].unsure ? 200 : 0);
    }
}

static void where_late_system_messages_stand_is_unlearned(void **state)
{
    (void)state;
    const struct habit moves = {.engine.late_first = 1, .late = 1}, stays = {.late = 1};
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world_begin(&w, seed);
        assert_in_range(learned_after(&w, &moves, LEARNED_WITHIN), 1, LEARNED_WITHIN);
        for (unsigned i = 0; i < 300; i++)
            request(&w, &moves);
        for (unsigned i = 0; i < REPLICAS; i++) { /* another version, in all places */
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

static void noise_makes_it_slower_and_no_worse(void **state)
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

/* An engine that shows the model all of it, whatever changes: no answer speaks for leaving it out.
 */
static void what_counts_is_never_left_out(void **state)
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

/* Each has a line of its own that counts. More is cached than the router knows of, but not because
 * the line does not count. */
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

/* Beside them it learns as soon as anywhere what changes from turn to turn. */
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

static void it_unlearns(void **state)
{
    (void)state;
    const struct habit drops = {.engine.lead = 1, .line_changes = true};
    const struct habit counts = {.line_changes = true};
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
        world_begin(&w, seed);
        assert_in_range(learned_after(&w, &drops, LEARNED_WITHIN), 1, LEARNED_WITHIN);
        for (unsigned i = 0; i < 300; i++)
            request(&w, &drops);
        for (unsigned i = 0; i < REPLICAS; i++) /* another version, in all places */
            w.caches[i].count = w.index[i].count = 0;
        for (unsigned i = 0; i < REPLICAS; i++)
            node_renderings_forget(w.r, i);
        assert_in_range(learned_after(&w, &counts, 3 * LEARNED_WITHIN), 1, 3 * LEARNED_WITHIN);
        node_renderings_destroy(w.r);
    }
}

static void a_fleet_that_differs_does_not_swing(void **state)
{
    (void)state;
    const struct habit h = {.engine.lead = 1, .mixed = true, .line_changes = true};
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(10); seed++) {
        world_begin(&w, seed);
        for (unsigned n = 0; n < 2000; n++)
            request(&w, &h);
        assert_in_range(w.changes, 0, 4);
        node_renderings_destroy(w.r);
    }
}

/* Who is known costs nothing: no print is made any more. */
static void a_watch_ends(void **state)
{
    (void)state;
    const struct habit h = {.line_changes = false};
    world_begin(&w, 1);
    for (unsigned n = 0; n < 100; n++)
        request(&w, &h);
    assert_int_equal(w.kind->watch, 0);
    struct node_rendered what = {.kind = 1};
    write_prompt(&h, 0, 0);
    node_renderings_print(w.r, w.kind, &prompt.form, &prompt.chain, &what);
    assert_int_equal(what.print, 0);
    /* It begins again where answers are at odds, and then again much later. */
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
        struct node_rendered what = node_renderings_of(w.r, k);
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

/* Answers that come when another kind has the place say nothing of that one. */
static void what_gave_way_is_answered_in_vain(void **state)
{
    (void)state;
    world_begin(&w, 1);
    const struct node_client_kind *k =
        node_renderings_kind(w.r, SLICE("old"), "chat", SLICE("model"), 1);
    struct node_rendered what = node_renderings_of(w.r, k);
    const struct node_rendered_answer odd = {
        .prompt_tokens = 10000, .block_tokens = 16, .sure = 1, .predicted_tokens = 10000};
    assert_false(node_renderings_answered(w.r, &what, &odd, 2));
    assert_true(k->surprise > 0);
    char name[16];
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        (void)snprintf(name, sizeof name, "agent%u", i);
        (void)node_renderings_kind(w.r, slice_of_cstr(name), "chat", SLICE("model"), 3 + i);
    }
    const struct node_client_kind *other = node_renderings_kind_at(w.r, what.kind - 1u);
    uint32_t quiet = other->quiet;
    assert_false(node_renderings_answered(w.r, &what, &odd, 1000));
    assert_true(other->key != what.key && other->surprise <= 0 && other->quiet == quiet);
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

/* What is recorded again under another rendering is what a prompt of today would be. */
static void prints_are_joined_anew(void **state)
{
    (void)state;
    world_begin(&w, 1);
    struct node_client_kind *k =
        node_renderings_kind(w.r, SLICE("client"), "chat", SLICE("model"), 1);
    struct node_rendered what = {.kind = 1};
    write_prompt(&(struct habit){.line_changes = true, .late = 1}, 0, 1);
    node_renderings_print(w.r, k, &prompt.form, &prompt.chain, &what);
    static struct chain wanted;
    for (unsigned code = 0; code < RENDERING_CODES; code++) {
        if (rendering_of((uint8_t)code).lead >= RENDERING_LEADS)
            continue;
        node_renderings_set(k, rendering_of((uint8_t)code), NODE_RENDERING_ROUTER, 1);
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

static int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 42);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leads_and_changes_is_left_out),
        cmocka_unit_test(a_line_of_a_conversation_is_left_out_too),
        cmocka_unit_test(tools_and_arguments_are_learned_too),
        cmocka_unit_test(late_system_messages_are_learned_too),
        cmocka_unit_test(late_system_messages_that_stay_are_left_in_place),
        cmocka_unit_test(where_late_system_messages_stand_is_unlearned),
        cmocka_unit_test(noise_makes_it_slower_and_no_worse),
        cmocka_unit_test(what_counts_is_never_left_out),
        cmocka_unit_test(warm_engines_do_not_mislead),
        cmocka_unit_test(warm_engines_do_not_hinder),
        cmocka_unit_test(it_unlearns),
        cmocka_unit_test(a_fleet_that_differs_does_not_swing),
        cmocka_unit_test(a_watch_ends),
        cmocka_unit_test(kinds_are_bounded),
        cmocka_unit_test(what_gave_way_is_answered_in_vain),
        cmocka_unit_test(prints_are_joined_anew),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
