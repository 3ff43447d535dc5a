/* From an engine's events and the routers' reports of answers to beliefs about checkpoints; the
 * engine simulator's cache is the truth. Conversations go on, begin alike, diverge, or come at the
 * same time; some bypass the routers. Only one test may include this file, because `w` is a global
 * variable. */
#ifndef TESTS_UNIT_ENGINE_SIM_KV_TALKS_H
#define TESTS_UNIT_ENGINE_SIM_KV_TALKS_H

#include "tests/lib/test.h"

#include "base/checkpoint.h"
#include "base/prng.h"
#include "node/kv/asked.h"
#include "node/kv/budget.h"
#include "node/kv/reader.h"
#include "tests/engine-sim/kv_events.h"

enum {
    TALKS = 24,
    SYSTEMS = 4,
    TOKENS = 6000,
    BYTES = TOKENS * 8,
    SEEN = 1 << 17, /* checkpoints with a possible belief */
    POINTS = 1 << 15,
    STEPS = 12000,
    STEP_MS = 20,
    LATE_MAX = 64,
};

struct talk {
    uint32_t ids[TOKENS];
    uint32_t ends[TOKENS]; /* bytes of text up to and with each token: a token may have no bytes */
    unsigned tokens, bytes;
    char text[BYTES];
    bool told; /* requests come through a router */
    uint64_t system;
    unsigned turns;
    bool has_request;
    struct sim_request request;
    uint64_t sent_ms;
    unsigned asked_tokens, asked_bytes; /* tokens requested for the last prompt */
    bool tokens_told;                   /* the engine reports tokens on request */
};

struct seen {
    uint64_t id;
    bool held;
};

/* How an engine reports cached tokens. */
enum lie { TRULY, ZERO, ZERO_LATER, ALL, ROUNDED };

struct setting {
    const char *form;
    enum lie lie;
    bool forgets;      /* empties the cache half way, without an event */
    bool other;        /* the feed is another engine's, with other conversations */
    unsigned joins;    /* % of the steps before the reader begins, without a replay */
    unsigned zeros;    /* 1 in `zeros` messages has number 0 */
    unsigned restarts; /* steps between the engine's restarts, which only the feed shows */
    unsigned block, cache_blocks;
    unsigned past;   /* % of conversations bypassing the routers */
    unsigned losses; /* share of lost messages, in % */
    bool copies, untold, one_at_a_time;
    bool repeats;     /* the same prompt again and again, and the same answer */
    bool events_late; /* events of the last blocks come after the answer */
    unsigned late_ms; /* delay of a router's report of an answer; the next turn does not wait */
    double ask;       /* share of the prompts' bytes with a request for tokens */
};

struct world {
    const struct setting *setting;
    struct prng prng;
    struct hash_secret secret;
    struct kv_paths *paths;
    struct kv_reader *reader;
    struct sim_kv_events *events;
    struct sim_model *model;
    uint64_t number, now_ns;
    struct kv_told late[LATE_MAX]; /* waiting reports, the oldest first */
    unsigned late_count;
    struct talk *next; /* this conversation goes on at once */
    struct kv_budget budget;
    uint64_t bytes, bytes_asked;
    uint32_t forks[SYSTEMS]; /* tokens cached at a conversation's first prompt, by system text */
    struct talk talks[TALKS];
    struct seen seen[SEEN];
    unsigned right, wrong_gone, wrong_held;
    unsigned said_in_vain; /* beliefs given while events were distrusted */
    struct sim_model *other;
    struct talk others[TALKS];
    bool reads;          /* the reader has begun */
    uint64_t until_lost; /* answers until the reader lost trust */
};

static struct world w;

/* --- belief ---------------------------------------------------------------------------------- */

static inline struct seen *seen_at(uint64_t id)
{
    uint64_t at = hash_mix(id) % SEEN;
    while (w.seen[at].id != 0 && w.seen[at].id != id)
        at = (at + 1) % SEEN;
    return &w.seen[at];
}

