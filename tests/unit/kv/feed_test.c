#include "node/kv/feed.h"

#include "tests/lib/test.h"

#include <stdio.h>

#include "base/prng.h"

/* A small engine: the payload is the engine's life and the message's number. */
struct payload {
    uint64_t life, number;
};

static struct hash_secret secret;
static struct kv_feed *feed;
static char heard[512]; /* numbers handed over; ! missed, * began, + again, ?N requested from N */
static bool strict;     /* messages must follow each other unless reported missed */
static bool any;        /* any number may come next */
static struct payload last;

static void note(const char *text)
{
    if (strlen(heard) + strlen(text) + 2 < sizeof heard) {
        strcat(heard, text);
        strcat(heard, " ");
    }
}

static int on_message(void *context, struct slice payload)
{
    (void)context;
    struct payload p;
    char text[32];
    if (payload.len != sizeof p)
        return ERR_SYNTAX;
    memcpy(&p, payload.at, sizeof p);
    if (strict && !any) {
        assert_int_equal(p.life, last.life);
        assert_int_equal(p.number, last.number + 1);
    }
    last = p;
    any = false;
    (void)snprintf(text, sizeof text, "%u", (unsigned)p.number);
    note(text);
    return 0;
}

static void on_missed(void *context)
{
    (void)context;
    any = true;
    note("!");
}

static void on_began(void *context, bool again)
{
    (void)context;
    any = true;
    note(again ? "+" : "*");
}

static void on_replay(void *context, uint64_t from)
{
    char text[32];
    uint64_t *wanted = context;
    *wanted = from;
    (void)snprintf(text, sizeof text, "?%u", (unsigned)from);
    note(text);
}

enum { NOT_ASKED = -1 };
static uint64_t asked;
static const struct kv_feed_user user = {on_message, on_missed, on_began, on_replay, &asked};

static void begin(bool has_replay)
{
    hash_secret_from_seed(&secret, 1);
    asked = (uint64_t)NOT_ASKED;
    heard[0] = '\0';
    any = true;
    strict = false;
    assert_int_equal(kv_feed_create(&feed, &user, &secret, has_replay), 0);
}

static void end(void)
{
    kv_feed_check(feed);
    kv_feed_destroy(feed);
}

static void send(unsigned number, bool replay, uint64_t life, uint64_t now_ms)
{
    const struct payload p = {life, number};
    struct slice bytes = slice_of((const char *)&p, sizeof p);
    if (replay)
        kv_feed_replayed(feed, number, bytes, now_ms);
    else
        kv_feed_live(feed, number, bytes, now_ms);
    kv_feed_check(feed);
}

static void resume(void)
{
    const struct payload p = {0, 4};
    uint64_t hash = hash64(&secret, &p, sizeof p);
    kv_feed_resume(feed, 5, hash);
    assert_int_equal(kv_feed_next(feed), 5);
    assert_true(kv_feed_last(feed) == hash);
}

/* Steps: a number is a live message, rN a replayed message, e the replay's end, c: the subscription
 * is open. t: a second passes, T: the replay's time is over, x: an unreadable message comes next.
 * R: another engine, K: go on behind number 4 of an earlier life, p: proven, q: not proven. Numbers
 * from 1000 on are a second engine's. */
static void play(bool has_replay, const char *steps, const char *wanted)
{
    uint64_t now_ms = 10000;
    begin(has_replay);
    for (const char *at = steps; *at != '\0'; at++) {
        bool replay = *at == 'r';
        char *rest = NULL;
        if (replay)
            at++;
        if (*at >= '0' && *at <= '9') {
            unsigned number = (unsigned)strtoul(at, &rest, 10);
            send(number % 1000, replay, number / 1000, now_ms);
            at = rest - (*rest == '\0');
        } else if (*at == 'e')
            kv_feed_replay_ended(feed, now_ms);
        else if (*at == 'c')
            kv_feed_connected(feed, now_ms);
        else if (*at == 'R')
            kv_feed_restarted(feed);
        else if (*at == 'K')
            resume();
        else if (*at == 'p' || *at == 'q') /* proven or not */
            assert_true(kv_feed_is_proven(feed) == (*at == 'p'));
        else if (*at == 'x')
            kv_feed_live(feed, kv_feed_next(feed), SLICE("?"), now_ms);
        else if (*at == 't' || *at == 'T') {
            now_ms += *at == 't' ? KV_REPLAY_PAUSE_MS : KV_REPLAY_TIMEOUT_MS;
            if (now_ms >= kv_feed_due_ms(feed))
                kv_feed_tick(feed, now_ms);
        }
    }
    if (strcmp(heard, wanted) != 0)
        fail_msg("%s: %s, not %s", steps, heard, wanted);
    end();
}

