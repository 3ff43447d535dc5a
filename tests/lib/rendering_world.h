/* Conversations at engines with a certain rendering of prompts, for the tests of learned renderings
 * (node/replica/renderings.h). */
#ifndef TESTS_LIB_RENDERING_WORLD_H
#define TESTS_LIB_RENDERING_WORLD_H

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
    LEARNED_WITHIN = 50, /* requests of an unknown client: docs/prompts.md */
};

static struct hash_secret secret;
static struct prng prng;
static struct http_prompt prompt;

/* The behaviour of clients and engines in a test. */
struct habit {
    struct rendering engine, other; /* `other`: rendering of the odd replicas */
    bool mixed;
    bool line_of_session, line_of_proxy, new_sessions, line_changes, block_changes, tools_shuffled,
        tools_change, arguments_change;
    unsigned late;     /* a system message follows each `late` messages; 0: never */
    unsigned forgets;  /* percent of prompts lost from a cache */
    unsigned silent;   /* percent of answers without a report */
    bool unsure;       /* the recorded part is deep in the cache */
    bool many_routers; /* half of the prompts come through another router */
    unsigned
        plain; /* one of four instructions leads, and this number of bytes follows the first text */
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
    } caches[REPLICAS], index[REPLICAS]; /* the engines' caches; the router's index */
    struct hash128 lates[REPLICAS][HELD_MAX];
    unsigned late_count[REPLICAS];
    uint64_t now_ms;
    unsigned changes, requests;
};

/* Sixteen letters, eight at a time: a prompt has 40 to 300 KB, and thousands are written. */
static inline void text(uint64_t seed, size_t len)
{
    static uint64_t letters[24000 / 8];
    CHECK(len <= sizeof letters);
    for (size_t i = 0; i * 8 < len; i++)
        letters[i] =
            UINT64_C(0x6161616161616161) + (hash_mix(seed + i) & UINT64_C(0x0f0f0f0f0f0f0f0f));
    const char *from = (const char *)letters;
    while (len > 0) {
        size_t n = http_prompt_room(&prompt) < len ? http_prompt_room(&prompt) : len;
        memcpy(http_prompt_at(&prompt), from, n);
        http_prompt_commit(&prompt, n);
        from += n;
        len -= n;
    }
}

static inline void line_end(void)
{
    *http_prompt_at(&prompt) = '\n';
    http_prompt_commit(&prompt, 1);
}

static inline void say(enum http_prompt_by by, uint64_t seed, size_t len)
{
    const struct http_prompt_mark from = http_prompt_mark(&prompt);
    text(hash_mix(seed), len);
    http_prompt_said(&prompt, by, &from);
}

static inline void write_plain(unsigned session, unsigned rest)
{
    if (session % 3 > 0) {
        http_prompt_open(&prompt, HTTP_PROMPT_TOOLS);
        http_prompt_atom(&prompt, hash128(&secret, &rest, sizeof rest), 2000);
        http_prompt_close(&prompt);
    }
    http_prompt_open_head(&prompt, HTTP_PROMPT_TEXT, false);
    const struct http_prompt_mark from = http_prompt_mark(&prompt);
    text(session % 4, 1300);
    text(hash_mix(prng_next(&prng)), 300);
    http_prompt_text_end(&prompt);
    text(prng_next(&prng), rest);
    http_prompt_said(&prompt, HTTP_PROMPT_BY_USER, &from);
    http_prompt_close(&prompt);
    http_prompt_end(&prompt, (struct hash128){.low = 7}, (struct hash128){0});
}

