/* The cost of clients' keys per request: finding a key among ten thousand, the limits, and counting
 * at the end; and the cost of an unknown key.
 *
 *   build/tests/bench/keys_bench [KEYS] */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/prng.h"
#include "node/access/access.h"

enum { KEYS = 10000, REQUESTS = 1000000, ROUNDS = 5, ROUTERS = 16, KEY_BYTES = 46 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char (*secrets)[KEY_BYTES + 1]; /* as long as real secrets */

static struct access *access_of(unsigned keys, const char *options)
{
    struct buf text = {0};
    for (unsigned i = 0; i < keys; i++) {
        struct access_digest d = access_digest_of(slice_of(secrets[i], KEY_BYTES));
        CHECK(buf_printf(&text, "client-%u blake2b:", i) == 0);
        for (unsigned k = 0; k < sizeof d.bytes; k++)
            CHECK(buf_printf(&text, "%02x", d.bytes[k]) == 0);
        CHECK(buf_printf(&text, "%s\n", options) == 0);
    }
    struct access *a;
    struct access_table *t;
    char message[ACCESS_MESSAGE_BYTES];
    double begun = now_ns();
    CHECK(access_table_create(&t, buf_slice(&text), message) == 0);
    printf("table of %u keys, %zu KB: %.1f ms\n", keys, text.len / 1024, (now_ns() - begun) / 1e6);
    buf_free(&text);
    CHECK(access_create(&a) == 0);
    begun = now_ns();
    access_take(a, t);
    printf("  taken: %.2f ms\n", (now_ns() - begun) / 1e6);
    return a;
}

/* Publishes counts of fifteen other routers for each key. */
static void others_publish(struct access *a, unsigned keys, const char *options)
{
    struct access *other = access_of(keys, options);
    struct buf news = {0};
    unsigned wait;
    for (unsigned i = 0; i < keys; i++) {
        struct access_key *k = access_find(other, slice_of(secrets[i], KEY_BYTES));
        CHECK(access_begin(other, k, 1, &wait) == ACCESS_GOOD);
        access_end(other, k);
    }
    for (;;) {
        buf_clear(&news);
        CHECK(access_news_write(other, 1, &news) == 0);
        if (news.len == 0)
            break;
        for (uint64_t router = 1; router < ROUTERS; router++)
            CHECK(access_news_read(a, router, buf_slice(&news), 1) == 0);
    }
    buf_free(&news);
    access_destroy(other);
}

/* Takes the best of some rounds, in ns a request. */
static double measure(struct access *a, unsigned keys, bool known)
{
    static const struct access_tokens tokens = {.prompt = 1000, .completion = 100};
    double best = 1e18;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct prng prng;
        prng_seed(&prng, round);
        double begun = now_ns();
        for (unsigned n = 0; n < REQUESTS; n++) {
            char secret[KEY_BYTES];
            unsigned wait;
            memcpy(secret, secrets[prng_below(&prng, keys)], KEY_BYTES);
            secret[0] = known ? secret[0] : 'x';
            struct access_key *k = access_find(a, slice_of(secret, KEY_BYTES));
            CHECK((k != NULL) == known);
            if (k == NULL)
                continue;
            access_key_hold(k);
            CHECK(access_begin(a, k, 1 + n / 1000, &wait) == ACCESS_GOOD);
            access_tokens(a, k, &tokens, 1 + n / 1000);
            access_end(a, k);
            access_key_drop(k);
        }
        double ns = (now_ns() - begun) / REQUESTS;
        best = ns < best ? ns : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const char limits[] =
        " requests-per-minute=1000000000 tokens-per-minute=1000000000 in-flight=1000";
    unsigned keys = argc > 1 ? (unsigned)atoi(argv[1]) : KEYS;
    CHECK(sodium_init() >= 0 && keys > 0 && keys <= ACCESS_KEYS_MAX);
    secrets = calloc(keys, sizeof *secrets);
    CHECK(secrets != NULL);
    for (unsigned i = 0; i < keys; i++)
        (void)snprintf(secrets[i], sizeof *secrets, "gv-%043u", i);
    struct access *a = access_of(keys, "");
    printf("a request with a key:                      %4.0f ns\n", measure(a, keys, true));
    printf("one with a key that is nobody's:           %4.0f ns\n", measure(a, keys, false));
    access_destroy(a);
    a = access_of(keys, limits);
    printf("with three limits:                         %4.0f ns\n", measure(a, keys, true));
    others_publish(a, keys, limits);
    printf("the same, and what %d other routers count: %4.0f ns\n", ROUTERS - 1,
           measure(a, keys, true));
    access_destroy(a);
    free(secrets);
    return 0;
}