static void test_without_a_replay_endpoint(void **state)
{
    (void)state;
    play(false, "c 0 1 2", "* 0 1 2 ");
    play(false, "c 5 6", "! 5 6 ");
    play(false, "c 0 1 3 4", "* 0 1 ! 3 4 ");
    play(false, "c 0 1 1 2", "* 0 1 2 "); /* twice */
    play(false, "c 0 1 2 1000 1001", "* 0 1 2 + 0 1 ");
    play(false, "c 0 1 2 c 1001", "* 0 1 2 ! ! 1 ");
    play(false, "c 0 1 2 0", "* 0 1 2 + 0 ");
    play(false, "c 0 1 2 R c 1001", "* 0 1 2 * ! 1 ");
    play(false, "c 0 x 2", "* 0 ! 2 "); /* an unreadable message is missed */
}

static void test_with_a_replay_endpoint(void **state)
{
    (void)state;
    play(true, "c e 0 1", "?0 * 0 1 ");
    play(true, "c r0 r1 e 2", "?0 * 0 1 2 ");
    play(true, "c 2 r0 r1 r2 3 e 4", "?0 * 0 1 2 3 4 ");   /* live messages meanwhile */
    play(true, "c r0 r1 r2 e 1 2 3 4", "?0 * 0 1 2 3 4 "); /* and late messages */
    play(true, "c r0 r1 e 0 1 2", "?0 * 0 1 2 ");
    play(true, "c r0 r1 r2 e 1 2 1001 t", "?0 * 0 1 2 ! ?0 "); /* but once */
    play(true, "c r0 r1 r2 e 3 1 t", "?0 * 0 1 2 3 ! ?0 ");
    play(true, "c r0 r1 r2 e 2 1000 1001", "?0 * 0 1 2 + 0 1 ");
    play(true, "c r0 r1 r2 e t c T 1001 t", "?0 * 0 1 2 ?2 ! ?0 ");
    play(true, "c e 3 t r0 r1 r2 r3 e 4", "?0 ?0 * 0 1 2 3 4 ");
    play(true, "c r5 r6 e 7", "?0 ! 5 6 7 "); /* the replay does not reach back */
    play(true, "c e 0 1 4 t r1 r2 r3 r4 e 5", "?0 * 0 1 ?1 2 3 4 5 ");
    play(true, "c e 0 1 4 t r1 r3 r4 e 5", "?0 * 0 1 ?1 ! 3 4 5 ");
    play(true, "c e 0 1 4 t r1 e 5", "?0 * 0 1 ?1 ! 4 5 ");
    play(true, "c e 0 1 4 t 5 T 6", "?0 * 0 1 ?1 ! 4 5 6 "); /* nobody answers */
    play(true, "c e 0 1 4 t 5 7 T r1 r2 e 8", "?0 * 0 1 ?1 ! 4 5 ! 7 8 ");
}

static void test_a_restarted_engine(void **state)
{
    (void)state;
    play(true, "c e 0 1 t c r1 e 2", "?0 * 0 1 ?1 2 ");
    /* The new engine has passed the last known number, so message 1 is a different message. */
    play(true, "c e 0 1 t c r1001 r1002 e 1003", "?0 * 0 1 ?1 ! 1 2 3 ");
    /* The new engine has not passed the last known number: the first number is smaller. */
    play(true, "c e 0 1 2 3 t c e 1001 t r1000 r1001 e 1002", "?0 * 0 1 2 3 ?3 ! ?0 + 0 1 2 ");
    /* The engine began while a replay was awaited. */
    play(true, "c e 0 1 4 t 1000 1001", "?0 * 0 1 ?1 + 0 1 ");
}

/* 1 message a second: a replay ends after a while, and sooner if the same message comes again and
 * again. */