static inline bool on_gone(void *context, uint64_t id, uint8_t code)
{
    (void)context;
    (void)code;
    seen_at(id)->held = false;
    w.said_in_vain += kv_reader_state(w.reader) == KV_READER_CONTRADICTS;
    return true;
}

static inline void on_present(void *context, uint64_t id, uint8_t code)
{
    (void)context;
    (void)code;
    *seen_at(id) = (struct seen){id, true};
    w.said_in_vain += kv_reader_state(w.reader) == KV_READER_CONTRADICTS;
}

static inline void on_replay(void *context, uint64_t from)
{
    (void)context;
    (void)from;
}

static inline void on_cleared(void *context)
{
    (void)context;
    memset(w.seen, 0, sizeof w.seen);
}

/* --- conversations --------------------------------------------------------------------------- */

static inline void token_add(struct talk *t, uint32_t id, unsigned bytes)
{
    if (t->tokens == TOKENS)
        return;
    for (unsigned i = 0; i < bytes; i++)
        t->text[t->bytes++] = (char)hash_mix(id * 16 + i);
    t->ids[t->tokens] = id;
    t->ends[t->tokens++] = t->bytes;
}

/* Appends words of 1 to 8 bytes; `number` selects the text. */
static inline void words_add(struct talk *t, uint64_t number, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t word = hash_mix(number * 100003 + i);
        token_add(t, 16 + (uint32_t)(word % 50000), 1 + (unsigned)(word >> 40) % 8);
    }
}

static inline void turn_begin(struct talk *t, uint32_t role)
{
    token_add(t, role, 0);
    token_add(t, 3, 0);
}

static inline void talk_begin(struct talk *t)
{
    uint64_t system = prng_below(&w.prng, SYSTEMS);
    t->system = system;
    t->tokens = t->bytes = t->turns = 0;
    t->told = prng_below(&w.prng, 100) >= w.setting->past;
    turn_begin(t, 1);
    words_add(t, system, 300 + (unsigned)system * 150);
}

static inline bool question_add(struct talk *t)
{
    turn_begin(t, 2);
    words_add(t, 1000 + prng_next(&w.prng), 10 + (unsigned)prng_below(&w.prng, 400));
    turn_begin(t, 4);
    return t->tokens + 300 < TOKENS;
}

static inline void answer_add(struct talk *t)
{
    const struct sim_request *r = &t->request;
    for (unsigned i = 0; i < r->generated; i++) {
        struct slice word = sim_output_token(r->output_seed, i);
        token_add(t, sim_token_id(word), (unsigned)word.len);
    }
}

static inline uint64_t point_id(const struct talk *t, unsigned bytes)
{
    return hash64(&w.secret, t->text, bytes) & 0xffffffffffff;
}

/* The checkpoints of the talk's last prompt; returns their number. */
static inline unsigned points_of(const struct talk *t, uint64_t *ids, uint8_t *codes, unsigned *at)
{
    unsigned count = 0;
    for (; count < CHECKPOINT_MAX; count++) {
        unsigned bytes = checkpoint_blocks(count) * CHECKPOINT_BLOCK_BYTES;
        if (bytes > t->asked_bytes)
            break;
        ids[count] = point_id(t, bytes);
        codes[count] = checkpoint_code(count);
        at[count] = bytes;
    }
    return count;
}

static inline void sent(struct talk *t)
{
    uint64_t ids[CHECKPOINT_MAX];
    uint8_t codes[CHECKPOINT_MAX];
    unsigned at[CHECKPOINT_MAX];
    if (!t->told)
        return;
    unsigned count = points_of(t, ids, codes, at);
    t->tokens_told = kv_budget_ask(&w.budget, w.setting->ask, t->asked_bytes,
                                   kv_paths_want(w.paths, ids, count));
    if (t->tokens_told)
        kv_budget_spend(&w.budget, t->asked_bytes);
    w.bytes += t->asked_bytes;
    w.bytes_asked += t->tokens_told ? t->asked_bytes : 0;
    for (unsigned i = 0; i < count; i++)
        *seen_at(ids[i]) = (struct seen){ids[i], true};
    if (w.reads)
        assert_true(kv_paths_join(w.paths, 0, ids, codes, count));
}