/* A conversation of a client with twelve tools and a system text of 24 KB. */
static inline void write_prompt(const struct habit *h, unsigned session, unsigned turns)
{
    http_prompt_init(&prompt, &secret);
    if (h->plain > 0) {
        write_plain(session, h->plain);
        return;
    }
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

static inline void joined(struct rendering rendering, struct chain *out)
{
    *out = prompt.chain;
    http_prompt_join(&prompt.form, &secret, rendering, out);
}

/* Cached or recorded prompts. */
static inline double find(const struct store *store, const struct chain *chain)
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

static inline void keep(struct store *store, const struct chain *chain)
{
    struct held *new = &store->held[store->count++ % HELD_MAX];
    new->length = chain->length < 256 ? chain->length : 256;
    memcpy(new->points, chain->points, new->length * sizeof chain->points[0]);
}

/* The engine searches the cache, and stores the prompt. */
static inline struct node_rendered_answer serve(struct world *w, const struct habit *h,
                                                unsigned replica)
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

/* The words in a session after the last turn: the same again, or different words if late messages
 * are informative. */
static inline unsigned talk_of(const struct world *w, const struct habit *h, unsigned session)
{
    return session + (h->late > 0 ? SESSIONS * (w->turns[session] / TURNS) : 0);
}

/* True if the replica has not received the present late system messages before. */
static inline bool brings_late(struct world *w, unsigned replica)
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

static inline void request(struct world *w, const struct habit *h)
{
    unsigned session = (unsigned)prng_below(&prng, SESSIONS);
    unsigned replica = (unsigned)prng_below(&prng, REPLICAS);
    if (h->late > 0 && prng_below(&prng, 4) > 0) /* mostly at the same place as before */
        replica = session % REPLICAS;
    if (h->new_sessions && prng_below(&prng, 4) == 0)
        write_prompt(h, 1000 + w->requests, 0);
    else
        write_prompt(h, talk_of(w, h, session), w->turns[session]++ % TURNS);
    w->now_ms += 100;
    static struct chain chain;
    if (h->many_routers && prng_below(&prng, 2) == 0) { /* this router receives only the chain */
        (void)serve(w, h, replica);
        (void)brings_late(w, replica);
        joined(w->kind != NULL ? w->kind->rendering : (struct rendering){0}, &chain);
        keep(&w->index[replica], &chain);
        return;
    }
    w->requests++;
    w->kind = node_renderings_kind(w->r, SLICE("client"), "chat", SLICE("model"), w->now_ms);
    struct node_rendered what = node_renderings_of(w->kind);
    node_renderings_print(w->r, w->kind, &prompt.form, &prompt.chain, &what);
    node_renderings_sent(w->r, &what, replica);
    what.late_new = brings_late(w, replica);
    joined(what.rendering, &chain);
    double predicted = find(&w->index[replica], &chain);
    keep(&w->index[replica], &chain);
    struct node_rendered_answer answer = serve(w, h, replica);
    answer.predicted_tokens = predicted;
    if (prng_below(&prng, 100) >= h->silent)
        w->changes += node_renderings_answered(w->r, &what, &answer);
    node_renderings_check(w->r);
}

static inline void world_begin(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    prng_seed(&prng, seed);
    assert_int_equal(node_renderings_create(&w->r, &secret), ERR_OK);
    w->now_ms = 1;
}

/* Number of requests until the rendering is the engine's; more than `max`: never. */
static inline unsigned learned_after(struct world *w, const struct habit *h, unsigned max)
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

static inline void learns(const char *what, const struct habit *h, unsigned within)
{
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(20); seed++) {
        world_begin(&w, seed);
        unsigned n = learned_after(&w, h, within);
        if (n > within)
            fail_msg("%s: not learned after %u requests, seed %u: code %u", what, n, (unsigned)seed,
                     rendering_code(w.kind->rendering));
        most = n > most ? n : most;
        for (unsigned i = 0; i < (h->late > 0 ? 60 : 200); i++) /* long prompts take long */
            request(&w, h);
        assert_int_equal(rendering_code(w.kind->rendering), rendering_code(h->engine));
        node_renderings_destroy(w.r);
    }
    print_message("%s: learned after %u requests at most\n", what, most);
}

/* Begins a router anew, with engines that hold the clients' conversations. */
static inline void warm_world_begin(const struct habit *h, uint64_t seed)
{
    world_begin(&w, seed);
    for (unsigned n = 0; n < 300; n++) {
        unsigned session = (unsigned)prng_below(&prng, SESSIONS);
        write_prompt(h, talk_of(&w, h, session), w.turns[session]++ % TURNS);
        (void)serve(&w, h, (unsigned)prng_below(&prng, REPLICAS));
    }
}

static inline int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 42);
    return 0;
}

#endif