static void test_a_slow_replay_is_abandoned(void **state)
{
    (void)state;
    for (unsigned same = 0; same <= 1; same++) {
        uint64_t now_ms = 10000, began_ms = now_ms;
        unsigned number = 0;
        begin(true);
        kv_feed_connected(feed, now_ms);
        send(5000, false, 0, now_ms);
        while (kv_feed_state(feed) == KV_FEED_REPLAYS) {
            now_ms += 1000;
            send(same ? 0 : number++, true, 0, now_ms);
            if (now_ms >= kv_feed_due_ms(feed))
                kv_feed_tick(feed, now_ms);
            assert_true(now_ms - began_ms <= KV_SETTLE_MS);
        }
        uint64_t lasted_ms = now_ms - began_ms;
        assert_int_equal(lasted_ms, same ? 1000 + KV_REPLAY_TIMEOUT_MS : KV_SETTLE_MS);
        assert_int_equal(kv_feed_next(feed), 5001);      /* continues with the messages since, */
        assert_int_equal(kv_feed_stats(feed).missed, 1); /* whose first does not follow */
        end();
    }
}

/* --- drawn ----------------------------------------------------------------------------------- */

struct engine {
    uint64_t life, next, oldest; /* the next number; the oldest number in a replay */
};

static void publish(struct engine *e, bool arrives, uint64_t now_ms)
{
    if (arrives)
        send((unsigned)e->next, false, e->life, now_ms);
    e->next++;
    if (e->next > e->oldest + 20)
        e->oldest++;
}

static void test_a_feed_resumes_after_a_router_restart(void **state)
{
    (void)state;
    /* The replay has the last known message, and the messages since. */
    play(true, "K q c q r4 p r5 r6 e 7", "?4 5 6 7 ");
    play(true, "K c r4 e p 5", "?4 5 ");           /* a quiet engine */
    play(true, "K c 6 r4 r5 r6 e 7", "?4 5 6 7 "); /* an active engine */
    play(true, "K c 6 r4 e p", "?4 ! 6 ");         /* 5 is nowhere */
    /* The message is gone, or is another engine's; or no reply comes. */
    play(true, "K c q r6 p r7 e", "?4 ! 6 7 ");
    play(true, "K c r1004 p r1005 e", "?4 ! 4 5 ");
    play(true, "K c q T p 5", "?4 ! 5 ");
    play(true, "K c 5 q T p", "?4 ! 5 ");
    play(true, "K c e p t r1000 r1001 e", "?4 ! ?0 + 0 1 ");
    /* The engine restarted. */
    play(true, "K c q R p 1000", "?4 * * 0 ");
    play(true, "K c 1000 q T p", "?4 ! + 0 ");
    /* Without a replay nothing can be proven, and nothing waits for proof. */
    play(false, "K p c 5 6", "5 6 ");
    play(false, "K c 7", "! 7 ");
}

static void test_random_sequences(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 3);
    for (unsigned round = 0; round < TEST_ROUNDS(400); round++) {
        bool has_replay = round % 2 == 0, open = false;
        struct engine engine = {1, prng_below(&prng, 4) * 10, 0};
        uint64_t now_ms = 10000;
        begin(has_replay);
        strict = true;
        for (unsigned step = 0; step < 300; step++) {
            unsigned what = (unsigned)prng_below(&prng, 100);
            now_ms += prng_below(&prng, 300);
            if (!open) {
                open = what < 30;
                if (open)
                    kv_feed_connected(feed, now_ms);
                else if (what < 80)
                    publish(&engine, false, now_ms);
            } else if (what < 85)
                publish(&engine, what < 80, now_ms);
            else if (what < 88)
                open = false;
            else if (what < 90) {
                engine = (struct engine){engine.life + 1, prng_below(&prng, 3) * 40, 0};
                engine.oldest = engine.next;
                open = false;
                if (!has_replay || what == 89)
                    kv_feed_restarted(feed);
            } else if (what < 92 && engine.next > 0 && open)
                send((unsigned)engine.next - 1, false, engine.life, now_ms); /* twice */
            if (now_ms >= kv_feed_due_ms(feed))
                kv_feed_tick(feed, now_ms);
            if (open && asked != (uint64_t)NOT_ASKED && prng_below(&prng, 3) == 0) {
                bool all = prng_below(&prng, 5) > 0;
                uint64_t from = asked > engine.oldest ? asked : engine.oldest;
                asked = (uint64_t)NOT_ASKED;
                for (uint64_t n = from; n < engine.next && all; n++)
                    send((unsigned)n, true, engine.life, now_ms);
                if (all)
                    kv_feed_replay_ended(feed, now_ms);
            }
            kv_feed_check(feed);
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_replay_endpoint),
        cmocka_unit_test(test_with_a_replay_endpoint),
        cmocka_unit_test(test_a_restarted_engine),
        cmocka_unit_test(test_a_feed_resumes_after_a_router_restart),
        cmocka_unit_test(test_a_slow_replay_is_abandoned),
        cmocka_unit_test(test_random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