static inline void submit(struct talk *t, struct sim_model *model)
{
    struct sim_request *r = &t->request;
    t->turns++;
    t->asked_tokens = t->tokens;
    t->asked_bytes = t->bytes;
    t->sent_ms = w.now_ns / 1000000;
    *r = (struct sim_request){.output_seed = prng_next(&w.prng),
                              .output_tokens = 1 + (uint32_t)prng_below(&w.prng, 120)};
    if (w.setting->repeats) {
        r->output_seed = t->tokens;
        r->output_tokens = 1 + t->tokens % 120;
    }
    sim_chain_init(&r->chain, w.setting->block, 0);
    r->chain.keeps_ids = true;
    for (unsigned i = 0; i < t->tokens; i++)
        sim_chain_add(&r->chain, t->ids[i]);
    t->has_request = sim_model_submit(model, r, w.now_ns) == 0;
    if (t->has_request)
        sent(t);
    else
        sim_chain_free(&r->chain);
}

static inline void request_free(struct talk *t)
{
    sim_chain_free(&t->request.chain);
    free(t->request.blocks);
    t->has_request = false;
}

static inline void tell(const struct kv_told *told)
{
    if (w.setting->late_ms == 0) {
        kv_reader_told(w.reader, told, told->ended_ms);
        return;
    }
    assert_true(w.late_count < LATE_MAX);
    w.late[w.late_count++] = *told;
}

static inline void tell_late(uint64_t now_ms)
{
    while (w.late_count > 0 && w.late[0].ended_ms + w.setting->late_ms <= now_ms) {
        kv_reader_told(w.reader, &w.late[0], now_ms);
        memmove(w.late, w.late + 1, --w.late_count * sizeof w.late[0]);
    }
}

static inline void tokens_tell(const struct talk *t, struct kv_told *told)
{
    struct kv_asked a;
    kv_asked_begin(&a, &w.secret, w.setting->block);
    for (unsigned i = 0; i < t->asked_tokens; i++)
        kv_asked_token(&a, t->ids[i]);
    told->asked_block = w.setting->block;
    told->asked_chain = a.chain;
    if (told->cached_tokens != KV_UNTOLD && told->cached_tokens > 0) {
        told->fronts = (struct kv_fronts){
            2, {kv_asked_front(&a, told->cached_tokens), kv_asked_front(&a, w.forks[t->system])}};
        told->fronts.count = told->fronts.at[0].blocks == 0   ? 0
                             : told->fronts.at[1].blocks == 0 ? 1
                                                              : 2;
    }
    kv_asked_end(&a);
}

static inline uint32_t cached_of(const struct talk *t)
{
    uint32_t cached = (uint32_t)t->request.cached_tokens;
    enum lie lie = w.setting->lie;
    if (w.setting->untold)
        return KV_UNTOLD;
    if (lie == ZERO || (lie == ZERO_LATER && w.now_ns > 20000000000))
        return 0;
    return lie == ALL ? t->asked_tokens : lie == ROUNDED ? (cached + 99) / 100 * 100 : cached;
}

static inline void ended(struct talk *t)
{
    uint64_t ids[CHECKPOINT_MAX];
    uint8_t codes[CHECKPOINT_MAX];
    unsigned at[CHECKPOINT_MAX], count = points_of(t, ids, codes, at);
    if (t->told && w.reads && count > 0) {
        struct kv_told told = {
            .end = ids[count - 1],
            .tail_bytes = t->asked_bytes - at[count - 1],
            .sent_ms = t->sent_ms,
            .ended_ms = w.now_ns / 1000000,
            .prompt_tokens = t->asked_tokens,
            .cached_tokens = cached_of(t),
            .output_tokens = t->request.generated,
            .well = true,
        };
        if (t->turns == 1 && told.cached_tokens != KV_UNTOLD)
            w.forks[t->system] = told.cached_tokens;
        if (t->tokens_told)
            tokens_tell(t, &told);
        tell(&told);
    }
    if (w.setting->late_ms > 0)
        w.next = t;
    if (!w.setting->repeats)
        answer_add(t);
    request_free(t);
}

/* --- the truth ------------------------------------------------------------------------------- */

static inline void compare(struct talk *t)
{
    uint64_t ids[CHECKPOINT_MAX];
    uint8_t codes[CHECKPOINT_MAX];
    unsigned at[CHECKPOINT_MAX], count = points_of(t, ids, codes, at), token = 0;
    struct sim_chain chain;
    if (!t->told || t->has_request)
        return;
    sim_chain_init(&chain, w.setting->block, 0);
    for (unsigned i = 0; i < t->asked_tokens; i++)
        sim_chain_add(&chain, t->ids[i]);
    size_t there = sim_cache_match(sim_model_cache(w.model), chain.blocks, chain.block_count);
    for (unsigned i = 0; i < count; i++) {
        while (token < t->asked_tokens && t->ends[token] <= at[i])
            token++;
        bool held = there >= token / w.setting->block, believed = seen_at(ids[i])->held;
        w.right += held == believed;
        w.wrong_gone += held && !believed;
        w.wrong_held += !held && believed;
    }
    sim_chain_free(&chain);
}

static inline void publish(void)
{
    struct buf payload = {0};
    if (sim_kv_events_take(w.events, 0.5, &payload)) {
        if (w.setting->zeros > 0 && w.number == w.setting->zeros)
            w.number = 0;
        if (prng_below(&w.prng, 100) >= w.setting->losses && w.reads)
            kv_reader_live(w.reader, w.number, buf_slice(&payload), w.now_ns / 1000000);
        w.number++;
    }
    buf_free(&payload);
}

static inline struct talk *talk_of(const struct sim_request *r)
{
    for (unsigned i = 0; i < TALKS; i++) {
        if (&w.talks[i].request == r)
            return &w.talks[i];
    }
    return NULL;
}

static inline bool any_under_way(void)
{
    for (unsigned i = 0; i < TALKS; i++) {
        if (w.talks[i].has_request)
            return true;
    }
    return false;
}

/* Adds a turn, or begins another conversation. */
static inline void go_on(struct talk *t, struct sim_model *model)
{
    bool again = w.setting->repeats && t->tokens > 0;
    if (!again && (t->tokens == 0 || prng_below(&w.prng, 12) == 0))
        talk_begin(t);
    t->told = t->told && model == w.model;
    if (again || question_add(t))
        submit(t, model);
    else
        t->tokens = 0;
}

/* Advances the other engine. */
static inline void other_advance(bool submits)
{
    struct talk *t = &w.others[prng_below(&w.prng, TALKS)];
    sim_model_advance(w.other, w.now_ns);
    while (sim_model_changed(w.other) != NULL)
        ;
    for (unsigned i = 0; i < TALKS; i++) {
        if (w.others[i].has_request && w.others[i].request.state == SIM_DONE)
            answer_add(&w.others[i]), request_free(&w.others[i]);
    }
    if (submits && !t->has_request)
        go_on(t, w.other);
}

static inline void talks_end(struct talk *talks, struct sim_model *model)
{
    for (unsigned i = 0; i < TALKS; i++) {
        if (!talks[i].has_request)
            continue;
        sim_model_abort(model, &talks[i].request, UINT64_MAX / 2);
        request_free(&talks[i]);
    }
}

static inline struct kv_paths *on_paths(void *context, uint32_t block_tokens, uint64_t now_ms)
{
    (void)context, (void)block_tokens, (void)now_ms;
    return w.paths;
}

/* The engine's requests fail. */
static inline void restart(void)
{
    talks_end(w.talks, w.model);
    w.next = NULL;
    sim_model_forget(w.model, false);
    sim_kv_events_forget(w.events);
    w.number = 0;
}

static inline void play(uint64_t seed, const struct setting *setting, unsigned steps)
{
    static const struct kv_reader_user user = {on_paths,   on_replay,  on_gone, on_present,
                                               on_cleared, on_cleared, NULL};
    const struct sim_model_config config = {.prefill_tokens_per_s = 2e4,
                                            .decode_base_ns = 5e6,
                                            .running_max = 8,
                                            .block_tokens = setting->block,
                                            .cache_blocks = setting->cache_blocks};
    memset(&w, 0, sizeof w);
    w.setting = setting;
    prng_seed(&w.prng, seed);
    hash_secret_from_seed(&w.secret, seed);
    assert_int_equal(kv_paths_create(&w.paths, POINTS), 0);
    assert_int_equal(
        kv_reader_create(&w.reader, &user, &w.secret, 4 * setting->cache_blocks, false), 0);
    kv_reader_speaks(w.reader, true);
    w.events = sim_kv_events_create(setting->form, 0, false);
    w.model = sim_model_create(&config);
    w.other = sim_model_create(&config);
    sim_model_watch(setting->other ? w.other : w.model, sim_kv_events_watch(w.events),
                    setting->copies);
    for (unsigned step = 0; step < steps; step++, w.now_ns += STEP_MS * 1000000ull) {
        sim_model_advance(w.model, w.now_ns);
        if (step == steps / 100 * setting->joins) {
            w.reads = true;
            kv_reader_connected(w.reader, w.now_ns / 1000000);
        }
        if (setting->restarts > 0 && step % setting->restarts == setting->restarts - 1)
            restart();
        if (setting->other)
            other_advance(step % 4 == 2);
        if (setting->forgets && step == steps / 2)
            sim_kv_events_mute(w.events, true), sim_model_forget(w.model, false),
                sim_kv_events_mute(w.events, false);
        if (!setting->events_late)
            publish();
        for (struct sim_request *r; (r = sim_model_changed(w.model)) != NULL;) {
            if (r->state == SIM_DONE)
                ended(talk_of(r));
        }
        if (setting->events_late)
            publish();
        tell_late(w.now_ns / 1000000);
        kv_reader_tick(w.reader, w.now_ns / 1000000);
        if ((step % 4 == 0 || w.next != NULL) && !(setting->one_at_a_time && any_under_way())) {
            struct talk *t = w.next != NULL ? w.next : &w.talks[prng_below(&w.prng, TALKS)];
            w.next = NULL;
            if (!t->has_request)
                go_on(t, w.model);
        }
        if (w.until_lost == 0 && kv_reader_stats(w.reader).disbelieved > 0)
            w.until_lost = kv_reader_stats(w.reader).told;
        if (step > steps / 4 && step % 10 == 0)
            compare(&w.talks[prng_below(&w.prng, TALKS)]);
        if (step % 500 == 0) {
            kv_reader_check(w.reader);
            kv_paths_check(w.paths);
        }
    }
    talks_end(w.talks, w.model);
    talks_end(w.others, w.other);
}

static inline void world_end(void)
{
    sim_model_destroy(w.other);
    sim_model_destroy(w.model);
    sim_kv_events_destroy(w.events);
    kv_reader_destroy(w.reader);
    kv_paths_destroy(w.paths);
}

/* The share of right beliefs among all checkpoints looked at, in percent. */
static inline double right_share(void)
{
    return 100.0 * w.right / (w.right + w.wrong_gone + w.wrong_held);
}

static inline double wrong_gone_share(void)
{
    return 100.0 * w.wrong_gone / (w.right + w.wrong_gone + w.wrong_held);
}

/* The share of answers with known blocks, in percent. */
static inline double tied_share(void)
{
    struct kv_reader_stats t = kv_reader_stats(w.reader);
    return 100.0 * (double)t.tied / (double)t.told;
}

#endif
